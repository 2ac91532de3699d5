//! What changed between two values (structured-merge-diff v6.3 `typed/compare.go`).

use super::{Layout, Type, item_element};
use crate::patch::fields::{FieldSet, PathElement, Tracked, equal};
use crate::schema::ListKeys;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The fields that differ between an old and a new value.
#[derive(Clone, Debug, Default)]
pub(in crate::patch) struct Comparison {
    pub(in crate::patch) removed: FieldSet,
    pub(in crate::patch) modified: FieldSet,
    pub(in crate::patch) added: FieldSet,
}

impl Comparison {
    /// The comparison of what is tracked.
    pub(in crate::patch) fn only(&self, tracked: &Tracked) -> Self {
        Self {
            removed: tracked.filter(&self.removed),
            modified: tracked.filter(&self.modified),
            added: tracked.filter(&self.added),
        }
    }

    /// The fields that are new or have a new value.
    pub(in crate::patch) fn set(&self) -> FieldSet {
        self.modified.clone().union(&self.added)
    }
}

/// Compares two valid values of one type.
pub(in crate::patch) fn compare(root: Type<'_>, old: &Value, new: &Value) -> Comparison {
    let mut walk = Walk { path: Vec::new(), found: Comparison::default() };
    walk.compare(root, Some(old), Some(new));
    walk.found
}

struct Walk {
    path: Vec<PathElement>,
    found: Comparison,
}

impl Walk {
    fn below(&mut self, element: PathElement, own: Type<'_>, old: Option<&Value>, new: Option<&Value>) {
        self.path.push(element);
        self.compare(own, old, new);
        self.path.pop();
    }

    fn compare(&mut self, own: Type<'_>, old: Option<&Value>, new: Option<&Value>) {
        let is_leaf = match (old, new) {
            (Some(old), Some(new)) if old == new => return,
            (Some(old), Some(new)) => {
                // Where the schema has nothing to say, the sides may be taken apart in different ways: do both.
                if std::mem::discriminant(&own.layout(old)) != std::mem::discriminant(&own.layout(new)) {
                    self.take_apart(own, &own.layout(old), Some(old), Some(new));
                }
                self.take_apart(own, &own.layout(new), Some(old), Some(new))
            }
            (Some(one), None) | (None, Some(one)) => self.take_apart(own, &own.layout(one), old, new),
            (None, None) => true,
        };
        match (old, new) {
            (None, Some(_)) if !is_leaf => self.found.added.insert(&self.path),
            (Some(_), None) if !is_leaf => self.found.removed.insert(&self.path),
            _ => {}
        }
    }

    /// Compares two values that are taken apart in one way. Tells whether they are leaves.
    fn take_apart(&mut self, own: Type<'_>, layout: &Layout<'_>, old: Option<&Value>, new: Option<&Value>) -> bool {
        match layout {
            Layout::Map { atomic: false } => {
                let (old_map, new_map) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
                if old_map.is_some_and(|map| !map.is_empty()) || new_map.is_some_and(|map| !map.is_empty()) {
                    self.compare_maps(own, old_map, new_map);
                    return false;
                }
            }
            Layout::List { items, keys } if **keys != ListKeys::Atomic => {
                let (old_list, new_list) = (list(old), list(new));
                if !old_list.is_empty() || !new_list.is_empty() {
                    self.compare_lists(*items, keys, old_list, new_list);
                    return false;
                }
            }
            _ => {}
        }
        match (old, new) {
            (None, _) => self.found.added.insert(&self.path),
            (_, None) => self.found.removed.insert(&self.path),
            (Some(old), Some(new)) if !equal(old, new) => self.found.modified.insert(&self.path),
            _ => {}
        }
        true
    }

    fn compare_maps(&mut self, own: Type<'_>, old: Option<&Map<String, Value>>, new: Option<&Map<String, Value>>) {
        let names: BTreeSet<&String> = old.into_iter().chain(new).flat_map(Map::keys).collect();
        for name in names {
            let (old, new) = (old.and_then(|map| map.get(name)), new.and_then(|map| map.get(name)));
            if old == new {
                continue;
            }
            let entry = own.entry(name).unwrap_or(Type::Free);
            self.below(PathElement::Field(name.clone()), entry, old, new);
        }
    }

    fn compare_lists(&mut self, items: Type<'_>, keys: &ListKeys, old: &[Value], new: &[Value]) {
        let (old, new) = (by_element(items, keys, old), by_element(items, keys, new));
        let elements: BTreeSet<&PathElement> = old.keys().chain(new.keys()).collect();
        let none = Vec::new();
        for element in elements {
            let (old, new) = (old.get(element).unwrap_or(&none), new.get(element).unwrap_or(&none));
            match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => {
                    self.below(element.clone(), items, old.first().copied(), new.first().copied());
                }
                // Items that cannot be told apart are owned together.
                ([_, _, ..], [_, _, ..]) => {
                    let is_same = old.len() == new.len() && old.iter().zip(new).all(|(old, new)| equal(old, new));
                    if !is_same {
                        self.mark(element, |found| &mut found.modified);
                    }
                }
                ([_, _, ..], _) => {
                    if let Some(new) = new.first() {
                        self.below(element.clone(), items, None, Some(new));
                    }
                    self.mark(element, |found| &mut found.removed);
                }
                (_, _) => {
                    if let Some(old) = old.first() {
                        self.below(element.clone(), items, Some(old), None);
                    }
                    self.mark(element, |found| &mut found.added);
                }
            }
        }
    }

    fn mark(&mut self, element: &PathElement, set: impl Fn(&mut Comparison) -> &mut FieldSet) {
        self.path.push(element.clone());
        set(&mut self.found).insert(&self.path);
        self.path.pop();
    }
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn by_element<'v>(items: Type<'_>, keys: &ListKeys, list: &'v [Value]) -> BTreeMap<PathElement, Vec<&'v Value>> {
    let mut found: BTreeMap<PathElement, Vec<&Value>> = BTreeMap::new();
    for item in list {
        if let Ok(element) = item_element(items, keys, item) {
            found.entry(element).or_default().push(item);
        }
    }
    found
}
