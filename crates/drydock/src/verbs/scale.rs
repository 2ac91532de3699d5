//! `/scale`: the number of replicas of whatever has replicas, as a `Scale`.

use super::write::{Source, Write};
use crate::body;
use crate::cluster::{Cluster, Reply};
use crate::kinds::Kind;
use crate::object::Object;
use crate::request::Request;
use crate::schema::Schema;
use crate::selector::LabelSelector;
use crate::status::Status;
use crate::store::Key;
use serde_json::{Map, Value, json};
use std::sync::{Arc, LazyLock};

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::built_in("io.k8s.api.autoscaling.v1.Scale"));

impl Cluster {
    pub(crate) fn get_scale(&self, kind: &Kind, object: &Object) -> Result<Reply, Status> {
        Ok(Reply::other(200, scale_of(kind, object).into_value()))
    }

    pub(crate) fn update_scale(&mut self, request: &Request, write: &Write<'_>) -> Result<Reply, Status> {
        let scale = body::read_other(&request.body, &SCHEMA, "Scale", "v1")?;
        super::update::check_name(scale.name(), request.target.object_name())?;
        self.change_scale(request, write, |_| Ok(scale))
    }

    /// Changes the replicas of an object by changing its `Scale`.
    pub(crate) fn change_scale(
        &mut self,
        request: &Request,
        write: &Write<'_>,
        change: impl FnOnce(Object) -> Result<Object, Status>,
    ) -> Result<Reply, Status> {
        let target = &request.target;
        let kind = Arc::clone(&target.kind);
        let key = Key::new(target.storage_namespace(), target.object_name());
        let replicas = kind.scale_paths().ok_or_else(Status::unknown_resource)?.spec;
        let write = Write { subresource: Some("scale"), ..write.clone() };
        let object = self.modify(&kind, &key, &write, Source::Update, |_, old| {
            let scale = change(scale_of(&kind, old))?;
            let mut new = Object::clone(old);
            let wanted = scale.integer(&["spec", "replicas"]).unwrap_or_default();
            if wanted < 0 {
                let path = crate::field::Path::new("spec").child("replicas");
                let error = crate::field::FieldError::invalid(&path, wanted, "must be greater than or equal to 0");
                return Err(Status::invalid(&kind, old.name(), &[error]));
            }
            let path: Vec<&str> = replicas.iter().map(String::as_str).collect();
            new.set(&path, wanted);
            new.set(&["metadata", "resourceVersion"], scale.resource_version());
            Ok(new)
        })?;
        self.get_scale(&kind, &object)
    }
}

fn scale_of(kind: &Kind, object: &Object) -> Object {
    let paths = kind.scale_paths().unwrap_or_default();
    let number = |path: &[String]| {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        object.integer(&path)
    };
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.at(&["metadata", field]) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let mut spec = Map::new();
    if let Some(replicas) = number(&paths.spec).filter(|replicas| *replicas != 0) {
        spec.insert("replicas".to_owned(), replicas.into());
    }
    let mut status = Map::new();
    status.insert("replicas".to_owned(), number(&paths.status).unwrap_or_default().into());
    let selector: Vec<&str> = paths.selector.iter().map(String::as_str).collect();
    let selector = match object.at(&selector) {
        Some(Value::String(text)) => text.clone(),
        Some(object @ Value::Object(_)) if kind.kind == "ReplicationController" => {
            LabelSelector::from_object(&json!({"matchLabels": object})).unwrap_or_default().to_string()
        }
        Some(object) => LabelSelector::from_object(object).unwrap_or_default().to_string(),
        None => String::new(),
    };
    if !selector.is_empty() {
        status.insert("selector".to_owned(), selector.into());
    }
    let scale =
        json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status});
    Object::from_value(scale).unwrap_or_default()
}
