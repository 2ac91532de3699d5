//! Schemas of custom resources: they are structural, and use what the server understands.

use crate::field::FieldError;
use crate::kinds::custom::refuse_expression;
use crate::validate::{At, Errors};
use serde_json::Value;
use std::collections::BTreeSet;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// How deep a schema may be before it is left alone.
const DEPTH: usize = 100;

const TRUE_OR_UNDEFINED: &str = "must be true or undefined";

/// Where in an object a schema applies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// The schema of a version, or of all.
pub(super) fn check(schema: &At<'_>, has_status: bool, errors: &mut Errors) {
    let root = schema.field("openAPIV3Schema");
    if !root.is_set() {
        return;
    }
    let kind = root.field("type");
    if has_status && !matches!(kind.text(), "" | "object") {
        let why =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        errors.push(kind.invalid(why));
    }
    if root.field("nullable").is_true() {
        let path = schema.path.child("openAPIV3Schema.nullable");
        errors.push(FieldError::forbidden(&path, "nullable cannot be true at the root"));
    }
    let mut structural = Vec::new();
    check_structure(&root, Level::Root, 0, &mut structural);
    structural.sort_by_key(ToString::to_string);
    let mut words = Vec::new();
    check_words(&root, Inside::Root, 0, &mut words);
    // With a value that no structural schema can hold, the server does not get as far as its structure.
    if !words.iter().any(|error| error.to_string().ends_with(TRUE_OR_UNDEFINED)) {
        errors.extend(structural);
    }
    errors.extend(words);
}

fn properties<'a>(schema: &At<'a>) -> Vec<(&'a str, At<'a>)> {
    schema.field("properties").entries().collect()
}

fn check_structure(schema: &At<'_>, level: Level, depth: usize, errors: &mut Errors) {
    if depth > DEPTH {
        return;
    }
    let (kind, items) = (schema.field("type"), schema.field("items"));
    if kind.text() == "array" && !items.is_set() {
        errors.push(items.required("must be specified"));
    }
    if items.value.is_object() {
        check_structure(&items, Level::Item, depth + 1, errors);
    }
    for (_, property) in properties(schema) {
        check_structure(&property, Level::Field, depth + 1, errors);
    }
    let additional = schema.field("additionalProperties");
    if additional.is_set() {
        if level == Level::Root {
            errors.push(additional.forbidden("must not be used at the root"));
        }
        if additional.value.is_object() {
            check_structure(&additional, Level::Field, depth + 1, errors);
        }
    }
    let flag = |name: &str| schema.field(name).is_true();
    let (int_or_string, preserves) = (flag("x-kubernetes-int-or-string"), flag("x-kubernetes-preserve-unknown-fields"));
    let embedded = flag("x-kubernetes-embedded-resource");
    if int_or_string {
        for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if flag(name) {
                errors.push(schema.field(name).invalid("must be false if x-kubernetes-int-or-string is true"));
            }
        }
    }
    check_nested(schema, depth, errors);
    if embedded && kind.text() != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.text().is_empty() { kind.required(why) } else { kind.invalid(why) });
    } else if kind.text().is_empty() && !int_or_string && !preserves {
        errors.push(kind.required(match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        }));
    }
    if level == Level::Root && !kind.text().is_empty() && kind.text() != "object" {
        errors.push(kind.invalid("must be object at the root"));
    }
    check_envelope(schema, level, embedded, errors);
}

/// `apiVersion`, `kind` and `metadata` have their own types.
fn check_envelope(schema: &At<'_>, level: Level, embedded: bool, errors: &mut Errors) {
    let is_object = level == Level::Root || embedded;
    for (name, property) in properties(schema) {
        let kind = property.field("type");
        match name {
            "kind" | "apiVersion" if is_object && kind.text() != "string" => {
                errors.extend(kind.all_invalid(vec!["must be string".to_owned()]));
            }
            "metadata" => {
                if is_object && kind.text() != "object" {
                    errors.extend(kind.all_invalid(vec!["must be object".to_owned()]));
                }
                let known = |name: &str| matches!(name, "name" | "generateName");
                let is_plain =
                    property.value.as_object().into_iter().flatten().all(|(field, value)| match field.as_str() {
                        "type" | "default" => true,
                        "properties" => value.as_object().is_some_and(|names| names.keys().all(|name| known(name))),
                        _ => false,
                    });
                if level == Level::Root && !is_plain {
                    let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
                    errors.push(property.forbidden(why));
                }
            }
            _ => {}
        }
    }
}

