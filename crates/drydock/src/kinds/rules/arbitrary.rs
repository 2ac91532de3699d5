//! No rule panics, whatever JSON it is shown.

use super::service::address::{refuse_families, set_families};
use super::service::change::carry_allocated;
use super::{recorded, zeros};
use crate::kinds::{Kind, Kinds};
use crate::object::Object;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value};
use std::sync::LazyLock;

static KINDS: LazyLock<Kinds> = LazyLock::new(Kinds::default);

/// The names of fields that rules look at.
static WORDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut words = Vec::new();
    for (_, _, body) in recorded::creations() {
        collect(&serde_json::from_str(body).unwrap(), &mut words);
    }
    words.sort();
    words.dedup();
    words
});

fn collect(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            words.extend(fields.keys().cloned());
            fields.values().for_each(|value| collect(value, words));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
        _ => {}
    }
}

fn json() -> impl Strategy<Value = Value> {
    let texts =
        select(vec!["", "-", "/", "a", "1", "-1", "1e9999", "10%", "é", "a/b/c", "*.a", "10.0.0.0/8", "::", "a:b"]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        select(vec![0, 1, -1, i64::MAX, i64::MIN, 65536, 1 << 31]).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        texts.prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(select(WORDS.clone()), inner, 0..6).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

/// A body of which some value is another one.
fn mutant() -> impl Strategy<Value = (usize, Value)> {
    let count = recorded::creations().count();
    (0..count, vec((any::<Index>(), json()), 0..4)).prop_map(|(number, changes)| {
        let (_, _, body) = recorded::creations().nth(number).unwrap();
        let mut body: Value = serde_json::from_str(body).unwrap();
        for (place, value) in changes {
            let size = size(&body);
            replace(&mut body, &mut place.index(size).max(1), value);
        }
        (number, body)
    })
}

fn size(value: &Value) -> usize {
    1 + match value {
        Value::Object(fields) => fields.values().map(size).sum(),
        Value::Array(items) => items.iter().map(size).sum(),
        _ => 0,
    }
}

/// Puts a value in the place of the one that is so many values further.
fn replace(at: &mut Value, steps: &mut usize, value: Value) {
    if *steps == 0 {
        *at = value;
        return;
    }
    let below: Vec<&mut Value> = match at {
        Value::Object(fields) => fields.values_mut().collect(),
        Value::Array(items) => items.iter_mut().collect(),
        _ => return,
    };
    for next in below {
        *steps -= 1;
        let inside = size(next);
        if *steps < inside {
            return replace(next, steps, value);
        }
        *steps -= inside - 1;
    }
}

/// All that rules do to a new object, to a changed one and to its status.
fn obey(kind: &Kind, object: &Object, old: &Object) {
    let rules = kind.rules();
    let mut new = object.clone();
    (rules.default)(&mut new);
    set_families(&mut new, None);
    refuse_families(&new);
    (rules.prepare_create)(&mut new);
    zeros::write_zeros(kind.schema(), &mut new);
    rules.refuse_create(&new, kind.namespaced);
    (rules.warnings)(&new, None);
    zeros::forget_empty(kind.schema(), &mut new);

    let mut new = object.clone();
    (rules.default)(&mut new);
    carry_allocated(&mut new, old);
    set_families(&mut new, Some(old));
    (rules.prepare_update)(&mut new, old);
    zeros::write_zeros(kind.schema(), &mut new);
    rules.generation.rises(&new, old, true);
    rules.refuse_update(&new, old, kind.namespaced);
    (rules.warnings)(&new, Some(old));

    let mut new = object.clone();
    (rules.prepare_status)(&mut new, old);
    rules.refuse_status(&new, old, kind.namespaced);
}

fn object(value: &Value) -> Object {
    Object::from_value(value.clone()).unwrap_or_else(|_| Object::from_value(Value::Object(Map::new())).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn rules_take_what_is_nearly_right((number, new) in mutant(), (_, old) in mutant(), same in any::<bool>()) {
        let (api, name, body) = recorded::creations().nth(number).unwrap();
        let old = if same { serde_json::from_str(body).unwrap() } else { old };
        obey(KINDS.by_kind(api, name).unwrap(), &object(&new), &object(&old));
    }

    #[test]
    fn rules_take_anything(kind in any::<Index>(), fields in btree_map(select(WORDS.clone()), json(), 0..8), old in json()) {
        let kinds: Vec<&Kind> = KINDS.all().map(AsRef::as_ref).collect();
        let new: Value = fields.into_iter().collect();
        obey(kinds[kind.index(kinds.len())], &object(&new), &object(&old));
    }
}
