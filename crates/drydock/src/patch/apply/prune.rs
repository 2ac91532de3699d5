//! Removing what a manager no longer applies (structured-merge-diff v6.3 `merge/update.go`).

use crate::patch::fields::FieldSet;
use crate::patch::managers::{Entry, Ledger, Managers};
use crate::patch::typed::{Type, field_set, remove, with_structs};
use serde_json::Value;
use std::collections::BTreeMap;

/// The merged object without the fields, items and entries that the manager applied `last` time, and nobody has now.
pub(super) fn prune(ledger: Ledger<'_, '_>, merged: Value, managers: &Managers, last: Option<&Entry>) -> Value {
    let Some(last) = last.filter(|last| !last.fields.is_empty()) else { return merged };
    let version = last.api_version.as_str();
    let Some((view, converted)) = ledger.at(&merged, ledger.version(), version) else { return merged };
    let root = Type::of(view);
    let last_fields = with_structs(root, &last.fields);
    let pruned = remove(root, &converted, &last_fields);
    let pruned = put_back_owned(ledger, &converted, pruned, managers, version);

    // What only went along with a removed field, and was nobody's, stays.
    let gone = with_structs(root, &field_set(root, &converted))
        .difference(&with_structs(root, &field_set(root, &pruned)))
        .intersection(&last_fields);
    let pruned = remove(root, &converted, &gone);
    match ledger.at(&pruned, version, ledger.version()) {
        Some((_, pruned)) => pruned.into_owned(),
        None => merged,
    }
}

/// Puts back what managers have, each in the words of its version; that of the pruned object first.
fn put_back_owned(
    ledger: Ledger<'_, '_>,
    merged: &Value,
    mut pruned: Value,
    managers: &Managers,
    version: &str,
) -> Value {
    let mut owned: BTreeMap<(bool, &str), FieldSet> = BTreeMap::new();
    for (_, entry) in managers.iter() {
        let other = entry.api_version.as_str();
        let fields = owned.entry((other != version, other)).or_default();
        *fields = std::mem::take(fields).union(&entry.fields);
    }
    for ((_, other), owned) in owned {
        let converted = |object: &Value| {
            let (view, object) = ledger.at(object, version, other)?;
            Some((Type::of(view), object.into_owned()))
        };
        let (Some((root, merged)), Some((_, current))) = (converted(merged), converted(&pruned)) else { continue };
        let kept = with_structs(root, &field_set(root, &current)).union(&with_structs(root, &owned));
        let gone = with_structs(root, &field_set(root, &merged)).difference(&kept);
        let rest = remove(root, &merged, &gone);
        if let Some((_, rest)) = ledger.at(&rest, other, version) {
            pruned = rest.into_owned();
        }
    }
    pruned
}
