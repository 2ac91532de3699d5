//! The books of the `scale` subresource, which is an object of its own that shares one field with its parent
//! (apimachinery v0.34 `util/managedfields/scalehandler.go`).
//!
//! A write to `scale` is one to a `Scale` that got its books from [`to_scale`], and gives them back to the parent with
//! [`to_parent`]. As on the server, what comes back has no time, and an updater of the parent that kept its replicas
//! gets a second entry for them.

use super::entries::{Entry, Managers};
use crate::object::Object;
use crate::patch::fields::{FieldSet, PathElement};

const SCALE_VERSION: &str = "autoscaling/v1";
const SCALE_REPLICAS: [&str; 2] = ["spec", "replicas"];

/// Where a kind has its replicas.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scaling<'a> {
    /// The version of the parent: `apps/v1`.
    pub(crate) api_version: &'a str,
    /// The path of the parent's replicas.
    pub(crate) replicas: &'a [&'a str],
}

impl Scaling<'_> {
    fn path(&self) -> Vec<PathElement> {
        self.replicas.iter().map(|name| PathElement::Field((*name).to_owned())).collect()
    }
}

/// Writes what managers of the parent have of its replicas into the books of a `Scale`.
pub(crate) fn to_scale(scaling: Scaling<'_>, parent: &Object, scale: &mut Object) {
    let mut managers = Managers::of(Some(parent)).unwrap_or_default();
    managers.retain(|_, entry| {
        let has_replicas = entry.api_version == scaling.api_version && entry.fields.contains(&scaling.path());
        SCALE_VERSION.clone_into(&mut entry.api_version);
        entry.fields = FieldSet::of(&[&SCALE_REPLICAS]);
        has_replicas
    });
    managers.write(scale);
}

/// Writes the books of a `Scale` into those of its parent.
pub(crate) fn to_parent(scaling: Scaling<'_>, scale: &Object, parent: &mut Object) {
    let before = Managers::of(Some(parent)).unwrap_or_default();
    let mut scaled = Managers::of(Some(scale)).unwrap_or_default();
    let (path, replicas) = (scaling.path(), FieldSet::of(&[scaling.replicas]));
    let mut managers = before.clone();
    managers.retain(|identity, entry| {
        let has_replicas = entry.api_version == scaling.api_version && entry.fields.contains(&path);
        if has_replicas && scaled.remove(identity).is_none() {
            entry.fields = entry.fields.difference(&replicas);
        }
        entry.api_version == scaling.api_version && !entry.fields.is_empty()
    });
    for (identity, entry) in scaled.iter() {
        if !entry.fields.intersection(&FieldSet::of(&[&SCALE_REPLICAS])).is_empty() {
            let time = before.get(identity).and_then(|entry| entry.time.clone());
            let fields = replicas.clone();
            managers.insert(identity.clone(), Entry { api_version: scaling.api_version.to_owned(), fields, time });
        }
    }
    managers.write(parent);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const REPLICA_SET: Scaling<'_> = Scaling { api_version: "apps/v1", replicas: &["spec", "replicas"] };

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    fn parent() -> Object {
        object(json!({"metadata": {"managedFields": [{
            "manager": "x", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-11-16T02:53:32Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}, "f:selector": {}}},
        }]}}))
    }

    #[test]
    fn a_scale_has_the_managers_of_the_replicas() {
        let mut scale = Object::default();
        to_scale(REPLICA_SET, &parent(), &mut scale);
        let entry = &scale.list(&["metadata", "managedFields"])[0];
        assert_eq!((&entry["apiVersion"], &entry["manager"]), (&json!("autoscaling/v1"), &json!("x")));
        assert_eq!(entry["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
        assert_eq!(entry["time"], json!("2026-11-16T02:53:32Z"));
    }

    #[test]
    fn who_scales_takes_the_replicas() {
        let mut parent = parent();
        let scale = object(json!({"metadata": {"managedFields": [{
            "manager": "y", "operation": "Update", "apiVersion": "autoscaling/v1", "time": "2026-11-16T02:53:40Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}}, "subresource": "scale",
        }]}}));
        to_parent(REPLICA_SET, &scale, &mut parent);
        assert_eq!(
            parent.list(&["metadata", "managedFields"]),
            [
                json!({"manager": "y", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:spec": {"f:replicas": {}}}, "subresource": "scale"}),
                json!({"manager": "x", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:spec": {"f:selector": {}}}, "time": "2026-11-16T02:53:32Z"}),
            ]
        );
    }

    #[test]
    fn a_scale_that_changes_nothing_splits_an_entry() {
        let (mut parent, mut scale) = (parent(), Object::default());
        to_scale(REPLICA_SET, &parent, &mut scale);
        to_parent(REPLICA_SET, &scale, &mut parent);
        let books = parent.list(&["metadata", "managedFields"]);
        assert_eq!(books[0]["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
        assert_eq!(books[0].get("time"), None);
        assert_eq!(books[1]["fieldsV1"], json!({"f:spec": {"f:selector": {}}}));
        assert_eq!(books[1]["manager"], books[0]["manager"]);
    }
}
