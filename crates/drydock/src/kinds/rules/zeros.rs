//! What the server writes although nobody set it: Go has no way to leave out a struct, and some fields are written
//! even when they are empty.

use crate::object::Object;
use crate::schema::{Schema, Shape, Struct, View};
use serde_json::{Map, Value};

/// Writes what is empty and yet written, in an object of a built-in kind.
pub(crate) fn write_zeros(schema: &Schema, object: &mut Object) {
    if let (true, Shape::Struct(root)) = (schema.typed, schema.root().shape()) {
        fill_struct(schema.root(), root, object.fields_mut());
    }
}

fn fill(view: View<'_>, value: &mut Value) {
    match (view.shape(), value) {
        (Shape::Struct(object), Value::Object(fields)) => fill_struct(view, object, fields),
        (Shape::List { items, .. }, Value::Array(list)) => {
            for item in list {
                fill(view.go_to(*items), item);
            }
        }
        (Shape::Map { values, .. }, Value::Object(entries)) => {
            entries.values_mut().for_each(|value| fill(view.go_to(*values), value));
        }
        _ => {}
    }
}

fn fill_struct(view: View<'_>, object: &Struct, fields: &mut Map<String, Value>) {
    if object.definition.is_none() {
        return;
    }
    for name in object.kept.iter().map(String::as_str).chain(["metadata"]) {
        let Some(field) = object.fields.get(name) else { continue };
        let below = view.go_to(field.node);
        let is_absent = fields.get(name).is_none_or(Value::is_null);
        if is_absent && (field.keep_empty || is_metadata(below)) {
            fields.insert(name.to_owned(), if field.pointer { Value::Null } else { zero(below) });
        }
    }
    for (name, value) in fields.iter_mut().filter(|(_, value)| value.is_object() || value.is_array()) {
        if let Some(field) = object.fields.get(name) {
            fill(view.go_to(field.node), value);
        }
    }
}

/// Forgets that a list or map was there where there is nothing in it, as an object of a built-in kind does when it is
/// stored. Until then messages tell the one from the other.
pub(crate) fn forget_empty(schema: &Schema, object: &mut Object) {
    if schema.typed {
        object.fields_mut().iter_mut().for_each(|(name, value)| {
            if let Some(view) = schema.root().entry(name) {
                forget(view, value);
            }
        });
    }
}

fn forget(view: View<'_>, value: &mut Value) {
    match (view.shape(), &mut *value) {
        (Shape::List { .. }, Value::Array(items)) if items.is_empty() => *value = Value::Null,
        (Shape::Map { .. }, Value::Object(entries)) if entries.is_empty() => *value = Value::Null,
        (Shape::List { items, .. }, Value::Array(list)) => {
            for item in list {
                forget(view.go_to(*items), item);
            }
        }
        (Shape::Map { .. } | Shape::Struct(_), Value::Object(entries)) => {
            for (name, value) in entries.iter_mut() {
                if let Some(below) = view.entry(name) {
                    forget(below, value);
                }
            }
        }
        _ => {}
    }
}

fn is_metadata(view: View<'_>) -> bool {
    matches!(view.shape(), Shape::Struct(Struct { definition: Some(name), .. }) if name.ends_with(".meta.v1.ObjectMeta"))
}

/// What a field that is always written holds when nobody set it.
fn zero(view: View<'_>) -> Value {
    match view.shape() {
        Shape::Text => Value::from(""),
        Shape::Flag => Value::from(false),
        Shape::Integer(_) | Shape::Number | Shape::IntOrString => Value::from(0),
        Shape::Quantity => Value::from("0"),
        Shape::Struct(_) => Value::Object(Map::new()),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;
    use serde_json::json;

    fn written(api_version: &str, kind: &str, value: Value) -> Value {
        let kinds = Kinds::default();
        let mut object = Object::from_value(value).unwrap();
        write_zeros(kinds.by_kind(api_version, kind).unwrap().schema(), &mut object);
        object.into_value()
    }

    #[test]
    fn structs_and_required_fields_are_written() {
        assert_eq!(written("coordination.k8s.io/v1", "Lease", json!({})), json!({"metadata": {}, "spec": {}}));
        assert_eq!(
            written("policy/v1", "PodDisruptionBudget", json!({"metadata": {"name": "a"}})),
            json!({"metadata": {"name": "a"}, "spec": {}, "status": {
                "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0,
            }})
        );
        assert_eq!(written("rbac.authorization.k8s.io/v1", "Role", json!({})), json!({"metadata": {}, "rules": null}));
        let mut slice = Object::from_value(json!({"endpoints": [], "addressType": "IPv4"})).unwrap();
        forget_empty(Kinds::default().by_kind("discovery.k8s.io/v1", "EndpointSlice").unwrap().schema(), &mut slice);
        assert_eq!(slice.into_value(), json!({"endpoints": null, "addressType": "IPv4"}));
        let pod = written("v1", "Pod", json!({"spec": {"containers": [{"image": "a"}]}}));
        assert_eq!(pod["spec"]["containers"], json!([{"name": "", "image": "a", "resources": {}}]));
        assert_eq!(pod["status"], json!({}));
    }
}