/// Alternatives say what values are right, and nothing about what there is.
fn check_nested(schema: &At<'_>, depth: usize, errors: &mut Errors) {
    for list in ["anyOf", "allOf", "oneOf"] {
        let alternatives = schema.field(list);
        if list == "anyOf" && is_int_or_string(alternatives.value) {
            continue;
        }
        for nested in alternatives.items() {
            check_alternative(&nested, depth + 1, errors);
        }
    }
    let not = schema.field("not");
    if not.is_set() {
        check_alternative(&not, depth + 1, errors);
    }
}

/// What generators write beside `x-kubernetes-int-or-string`.
fn is_int_or_string(value: &Value) -> bool {
    value == &serde_json::json!([{"type": "integer"}, {"type": "string"}])
}

fn check_alternative(schema: &At<'_>, depth: usize, errors: &mut Errors) {
    if depth > DEPTH {
        return;
    }
    check_nested(schema, depth, errors);
    if schema.field("items").value.is_object() {
        check_alternative(&schema.field("items"), depth + 1, errors);
    }
    for (_, property) in properties(schema) {
        check_alternative(&property, depth + 1, errors);
    }
    for (field, why) in [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ] {
        let value = schema.field(field);
        if value.is_set() && !value.is_empty() && value.value != &Value::Bool(false) {
            errors.push(value.forbidden(why));
        }
    }
    if schema.field("properties").has("metadata") {
        let path = schema.field("properties").path.key("metadata");
        errors.push(FieldError::forbidden(&path, "must not be specified in a nested context"));
    }
}

/// Whether defaults and embedded objects are allowed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Root,
    Metadata(&'static str),
    Nothing,
}

/// What the words of a schema may be.
fn check_words(schema: &At<'_>, inside: Inside, depth: usize, errors: &mut Errors) {
    if depth > DEPTH || !schema.value.is_object() {
        return;
    }
    let kind = schema.field("type");
    if !kind.text().is_empty() && !TYPES.contains(&kind.text()) {
        errors.push(kind.not_supported(&TYPES));
    }
    if let Inside::Metadata(name) = inside
        && schema.has("default")
    {
        errors.push(schema.field("default").forbidden(format!("must not be set in top-level {name}")));
    }
    for field in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        if !schema.field(field).is_empty() {
            errors.push(schema.field(field).forbidden(format!("{field} is not supported")));
        }
    }
    if kind.text() == "null" {
        errors.push(kind.forbidden("type cannot be set to null, use nullable as an alternative"));
    }
    let items = schema.field("items");
    if items.value.is_array() {
        errors.push(items.forbidden("items must be a schema object and not an array"));
    }
    if schema.field("uniqueItems").is_true() {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(schema.field("uniqueItems").forbidden(why));
    }
    let additional = schema.field("additionalProperties");
    if additional.is_set() {
        if !schema.field("properties").is_empty() && additional.value != &Value::Bool(true) {
            errors.push(additional.forbidden("additionalProperties and properties are mutual exclusive"));
        }
        check_words(&additional, Inside::Nothing, depth + 1, errors);
    }
    for (name, property) in properties(schema) {
        let below = match (inside, name) {
            (Inside::Root, "metadata") => Inside::Metadata("metadata"),
            (Inside::Root, "kind") => Inside::Metadata("kind"),
            (Inside::Root, "apiVersion") => Inside::Metadata("apiVersion"),
            (Inside::Metadata(name), _) => Inside::Metadata(name),
            _ => Inside::Nothing,
        };
        check_words(&property, below, depth + 1, errors);
    }
    check_words(&schema.field("not"), Inside::Nothing, depth + 1, errors);
    for list in ["allOf", "oneOf", "anyOf"] {
        for nested in schema.field(list).items() {
            check_words(&nested, Inside::Nothing, depth + 1, errors);
        }
    }
    check_words(&items, Inside::Nothing, depth + 1, errors);
    check_extensions(schema, errors);
    check_rules(&schema.field("x-kubernetes-validations"), errors);
}

