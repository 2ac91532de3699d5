//! An API object: a JSON object, with the accessors that every verb needs.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A Kubernetes object as JSON. It is always a JSON object, never another JSON value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Object(Map<String, Value>);

/// The part of an owner reference that garbage collection acts on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner<'a> {
    /// `apiVersion` of the owner.
    pub api_version: &'a str,
    /// `kind` of the owner.
    pub kind: &'a str,
    /// Name of the owner.
    pub name: &'a str,
    /// Uid of the owner.
    pub uid: &'a str,
    /// Whether this owner is the managing controller.
    pub controller: bool,
    /// Whether a foreground deletion of the owner waits for this object.
    pub blocks_deletion: bool,
}

impl Object {
    /// Takes a JSON value, or gives it back if it is not a JSON object.
    pub fn from_value(value: Value) -> Result<Self, Value> {
        match value {
            Value::Object(map) => Ok(Self(map)),
            other => Err(other),
        }
    }

    /// The object as a JSON value.
    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    /// The fields of the object.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The fields of the object, to change.
    pub fn fields_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }

    /// A top-level field.
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.0.get(field)
    }

    /// The value at a path of field names.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.0.get(*first)?, |value, field| value.get(field))
    }

    /// The string at a path, empty when there is none.
    pub fn text(&self, path: &[&str]) -> &str {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// The integer at a path.
    pub fn integer(&self, path: &[&str]) -> Option<i64> {
        self.at(path).and_then(Value::as_i64)
    }

    /// The list at a path, empty when there is none.
    pub fn list(&self, path: &[&str]) -> &[Value] {
        self.at(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Puts a value at a path, making the objects on the way.
    pub fn set(&mut self, path: &[&str], value: impl Into<Value>) {
        if let Some((last, parents)) = path.split_last() {
            self.map_at(parents).insert((*last).to_owned(), value.into());
        }
    }

    /// Takes the value at a path away.
    pub fn remove(&mut self, path: &[&str]) -> Option<Value> {
        let (last, parents) = path.split_last()?;
        let mut map = &mut self.0;
        for field in parents {
            map = map.get_mut(*field)?.as_object_mut()?;
        }
        map.remove(*last)
    }

    /// The JSON object at a path, made where it is absent or something else.
    pub fn map_at(&mut self, path: &[&str]) -> &mut Map<String, Value> {
        path.iter().fold(&mut self.0, |map, field| object_entry(map, field))
    }

    /// `apiVersion`.
    pub fn api_version(&self) -> &str {
        self.text(&["apiVersion"])
    }

    /// `kind`.
    pub fn kind(&self) -> &str {
        self.text(&["kind"])
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.text(&["metadata", "name"])
    }

    /// `metadata.namespace`, empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.text(&["metadata", "namespace"])
    }

    /// `metadata.uid`.
    pub fn uid(&self) -> &str {
        self.text(&["metadata", "uid"])
    }

    /// `metadata.resourceVersion`.
    pub fn resource_version(&self) -> &str {
        self.text(&["metadata", "resourceVersion"])
    }

    /// `metadata.generation`.
    pub fn generation(&self) -> i64 {
        self.integer(&["metadata", "generation"]).unwrap_or_default()
    }

    /// The metadata, to change.
    pub fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        object_entry(&mut self.0, "metadata")
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.at(&["metadata", "labels", key]).and_then(Value::as_str)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.at(&["metadata", "annotations", key]).and_then(Value::as_str)
    }

    /// All labels.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        strings(self.at(&["metadata", "labels"]))
    }

    /// `metadata.finalizers`.
    pub fn finalizers(&self) -> impl Iterator<Item = &str> {
        self.list(&["metadata", "finalizers"]).iter().filter_map(Value::as_str)
    }

    /// Whether deletion has been asked for.
    pub fn is_being_deleted(&self) -> bool {
        !self.text(&["metadata", "deletionTimestamp"]).is_empty()
    }

    /// `metadata.ownerReferences`.
    pub fn owners(&self) -> impl Iterator<Item = Owner<'_>> {
        fn text<'a>(owner: &'a Value, field: &str) -> &'a str {
            owner.get(field).and_then(Value::as_str).unwrap_or_default()
        }
        fn flag(owner: &Value, field: &str) -> bool {
            owner.get(field).and_then(Value::as_bool).unwrap_or_default()
        }
        self.list(&["metadata", "ownerReferences"]).iter().map(|owner| Owner {
            api_version: text(owner, "apiVersion"),
            kind: text(owner, "kind"),
            name: text(owner, "name"),
            uid: text(owner, "uid"),
            controller: flag(owner, "controller"),
            blocks_deletion: flag(owner, "blockOwnerDeletion"),
        })
    }
}

impl From<Map<String, Value>> for Object {
    fn from(map: Map<String, Value>) -> Self {
        Self(map)
    }
}

/// The JSON object in a field of `map`, made where it is absent or something else.
pub(crate) fn object_entry<'a>(map: &'a mut Map<String, Value>, field: &str) -> &'a mut Map<String, Value> {
    let entry = map.entry(field.to_owned()).or_insert_with(|| Value::Object(Map::new()));
    if !entry.is_object() {
        *entry = Value::Object(Map::new());
    }
    match entry {
        Value::Object(map) => map,
        _ => unreachable!("made an object above"),
    }
}

/// The string entries of a JSON object.
pub(crate) fn strings(value: Option<&Value>) -> impl Iterator<Item = (&str, &str)> {
    value
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn set_replaces_what_is_in_the_way() {
        let mut object = Object::from_value(json!({"spec": "text"})).unwrap();
        object.set(&["spec", "replicas"], 2);
        assert_eq!(object.integer(&["spec", "replicas"]), Some(2));
        assert_eq!(object.remove(&["spec", "replicas"]), Some(json!(2)));
        assert_eq!(object.remove(&["spec", "replicas", "more"]), None);
    }
}
