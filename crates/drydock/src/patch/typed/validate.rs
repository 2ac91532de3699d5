//! Whether a value has the types of its schema, in the words of structured-merge-diff v6.3 `typed/validate.go`.

use super::{Layout, Scalar, Type, item_element};
use crate::patch::fields::PathElement;
use crate::patch::go;
use crate::schema::ListKeys;
use serde_json::Value;
use std::collections::BTreeSet;

/// Whether items of a merged list may have the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::patch) enum Duplicates {
    Refused,
    Allowed,
}

/// Checks a value; the error names all that is wrong.
pub(in crate::patch) fn validate(root: Type<'_>, value: &Value, duplicates: Duplicates) -> Result<(), String> {
    let mut errors = Errors { duplicates, path: Vec::new(), texts: Vec::new() };
    errors.check(root, value);
    match errors.texts.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        several => Err(format!("errors:\n  {}", several.join("\n  "))),
    }
}

struct Errors<'v> {
    duplicates: Duplicates,
    /// Where the walk is. It is written down only for what is wrong, which is rare.
    path: Vec<Step<'v>>,
    texts: Vec<String>,
}

enum Step<'v> {
    Field(&'v str),
    Item(PathElement),
}

impl<'v> Errors<'v> {
    fn place(&self) -> String {
        let step = |step: &Step<'_>| match step {
            Step::Field(name) => format!(".{name}"),
            Step::Item(element) => element.to_string(),
        };
        self.path.iter().map(step).collect()
    }

    fn add(&mut self, what: &str) {
        self.texts.push(if self.path.is_empty() { what.to_owned() } else { format!("{}: {what}", self.place()) });
    }

    fn below(&mut self, step: Step<'v>, own: Type<'_>, value: &'v Value) {
        self.path.push(step);
        self.check(own, value);
        self.path.pop();
    }

    fn check(&mut self, own: Type<'_>, value: &'v Value) {
        match (own.layout(value), value) {
            (_, Value::Null) => {}
            (Layout::Scalar(scalar), value) => self.check_scalar(scalar, value),
            (Layout::List { items, keys }, Value::Array(list)) => self.check_list(items, keys, list),
            (Layout::List { .. }, other) => self.add(&format!("expected list, got &{{{}}}", shown(other))),
            (Layout::Map { .. }, Value::Object(map)) => {
                for (name, value) in map {
                    let Some(entry) = own.entry(name) else {
                        self.texts.push(format!("{}.{name}: field not declared in schema", self.place()));
                        break;
                    };
                    self.below(Step::Field(name), entry, value);
                }
            }
            (Layout::Map { .. }, other) => self.add(&format!("expected map, got &{{{}}}", shown(other))),
        }
    }

    fn check_scalar(&mut self, scalar: Scalar, value: &Value) {
        let error = match (scalar, value) {
            (Scalar::Number, Value::Number(_))
            | (Scalar::Text, Value::String(_))
            | (Scalar::Flag, Value::Bool(_))
            | (Scalar::Any, Value::Number(_) | Value::String(_) | Value::Bool(_)) => return,
            (Scalar::Number, other) => {
                format!("expected numeric (int or float), got {}", go::type_name(other))
            }
            (Scalar::Text, other) => {
                format!("expected string, got &value.valueUnstructured{{Value:{}}}", go::syntax(other))
            }
            (Scalar::Flag, other) => format!("expected boolean, got &{{{}}}", shown(other)),
            (Scalar::Any, other) => format!("expected any scalar, got &{{{}}}", shown(other)),
        };
        self.add(&error);
    }

    fn check_list(&mut self, items: Type<'_>, keys: &ListKeys, list: &'v [Value]) {
        let mut seen = BTreeSet::new();
        for (index, item) in list.iter().enumerate() {
            let element = if *keys == ListKeys::Atomic {
                PathElement::Index(i64::try_from(index).unwrap_or(i64::MAX))
            } else {
                match item_element(items, keys, item) {
                    Ok(element) => element,
                    // Nothing more can be said of a list that cannot be merged.
                    Err(why) => return self.add(&format!("element {index}: {why}")),
                }
            };
            if *keys != ListKeys::Atomic && !seen.insert(element.clone()) && self.duplicates == Duplicates::Refused {
                self.add(&format!("duplicate entries for key {element}"));
            }
            self.below(Step::Item(element), items, item);
        }
    }
}

/// A value as `%v` shows it, all numbers being floating-point ones.
fn shown(value: &Value) -> String {
    match value {
        Value::Number(number) => go::float(number.as_f64().unwrap_or_default()),
        other => go::plain(other),
    }
}
