//! Small words for filling in defaults.

use crate::object::object_entry;
use crate::quantity;
use serde_json::{Map, Value};

/// The fields of a JSON object.
pub(super) type Fields = Map<String, Value>;

fn is_absent(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    }
}

/// Puts a value where there is none.
pub(super) fn or(fields: &mut Fields, name: &str, value: impl Into<Value>) {
    if fields.get(name).is_none_or(Value::is_null) {
        fields.insert(name.to_owned(), value.into());
    }
}

/// Puts a text where there is none or an empty one.
pub(super) fn or_text(fields: &mut Fields, name: &str, text: &str) {
    if is_absent(fields.get(name)) {
        fields.insert(name.to_owned(), Value::from(text));
    }
}

/// Puts a number where there is none or zero.
pub(super) fn or_number(fields: &mut Fields, name: &str, number: i64) {
    if fields.get(name).is_none_or(|value| value.is_null() || value.as_i64() == Some(0)) {
        fields.insert(name.to_owned(), Value::from(number));
    }
}

/// The struct in a field, made where it is absent: the server writes those that are no pointers even when empty.
pub(super) fn make<'a>(fields: &'a mut Fields, name: &str) -> &'a mut Fields {
    object_entry(fields, name)
}

/// The struct in a field, if it is there.
pub(super) fn inside<'a>(fields: &'a mut Fields, name: &str) -> Option<&'a mut Fields> {
    fields.get_mut(name).and_then(Value::as_object_mut)
}

/// Changes each struct of a list.
pub(super) fn each(fields: &mut Fields, name: &str, mut change: impl FnMut(&mut Fields)) {
    let items = fields.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten();
    items.filter_map(Value::as_object_mut).for_each(&mut change);
}

/// The text of a field, empty when there is none.
pub(super) fn text<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn has(fields: &Fields, name: &str) -> bool {
    fields.get(name).is_some_and(|value| !value.is_null())
}

/// Whether a list or map is absent or empty.
pub(super) fn is_empty(fields: &Fields, name: &str) -> bool {
    match fields.get(name) {
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(entries)) => entries.is_empty(),
        other => is_absent(other),
    }
}

/// Rounds the quantities of a resource list up to thousandths.
pub(super) fn round_resources(fields: &mut Fields, name: &str) {
    for quantity in inside(fields, name).into_iter().flat_map(Fields::values_mut) {
        if let Some(rounded) = quantity.as_str().and_then(quantity::round_up_to_milli) {
            *quantity = Value::from(rounded);
        }
    }
}

/// Rounds limits and requests.
pub(super) fn round_requirements(requirements: &mut Fields) {
    round_resources(requirements, "limits");
    round_resources(requirements, "requests");
}
