//! Defaults of custom resources: what the schema fills in where a value is absent, on write and on read.

use crate::object::Object;
use crate::schema::{Shape, Struct, View};
use serde_json::{Map, Value};

/// Fills an object.
pub(super) fn fill(view: View<'_>, object: &mut Object) {
    fill_map(view, object.fields_mut());
}

fn fill_map(view: View<'_>, map: &mut Map<String, Value>) {
    match view.shape() {
        // Metadata is a built-in type with no defaults of its own.
        Shape::Struct(Struct { definition: Some(_), .. }) => {}
        Shape::Struct(Struct { fields, .. }) => {
            for (name, field) in fields {
                let view = view.go_to(field.node);
                // Null stands for absent where it is not a value.
                if map.get(name).is_some_and(Value::is_null) && !view.node().nullable {
                    map.remove(name);
                }
                if let Some(default) = &view.node().default
                    && !map.contains_key(name)
                {
                    map.insert(name.clone(), default.clone());
                }
                if let Some(value) = map.get_mut(name) {
                    fill_value(view, value);
                }
            }
        }
        Shape::Map { values, .. } => {
            for value in map.values_mut() {
                fill_value(view.go_to(*values), value);
            }
        }
        _ => {}
    }
}

fn fill_value(view: View<'_>, value: &mut Value) {
    match value {
        Value::Object(map) => fill_map(view, map),
        Value::Array(items) => {
            if let Some(view) = view.items() {
                for item in items {
                    fill_value(view, item);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;
    use serde_json::json;

    #[test]
    fn defaults_reach_as_deep_as_there_are_values() {
        let schema = Schema::custom(
            &json!({"type": "object", "properties": {"spec": {"type": "object", "default": {}, "properties": {
                "a": {"type": "integer", "default": 1},
                "n": {"type": "string", "nullable": true, "default": "d"},
                "absent": {"type": "object", "properties": {"x": {"type": "integer", "default": 2}}},
                "list": {"type": "array", "items": {"type": "object", "properties": {"v": {"type": "integer", "default": 3}}}},
                "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"v": {"type": "integer", "default": 4}}}},
            }}}}),
        );
        let filled = |value: Value| {
            let mut object = Object::from_value(value).unwrap();
            fill(schema.root(), &mut object);
            object.into_value()
        };
        assert_eq!(filled(json!({})), json!({"spec": {"a": 1, "n": "d"}}));
        assert_eq!(
            filled(json!({"spec": {"a": null, "n": null, "list": [{}, {"v": 9}], "map": {"k": {}}}})),
            json!({"spec": {"a": 1, "n": null, "list": [{"v": 3}, {"v": 9}], "map": {"k": {"v": 4}}}})
        );
    }
}
