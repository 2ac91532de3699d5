//! Merging lists: of objects by a key, of other values as sets.

use super::{DIRECTIVE, bad_argument, go_kind, merge_objects, no_merge_key, order, unknown_directive};
use crate::patch::{REJECTED, go, unforeseen};
use crate::schema::View;
use crate::status::Status;
use serde_json::{Map, Value};

/// A merged list.
pub(super) struct Merged {
    pub(super) items: Vec<Value>,
    /// What the server is left with for the live list: it deletes and appends in place, so that items which took the
    /// room of deleted ones pass for live ones when the list is ordered later.
    pub(super) live: Vec<Value>,
}

/// Merges a list into another, or takes its values out of it if it `deletes`.
pub(super) fn merge(
    items: View<'_>,
    original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
    deletes: bool,
) -> Result<Merged, Status> {
    if original.is_empty() && patch.is_empty() {
        return Ok(Merged { items: Vec::new(), live: original });
    }
    if !check_items(&original, &patch)? {
        return merge_values(original, &patch, key, deletes);
    }
    if key.is_empty() {
        return Err(unforeseen(format!("cannot merge lists without merge key for {}", go_kind(items.shape()))));
    }
    let mut live = original.clone();
    let (original, patch) = follow_directives(original, patch, key)?;
    let merged = merge_by_key(items, original.clone(), &patch, key)?;
    for (place, item) in live.iter_mut().zip(&merged) {
        *place = item.clone();
    }
    let (patched, untouched) = order::partition(merged, &patch, key)?;
    Ok(Merged { items: order::interleave(patched, untouched, &patch, &original, key, true)?, live })
}

/// Merges lists of values that are not objects.
fn merge_values(original: Vec<Value>, patch: &[Value], key: &str, deletes: bool) -> Result<Merged, Status> {
    if deletes {
        let items = original.iter().filter(|value| !patch.contains(value)).cloned().collect();
        return Ok(Merged { items, live: original });
    }
    let mut merged: Vec<Value> = Vec::new();
    for value in original.iter().chain(patch) {
        if !merged.contains(value) {
            merged.push(value.clone());
        }
    }
    let (patched, untouched) = order::partition(merged, patch, key)?;
    Ok(Merged { items: order::interleave(patched, untouched, patch, &original, key, false)?, live: original })
}

/// Whether the items are objects. They must all have the same type, and not be lists.
pub(super) fn check_items(original: &[Value], patch: &[Value]) -> Result<bool, Status> {
    let mut first = None;
    for value in original.iter().chain(patch) {
        let type_name = go::type_name(value);
        match first {
            None if value.is_array() => return Err(Status::unprocessable(REJECTED)),
            None if !value.is_null() => first = Some(type_name),
            Some(first) if first == type_name => {}
            _ => {
                let lists = [go::plain_list(original), go::plain_list(patch)].join(" ");
                return Err(unforeseen(format!("list element types are not identical: [{lists}]")));
            }
        }
    }
    match first {
        Some(first) => Ok(first == "map[string]interface {}"),
        None => Err(unforeseen("no elements in any of the given slices")),
    }
}

/// Does what items with `$patch` say; gives the list to merge into and the items to merge.
fn follow_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), Status> {
    let mut plain = Vec::new();
    let mut replaces = false;
    for item in patch {
        match item.get(DIRECTIVE) {
            None => plain.push(item),
            Some(Value::String(directive)) if directive == "delete" => {
                let value = item.get(key).ok_or_else(|| no_merge_key(&item, key))?;
                original.retain(|candidate| candidate.get(key) != Some(value));
            }
            Some(Value::String(directive)) if directive == "replace" => replaces = true,
            Some(Value::String(directive)) if directive == "merge" => {
                return Err(unforeseen("merging lists cannot yet be specified in the patch"));
            }
            Some(other) => {
                return Err(unknown_directive(other, item.as_object().unwrap_or(&Map::new())));
            }
        }
    }
    Ok(if replaces { (plain, Vec::new()) } else { (original, plain) })
}

fn merge_by_key(items: View<'_>, mut merged: Vec<Value>, patch: &[Value], key: &str) -> Result<Vec<Value>, Status> {
    for item in patch {
        let value = item.get(key).ok_or_else(|| no_merge_key(item, key))?;
        let current = merged.iter_mut().find(|candidate| candidate.get(key) == Some(value));
        match (current, item) {
            (Some(Value::Object(current)), Value::Object(change)) => {
                *current = merge_objects(items, std::mem::take(current), change.clone())?;
            }
            _ => merged.push(item.clone()),
        }
    }
    Ok(merged)
}

/// The value of the key of an item, or the item itself if there is no key.
pub(super) fn key_of<'a>(item: &'a Value, key: &str, holds_objects: bool) -> Option<&'a Value> {
    if holds_objects { item.get(key) } else { Some(item) }
}

/// Checks that the items are objects with the key.
pub(super) fn check_keys(items: &[Value], key: &str) -> Result<(), Status> {
    for item in items {
        let Value::Object(object) = item else { return Err(bad_argument("map[string]interface {}", item)) };
        if !object.contains_key(key) {
            return Err(no_merge_key(item, key));
        }
    }
    Ok(())
}
