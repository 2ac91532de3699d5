//! The same as what is under test, done with trees: slow, and easy to believe.

use super::super::sensitive::{self, REMOVED};
use super::super::text::{self, Manner};
use super::super::values::Values;
use super::super::words::{self, Meaning, meaning};
use super::super::{HOLDERS, Role, TELLERS, TOLD};
use crate::backfill::kind::Kind;
use serde_json::{Map, Value, json};

pub(super) fn cut(kind: &Kind, object: &Value, values: &Values) -> Value {
    let root = object.as_object().unwrap();
    let slow = Slow { kind, root, values };
    let mut cut = slow.object(Role::Root, root);
    cut["apiVersion"] = json!(kind.api_version());
    cut["kind"] = json!(kind.kind);
    cut
}

struct Slow<'a> {
    kind: &'a Kind,
    root: &'a Map<String, Value>,
    values: &'a Values,
}

type Object = Map<String, Value>;

fn label<'a>(root: &'a Object, key: &str) -> Option<&'a str> {
    root.get("metadata")?.get("labels")?.get(key)?.as_str()
}

fn is_scalar(value: &Value) -> bool {
    value.is_string() || value.is_number()
}

fn removed() -> Value {
    json!(REMOVED)
}

impl Slow<'_> {
    fn object(&self, role: Role, members: &Object) -> Value {
        let kept =
            members.iter().filter_map(|(key, value)| Some((key.clone(), self.member(role, members, key, value)?)));
        Value::Object(kept.collect())
    }

    /// A member; none if it goes.
    fn member(&self, role: Role, object: &Object, key: &str, value: &Value) -> Option<Value> {
        let is_core = |name: &str| self.kind.group.is_empty() && self.kind.kind == name;
        if sensitive::is_secret_annotation(key.as_bytes()) || self.values.are_in(key.as_bytes()) {
            return None;
        }
        let is_data = matches!(key, "data" | "stringData");
        match role {
            Role::Root if matches!(key, "apiVersion" | "kind") => return None,
            Role::Root if key == "metadata" => return Some(self.value(Role::Metadata, value)),
            Role::Root if is_data && is_core("Secret") => return None,
            Role::Root if key == "data" && is_core("ConfigMap") => {
                return (label(self.root, "owner") != Some("helm")).then(|| self.value(Role::Settings, value));
            }
            Role::Settings if key == "logs" && label(self.root, "jobwright.io/ledger").is_some() => return None,
            Role::Metadata => match key {
                "managedFields" => return None,
                "name" | "namespace" | "uid" | "generateName" => return Some(value.clone()),
                "labels" => return Some(self.value(Role::Labels, value)),
                "annotations" => return Some(self.value(Role::Annotations, value)),
                _ => {}
            },
            Role::Labels | Role::Annotations => {
                let is_secret = sensitive::is_secret_mark(key.as_bytes());
                return Some(if is_secret {
                    self.guarded(Role::Guarded, value)
                } else {
                    self.value(Role::Other, value)
                });
            }
            Role::Variable if key == "value" => {
                let name = object.get("name").and_then(Value::as_str).unwrap_or_default();
                return Some(self.variable(name, value));
            }
            Role::Variables => return Some(self.variable(key, value)),
            Role::Settings if sensitive::is_variable(key.as_bytes()) => return Some(self.variable(key, value)),
            _ => {}
        }
        if is_data && object.get("kind") == Some(&json!("Secret")) {
            return None;
        }
        Some(match key {
            "env" => self.value(Role::Variables, value),
            "command" => self.value(Role::Arguments, value),
            "args" => {
                let command =
                    object.get("command").and_then(Value::as_array).and_then(|command| command.last()?.as_str());
                match value {
                    Value::Array(items) => self.list(Role::Arguments, command, items),
                    value => self.value(Role::Arguments, value),
                }
            }
            _ if role == Role::Confidential && !words::is_about(key.as_bytes()) => {
                self.guarded(Role::Confidential, value)
            }
            _ if role == Role::Guarded && HOLDERS.contains(&key.as_bytes()) => self.guarded(Role::Guarded, value),
            _ if TOLD.contains(&key.as_bytes()) && is_told(object, value) => self.guarded(Role::Guarded, value),
            _ => match meaning(key.as_bytes()) {
                Meaning::Plain => self.value(Role::Other, value),
                Meaning::Secret => self.guarded(Role::Guarded, value),
                Meaning::Secrets => self.guarded(Role::Confidential, value),
            },
        })
    }

    fn guarded(&self, role: Role, value: &Value) -> Value {
        if is_scalar(value) { removed() } else { self.value(role, value) }
    }

    fn variable(&self, name: &str, value: &Value) -> Value {
        let text = value.as_str().unwrap_or_default();
        match (sensitive::is_secret_variable(name, text), is_scalar(value)) {
            (true, true) => removed(),
            (true, false) => self.value(Role::Guarded, value),
            (false, _) => self.value(Role::Other, value),
        }
    }

    fn value(&self, role: Role, value: &Value) -> Value {
        match value {
            Value::Object(members) => self.object(if role == Role::Arguments { Role::Other } else { role }, members),
            Value::Array(items) => self.list(role, None, items),
            Value::String(text) => {
                json!(self.text(text, if role == Role::Arguments { Manner::Shell } else { Manner::Text }))
            }
            Value::Number(number) if self.values.are_in(number.to_string().as_bytes()) => removed(),
            value => value.clone(),
        }
    }

    fn list(&self, role: Role, before: Option<&str>, items: &[Value]) -> Value {
        let manner = if role == Role::Arguments { Manner::Shell } else { Manner::Text };
        let mut before = before;
        let mut list = Vec::new();
        for item in items {
            list.push(match (role, item) {
                (Role::Variables, item) if !item.is_string() => self.value(Role::Variable, item),
                (Role::Confidential | Role::Guarded, Value::Object(_)) => self.guarded(Role::Guarded, item),
                (Role::Confidential | Role::Guarded, item) => self.guarded(role, item),
                (_, Value::String(text)) => {
                    let announced = before.and_then(|before| Some((before, text::announcement(before, manner)?)));
                    let is_value = |(before, how): (&str, _)| text::is_announced(how, before.as_bytes(), text);
                    if announced.is_some_and(is_value) { removed() } else { json!(self.text(text, manner)) }
                }
                (_, item) => self.value(Role::Other, item),
            });
            before = item.as_str();
        }
        Value::Array(list)
    }

    fn text(&self, text: &str, manner: Manner) -> String {
        let mut parts = text::secrets(text, manner);
        parts.extend(self.values.find(text.as_bytes()));
        text::remove(text, parts).unwrap_or_else(|| text.to_owned())
    }
}

fn is_told(object: &Object, value: &Value) -> bool {
    let teller = TELLERS.iter().find_map(|teller| object.get(std::str::from_utf8(teller).unwrap())?.as_str());
    let Some(name) = teller else { return false };
    let value = value.as_str().unwrap_or_default();
    meaning(name.as_bytes()) != Meaning::Plain
        || sensitive::is_variable(name.as_bytes()) && sensitive::is_secret_variable(name, value)
}
