//! Merging an applied value into the live one (structured-merge-diff v6.3 `typed/merge.go`). Nothing is removed: null
//! and what is empty leave the items and entries that are there.

use super::{Layout, Type, item_element};
use crate::patch::fields::PathElement;
use crate::schema::ListKeys;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Merges two valid values of one type; where both have a leaf, it is the applied one's.
pub(in crate::patch) fn merge(own: Type<'_>, live: &Value, applied: &Value) -> Value {
    merge_either(own, Some(live), Some(applied)).unwrap_or_default()
}

fn merge_either(own: Type<'_>, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    match own.layout(applied.or(live)?) {
        Layout::Map { atomic: false } => {
            let (live_map, applied_map) = (live.and_then(Value::as_object), applied.and_then(Value::as_object));
            if live_map.is_some_and(|map| !map.is_empty()) || applied_map.is_some_and(|map| !map.is_empty()) {
                return merge_maps(own, live_map, applied_map);
            }
        }
        Layout::List { items, keys } if *keys != ListKeys::Atomic => {
            let (live_list, applied_list) = (list(live), list(applied));
            if !live_list.is_empty() || !applied_list.is_empty() {
                return merge_lists(items, keys, live_list, applied_list);
            }
        }
        _ => {}
    }
    applied.or(live).cloned()
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn merge_maps(own: Type<'_>, live: Option<&Map<String, Value>>, applied: Option<&Map<String, Value>>) -> Option<Value> {
    let names: BTreeSet<&String> = live.into_iter().chain(applied).flat_map(Map::keys).collect();
    let merged: Map<String, Value> = names
        .into_iter()
        .filter_map(|name| {
            let entry = own.entry(name).unwrap_or(Type::Free);
            let merged =
                merge_either(entry, live.and_then(|map| map.get(name)), applied.and_then(|map| map.get(name)))?;
            Some((name.clone(), merged))
        })
        .collect();
    (!merged.is_empty()).then_some(Value::Object(merged))
}

/// Items that both have come in the order of the applied list; those that only the live list has stay where they were
/// between them.
fn merge_lists(items: Type<'_>, keys: &ListKeys, live: &[Value], applied: &[Value]) -> Option<Value> {
    let live = Side::new(items, keys, live);
    let applied = Side::new(items, keys, applied);
    let mut shared: VecDeque<&PathElement> = applied
        .elements
        .iter()
        .map(|(element, _)| element)
        .filter(|element| live.by_element.contains_key(*element))
        .collect();
    let mut next_shared = shared.pop_front();
    let mut done: BTreeSet<&PathElement> = BTreeSet::new();
    let mut merged = Vec::new();
    let (mut left, mut right) = (live.elements.iter().peekable(), applied.elements.iter().peekable());
    loop {
        let (current_left, current_right) = (left.peek().copied(), right.peek().copied());
        if let (Some((element, _)), Some((wanted, _))) = (current_left, current_right)
            && element != wanted
            && applied.by_element.contains_key(element)
            && next_shared.is_some_and(|next| next != element)
        {
            // Both have it, but its turn comes later, or has come.
            left.next();
            continue;
        }
        let is_same = matches!((current_left, current_right), (Some((left, _)), Some((right, _))) if left == right);
        if let Some((element, item)) = current_left.filter(|_| !is_same) {
            if !applied.by_element.contains_key(element) {
                merged.extend(merge_either(items, Some(item), None));
                left.next();
                continue;
            }
            if done.contains(element) {
                left.next();
            }
        }
        let Some((element, item)) = right.next() else {
            if left.peek().is_none() {
                break;
            }
            continue;
        };
        if is_same {
            left.next();
        }
        done.insert(element);
        merged.extend(merge_either(items, live.by_element.get(element).copied(), Some(item)));
        if is_same || next_shared == Some(element) {
            next_shared = shared.pop_front();
        }
    }
    (!merged.is_empty()).then_some(Value::Array(merged))
}

/// One of the two lists.
struct Side<'v> {
    elements: Vec<(PathElement, &'v Value)>,
    /// Items that cannot be told apart are not merged with: null stands for them.
    by_element: BTreeMap<PathElement, &'v Value>,
}

impl<'v> Side<'v> {
    fn new(items: Type<'_>, keys: &ListKeys, list: &'v [Value]) -> Self {
        let mut side = Self { elements: Vec::new(), by_element: BTreeMap::new() };
        for item in list {
            let Ok(element) = item_element(items, keys, item) else { continue };
            let first = if side.by_element.contains_key(&element) { &Value::Null } else { item };
            side.by_element.insert(element.clone(), first);
            side.elements.push((element, item));
        }
        side
    }
}
