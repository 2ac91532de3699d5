//! `values.schema.json`: what values have to be.

use crate::package::Package;
use crate::values::Values;
use serde_json::Value;

/// Checks the values of a chart, and of those in it, against their schemas; `Err` has Helm's message.
pub(crate) fn validate(package: &Package, values: &Values) -> Result<(), String> {
    let mut found = String::new();
    check(package, values, &mut found);
    if found.is_empty() {
        return Ok(());
    }
    Err(format!("values don't meet the specifications of the schema(s) in the following chart(s):\n{found}"))
}

fn check(package: &Package, values: &Values, found: &mut String) {
    if let Some(schema) = &package.schema {
        let errors = errors(schema, values);
        if !errors.is_empty() {
            found.push_str(&format!("{}:\n", package.name()));
            for error in errors {
                found.push_str(&format!("- {error}\n"));
            }
        }
    }
    for subchart in &package.dependencies {
        if let Some(Value::Object(inner)) = values.get(subchart.name()) {
            check(subchart, inner, found);
        }
    }
}

/// What is wrong with values by a schema, in the words of the library that Helm 3 uses where it is common.
fn errors(schema: &[u8], values: &Values) -> Vec<String> {
    let schema: Value = match serde_json::from_slice(schema) {
        Ok(schema) => schema,
        Err(error) => return vec![format!("the schema is no JSON: {error}")],
    };
    let validator = match jsonschema::validator_for(&schema) {
        Ok(validator) => validator,
        Err(error) => return vec![format!("the schema is invalid: {error}")],
    };
    let values = Value::Object(whole(values));
    let mut found: Vec<String> = validator.iter_errors(&values).map(|error| describe(&error)).collect();
    found.sort();
    found
}

/// Whole numbers as integers, as they are once printed and read again.
fn whole(values: &Values) -> Values {
    values.iter().map(|(key, value)| (key.clone(), whole_value(value))).collect()
}

fn whole_value(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < 9e15 => {
                format!("{float}").parse().unwrap_or_else(|_| value.clone())
            }
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(whole_value).collect(),
        Value::Object(entries) => Value::Object(whole(entries)),
        other => other.clone(),
    }
}

fn describe(error: &jsonschema::ValidationError<'_>) -> String {
    use jsonschema::error::{TypeKind, ValidationErrorKind};
    let path = error.instance_path().as_str().trim_start_matches('/').replace('/', ".");
    let path = if path.is_empty() { "(root)".to_owned() } else { path };
    let text = match error.kind() {
        ValidationErrorKind::Required { property } => {
            format!("{} is required", property.as_str().unwrap_or_default())
        }
        ValidationErrorKind::Type { kind } => {
            let expected = match kind {
                TypeKind::Single(kind) => kind.to_string(),
                TypeKind::Multiple(kinds) => kinds.iter().map(|kind| kind.to_string()).collect::<Vec<_>>().join("/"),
            };
            format!("Invalid type. Expected: {expected}, given: {}", kind_of(error.instance()))
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            format!("Additional property {} is not allowed", unexpected.first().map_or("", String::as_str))
        }
        ValidationErrorKind::Enum { options } => {
            let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
            let options: Vec<String> = options.iter().map(Value::to_string).collect();
            format!("{path} must be one of the following: {}", options.join(", "))
        }
        ValidationErrorKind::Pattern { pattern } => format!("Does not match pattern '{pattern}'"),
        ValidationErrorKind::Minimum { limit } => format!("Must be greater than or equal to {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("Must be less than or equal to {limit}"),
        ValidationErrorKind::MinLength { limit } => format!("String length must be greater than or equal to {limit}"),
        ValidationErrorKind::MaxLength { limit } => format!("String length must be less than or equal to {limit}"),
        _ => error.to_string(),
    };
    format!("{path}: {text}")
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
