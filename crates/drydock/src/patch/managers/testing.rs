//! A server reduced to its books, for tests.

use super::{Manager, Versions, Write, keep_times, track_update};
use crate::object::Object;
use crate::patch::apply::apply;
use crate::patch::fields::{FieldSet, Tracked};
use crate::patch::testing::widget_schema;
use crate::schema::Schema;
use crate::status::Status;
use jiff::Timestamp;
use serde_json::Value;

/// One kind.
pub(in crate::patch) struct Lab {
    pub(in crate::patch) schema: Schema,
    api_version: &'static str,
    kind: &'static str,
}

/// Who writes, where, and in which second.
#[derive(Clone, Copy)]
pub(in crate::patch) struct By(pub(in crate::patch) &'static str, pub(in crate::patch) i64);

pub(in crate::patch) fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

impl Lab {
    pub(in crate::patch) fn config_map() -> Self {
        Self { schema: Schema::built_in("io.k8s.api.core.v1.ConfigMap"), api_version: "v1", kind: "ConfigMap" }
    }

    pub(in crate::patch) fn job() -> Self {
        Self { schema: Schema::built_in("io.k8s.api.batch.v1.Job"), api_version: "batch/v1", kind: "Job" }
    }

    pub(in crate::patch) fn widget() -> Self {
        Self { schema: widget_schema(), api_version: "lab.example/v1", kind: "Widget" }
    }

    pub(in crate::patch) fn with<T>(
        &self,
        by: By,
        versions: Option<&dyn Versions>,
        act: impl FnOnce(&Write<'_>) -> T,
    ) -> T {
        let (name, subresource) = by.0.split_once('/').unwrap_or((by.0, ""));
        let manager = Manager {
            name: name.to_owned(),
            api_version: self.api_version.to_owned(),
            subresource: subresource.to_owned(),
        };
        let reset = if subresource == "status" { "spec" } else { "status" };
        let tracked = Tracked::Except(FieldSet::of(&[&[reset]]));
        let now = Timestamp::from_second(1_800_000_000 + by.1).unwrap();
        act(&Write { schema: self.schema.root(), manager: &manager, now, tracked: &tracked, versions })
    }

    /// An object with its type and name.
    pub(in crate::patch) fn body(&self, value: &Value) -> Object {
        let mut body = object(value.clone());
        body.set(&["apiVersion"], self.api_version);
        body.set(&["kind"], self.kind);
        body.set(&["metadata", "name"], "x");
        body
    }

    pub(in crate::patch) fn create(&self, by: By, value: &Value) -> Object {
        let mut new = self.body(value);
        self.with(by, None, |write| track_update(write, None, &mut new));
        new
    }

    pub(in crate::patch) fn update(&self, by: By, old: &Object, value: &Value) -> Object {
        let mut new = self.body(value);
        self.with(by, None, |write| track_update(write, Some(old), &mut new));
        keep_times(old, &mut new);
        new
    }

    pub(in crate::patch) fn apply(&self, by: By, live: Option<&Object>, value: &Value) -> Result<Object, Status> {
        self.apply_with(by, live, value, false)
    }

    pub(in crate::patch) fn force(&self, by: By, live: Option<&Object>, value: &Value) -> Result<Object, Status> {
        self.apply_with(by, live, value, true)
    }

    fn apply_with(&self, by: By, live: Option<&Object>, value: &Value, force: bool) -> Result<Object, Status> {
        let body = self.body(value);
        let mut new = self.with(by, None, |write| apply(write, self.kind, live, &body, force))?;
        if let Some(live) = live {
            keep_times(live, &mut new);
        }
        Ok(new)
    }
}

/// The books in one line each: who, how, where, in which second, and what.
pub(in crate::patch) fn books(object: &Object) -> Vec<String> {
    object
        .list(&["metadata", "managedFields"])
        .iter()
        .map(|entry| {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
            let time: Option<Timestamp> = text("time").parse().ok();
            let second = time.map_or("-".to_owned(), |time| (time.as_second() - 1_800_000_000).to_string());
            let endpoint = text("subresource");
            let slash = if endpoint.is_empty() { "" } else { "/" };
            let fields = FieldSet::from_value(&entry["fieldsV1"]).unwrap();
            format!("{} {}{slash}{endpoint} {second} {fields}", text("operation"), text("manager"))
        })
        .collect()
}
