//! The OpenAPI definitions of the built-in types: those of `k8s-openapi`, with the list and map types
//! that it leaves out.

use super::facts::{self, FieldFacts, ListFacts};
use crate::kinds::table::ROWS;
use k8s_openapi::schemars::SchemaGenerator;
use k8s_openapi::schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// Where definitions refer to each other.
pub(crate) const REFERENCE_PREFIX: &str = "#/components/schemas/";

/// Types that are no kinds and that requests or documents need.
fn register_others(generator: &mut SchemaGenerator) {
    use k8s_openapi::api::{authentication::v1::TokenRequest, autoscaling::v1::Scale, policy::v1::Eviction};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, Status};
    generator.subschema_for::<TokenRequest>();
    generator.subschema_for::<Scale>();
    generator.subschema_for::<Eviction>();
    generator.subschema_for::<DeleteOptions>();
    generator.subschema_for::<Status>();
}

static DEFINITIONS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let mut generator = SchemaGenerator::new(SchemaSettings::openapi3());
    for row in ROWS {
        (row.register)(&mut generator);
    }
    register_others(&mut generator);
    let mut definitions = generator.take_definitions(false);
    for (name, definition) in &mut definitions {
        let Value::Object(definition) = definition else { continue };
        if let Some(facts) = facts::type_named(short_name(name)) {
            add_facts(definition, facts);
        }
        tidy(definition);
    }
    definitions
});

/// All definitions by their full names: `io.k8s.api.batch.v1.JobSpec`.
pub(crate) fn all() -> &'static Map<String, Value> {
    &DEFINITIONS
}

/// The last three parts of a definition's name: `batch.v1.JobSpec`.
pub(crate) fn short_name(definition: &str) -> &str {
    let start = definition.rmatch_indices('.').nth(2).map_or(0, |(index, _)| index + 1);
    &definition[start..]
}

/// What the real server writes another way: metadata is never required, and a reference with more to say is wrapped.
fn tidy(definition: &mut Map<String, Value>) {
    if let Some(Value::Array(required)) = definition.get_mut("required") {
        required.retain(|name| name != "metadata");
        if required.is_empty() {
            definition.remove("required");
        }
    }
    let properties = definition.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flatten().filter_map(|(_, property)| property.as_object_mut()) {
        if property.len() > 1
            && let Some(reference) = property.remove("$ref")
        {
            property.insert("allOf".to_owned(), json!([{"$ref": reference}]));
        }
    }
}

fn add_facts(definition: &mut Map<String, Value>, facts: &'static facts::TypeFacts) {
    if facts.atomic {
        definition.insert("x-kubernetes-map-type".to_owned(), json!("atomic"));
    }
    let Some(Value::Object(properties)) = definition.get_mut("properties") else { return };
    for (name, property) in properties {
        if let (Some(facts), Value::Object(property)) = (facts.field(name), property) {
            add_field_facts(property, facts);
        }
    }
}

fn add_field_facts(property: &mut Map<String, Value>, facts: &FieldFacts) {
    let is_list = property.get("type").is_some_and(|kind| kind == "array");
    match &facts.list {
        Some(ListFacts::Set) => {
            property.insert("x-kubernetes-list-type".to_owned(), json!("set"));
        }
        Some(ListFacts::Map(keys)) => {
            property.insert("x-kubernetes-list-type".to_owned(), json!("map"));
            property.insert("x-kubernetes-list-map-keys".to_owned(), json!(keys));
        }
        None if is_list => {
            property.insert("x-kubernetes-list-type".to_owned(), json!("atomic"));
        }
        None => {}
    }
    if facts.atomic && !is_list {
        property.insert("x-kubernetes-map-type".to_owned(), json!("atomic"));
    }
    let mut strategy = Vec::new();
    if let Some(key) = facts.merge.by {
        strategy.push("merge");
        if !key.is_empty() {
            property.insert("x-kubernetes-patch-merge-key".to_owned(), json!(key));
        }
    }
    if facts.merge.retain_keys {
        strategy.push("retainKeys");
    }
    if facts.merge.replace {
        strategy.push("replace");
    }
    if !strategy.is_empty() {
        property.insert("x-kubernetes-patch-strategy".to_owned(), json!(strategy.join(",")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_maps_carry_their_types() {
        let pod_spec = &all()["io.k8s.api.core.v1.PodSpec"]["properties"];
        assert_eq!(pod_spec["containers"]["x-kubernetes-list-map-keys"], json!(["name"]));
        assert_eq!(pod_spec["volumes"]["x-kubernetes-patch-strategy"], json!("merge,retainKeys"));
        assert_eq!(pod_spec["nodeSelector"]["x-kubernetes-map-type"], json!("atomic"));
        assert_eq!(pod_spec["tolerations"]["x-kubernetes-list-type"], json!("atomic"));
    }

    #[test]
    fn every_struct_of_a_kind_has_facts() {
        let without: Vec<&str> = all()
            .iter()
            .filter(|(_, definition)| definition.get("properties").is_some())
            .map(|(name, _)| short_name(name))
            .filter(|name| facts::type_named(name).is_none())
            .collect();
        assert_eq!(without, Vec::<&str>::new());
    }

    #[test]
    fn every_field_has_facts() {
        let mut without = Vec::new();
        for (name, definition) in all() {
            let facts = facts::type_named(short_name(name));
            for field in
                definition.get("properties").and_then(Value::as_object).into_iter().flatten().map(|(field, _)| field)
            {
                let known = ["apiVersion", "kind"].contains(&field.as_str())
                    || facts.is_some_and(|facts| facts.field(field).is_some());
                if !known {
                    without.push(format!("{}.{field}", short_name(name)));
                }
            }
        }
        assert_eq!(without, Vec::<String>::new());
    }
}
