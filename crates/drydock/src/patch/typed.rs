//! Values as server-side apply sees them: scalars, lists and maps, granular or owned as a whole, by a schema
//! (structured-merge-diff v6.3 `typed`, kube-openapi `schemaconv`).

mod compare;
mod fill;
mod merge;
mod reconcile;
mod remove;
mod validate;

pub(super) use compare::{Comparison, compare};
pub(super) use fill::filled;
pub(super) use merge::merge;
pub(super) use reconcile::reconcile;
pub(super) use remove::remove;
pub(super) use validate::{Duplicates, validate};

use super::fields::{FieldSet, PathElement, Plain};
use crate::schema::{ListKeys, Shape, Struct, View};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What the schema says of a value.
#[derive(Clone, Copy)]
pub(super) enum Type<'a> {
    Known {
        view: View<'a>,
        /// Unknown fields are taken because a struct above is open.
        open: bool,
        /// Taken apart although the type is atomic.
        granular: bool,
    },
    /// Nothing: objects are granular, all else is a whole.
    Free,
    /// That it is a whole, whatever it is.
    Whole,
}

/// What a value is made of.
pub(super) enum Layout<'a> {
    Scalar(Scalar),
    List { items: Type<'a>, keys: &'a ListKeys },
    Map { atomic: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Text,
    Number,
    Flag,
    Any,
}

/// Fields that are taken apart in another way than their type says: RawExtension is a whole where other types without
/// a schema are not, and the field of the volume's claim overrides its type.
const WHOLE: [(&str, &str); 1] = [("io.k8s.api.apps.v1.ControllerRevision", "data")];
const GRANULAR: [(&str, &str); 1] = [("io.k8s.api.core.v1.PersistentVolumeSpec", "claimRef")];
/// The only type whose key is optional and has no default.
const KEYLESS: &str = "io.k8s.api.core.v1.ObjectReference";

impl<'a> Type<'a> {
    pub(super) fn of(view: View<'a>) -> Self {
        Self::Known { view, open: false, granular: false }
    }

    /// What lies below this.
    fn below(self, view: View<'a>) -> Self {
        Self::Known { view, open: self.is_open(), granular: false }
    }

    /// How a value of this type is taken apart. Null is whatever the type has, a map first.
    pub(super) fn layout(self, value: &Value) -> Layout<'a> {
        let atomic = match self {
            Self::Known { view, granular, .. } => match view.shape() {
                Shape::Text | Shape::Bytes => return Layout::Scalar(Scalar::Text),
                Shape::Flag => return Layout::Scalar(Scalar::Flag),
                Shape::Integer(_) | Shape::Number => return Layout::Scalar(Scalar::Number),
                Shape::Time | Shape::MicroTime | Shape::Quantity => return Layout::Scalar(Scalar::Any),
                Shape::List { items, keys } => {
                    return Layout::List { items: self.below(view.go_to(*items)), keys };
                }
                Shape::Map { atomic, .. } | Shape::Struct(Struct { atomic, .. }) => {
                    return Layout::Map { atomic: *atomic && !granular };
                }
                Shape::Any | Shape::IntOrString => false,
            },
            Self::Free => false,
            Self::Whole => true,
        };
        match value {
            Value::Null | Value::Object(_) => Layout::Map { atomic },
            Value::Array(_) => Layout::List { items: Self::Whole, keys: &ListKeys::Atomic },
            _ => Layout::Scalar(Scalar::Any),
        }
    }

    /// Whether structs below take unknown fields.
    fn is_open(self) -> bool {
        match self {
            Self::Known { view, open, .. } => match view.shape() {
                Shape::Struct(Struct { definition: Some(_), .. }) => false,
                Shape::Struct(Struct { open: own, .. }) => open || *own,
                _ => open,
            },
            _ => true,
        }
    }

    /// Whether a struct has a field of this name, as opposed to an entry of a map.
    pub(super) fn has_field(self, name: &str) -> bool {
        matches!(self, Self::Known { view, .. } if view.field(name).is_some())
    }

    /// The type of a field or entry, if there may be one of this name.
    pub(super) fn entry(self, name: &str) -> Option<Self> {
        let Self::Known { view, .. } = self else { return Some(self) };
        match view.shape() {
            Shape::Any | Shape::IntOrString => Some(Self::Free),
            Shape::Map { .. } => view.entry(name).map(|view| self.below(view)),
            Shape::Struct(Struct { definition, fields, embedded, .. }) => match view.entry(name) {
                Some(view) => Some(self.field(definition.as_deref(), name, view)),
                None if self.is_open() || fields.is_empty() => Some(Self::Free),
                None if *embedded && matches!(name, "apiVersion" | "kind" | "metadata") => Some(Self::Free),
                None => None,
            },
            _ => None,
        }
    }

    fn field(self, definition: Option<&str>, name: &str, view: View<'a>) -> Self {
        let is_one_of =
            |fields: &[(&str, &str)]| definition.is_some_and(|definition| fields.contains(&(definition, name)));
        if is_one_of(&WHOLE) {
            Self::Whole
        } else if is_one_of(&GRANULAR) {
            Self::Known { view, open: false, granular: true }
        } else {
            self.below(view)
        }
    }

    /// The type at the next step of a path; where the schema has none, anything goes.
    fn step(self, element: &PathElement) -> Self {
        match (element, self) {
            (PathElement::Field(name), _) => self.entry(name).unwrap_or(Self::Free),
            (_, Self::Known { view, .. }) => match view.items() {
                Some(view) => self.below(view),
                None => Self::Free,
            },
            _ => Self::Free,
        }
    }
}

