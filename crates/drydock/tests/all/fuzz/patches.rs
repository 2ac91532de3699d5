//! Arbitrary patches of an object that is there.

use crate::fuzz::tape::Tape;
use crate::fuzz::value::{arbitrary, field, mutate, part};
use crate::fuzz::vocabulary::{scalar, text};
use serde_json::{Map, Value, json};

pub const TYPES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// The body of a patch of a type.
pub fn patch(tape: &mut Tape, media_type: &str, object: &Value) -> Value {
    if tape.once_in(12) {
        return arbitrary(tape, 4);
    }
    match media_type {
        "application/json-patch+json" => (0..tape.below(6)).map(|_| operation(tape, object)).collect(),
        "application/strategic-merge-patch+json" => {
            let mut patch = narrowed(tape, object);
            direct(tape, &mut patch, 6);
            mutate(tape, &mut patch);
            patch
        }
        _ => {
            let mut patch = narrowed(tape, object);
            mutate(tape, &mut patch);
            patch
        }
    }
}

/// A part of an object, mostly without what would make the patch about another one.
fn narrowed(tape: &mut Tape, object: &Value) -> Value {
    let mut patch = part(tape, object);
    if let Some(metadata) = patch.get_mut("metadata").and_then(Value::as_object_mut).filter(|_| !tape.once_in(6)) {
        for name in ["resourceVersion", "managedFields", "uid", "creationTimestamp", "name", "namespace"] {
            metadata.remove(name);
        }
    }
    for name in ["apiVersion", "kind"] {
        if let (Some(fields), Some(value)) = (patch.as_object_mut(), object.get(name)) {
            fields.insert(name.to_owned(), value.clone());
        }
    }
    patch
}

fn operation(tape: &mut Tape, object: &Value) -> Value {
    let op = *tape.choose(&["add", "replace", "remove", "copy", "move", "test", "", "Add"]);
    let mut operation = Map::new();
    operation.insert("op".to_owned(), json!(op));
    operation.insert("path".to_owned(), json!(pointer(tape, object)));
    operation.insert("from".to_owned(), json!(pointer(tape, object)));
    operation.insert("value".to_owned(), arbitrary(tape, 2));
    if tape.once_in(8) {
        let name = *tape.choose(&["op", "path", "from", "value"]);
        operation.insert(name.to_owned(), scalar(tape));
    }
    for name in ["from", "value"] {
        if tape.once_in(4) {
            operation.remove(name);
        }
    }
    Value::Object(operation)
}

/// A pointer to something in an object, or just beside it.
fn pointer(tape: &mut Tape, object: &Value) -> String {
    let mut path = String::new();
    let mut at = object;
    for _ in 0..tape.below(7) {
        let step = match at {
            Value::Object(fields) if !fields.is_empty() && !tape.once_in(8) => {
                let (name, below) = fields.iter().nth(tape.below(fields.len())).unwrap();
                at = below;
                name.replace('~', "~0").replace('/', "~1")
            }
            Value::Array(items) if !items.is_empty() && !tape.once_in(4) => {
                let index = tape.below(items.len());
                at = &items[index];
                index.to_string()
            }
            Value::Array(_) => (*tape.choose(&["-", "-1", "99", "0", "00", "18446744073709551616", "1e1"])).to_owned(),
            _ => field(tape),
        };
        path = format!("{path}/{step}");
    }
    if tape.once_in(10) { text(tape) } else { path }
}

/// Strews the directives of strategic merge patches over a patch.
fn direct(tape: &mut Tape, patch: &mut Value, depth: usize) {
    if depth == 0 {
        return;
    }
    match patch {
        Value::Object(fields) => {
            fields.values_mut().for_each(|below| direct(tape, below, depth - 1));
            if !tape.once_in(4) {
                return;
            }
            let name = fields.keys().nth(tape.below(fields.len())).cloned().unwrap_or_else(|| field(tape));
            let (directive, value) = match tape.below(5) {
                0 => ("$patch".to_owned(), json!(tape.choose(&["delete", "replace", "merge", "what"]))),
                1 => ("$retainKeys".to_owned(), json!([name, text(tape)])),
                2 => (format!("$setElementOrder/{name}"), json!([{"name": text(tape)}, text(tape)])),
                3 => (format!("$deleteFromPrimitiveList/{name}"), json!([text(tape), 1])),
                _ => (format!("$setElementOrder/{name}"), arbitrary(tape, 2)),
            };
            fields.insert(directive, value);
        }
        Value::Array(items) => {
            for below in items.iter_mut() {
                direct(tape, below, depth - 1);
            }
            if tape.once_in(6) {
                items.push(json!({"$patch": tape.choose(&["delete", "replace", "merge"]), "name": text(tape)}));
            }
        }
        _ => {}
    }
}
