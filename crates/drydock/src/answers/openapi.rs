//! OpenAPI: what the kinds look like, for clients that ask before they send (`kubectl apply`, `kubectl explain`).

pub(crate) mod binary;
mod paths;

use crate::kinds::{Kind, Kinds, Origin};
use crate::schema::definitions::{self, REFERENCE_PREFIX};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Definitions that every document needs for its operations.
const COMMON: &[&str] = &[
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
];
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

/// `/openapi/v3`: the documents there are, one for each version of a group.
pub(crate) fn index(kinds: &Kinds) -> Value {
    let mut paths = Map::new();
    for (group, versions) in kinds.groups() {
        for version in versions {
            let name = if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
            // Clients keep a document until its hash changes.
            let url = format!("/openapi/v3/{name}?hash={:X}", kinds.generation());
            paths.insert(name, json!({"serverRelativeURL": url}));
        }
    }
    json!({"paths": paths})
}

/// `/openapi/v3/apis/GROUP/VERSION`.
pub(crate) fn version_3(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    let kinds: Vec<&Kind> = kinds.in_version(group, version).map(AsRef::as_ref).collect();
    if kinds.is_empty() {
        return None;
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "1.34"},
        "paths": paths::paths(&kinds),
        "components": {"schemas": schemas(&kinds)},
    }))
}

/// `/openapi/v2`: everything in one document, in the older form.
pub(crate) fn version_2(kinds: &Kinds) -> Value {
    let kinds: Vec<&Kind> = kinds.all().map(AsRef::as_ref).collect();
    let mut definitions = Value::Object(schemas(&kinds));
    rename_references(&mut definitions);
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1.34.10"},
        "paths": paths::paths_2(&kinds),
        "definitions": definitions,
    })
}

/// The name of a kind's definition.
fn definition_name(kind: &Kind) -> String {
    match &kind.origin {
        Origin::BuiltIn { row, .. } => (row.definition)(),
        Origin::Custom(_) => {
            let mut parts: Vec<&str> = kind.group.split('.').rev().collect();
            parts.extend([kind.version.as_str(), kind.kind.as_str()]);
            parts.join(".")
        }
    }
}

fn group_version_kind(kind: &Kind, name: &str) -> Value {
    json!({"group": kind.group, "version": kind.version, "kind": name})
}

/// The definitions of kinds, of their lists, and of everything they refer to.
fn schemas(kinds: &[&Kind]) -> Map<String, Value> {
    let mut schemas = Map::new();
    let mut wanted: BTreeSet<String> = COMMON.iter().map(|name| (*name).to_owned()).collect();
    for kind in kinds {
        let name = definition_name(kind);
        let mut schema = match &kind.origin {
            Origin::BuiltIn { .. } => {
                definitions::all().get(&name).cloned().unwrap_or_else(|| json!({"type": "object"}))
            }
            Origin::Custom(custom) => custom_schema(&custom.open_api),
        };
        collect_references(&schema, &mut wanted);
        schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(kind, &kind.kind)]);
        schemas.insert(format!("{name}List"), list_schema(kind, &name));
        schemas.insert(name, schema);
    }
    while let Some(name) = wanted.pop_first() {
        if schemas.contains_key(&name) {
            continue;
        }
        if let Some(definition) = definitions::all().get(&name) {
            collect_references(definition, &mut wanted);
            schemas.insert(name, definition.clone());
        }
    }
    schemas.insert(PATCH.to_owned(), json!({"type": "object", "description": "A patch of an object."}));
    schemas.entry(COMMON[1]).or_insert_with(|| json!({"type": "object", "description": "Metadata of a list."}));
    schemas
}

fn custom_schema(open_api: &Value) -> Value {
    let mut schema = open_api.clone();
    let text = |description: &str| json!({"type": "string", "description": description});
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema["properties"] = json!({});
    }
    schema["properties"]["apiVersion"] = text("The version of this representation of an object.");
    schema["properties"]["kind"] = text("What this object represents.");
    let metadata = format!("{REFERENCE_PREFIX}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    schema["properties"]["metadata"] =
        json!({"description": "Standard object's metadata.", "allOf": [{"$ref": metadata}]});
    schema
}

fn list_schema(kind: &Kind, name: &str) -> Value {
    json!({
        "description": format!("{} is a list of {}", kind.list_kind, kind.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [{"$ref": format!("{REFERENCE_PREFIX}{}", COMMON[1])}]},
            "items": {"type": "array", "items": {"allOf": [{"$ref": format!("{REFERENCE_PREFIX}{name}")}]}},
        },
        "x-kubernetes-group-version-kind": [group_version_kind(kind, &kind.list_kind)],
    })
}

fn collect_references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            if let Some(name) =
                map.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix(REFERENCE_PREFIX))
            {
                found.insert(name.to_owned());
            }
            map.values().for_each(|value| collect_references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        _ => {}
    }
}

/// References as the older form writes them. It knows no `allOf` around a single reference.
fn rename_references(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let single = map.get("allOf").and_then(Value::as_array).filter(|parts| parts.len() == 1);
            if let Some(reference) = single.and_then(|parts| parts[0].get("$ref")).cloned() {
                map.remove("allOf");
                map.insert("$ref".to_owned(), reference);
            }
            if let Some(Value::String(text)) = map.get_mut("$ref") {
                *text = text.replace(REFERENCE_PREFIX, "#/definitions/");
            }
            map.values_mut().for_each(rename_references);
        }
        Value::Array(items) => items.iter_mut().for_each(rename_references),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_closed_under_reference() {
        let kinds = Kinds::default();
        for (group, versions) in kinds.groups() {
            for version in versions {
                let document = version_3(&kinds, &group, &version).unwrap();
                let mut references = BTreeSet::new();
                collect_references(&document, &mut references);
                let schemas = document["components"]["schemas"].as_object().unwrap();
                let missing: Vec<_> = references.iter().filter(|name| !schemas.contains_key(*name)).collect();
                assert!(missing.is_empty(), "{group}/{version}: {missing:?}");
            }
        }
        assert!(version_3(&kinds, "nobody", "v1").is_none());
    }

    #[test]
    fn clients_find_the_kind_and_its_options() {
        let document = version_3(&Kinds::default(), "batch", "v1").unwrap();
        let patch = &document["paths"]["/apis/batch/v1/namespaces/{namespace}/jobs/{name}"]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"], json!({"group": "batch", "version": "v1", "kind": "Job"}));
        let parameters = patch["parameters"].as_array().unwrap();
        assert!(parameters.iter().any(|parameter| parameter["name"] == "fieldValidation"));
        let job = &document["components"]["schemas"]["io.k8s.api.batch.v1.Job"];
        assert_eq!(job["x-kubernetes-group-version-kind"][0]["kind"], "Job");
    }

    #[test]
    fn the_older_form_has_its_own_references() {
        let text = version_2(&Kinds::default()).to_string();
        assert!(text.contains("#/definitions/io.k8s.api.batch.v1.JobSpec"));
        assert!(!text.contains(REFERENCE_PREFIX));
    }
}
