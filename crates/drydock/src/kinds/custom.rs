//! Kinds that a CustomResourceDefinition defines.

mod cost;
mod defaults;
mod expressions;
mod values;

pub(crate) use expressions::refuse_expression;

use super::behaviour::ScalePaths;
use super::table::Verbs;
use super::{Kind, Origin, Storage};
use crate::field::{FieldError, Path};
use crate::object::Object;
use crate::schema::Schema;
use expressions::Expressions;
use serde_json::{Value, json};
use std::sync::Arc;

/// What a CustomResourceDefinition says of one version of its kind.
pub(crate) struct CustomKind {
    pub(crate) schema: Schema,
    /// The OpenAPI schema as the definition has it.
    pub(crate) open_api: Value,
    pub(crate) storage_version: String,
    pub(crate) scale: Option<ScalePaths>,
    pub(crate) selectable_fields: Vec<String>,
    /// `additionalPrinterColumns`.
    pub(crate) columns: Vec<Value>,
    /// What clients are told when they use this version.
    pub(crate) deprecation: Option<String>,
    rules: Expressions,
}

/// The kinds that a definition adds: one for each version that it serves.
pub(crate) fn kinds(definition: &Object) -> Vec<Kind> {
    let names = |field: &str| definition.text(&["spec", "names", field]).to_owned();
    let list = |field: &str| -> Vec<String> {
        let items = definition.list(&["spec", "names", field]).iter();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let group = definition.text(&["spec", "group"]);
    let versions = definition.list(&["spec", "versions"]);
    let flag = |version: &Value, field: &str| version.get(field).and_then(Value::as_bool).unwrap_or_default();
    let name = |version: &Value| version.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let storage_version = versions.iter().find(|version| flag(version, "storage")).map(name).unwrap_or_default();
    versions
        .iter()
        .filter(|version| flag(version, "served"))
        .map(|version| {
            let custom = CustomKind::new(version, &storage_version, group, &names("kind"));
            let mut subresources = Vec::new();
            if custom.scale.is_some() {
                subresources.push("scale".to_owned());
            }
            if version.pointer("/subresources/status").is_some() {
                subresources.push("status".to_owned());
            }
            Kind {
                group: group.to_owned(),
                version: name(version),
                kind: names("kind"),
                plural: names("plural"),
                singular: names("singular"),
                list_kind: names("listKind"),
                short_names: list("shortNames"),
                categories: list("categories"),
                namespaced: definition.text(&["spec", "scope"]) == "Namespaced",
                subresources,
                verbs: Verbs::All,
                storage: Storage::new(group, &names("plural")),
                origin: Origin::Custom(Box::new(custom)),
            }
        })
        .collect()
}

impl CustomKind {
    fn new(version: &Value, storage_version: &str, group: &str, kind: &str) -> Self {
        let open_api = version
            .pointer("/schema/openAPIV3Schema")
            .cloned()
            .unwrap_or_else(|| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
        let path = |field: &str| -> Option<Vec<String>> {
            let path = version.pointer(&format!("/subresources/scale/{field}"))?.as_str()?;
            Some(path.trim_start_matches('.').split('.').map(str::to_owned).collect())
        };
        let scale = path("specReplicasPath").map(|spec| ScalePaths {
            spec,
            status: path("statusReplicasPath").unwrap_or_default(),
            selector: path("labelSelectorPath").unwrap_or_default(),
        });
        let list = |field: &str| version.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
        let selectable = list("selectableFields");
        let selectable = selectable.iter().filter_map(|field| field.get("jsonPath")?.as_str());
        let deprecated = version.get("deprecated").and_then(Value::as_bool).unwrap_or_default();
        let warning = version.get("deprecationWarning").and_then(Value::as_str).map(str::to_owned);
        let version_name = version.get("name").and_then(Value::as_str).unwrap_or_default();
        Self {
            schema: Schema::custom(&open_api),
            rules: Expressions::new(&open_api),
            storage_version: storage_version.to_owned(),
            scale,
            selectable_fields: selectable.map(|path| path.trim_start_matches('.').to_owned()).collect(),
            columns: list("additionalPrinterColumns"),
            deprecation: deprecated
                .then(|| warning.unwrap_or_else(|| format!("{group}/{version_name} {kind} is deprecated"))),
            open_api,
        }
    }

    /// Fills in what the schema has defaults for.
    pub(crate) fn default(&self, object: &mut Object) {
        defaults::fill(self.schema.root(), object);
    }

    /// What the schema and its rules say against an object.
    pub(crate) fn check(&self, new: &Object, old: Option<&Object>) -> Vec<FieldError> {
        let value = new.clone().into_value();
        let mut errors = values::check(&self.open_api, &value);
        errors.extend(values::check_lists(&self.open_api, &value));
        errors.extend(self.check_scale(new));
        let blocking = errors.iter().any(|error| error.reason != crate::field::Reason::Invalid);
        if blocking || (old.is_none() && !errors.is_empty()) {
            if self.has_rules() {
                errors.push(FieldError::invalid(
                    &Path::root(),
                    Value::Null,
                    "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
                ));
            }
            return errors;
        }
        let old = old.map(|old| old.clone().into_value());
        errors.extend(self.rules.check(&value, old.as_ref()));
        errors
    }

    fn has_rules(&self) -> bool {
        contains_rules(&self.open_api)
    }

    /// Replicas must be a number that can be scaled.
    fn check_scale(&self, object: &Object) -> Vec<FieldError> {
        let Some(scale) = &self.scale else { return Vec::new() };
        let path: Vec<&str> = scale.spec.iter().map(String::as_str).collect();
        let shown = Path::new(&format!(".{}", path.join(".")));
        match object.at(&path) {
            Some(Value::Number(number)) if number.as_i64().is_some_and(|number| number < 0) => {
                vec![FieldError::invalid(&shown, number.clone(), "should be a non-negative integer")]
            }
            Some(other) if !other.is_number() => {
                let what = format!(
                    "{shown} accessor error: {} is of the type {}, expected int64",
                    bare(other),
                    go_type(other)
                );
                vec![FieldError::invalid(&shown, 0, what)]
            }
            _ => Vec::new(),
        }
    }
}

fn contains_rules(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.contains_key("x-kubernetes-validations") || map.values().any(contains_rules),
        Value::Array(items) => items.iter().any(contains_rules),
        _ => false,
    }
}

fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
        Value::Number(_) => "float64",
        Value::Null => "<nil>",
    }
}

