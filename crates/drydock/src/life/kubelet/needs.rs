//! What a pod refers to and must be there before its containers can start.

use crate::cluster::Cluster;
use crate::object::Object;
use base64::Engine as _;
use serde_json::Value;
use std::collections::BTreeMap;

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn is_optional(value: &Value) -> bool {
    value.get("optional").and_then(Value::as_bool).unwrap_or_default()
}

/// A Secret or ConfigMap, by the word that the kubelet uses for it.
fn source<'a>(cluster: &'a Cluster, namespace: &str, what: &str, name: &str) -> Option<&'a Object> {
    let plural = if what == "secret" { "secrets" } else { "configmaps" };
    cluster.find("", plural, namespace, name).map(AsRef::as_ref)
}

fn value_of(object: &Object, what: &str, key: &str) -> Option<String> {
    let value = object.at(&["data", key]).and_then(Value::as_str)?;
    if what != "secret" {
        return Some(value.to_owned());
    }
    let bytes = base64::engine::general_purpose::STANDARD.decode(value).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The variables of a container, or what it lacks, in the kubelet's words.
pub(super) fn variables(
    cluster: &Cluster,
    pod: &Object,
    container: &Value,
) -> Result<BTreeMap<String, String>, String> {
    let namespace = pod.namespace();
    let hostname = [pod.text(&["spec", "hostname"]), pod.name()].into_iter().find(|name| !name.is_empty());
    let mut variables: BTreeMap<String, String> =
        hostname.map(|name| ("HOSTNAME".to_owned(), name.to_owned())).into_iter().collect();
    let list = |field: &str| container.get(field).and_then(Value::as_array).into_iter().flatten();
    for from in list("envFrom") {
        for (field, what) in [("configMapRef", "configmap"), ("secretRef", "secret")] {
            let Some(reference) = from.get(field) else { continue };
            let name = text(reference, "/name");
            match source(cluster, namespace, what, name) {
                Some(object) => {
                    let keys =
                        object.at(&["data"]).and_then(Value::as_object).into_iter().flatten().map(|(key, _)| key);
                    for key in keys {
                        let variable = format!("{}{key}", text(from, "/prefix"));
                        variables.insert(variable, value_of(object, what, key).unwrap_or_default());
                    }
                }
                None if is_optional(reference) => {}
                None => return Err(format!("{what} {name:?} not found")),
            }
        }
    }
    for variable in list("env") {
        let name = text(variable, "/name").to_owned();
        let Some(from) = variable.get("valueFrom") else {
            variables.insert(name, text(variable, "/value").to_owned());
            continue;
        };
        for (field, what) in [("configMapKeyRef", "configmap"), ("secretKeyRef", "secret")] {
            let Some(reference) = from.get(field) else { continue };
            let (object_name, key) = (text(reference, "/name"), text(reference, "/key"));
            let object = source(cluster, namespace, what, object_name);
            match (object, object.and_then(|object| value_of(object, what, key))) {
                (_, Some(value)) => {
                    variables.insert(name.clone(), value);
                }
                _ if is_optional(reference) => {}
                (None, _) => return Err(format!("{what} {object_name:?} not found")),
                (Some(_), None) => {
                    let kind = if what == "secret" { "Secret" } else { "ConfigMap" };
                    return Err(format!("couldn't find key {key} in {kind} {namespace}/{object_name}"));
                }
            }
        }
        match text(from, "/fieldRef/fieldPath") {
            "" => {}
            "metadata.name" => {
                variables.insert(name, pod.name().to_owned());
            }
            "metadata.namespace" => {
                variables.insert(name, namespace.to_owned());
            }
            path => {
                variables.insert(name, field(pod, path).to_owned());
            }
        }
    }
    Ok(variables)
}

/// A field of a pod: `status.podIP`, `metadata.labels['app']`.
fn field<'a>(pod: &'a Object, path: &str) -> &'a str {
    for map in ["labels", "annotations"] {
        let key = path.strip_prefix("metadata.").and_then(|path| path.strip_prefix(map));
        if let Some(key) = key.and_then(|key| key.strip_prefix("['")?.strip_suffix("']")) {
            return pod.text(&["metadata", map, key]);
        }
    }
    pod.text(&path.split('.').collect::<Vec<_>>())
}

/// Why a volume of a pod cannot be mounted, in the kubelet's words.
pub(super) fn unmountable(cluster: &Cluster, pod: &Object) -> Option<String> {
    for volume in pod.list(&["spec", "volumes"]) {
        let name = text(volume, "/name");
        let failed = |why: String| Some(format!("MountVolume.SetUp failed for volume {name:?} : {why}"));
        let sources = volume.pointer("/projected/sources").and_then(Value::as_array).into_iter().flatten();
        let parts = [volume].into_iter().chain(sources);
        for part in parts {
            for (field, what) in [("secret", "secret"), ("configMap", "configmap")] {
                let Some(reference) = part.get(field) else { continue };
                let wanted = if what == "secret" && part == volume {
                    text(reference, "/secretName")
                } else {
                    text(reference, "/name")
                };
                let Some(object) = source(cluster, pod.namespace(), what, wanted) else {
                    if is_optional(reference) {
                        continue;
                    }
                    return failed(format!("{what} {wanted:?} not found"));
                };
                let items = reference.get("items").and_then(Value::as_array).into_iter().flatten();
                for key in items.map(|item| text(item, "/key")) {
                    let there = object.at(&["data", key]).or_else(|| object.at(&["binaryData", key])).is_some();
                    if !there && !is_optional(reference) {
                        return failed(format!("references non-existent {what} key: {key}"));
                    }
                }
            }
        }
    }
    None
}
