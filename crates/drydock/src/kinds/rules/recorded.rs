//! What a real API server (Kubernetes 1.34.10) answered, played against the rules.
//!
//! The files in `recorded/` hold requests and answers, one a line: `create API KIND BODY`, or `update BODY` or
//! `status BODY` of the object that was created before, then `stored OBJECT` or `refused ERRORS`, and after a creation
//! `warned TEXT`. In objects, what the server makes up is left out, uids are `UID` and times `NOW`.

use super::service::address::{refuse_families, set_families};
use super::service::change::carry_allocated;
use super::zeros;
use crate::field::aggregate;
use crate::kinds::{Kind, Kinds};
use crate::object::Object;
use crate::schema::decode::decode_json;
use crate::validate::Errors;
use serde_json::{Map, Value, json};

macro_rules! files { ($($name:literal),*) => { &[$(($name, include_str!(concat!("recorded/", $name, ".txt")))),*] } }
const FILES: &[(&str, &str)] = files!["api", "apps", "core", "job", "pod", "service"];

/// The API, kind and body of everything that was created.
pub(super) fn creations() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let lines = FILES.iter().flat_map(|(_, text)| text.lines());
    lines.filter_map(|line| line.strip_prefix("create ")).filter_map(|line| {
        let (api, rest) = line.split_once(' ')?;
        rest.split_once(' ').map(|(kind, body)| (api, kind, body))
    })
}

/// What an object is after the rules, or why it is refused.
fn create(kind: &Kind, body: &str) -> Result<Object, Errors> {
    let mut object = decoded(kind, body);
    let rules = kind.rules();
    (rules.default)(&mut object);
    if kind.namespaced {
        object.set(&["metadata", "namespace"], "rulelab");
    }
    admit(kind, &mut object, None)?;
    object.set(&["metadata", "creationTimestamp"], "NOW");
    object.set(&["metadata", "uid"], "UID");
    object.set(&["metadata", "resourceVersion"], "1");
    if let Some(first) = rules.generation.first() {
        object.set(&["metadata", "generation"], first);
    }
    (rules.prepare_create)(&mut object);
    zeros::write_zeros(kind.schema(), &mut object);
    let errors = rules.refuse_create(&object, kind.namespaced);
    zeros::forget_empty(kind.schema(), &mut object);
    if errors.is_empty() { Ok(object) } else { Err(errors) }
}

/// What admission does, as far as answers depend on it.
fn admit(kind: &Kind, object: &mut Object, old: Option<&Object>) -> Result<(), Errors> {
    if kind.kind == "Pod" && object.text(&["spec", "serviceAccountName"]).is_empty() {
        object.set(&["spec", "serviceAccountName"], "default");
        object.set(&["spec", "serviceAccount"], "default");
    }
    if kind.kind == "Service" {
        if let Some(old) = old {
            carry_allocated(object, old);
        }
        set_families(object, old);
        let errors = refuse_families(object);
        if !errors.is_empty() {
            return Err(errors);
        }
        allocate(object);
    }
    match (kind.kind.as_str(), old) {
        ("PersistentVolumeClaim", None) => {
            object.set(&["metadata", "finalizers"], json!(["kubernetes.io/pvc-protection"]));
        }
        ("PersistentVolume", None) => {
            object.set(&["metadata", "finalizers"], json!(["kubernetes.io/pv-protection"]));
        }
        ("VolumeAttributesClass", None) => {
            object.set(&["metadata", "finalizers"], json!(["kubernetes.io/vac-protection"]));
        }
        ("Node", None) => {
            let mut taints = object.list(&["spec", "taints"]).to_vec();
            taints.push(json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}));
            object.set(&["spec", "taints"], taints);
        }
        _ => {}
    }
    Ok(())
}

/// Addresses and ports as the recorder writes them.
fn allocate(object: &mut Object) {
    let kind = object.text(&["spec", "type"]).to_owned();
    if kind != "ExternalName" && object.text(&["spec", "clusterIP"]).is_empty() {
        object.set(&["spec", "clusterIP"], "10.96.0.1");
        object.set(&["spec", "clusterIPs"], json!(["10.96.0.1"]));
    }
    if !matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        return;
    }
    if let Some(Value::Array(ports)) = object.map_at(&["spec"]).get_mut("ports") {
        for (index, port) in ports.iter_mut().enumerate() {
            if port.get("nodePort").is_none() {
                port["nodePort"] = json!(30000 + index);
            }
        }
    }
    let is_local = kind == "LoadBalancer" && object.text(&["spec", "externalTrafficPolicy"]) == "Local";
    if is_local && object.integer(&["spec", "healthCheckNodePort"]).is_none() {
        object.set(&["spec", "healthCheckNodePort"], 30100);
    }
}

/// The new object as it is before its kind's rules see it.
fn changed(kind: &Kind, body: &str, old: &Object) -> Object {
    let mut object = decoded(kind, body);
    (kind.rules().default)(&mut object);
    for field in ["namespace", "uid", "resourceVersion", "generation", "creationTimestamp"] {
        if let Some(value) = old.at(&["metadata", field]) {
            object.set(&["metadata", field], value.clone());
        }
    }
    object
}