fn check_extensions(schema: &At<'_>, errors: &mut Errors) {
    let kind = schema.field("type");
    let preserve = schema.field("x-kubernetes-preserve-unknown-fields");
    if preserve.value == &Value::Bool(false) {
        errors.push(preserve.invalid(TRUE_OR_UNDEFINED));
    }
    let wrong_type = |wanted: &str, by: &str| {
        let why = format!("must be {wanted} if {by} is specified");
        (kind.text() != wanted).then(|| if kind.text().is_empty() { kind.required(why) } else { kind.invalid(why) })
    };
    let map = schema.field("x-kubernetes-map-type");
    if map.is_set() {
        errors.extend(wrong_type("object", "x-kubernetes-map-type"));
    }
    map.check_optional(&["atomic", "granular"], errors);
    let list = schema.field("x-kubernetes-list-type");
    if list.is_set() {
        errors.extend(wrong_type("array", "x-kubernetes-list-type"));
    }
    list.check_optional(&["atomic", "set", "map"], errors);
    let keys = schema.field("x-kubernetes-list-map-keys");
    if !keys.is_empty() && list.text() != "map" {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(if list.is_set() { list.invalid(why) } else { list.required(why) });
    }
    if list.text() == "map" {
        check_map_list(&keys, &schema.field("items"), errors);
    }
}

fn check_map_list(keys: &At<'_>, items: &At<'_>, errors: &mut Errors) {
    if keys.is_empty() {
        errors.push(keys.required("must not be empty if x-kubernetes-list-type is map"));
    }
    if !items.is_set() {
        errors.push(items.required("must have a schema if x-kubernetes-list-type is map"));
        return;
    }
    let kind = items.field("type");
    let is_object = kind.text() == "object";
    if !is_object {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        errors.extend(kind.all_invalid(vec![why.to_owned()]));
    }
    let (known, required) = (items.field("properties"), items.field("required"));
    let mut seen = BTreeSet::new();
    for key in keys.texts().filter(|_| is_object) {
        if !known.has(key) {
            errors.push(keys.invalid("entries must all be names of item properties"));
        }
        if !seen.insert(key) {
            errors.push(keys.invalid("must not contain duplicate entries"));
        }
    }
    for key in keys.texts().filter(|key| known.has(key)) {
        let property = At::new(known.field(key).value, known.path.key(key));
        if !required.texts().any(|name| name == key) && !property.has("default") {
            let why =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(property.field("default").required(why));
        }
        if property.field("nullable").is_true() {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(property.field("nullable").forbidden(why));
        }
    }
}

/// Rules in CEL; they are not compiled here.
fn check_rules(rules: &At<'_>, errors: &mut Errors) {
    const REASONS: [&str; 4] =
        ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    for rule in rules.items() {
        let (text, message) = (rule.field("rule"), rule.field("message"));
        if text.text().trim().is_empty() {
            errors.push(text.required("rule is not specified"));
        } else if !message.text().is_empty() && message.text().trim().is_empty() {
            errors.push(message.invalid("must be non-empty if specified"));
        } else if message.text().trim().contains('\n') {
            errors.push(message.invalid("must not contain line breaks"));
        } else if text.text().trim().contains('\n') && message.text().trim().is_empty() {
            errors.push(message.required("message must be specified if rule contains line breaks"));
        }
        for expression in [text, rule.field("messageExpression")] {
            if let Some(why) = refuse_expression(expression.text()) {
                errors.push(expression.invalid(why));
            }
        }
        rule.field("reason").check_optional(&REASONS, errors);
    }
}
