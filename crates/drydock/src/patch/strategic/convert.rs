//! From plain values to those of Go's types, which the server does in its own way after a strategic merge
//! (apimachinery v0.34 `runtime/converter.go`): numbers are cut to fit, and refusals have words of their own.
//! Types that read themselves, such as quantities and times, are left to the decoder.

use super::go_kind;
use crate::schema::{Shape, View, Width};
use serde_json::Value;

/// Makes a value fit its schema; the error says why it cannot.
pub(super) fn convert(schema: View<'_>, value: &mut Value) -> Result<(), String> {
    let shape = schema.shape();
    let unrecognized = || format!("unrecognized type: {}", go_kind(shape));
    match (shape, value) {
        (Shape::Any | Shape::Time | Shape::MicroTime | Shape::Quantity | Shape::IntOrString, _)
        | (_, Value::Null)
        | (Shape::Text, Value::String(_))
        | (Shape::Flag, Value::Bool(_))
        | (Shape::Number, Value::Number(_))
        | (Shape::Bytes, Value::String(_) | Value::Array(_)) => Ok(()),
        (Shape::Struct(object), Value::Object(map)) => {
            for (name, field) in &object.fields {
                if let Some(value) = map.get_mut(name) {
                    convert(schema.go_to(field.node), value)?;
                }
            }
            Ok(())
        }
        (Shape::Map { values, .. }, Value::Object(map)) => {
            map.values_mut().try_for_each(|value| convert(schema.go_to(*values), value))
        }
        (Shape::List { items, .. }, Value::Array(list)) => {
            list.iter_mut().try_for_each(|item| convert(schema.go_to(*items), item))
        }
        (Shape::Integer(width), number @ Value::Number(_)) => {
            *number = convert_integer(*width, number)
                .ok_or_else(|| format!("cannot convert float64 to {}", go_kind(shape)))?;
            Ok(())
        }
        (Shape::Text, Value::Number(number)) if !number.is_f64() => Err("cannot convert int64 to string".to_owned()),
        (Shape::Text | Shape::Flag | Shape::Integer(_) | Shape::Number, _) => Err(unrecognized()),
        (Shape::Struct(_), other) => Err(format!("cannot restore struct from: {}", value_kind(other))),
        (Shape::Map { .. }, other) => Err(format!("cannot restore map from {}", value_kind(other))),
        (Shape::List { .. } | Shape::Bytes, other) => Err(format!("cannot restore slice from {}", value_kind(other))),
    }
}

/// A whole number as Go's conversion leaves it: what is too wide loses its upper bits.
fn convert_integer(width: Width, number: &Value) -> Option<Value> {
    #[expect(clippy::cast_possible_truncation, reason = "Go's conversion truncates")]
    let whole = match number.as_i64() {
        Some(whole) => whole,
        None => number.as_f64().filter(|float| float.fract() == 0.0)? as i64,
    };
    #[expect(clippy::cast_possible_truncation, reason = "Go's conversion truncates")]
    let narrow = whole as i32;
    Some(match width {
        Width::Int32 => Value::from(narrow),
        Width::Int64 => Value::from(whole),
    })
}

/// What Go's reflection calls a value.
fn value_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}
