//! Arbitrary JSON, and JSON that is nearly right.

use crate::fuzz::tape::Tape;
use crate::fuzz::vocabulary::{scalar, text};
use serde_json::{Map, Value, json};

#[rustfmt::skip]
const FIELDS: &[&str] = &[
    "metadata", "spec", "status", "name", "namespace", "labels", "annotations", "template", "containers",
    "conditions", "type", "selector", "matchLabels", "replicas", "ports", "port", "data", "rules", "env", "volumes",
    "phase", "ownerReferences", "uid", "finalizers", "items", "kind", "apiVersion", "image", "initContainers",
    "state", "reason", "subjects", "$patch", "$retainKeys", "$setElementOrder/containers",
    "$deleteFromPrimitiveList/finalizers", "managedFields", "fieldsV1", "deletionTimestamp", "resourceVersion",
    "generateName", "command", "parallelism", "completions", "suspend",
];

/// Any JSON value of a depth.
pub fn arbitrary(tape: &mut Tape, depth: usize) -> Value {
    match tape.below(if depth == 0 { 2 } else { 4 }) {
        0 | 1 => scalar(tape),
        2 => (0..tape.below(4)).map(|_| arbitrary(tape, depth - 1)).collect(),
        _ => Value::Object((0..tape.below(5)).map(|_| (field(tape), arbitrary(tape, depth - 1))).collect()),
    }
}

pub fn field(tape: &mut Tape) -> String {
    if tape.once_in(6) { text(tape) } else { (*tape.choose(FIELDS)).to_owned() }
}

/// How many values there are in a value.
fn size(value: &Value) -> usize {
    1 + match value {
        Value::Object(fields) => fields.values().map(size).sum(),
        Value::Array(items) => items.iter().map(size).sum(),
        _ => 0,
    }
}

/// Changes a value in some places.
pub fn mutate(tape: &mut Tape, value: &mut Value) {
    for _ in 0..tape.below(3) {
        let mut steps = tape.below(size(value));
        if let Some(place) = find(value, &mut steps) {
            change(tape, place);
        }
    }
}

/// The value that is so many values further.
fn find<'a>(value: &'a mut Value, steps: &mut usize) -> Option<&'a mut Value> {
    if *steps == 0 {
        return Some(value);
    }
    *steps -= 1;
    match value {
        Value::Object(fields) => fields.values_mut().find_map(|below| find(below, steps)),
        Value::Array(items) => items.iter_mut().find_map(|below| find(below, steps)),
        _ => None,
    }
}

fn change(tape: &mut Tape, place: &mut Value) {
    match (tape.below(5), &mut *place) {
        (0, _) => *place = scalar(tape),
        (1, Value::Object(fields)) => {
            let name = field(tape);
            fields.insert(name, arbitrary(tape, 2));
        }
        (1 | 2, Value::Array(items)) => {
            // Twice the same, and much of it.
            if let Some(first) = items.first().cloned() {
                items.extend((0..=tape.below(3)).map(|_| first.clone()));
            } else {
                items.push(arbitrary(tape, 2));
            }
        }
        (2, Value::Object(fields)) => {
            let name = fields.keys().nth(tape.below(fields.len())).cloned();
            name.and_then(|name| fields.remove(&name));
        }
        (3, _) => *place = arbitrary(tape, 3),
        (_, Value::Array(items)) if !items.is_empty() => {
            items.remove(tape.below(items.len()));
        }
        (_, Value::String(text)) => text.push_str(&crate::fuzz::vocabulary::text(tape)),
        _ => *place = json!(tape.once_in(2)),
    }
}

/// Some of the fields of an object.
pub fn part(tape: &mut Tape, value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut kept = Map::new();
            for (name, below) in fields {
                if !tape.once_in(4) {
                    kept.insert(name.clone(), part(tape, below));
                }
            }
            Value::Object(kept)
        }
        Value::Array(items) => {
            let mut kept = Vec::new();
            for item in items {
                if !tape.once_in(4) {
                    kept.push(part(tape, item));
                }
            }
            Value::Array(kept)
        }
        _ if tape.once_in(60) => Value::Null,
        _ if tape.once_in(30) => scalar(tape),
        other => other.clone(),
    }
}