/// How an item of a list that is merged is told from the others.
pub(super) fn item_element(items: Type<'_>, keys: &ListKeys, item: &Value) -> Result<PathElement, String> {
    match keys {
        ListKeys::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        ListKeys::Values => match item {
            Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
            scalar => Ok(PathElement::Value(Plain(scalar.clone()))),
        },
        ListKeys::Fields(keys) => {
            let item = match item {
                Value::Object(item) => item,
                Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
                _ => return Err("associative list with keys may not have non-map elements".to_owned()),
            };
            let mut values: Vec<(String, Plain)> = keys
                .iter()
                .filter_map(|(key, default)| {
                    let value = item.get(key).cloned().or_else(|| default.clone()).or_else(|| zero_key(items, key))?;
                    Some((key.clone(), Plain(value)))
                })
                .collect();
            if values.is_empty() && !keys.is_empty() {
                let keys: Vec<String> = keys.iter().map(|(key, _)| format!("{key:?}")).collect();
                return Err(format!(
                    "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                    keys.join(" ")
                ));
            }
            values.sort();
            Ok(PathElement::Key(values))
        }
    }
}

/// What a key of a built-in type is when absent: what Go makes of it.
fn zero_key(items: Type<'_>, key: &str) -> Option<Value> {
    let Type::Known { view, .. } = items else { return None };
    match view.shape() {
        Shape::Struct(Struct { definition: Some(definition), .. }) if definition != KEYLESS => {
            match view.entry(key)?.shape() {
                Shape::Text => Some(Value::from("")),
                Shape::Integer(_) => Some(Value::from(0)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The fields that a value sets: leaves, items, entries of maps, and what is empty.
pub(super) fn field_set(root: Type<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    collect(root, value, &mut Vec::new(), &mut set);
    set
}

fn collect(own: Type<'_>, value: &Value, path: &mut Vec<PathElement>, set: &mut FieldSet) {
    match (own.layout(value), value) {
        (Layout::Map { atomic: false }, Value::Object(map)) => {
            for (name, value) in map {
                path.push(PathElement::Field(name.clone()));
                collect(own.entry(name).unwrap_or(Type::Free), value, path, set);
                let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                if is_empty || !own.has_field(name) {
                    set.insert(path);
                }
                path.pop();
            }
        }
        (Layout::List { items, keys }, Value::Array(list)) if *keys != ListKeys::Atomic => {
            let elements: Vec<Option<PathElement>> =
                list.iter().map(|item| item_element(items, keys, item).ok()).collect();
            let mut counts: BTreeMap<&PathElement, usize> = BTreeMap::new();
            for element in elements.iter().flatten() {
                *counts.entry(element).or_default() += 1;
            }
            for (element, item) in elements.iter().zip(list) {
                let Some(element) = element else { continue };
                path.push(element.clone());
                // Items that cannot be told apart are owned together.
                if counts.get(element) == Some(&1) {
                    collect(items, item, path, set);
                }
                set.insert(path);
                path.pop();
            }
        }
        (Layout::Map { atomic: false }, _) => {}
        (Layout::List { keys, .. }, _) if *keys != ListKeys::Atomic => {}
        _ => set.insert(path),
    }
}

/// A set in which the structs above a field are members too. Entries of maps and items of lists are not added.
pub(super) fn with_structs(root: Type<'_>, set: &FieldSet) -> FieldSet {
    set.with_members(
        root,
        &|own, element| matches!(element, PathElement::Field(name) if own.has_field(name)),
        &|own, element| own.step(element),
    )
}

#[cfg(test)]
mod tests;
