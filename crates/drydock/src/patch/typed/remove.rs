//! Taking fields out of a value (structured-merge-diff v6.3 `typed/remove.go`).

use super::{Layout, Type, item_element};
use crate::patch::fields::{FieldSet, PathElement};
use crate::schema::ListKeys;
use serde_json::{Map, Value};

/// The value without the items, fields and entries of a set. What becomes empty becomes null.
pub(in crate::patch) fn remove(own: Type<'_>, value: &Value, removed: &FieldSet) -> Value {
    match (own.layout(value), value) {
        (Layout::Scalar(_), value) => value.clone(),
        (Layout::List { items, keys }, Value::Array(list)) if *keys != ListKeys::Atomic => {
            let kept: Vec<Value> = list
                .iter()
                .filter_map(|item| match item_element(items, keys, item) {
                    Ok(element) => remove_below(items, &element, item, removed),
                    Err(_) => Some(item.clone()),
                })
                .collect();
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        (Layout::Map { atomic: false }, Value::Object(map)) => {
            let kept: Map<String, Value> = map
                .iter()
                .filter_map(|(name, value)| {
                    let entry = own.entry(name).unwrap_or(Type::Free);
                    let kept = remove_below(entry, &PathElement::Field(name.clone()), value, removed)?;
                    Some((name.clone(), kept))
                })
                .collect();
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        _ => Value::Null,
    }
}

fn remove_below(own: Type<'_>, element: &PathElement, value: &Value, removed: &FieldSet) -> Option<Value> {
    if removed.has(element) {
        return None;
    }
    Some(match removed.below(element) {
        Some(below) => remove(own, value, below),
        None => value.clone(),
    })
}