fn update_status(kind: &Kind, body: &str, old: &Object) -> Result<Object, Errors> {
    let mut object = changed(kind, body, old);
    let rules = kind.rules();
    (rules.prepare_status)(&mut object, old);
    zeros::write_zeros(kind.schema(), &mut object);
    let errors = rules.refuse_status(&object, old, kind.namespaced);
    zeros::forget_empty(kind.schema(), &mut object);
    if errors.is_empty() { Ok(object) } else { Err(errors) }
}

fn update(kind: &Kind, body: &str, old: &Object) -> Result<Object, Errors> {
    let mut object = changed(kind, body, old);
    let rules = kind.rules();
    admit(kind, &mut object, Some(old))?;
    (rules.prepare_update)(&mut object, old);
    zeros::write_zeros(kind.schema(), &mut object);
    if rules.generation.rises(&object, old, kind.has("status")) {
        object.set(&["metadata", "generation"], old.generation() + 1);
    }
    let errors = rules.refuse_update(&object, old, kind.namespaced);
    zeros::forget_empty(kind.schema(), &mut object);
    if errors.is_empty() { Ok(object) } else { Err(errors) }
}

fn decoded(kind: &Kind, body: &str) -> Object {
    let decoded = decode_json(Some(kind.schema()), body.as_bytes()).unwrap_or_else(|error| panic!("{error}: {body}"));
    let mut object = Object::from_value(decoded.value).unwrap();
    object.set(&["apiVersion"], kind.api_version());
    object.set(&["kind"], kind.kind.as_str());
    object
}

/// Without what the server or the test made up.
fn bare(object: &Object, is_update: bool) -> Value {
    let mut object = object.clone();
    for field in ["uid", "resourceVersion", "namespace", "creationTimestamp"] {
        object.remove(&["metadata", field]);
    }
    if is_update {
        object.remove(&["status"]);
    }
    object.into_value()
}

/// Where two values differ, for messages that can be read.
fn differences(path: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    let empty = Map::new();
    match (ours, theirs) {
        (Value::Object(_), Value::Object(_)) => {
            let (ours, theirs) = (ours.as_object().unwrap_or(&empty), theirs.as_object().unwrap_or(&empty));
            let mut names: Vec<&String> = ours.keys().chain(theirs.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let absent = Value::from("ABSENT");
                let (ours, theirs) = (ours.get(name).unwrap_or(&absent), theirs.get(name).unwrap_or(&absent));
                differences(&format!("{path}.{name}"), ours, theirs, found);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                differences(&format!("{path}[{index}]"), ours, theirs, found);
            }
        }
        _ if ours == theirs => {}
        _ => found.push(format!("{path}: ours {ours}, theirs {theirs}")),
    }
}

#[test]
fn the_rules_answer_as_the_server_did() {
    let kinds = Kinds::default();
    let mut wrong = Vec::new();
    for (file, text) in FILES {
        let mut kind = None;
        let mut warnings: Vec<String> = Vec::new();
        let mut stored: Option<Object> = None;
        let mut answer: Option<(Result<Object, Errors>, bool)> = None;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let place = format!("{file}.txt:{}", number + 1);
            let (verb, rest) = line.split_once(' ').unwrap();
            match verb {
                "create" => {
                    let mut words = rest.splitn(3, ' ');
                    let (api, name, body) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
                    let found = kinds.by_kind(api, name).unwrap_or_else(|| panic!("{place}: no {api} {name}"));
                    let result = create(found, body);
                    wrong.extend(warnings.drain(..).map(|text| format!("{place}: before this, warned of {text}")));
                    stored = result.as_ref().ok().cloned();
                    if let Some(object) = &stored {
                        warnings = (found.rules().warnings)(object, None);
                    }
                    kind = Some(found);
                    answer = Some((result, false));
                }
                "update" => {
                    let old = stored.as_ref().unwrap_or_else(|| panic!("{place}: nothing to update"));
                    answer = Some((update(kind.unwrap(), rest, old), true));
                }
                "status" => {
                    let old = stored.as_ref().unwrap_or_else(|| panic!("{place}: nothing to update"));
                    answer = Some((update_status(kind.unwrap(), rest, old), false));
                }
                "warned" => {
                    if warnings.is_empty() || warnings.remove(0) != rest {
                        wrong.push(format!("{place}: not warned of {rest}"));
                    }
                }
                "refused" => match answer.take().unwrap().0 {
                    Ok(_) => wrong.push(format!("{place}: not refused, theirs\n  {rest}")),
                    Err(errors) => {
                        let ours = aggregate(&errors);
                        if ours != rest.replace("\\n", "\n") {
                            wrong.push(format!("{place}: refused otherwise, ours\n  {ours}\n theirs\n  {rest}"));
                        }
                    }
                },
                "stored" => match answer.take().unwrap() {
                    (Err(errors), _) => wrong.push(format!("{place}: refused with {}", aggregate(&errors))),
                    (Ok(ours), is_update) => {
                        let theirs = Object::from_value(serde_json::from_str(rest).unwrap()).unwrap();
                        let mut found = Vec::new();
                        differences("", &bare(&ours, is_update), &bare(&theirs, is_update), &mut found);
                        if !found.is_empty() {
                            wrong.push(format!("{place}: {}", found.join("\n  ")));
                        }
                    }
                },
                other => panic!("{place}: {other}"),
            }
        }
    }
    assert!(wrong.is_empty(), "{} answers differ:\n{}", wrong.len(), wrong.join("\n"));
}
