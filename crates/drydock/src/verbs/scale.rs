//! `/scale`: the number of replicas of whatever has replicas, as a `Scale`.

use super::write::{Source, Write};
use crate::body;
use crate::cluster::{Cluster, Reply};
use crate::field::{FieldError, Path};
use crate::kinds::Kind;
use crate::kinds::behaviour::ScalePaths;
use crate::object::Object;
use crate::patch;
use crate::patch::fields::Tracked;
use crate::patch::managers::{self, Manager, scale::Scaling};
use crate::request::Request;
use crate::schema::Schema;
use crate::selector::LabelSelector;
use crate::status::Status;
use crate::store::Key;
use serde_json::{Map, Value, json};
use std::sync::{Arc, LazyLock};

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::built_in("io.k8s.api.autoscaling.v1.Scale"));
const SCALE_VERSION: &str = "autoscaling/v1";

impl Cluster {
    pub(crate) fn update_scale(&mut self, request: &Request, write: &Write<'_>) -> Result<Reply, Status> {
        let sent = body::read_other(&request.body, &SCHEMA, "Scale", "v1")?;
        super::update::check_name(sent.name(), request.target.object_name())?;
        self.change_scale(request, write, |books, old| {
            let mut new = sent;
            managers::track_update(books, Some(old), &mut new);
            Ok(new)
        })
    }

    pub(crate) fn patch_scale(
        &mut self,
        request: &Request,
        write: &Write<'_>,
        change: impl FnOnce(&Schema, &mut Value) -> Result<(), Status>,
    ) -> Result<Reply, Status> {
        self.change_scale(request, write, |books, old| {
            let mut value = old.clone().into_value();
            change(&SCHEMA, &mut value)?;
            let mut new = Object::from_value(value).map_err(|_| Status::bad_request("a Scale is an object"))?;
            managers::track_update(books, Some(old), &mut new);
            Ok(new)
        })
    }

    pub(crate) fn apply_scale(
        &mut self,
        request: &Request,
        write: &Write<'_>,
        applied: &Object,
        force: bool,
    ) -> Result<Reply, Status> {
        self.change_scale(request, write, |books, old| patch::apply::apply(books, "Scale", Some(old), applied, force))
    }

    /// Changes the replicas of an object by changing its `Scale`.
    fn change_scale(
        &mut self,
        request: &Request,
        write: &Write<'_>,
        change: impl FnOnce(&managers::Write<'_>, &Object) -> Result<Object, Status>,
    ) -> Result<Reply, Status> {
        let target = &request.target;
        let kind = Arc::clone(&target.kind);
        let key = Key::new(target.storage_namespace(), target.object_name());
        let paths = kind.scale_paths().ok_or_else(Status::unknown_resource)?;
        let write = Write { tracked: false, ..write.clone() };
        let object = self.modify(&kind, &key, &write, Source::Patch, |cluster, old| {
            let replicas: Vec<&str> = paths.spec.iter().map(String::as_str).collect();
            let api_version = kind.api_version();
            let scaling = Scaling { api_version: &api_version, replicas: &replicas };
            let mut scale = scale_of(&kind, &paths, old);
            managers::scale::to_scale(scaling, old, &mut scale);
            let manager = Manager {
                name: write.manager.clone(),
                api_version: SCALE_VERSION.to_owned(),
                subresource: "scale".to_owned(),
            };
            let books = managers::Write {
                schema: SCHEMA.root(),
                manager: &manager,
                now: cluster.now,
                tracked: &Tracked::All,
                versions: None,
            };
            let scale = change(&books, &scale)?;
            let wanted = scale.integer(&["spec", "replicas"]).unwrap_or_default();
            if wanted < 0 {
                let path = Path::new("spec").child("replicas");
                let error = FieldError::invalid(&path, wanted, "must be greater than or equal to 0");
                return Err(Status::invalid(&kind, old.name(), &[error]));
            }
            let mut new = Object::clone(old);
            new.set(&replicas, wanted);
            new.set(&["metadata", "resourceVersion"], scale.resource_version());
            managers::scale::to_parent(scaling, &scale, &mut new);
            Ok(new)
        })?;
        get_scale(&kind, &object)
    }
}

/// The replicas of an object as a `Scale`.
pub(super) fn get_scale(kind: &Kind, object: &Object) -> Result<Reply, Status> {
    let paths = kind.scale_paths().ok_or_else(Status::unknown_resource)?;
    Ok(Reply::other(200, scale_of(kind, &paths, object).into_value()))
}

fn at<'a>(object: &'a Object, path: &[String]) -> Option<&'a Value> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    object.at(&path)
}

fn scale_of(kind: &Kind, paths: &ScalePaths, object: &Object) -> Object {
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.at(&["metadata", field]) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let number = |path: &[String]| at(object, path).and_then(Value::as_i64).unwrap_or_default();
    let mut spec = Map::new();
    if number(&paths.spec) != 0 {
        spec.insert("replicas".to_owned(), number(&paths.spec).into());
    }
    let mut status = Map::new();
    status.insert("replicas".to_owned(), number(&paths.status).into());
    let selector = match at(object, &paths.selector) {
        Some(Value::String(text)) => text.clone(),
        Some(labels) if kind.kind == "ReplicationController" => shown(&json!({"matchLabels": labels})),
        Some(selector) => shown(selector),
        None => String::new(),
    };
    if !selector.is_empty() {
        status.insert("selector".to_owned(), selector.into());
    }
    let scale =
        json!({"kind": "Scale", "apiVersion": SCALE_VERSION, "metadata": metadata, "spec": spec, "status": status});
    Object::from_value(scale).unwrap_or_default()
}

fn shown(selector: &Value) -> String {
    LabelSelector::from_object(selector).unwrap_or_default().to_string()
}
