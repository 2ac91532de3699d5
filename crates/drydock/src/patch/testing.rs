//! Values and a schema for tests.

use crate::schema::{Schema, Shape, View};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A custom resource with every kind of list and map.
pub(super) fn widget_schema() -> Schema {
    let texts = |kind: &str| json!({"type": "array", "x-kubernetes-list-type": kind, "items": {"type": "string"}});
    let point = json!({"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}});
    let mut atom = point.clone();
    atom["x-kubernetes-map-type"] = json!("atomic");
    let port = json!({"type": "object", "properties": {
        "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": {"type": "string"},
    }});
    let item = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "value": {"type": "string"}, "tags": texts("set"),
    }});
    let list = |keys: Value, items: Value| json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": items});
    Schema::custom(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer"}, "name": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "point": point, "atom": atom,
            "tags": texts("set"), "words": texts("atomic"),
            "ports": list(json!(["port", "protocol"]), port), "items": list(json!(["name"]), item),
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "a": {"type": "object", "properties": {"b": {"type": "string"}}},
            }},
        }},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    }}))
}

/// Names that schemas, patches and list keys care about.
fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "a", "b", "name", "spec", "metadata", "labels", "finalizers", "template", "containers", "env", "ports",
            "containerPort", "protocol", "volumes", "image", "strategy", "list", "set", "map", "free", "key", "",
        ]).prop_map(str::to_owned),
        1 => prop::sample::select(vec![
            "$patch", "$retainKeys", "$setElementOrder/containers", "$setElementOrder/finalizers", "$setElementOrder",
            "$deleteFromPrimitiveList/finalizers", "$deleteFromPrimitiveList",
        ]).prop_map(str::to_owned),
    ]
}

fn any_scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2i64..3).prop_map(Value::from),
        Just(Value::from(0.5)),
        prop::sample::select(vec!["", "a", "b", "TCP", "delete", "replace", "merge", "name"]).prop_map(Value::from),
    ]
}

/// Any JSON.
pub(super) fn any_value() -> impl Strategy<Value = Value> {
    any_scalar().prop_recursive(6, 48, 4, |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            2 => prop::collection::btree_map(any_name(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Any JSON object.
pub(super) fn any_object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(any_name(), any_value(), 0..4).prop_map(|map| Value::Object(map.into_iter().collect()))
}

/// A value that a schema allows, with few names and numbers so that two of them have much in common.
pub(super) fn any_object_of(view: View<'_>) -> impl Strategy<Value = Value> {
    prop::collection::vec(any::<u8>(), 0..300).prop_map(move |bytes| {
        let mut source = Source { bytes: bytes.into_iter(), depth: 0 };
        match source.value(view) {
            object @ Value::Object(_) => object,
            _ => Value::Object(Map::new()),
        }
    })
}

/// Decisions made in advance.
struct Source {
    bytes: std::vec::IntoIter<u8>,
    depth: usize,
}

impl Source {
    fn below(&mut self, limit: usize) -> usize {
        self.bytes.next().map_or(0, usize::from) % limit
    }

    fn value(&mut self, view: View<'_>) -> Value {
        match view.shape() {
            Shape::Flag => Value::from(self.below(2) == 1),
            Shape::Integer(_) | Shape::Number => Value::from(self.below(3)),
            Shape::List { items, .. } => {
                let count = self.below(4);
                (0..count).map(|_| self.value(view.go_to(*items))).collect()
            }
            Shape::Map { values, .. } => {
                let count = self.below(3);
                (0..count)
                    .map(|_| (["a", "b", "c"][self.below(3)].to_owned(), self.value(view.go_to(*values))))
                    .collect()
            }
            Shape::Struct(object) => {
                self.depth += 1;
                let names: Vec<&String> = object.fields.keys().filter(|name| *name != "managedFields").collect();
                let mut map = Map::new();
                for key in ["metadata", "spec", "template", "containers", "name", "type", "list"] {
                    if let Some(field) = object.fields.get(key)
                        && self.below(4) > 0
                    {
                        map.insert(key.to_owned(), self.value(view.go_to(field.node)));
                    }
                }
                let count = if names.is_empty() || self.depth > 8 { 0 } else { self.below(4) };
                for _ in 0..count {
                    let name = names[self.below(names.len())];
                    map.insert(name.clone(), self.value(view.go_to(object.fields[name].node)));
                }
                if object.open && self.below(2) == 0 {
                    map.insert("free".to_owned(), Value::from(self.below(3)));
                }
                self.depth -= 1;
                Value::Object(map)
            }
            Shape::Any => match self.below(3) {
                0 => Value::from(self.below(3)),
                1 => Value::Array(vec![Value::from(self.below(3))]),
                _ => Value::Object(Map::from_iter([("a".to_owned(), Value::from(self.below(3)))])),
            },
            Shape::Text | Shape::Bytes | Shape::Time | Shape::MicroTime | Shape::Quantity | Shape::IntOrString => {
                Value::from(["a", "b", ""][self.below(3)])
            }
        }
    }
}
