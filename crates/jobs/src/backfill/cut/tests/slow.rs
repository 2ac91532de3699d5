//! The same as what is under test, done with trees: slow, and easy to believe.

use super::super::sensitive::{self, REMOVED};
use crate::backfill::kind::Kind;
use serde_json::{Map, Value, json};

pub(super) fn cut(kind: &Kind, object: &Value) -> Value {
    let mut object = object.as_object().unwrap().clone();
    let labels = object.get("metadata").and_then(|metadata| metadata.get("labels")).cloned().unwrap_or_default();
    // Among members of the same name only the last one counts in a tree; the tests make none.
    let is_embedded_secret = object.get("kind") == Some(&json!("Secret"));
    object.remove("kind");
    object.remove("apiVersion");
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    let is_core = |name: &str| kind.group.is_empty() && kind.kind == name;
    if is_core("Secret") || is_embedded_secret && !is_core("ConfigMap") {
        object.remove("data");
    }
    if is_core("Secret") || is_embedded_secret {
        object.remove("stringData");
    }
    if is_core("ConfigMap") {
        if labels.get("owner") == Some(&json!("helm")) {
            object.remove("data");
        }
        if let Some(Value::Object(data)) = object.get_mut("data") {
            if labels.get("jobwright.io/ledger").is_some_and(Value::is_string) {
                data.remove("logs");
            }
            let keys: Vec<String> = data.keys().filter(|key| sensitive::is_variable(key.as_bytes())).cloned().collect();
            for key in keys {
                variable(&key, &mut data[&key]);
            }
        }
    }
    let mut value = Value::Object(object);
    walk_root(&mut value, is_core("ConfigMap"));
    value["apiVersion"] = json!(kind.api_version());
    value["kind"] = json!(kind.kind);
    value
}

/// Labels and annotations are nobody's fields.
fn walk_root(object: &mut Value, is_settings: bool) {
    let members = object.as_object_mut().unwrap();
    let mut marks = Vec::new();
    if let Some(Value::Object(metadata)) = members.get_mut("metadata") {
        for key in ["labels", "annotations"] {
            if let Some(Value::Object(map)) = metadata.get_mut(key) {
                map.retain(|key, _| !sensitive::is_secret_annotation(key.as_bytes()));
                let mut map = std::mem::take(map);
                map.values_mut().for_each(walk);
                metadata.insert(key.to_owned(), Value::Null);
                marks.push((key, map));
            }
        }
    }
    let data = members.get("data").filter(|data| is_settings && data.is_object()).cloned();
    let secret = members.get("kind").cloned();
    walk(object);
    assert!(secret.is_none());
    if let (Some(Value::Object(data)), Some(slot)) = (data, object.get_mut("data")) {
        *slot = Value::Object(settings(data));
    }
    for (key, map) in marks {
        object["metadata"][key] = Value::Object(map);
    }
}

/// What has the form of a variable has been looked at as one.
fn settings(mut data: Map<String, Value>) -> Map<String, Value> {
    let mut variables = Map::new();
    for key in data.keys().filter(|key| sensitive::is_variable(key.as_bytes())).cloned().collect::<Vec<_>>() {
        let mut value = data[&key].clone();
        walk(&mut value);
        variables.insert(key, value);
    }
    let mut rest = Value::Object(std::mem::take(&mut data));
    walk(&mut rest);
    let mut rest = rest.as_object().unwrap().clone();
    rest.extend(variables);
    rest
}

fn is_scalar(value: &Value) -> bool {
    value.is_string() || value.is_number()
}

fn variable(name: &str, value: &mut Value) {
    if is_scalar(value) && sensitive::is_secret_variable(name, value.as_str().unwrap_or_default()) {
        *value = json!(REMOVED);
    }
}

fn walk(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(without) = sensitive::without_passwords(text) {
                *text = without;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(walk),
        Value::Object(members) => {
            members.retain(|key, _| !sensitive::is_secret_annotation(key.as_bytes()));
            if members.get("kind") == Some(&json!("Secret")) {
                members.remove("data");
                members.remove("stringData");
            }
            for (key, value) in members.iter_mut() {
                match (key.as_str(), &mut *value) {
                    ("env", Value::Array(entries)) => entries.iter_mut().for_each(entry),
                    ("env", Value::Object(map)) => {
                        map.retain(|key, _| !sensitive::is_secret_annotation(key.as_bytes()));
                        for (name, value) in map.iter_mut() {
                            variable(name, value);
                            walk(value);
                        }
                    }
                    ("args" | "command", Value::Array(items)) => arguments(items),
                    (_, value) if sensitive::is_secret_field(key.as_bytes()) && is_scalar(value) => {
                        *value = json!(REMOVED);
                    }
                    (_, value) => walk(value),
                }
            }
        }
        _ => {}
    }
}

fn entry(entry: &mut Value) {
    let Value::Object(members) = entry else { return walk(entry) };
    let name = members.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let held = members.get_mut("value").map(|value| {
        variable(&name, value);
        let mut held = value.take();
        walk(&mut held);
        held
    });
    walk(entry);
    if let Some(held) = held {
        entry["value"] = held;
    }
}

fn arguments(items: &mut [Value]) {
    let mut is_secret = false;
    for item in items {
        let Value::String(text) = item else {
            walk(item);
            continue;
        };
        if is_secret && !text.starts_with('-') {
            *text = REMOVED.to_owned();
            is_secret = false;
            continue;
        }
        is_secret = sensitive::announces_secret(text);
        if let Some(without) = sensitive::without_assignments(text) {
            *text = without;
        }
        if let Some(without) = sensitive::without_passwords(text) {
            *text = without;
        }
    }
}
