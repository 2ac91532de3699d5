//! The order of merged lists: that of `$setElementOrder`, then that of the patch, then that of the live list.

use super::list::{self, check_items, check_keys, key_of};
use super::{DIRECTIVE, ELEMENT_ORDER, bad_argument, look_up_list, without_directives};
use crate::patch::{go, unforeseen};
use crate::schema::View;
use crate::status::Status;
use serde_json::{Map, Value};

/// Merges the lists that have a `$setElementOrder`, and takes both out of the patch.
pub(super) fn merge_ordered_lists(
    schema: View<'_>,
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), Status> {
    let directives: Vec<String> = patch.keys().filter(|name| name.starts_with(ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let wanted = match patch.remove(&directive) {
            Some(Value::Array(wanted)) => wanted,
            other => return Err(bad_argument("[]interface {}", &other.unwrap_or_default())),
        };
        let Some(name) = directive.strip_prefix(ELEMENT_ORDER).and_then(|rest| rest.strip_prefix('/')) else {
            return Err(Status::bad_request("invalid patch format of setElementOrder list"));
        };
        let current = take_list(original.get(name))?;
        let change = take_list(patch.get(name))?;
        let (items, merge) = look_up_list(schema, name)?;
        let key = merge.by.unwrap_or_default();
        check_order(change.as_deref().unwrap_or_default(), &wanted, key)?;
        let (merged, live) = match (current, &change) {
            (None, None) => continue,
            (Some(current), None) => (current.clone(), current),
            (None, Some(change)) => (change.iter().cloned().filter_map(without_directives).collect(), Vec::new()),
            (Some(current), Some(change)) if merge.by.is_none() => (change.clone(), current),
            (Some(current), Some(change)) => {
                let merged = list::merge(items, current, change.clone(), key, false)?;
                (merged.items, merged.live)
            }
        };
        let (patched, untouched) = partition(merged, &wanted, key)?;
        let holds_objects = check_items(&live, change.as_deref().unwrap_or_default())?;
        let ordered = interleave(patched, untouched, &wanted, &live, key, holds_objects)?;
        original.insert(name.to_owned(), Value::Array(ordered));
        patch.remove(name);
    }
    Ok(())
}

fn take_list(value: Option<&Value>) -> Result<Option<Vec<Value>>, Status> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items.clone())),
        Some(other) => Err(bad_argument("[]interface {}", other)),
    }
}

/// Checks that the items of a patch come in the wanted order, and are all in it.
fn check_order(patch: &[Value], wanted: &[Value], key: &str) -> Result<(), Status> {
    if patch.is_empty() || wanted.is_empty() {
        return Ok(());
    }
    if let Some(item) = patch.iter().find(|item| !key.is_empty() && !item.is_object()) {
        return Err(bad_argument("map[string]interface {}", item));
    }
    let mut rest =
        patch.iter().filter(|item| item.get(DIRECTIVE).is_none_or(|directive| directive != "delete")).peekable();
    let mut order = wanted.iter().peekable();
    while let (Some(item), Some(next)) = (rest.peek(), order.peek()) {
        if item.get(DIRECTIVE).is_some() {
            rest.next();
            continue;
        }
        if same_key(item, next, key)? {
            rest.next();
        }
        order.next();
    }
    if rest.peek().is_some() {
        return Err(unforeseen(format!(
            "The order in patch list:\n{}\n doesn't match {ELEMENT_ORDER} list:\n{}\n",
            go::plain_list(patch),
            go::plain_list(wanted)
        )));
    }
    Ok(())
}

fn same_key(left: &Value, right: &Value, key: &str) -> Result<bool, Status> {
    if key.is_empty() {
        return Ok(left == right);
    }
    if let Some(other) = [left, right].into_iter().find(|item| !item.is_object()) {
        return Err(bad_argument("map[string]interface {}", other));
    }
    check_keys(std::slice::from_ref(left), key)?;
    check_keys(std::slice::from_ref(right), key)?;
    Ok(left.get(key) == right.get(key))
}

/// Splits items into those that `others` has and the rest.
pub(super) fn partition(items: Vec<Value>, others: &[Value], key: &str) -> Result<(Vec<Value>, Vec<Value>), Status> {
    if key.is_empty() {
        return Ok(items.into_iter().partition(|item| others.contains(item)));
    }
    check_keys(&items, key)?;
    if !items.is_empty()
        && let Some(index) = others.iter().position(|other| !other.is_object())
    {
        return Err(unforeseen(format!("value for key {index} is not a map")));
    }
    Ok(items.into_iter().partition(|item| others.iter().any(|other| other.get(key) == item.get(key))))
}

/// Sorts the patched items by one order and the others by that of the live list, and puts each of the others before
/// the first patched item that it came before in the live list.
pub(super) fn interleave(
    patched: Vec<Value>,
    untouched: Vec<Value>,
    wanted: &[Value],
    live: &[Value],
    key: &str,
    holds_objects: bool,
) -> Result<Vec<Value>, Status> {
    if holds_objects {
        for items in [patched.as_slice(), wanted, untouched.as_slice(), live] {
            check_keys(items, key)?;
        }
    }
    let rank = |order: &[Value], item: &Value| {
        let own = key_of(item, key, holds_objects);
        order.iter().position(|other| key_of(other, key, holds_objects) == own)
    };
    let mut left = sort(untouched, |item| rank(live, item)).into_iter().peekable();
    let mut right = sort(patched, |item| rank(wanted, item)).into_iter().peekable();
    let mut all = Vec::new();
    while let (Some(server), Some(client)) = (left.peek(), right.peek()) {
        let comes_first = matches!((rank(live, server), rank(live, client)), (Some(left), Some(right)) if left < right);
        all.extend(if comes_first { left.next() } else { right.next() });
    }
    all.extend(left);
    all.extend(right);
    Ok(all)
}

/// Sorts by rank. An item without one is moved before all that precede it, as the server's sort happens to do; items
/// that were to be deleted and are new come last.
fn sort(items: Vec<Value>, rank: impl Fn(&Value) -> Option<usize>) -> Vec<Value> {
    let is_deleted = |item: &Value| item.get(DIRECTIVE).is_some_and(|directive| directive == "delete");
    let (deleted, items): (Vec<Value>, Vec<Value>) = items.into_iter().partition(is_deleted);
    let mut ranked: Vec<(Option<usize>, Value)> = items.into_iter().map(|item| (rank(&item), item)).collect();
    if ranked.iter().all(|(rank, _)| rank.is_some()) {
        ranked.sort_by_key(|(rank, _)| *rank);
    } else {
        for end in 1..ranked.len() {
            let mut index = end;
            while index > 0 && is_less(ranked[index].0, ranked[index - 1].0) {
                ranked.swap(index, index - 1);
                index -= 1;
            }
        }
    }
    ranked.into_iter().map(|(_, item)| item).chain(deleted).collect()
}

fn is_less(left: Option<usize>, right: Option<usize>) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => left < right,
        _ => true,
    }
}