impl std::fmt::Debug for CustomKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CustomKind").field("storage_version", &self.storage_version).finish_non_exhaustive()
    }
}

/// The kinds of a definition, shared.
pub(crate) fn shared(definition: &Object) -> Vec<Arc<Kind>> {
    kinds(definition).into_iter().map(Arc::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thing() -> Arc<Kind> {
        let definition = json!({"metadata": {"name": "things.lab.example"}, "spec": {"group": "lab.example", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {},
                "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
              "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "required": ["image"],
                "x-kubernetes-validations": [
                    {"rule": "!has(self.replicas) || self.replicas <= self.max", "message": "replicas over max"},
                    {"rule": "self.image == oldSelf.image", "message": "image is immutable", "fieldPath": ".image"}],
                "properties": {"image": {"type": "string"}, "replicas": {"type": "integer", "maximum": 10},
                    "max": {"type": "integer", "default": 5}}}}}}}]}});
        shared(&Object::from_value(definition).unwrap()).remove(0)
    }

    fn check(new: Value, old: Option<Value>) -> Vec<String> {
        let kind = thing();
        let object = |value| {
            let mut object = Object::from_value(value).unwrap();
            kind.default(&mut object);
            object
        };
        let old = old.map(object);
        kind.check_custom(&object(new), old.as_ref()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rules_are_checked_once_the_values_are_right() {
        assert_eq!(check(json!({"spec": {"image": "x", "replicas": 5}}), None), Vec::<String>::new());
        assert_eq!(
            check(json!({"spec": {"image": "x", "replicas": 7}}), None),
            [r#"spec: Invalid value: "object": replicas over max"#]
        );
        assert_eq!(
            check(json!({"spec": {}}), None),
            [
                "spec.image: Required value",
                "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
            ]
        );
    }

    #[test]
    fn transition_rules_see_the_old_object() {
        let errors = check(json!({"spec": {"image": "y"}}), Some(json!({"spec": {"image": "x"}})));
        assert_eq!(errors.len(), 1);
        assert!(
            errors[0].starts_with("spec.image: Invalid value: ") && errors[0].ends_with("image is immutable"),
            "{errors:?}"
        );
    }

    #[test]
    fn replicas_must_be_scalable() {
        assert!(
            check(json!({"spec": {"image": "x", "replicas": -1}}), None)
                .contains(&".spec.replicas: Invalid value: -1: should be a non-negative integer".to_owned())
        );
    }
}
