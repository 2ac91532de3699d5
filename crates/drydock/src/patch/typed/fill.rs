//! What Go writes of a built-in type even where the object says nothing: structs that are held by value, and the zero
//! values of fields that are always written. Comparing objects without it would see changes where the server sees none.

use crate::schema::{Field, Shape, Struct, View};
use serde_json::{Map, Value};

/// The value with all that Go would write.
pub(in crate::patch) fn filled(view: View<'_>, value: &Value) -> Value {
    let mut filled = value.clone();
    fill(view, &mut filled);
    filled
}

fn fill(view: View<'_>, value: &mut Value) {
    match (view.shape(), value) {
        (Shape::List { items, .. }, Value::Array(list)) => {
            for item in list {
                fill(view.go_to(*items), item);
            }
        }
        (Shape::Map { values, .. }, Value::Object(map)) => {
            for value in map.values_mut() {
                fill(view.go_to(*values), value);
            }
        }
        (Shape::Struct(object), Value::Object(map)) => fill_struct(view, object, map),
        _ => {}
    }
}

fn fill_struct(view: View<'_>, object: &Struct, map: &mut Map<String, Value>) {
    let kept = object.kept.iter().filter(|_| object.definition.is_some());
    for (name, field) in kept.filter_map(|name| Some((name, object.fields.get(name)?))) {
        if !field.pointer && !map.contains_key(name) {
            map.insert(name.clone(), zero(view, field));
        }
    }
    for (name, value) in map.iter_mut().filter(|(_, value)| value.is_object() || value.is_array()) {
        if let Some(field) = object.fields.get(name) {
            fill(view.go_to(field.node), value);
        }
    }
}

/// What Go writes for an empty field.
fn zero(view: View<'_>, field: &Field) -> Value {
    match view.go_to(field.node).shape() {
        Shape::Struct(_) => Value::Object(Map::new()),
        Shape::Text => Value::from(""),
        Shape::Flag => Value::from(false),
        Shape::Integer(_) | Shape::Number | Shape::IntOrString => Value::from(0),
        Shape::Quantity => Value::from("0"),
        Shape::Any | Shape::Bytes | Shape::Time | Shape::MicroTime | Shape::List { .. } | Shape::Map { .. } => {
            Value::Null
        }
    }
}
