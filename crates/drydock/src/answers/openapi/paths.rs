//! The operations on kinds, as far as clients look at them.

use super::{PATCH, REFERENCE_PREFIX, definition_name, group_version_kind};
use crate::kinds::{Kind, subresource};
use crate::request::Verb;
use serde_json::{Map, Value, json};

/// Where the objects of a kind are found: all of them, those of a namespace, one of them.
struct Addresses {
    all: String,
    some: String,
    one: String,
}

fn addresses(kind: &Kind) -> Addresses {
    let prefix = if kind.group.is_empty() {
        format!("/api/{}", kind.version)
    } else {
        format!("/apis/{}/{}", kind.group, kind.version)
    };
    let place = if kind.namespaced { "/namespaces/{namespace}" } else { "" };
    let some = format!("{prefix}{place}/{}", kind.plural);
    Addresses { all: format!("{prefix}/{}", kind.plural), one: format!("{some}/{{name}}"), some }
}

/// The paths of an OpenAPI 3 document.
pub(super) fn paths(kinds: &[&Kind]) -> Map<String, Value> {
    build(kinds, true)
}

/// The paths of an OpenAPI 2 document.
pub(super) fn paths_2(kinds: &[&Kind]) -> Map<String, Value> {
    build(kinds, false)
}

fn build(kinds: &[&Kind], third: bool) -> Map<String, Value> {
    let mut paths = Map::new();
    for kind in kinds {
        let at = addresses(kind);
        let has = |verb| subresource::verbs(kind.verbs).contains(&verb);
        let mut collection = Map::new();
        if has(Verb::List) {
            collection.insert("get".to_owned(), operation(kind, "list", &[], third));
        }
        if has(Verb::Create) {
            collection.insert("post".to_owned(), operation(kind, "post", WRITE, third));
        }
        if has(Verb::DeleteCollection) {
            collection.insert("delete".to_owned(), operation(kind, "deletecollection", &[], third));
        }
        if kind.namespaced && has(Verb::List) {
            paths.insert(
                at.all,
                json!({"get": operation(kind, "list", &[], third), "parameters": parameters(&[], third)}),
            );
        }
        insert(&mut paths, at.some, collection, kind, false, third);
        if has(Verb::Get) {
            insert(&mut paths, at.one.clone(), object_operations(kind, true, third), kind, true, third);
        }
        for name in &kind.subresources {
            let Some(subresource) = subresource::named(name) else { continue };
            if subresource.other.is_none() && subresource.verbs.contains(&Verb::Patch) {
                insert(
                    &mut paths,
                    format!("{}/{name}", at.one),
                    object_operations(kind, false, third),
                    kind,
                    true,
                    third,
                );
            }
        }
    }
    paths
}

fn insert(
    paths: &mut Map<String, Value>,
    path: String,
    mut operations: Map<String, Value>,
    kind: &Kind,
    one: bool,
    third: bool,
) {
    let mut names = Vec::new();
    if one {
        names.push("name");
    }
    if kind.namespaced {
        names.push("namespace");
    }
    let mut parameters = parameters(&[], third);
    parameters.extend(names.iter().map(|name| {
        let mut parameter = json!({"name": name, "in": "path", "required": true});
        add_type(&mut parameter, "string", third);
        parameter
    }));
    operations.insert("parameters".to_owned(), Value::Array(parameters));
    paths.insert(path, Value::Object(operations));
}

const WRITE: &[(&str, &str)] = &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const APPLY: &[(&str, &str)] =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"), ("force", "boolean")];

fn object_operations(kind: &Kind, deletable: bool, third: bool) -> Map<String, Value> {
    let mut operations = Map::new();
    operations.insert("get".to_owned(), operation(kind, "get", &[], third));
    operations.insert("put".to_owned(), operation(kind, "put", WRITE, third));
    operations.insert("patch".to_owned(), operation(kind, "patch", APPLY, third));
    if deletable {
        operations.insert("delete".to_owned(), operation(kind, "delete", &[("dryRun", "string")], third));
    }
    operations
}

fn operation(kind: &Kind, action: &str, options: &[(&str, &str)], third: bool) -> Value {
    let reference = |name: &str| json!({"$ref": format!("{REFERENCE_PREFIX}{name}")});
    let definition = definition_name(kind);
    let answered = if action == "list" { format!("{definition}List") } else { definition.clone() };
    let mut operation = json!({
        "operationId": format!("{action}-{}-{}-{}", kind.group, kind.version, kind.kind),
        "parameters": parameters(options, third),
        "responses": {"200": {"description": "OK"}, "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": group_version_kind(kind, &kind.kind),
    });
    if third {
        operation["responses"]["200"]["content"] = json!({"application/json": {"schema": reference(&answered)}});
        match action {
            "post" | "put" => {
                operation["requestBody"] =
                    json!({"content": {"*/*": {"schema": reference(&definition)}}, "required": true});
            }
            "patch" => {
                let media =
                    ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
                let mut content = Map::new();
                for media in
                    media.into_iter().chain(kind.custom().is_none().then_some("application/strategic-merge-patch+json"))
                {
                    content.insert(media.to_owned(), json!({"schema": reference(PATCH)}));
                }
                operation["requestBody"] = json!({"content": content, "required": true});
            }
            _ => {}
        }
    }
    operation
}

fn parameters(options: &[(&str, &str)], third: bool) -> Vec<Value> {
    options
        .iter()
        .map(|(name, kind)| {
            let mut parameter = json!({"name": name, "in": "query"});
            add_type(&mut parameter, kind, third);
            parameter
        })
        .collect()
}

fn add_type(parameter: &mut Value, kind: &str, third: bool) {
    if third {
        parameter["schema"] = json!({"type": kind, "uniqueItems": true});
    } else {
        parameter["type"] = json!(kind);
        parameter["uniqueItems"] = json!(true);
    }
}
