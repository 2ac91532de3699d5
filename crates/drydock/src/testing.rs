//! Arbitrary JSON for property tests.

use proptest::prelude::*;
use serde_json::{Map, Value};

/// Names that objects really have, so that rules look at what is below them.
const NAMES: &[&str] = &[
    "metadata",
    "spec",
    "status",
    "name",
    "namespace",
    "labels",
    "annotations",
    "template",
    "containers",
    "conditions",
    "type",
    "selector",
    "matchLabels",
    "replicas",
    "ports",
    "port",
    "data",
    "rules",
    "env",
    "volumes",
    "phase",
    "ownerReferences",
    "uid",
    "finalizers",
    "items",
    "kind",
    "apiVersion",
    "image",
    "initContainers",
    "state",
    "waiting",
    "reason",
    "subjects",
];

/// Any JSON value.
pub(crate) fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    let key = prop_oneof![3 => proptest::sample::select(NAMES).prop_map(str::to_owned), 1 => ".{0,6}"];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::btree_map(key.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Any JSON object.
pub(crate) fn json_object() -> impl Strategy<Value = Value> {
    let key = proptest::sample::select(NAMES).prop_map(str::to_owned);
    proptest::collection::btree_map(key, json(), 0..6)
        .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>()))
}
