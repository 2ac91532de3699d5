//! Sets that were written before the schema made a part of the object atomic
//! (structured-merge-diff v6.3 `typed/reconcile_schema.go`).

use super::{Layout, Type};
use crate::patch::fields::{FieldSet, PathElement};
use crate::schema::ListKeys;
use serde_json::Value;

/// The set with everything below what is now atomic replaced by that itself.
pub(in crate::patch) fn reconcile(root: Type<'_>, set: &FieldSet) -> FieldSet {
    let mut atomic = FieldSet::default();
    find(root, Some(set), false, &mut Vec::new(), &mut atomic);
    if atomic.is_empty() { set.clone() } else { set.outside(&atomic).union(&atomic) }
}

fn find(own: Type<'_>, set: Option<&FieldSet>, is_leaf: bool, path: &mut Vec<PathElement>, atomic: &mut FieldSet) {
    // What has no schema has not changed either.
    let Type::Known { .. } = own else { return };
    let is_atomic = match own.layout(&Value::Null) {
        Layout::Scalar(_) => return,
        Layout::List { keys, .. } => *keys == ListKeys::Atomic,
        Layout::Map { atomic } => atomic && set.is_some(),
    };
    if is_atomic && !is_leaf {
        atomic.insert(path);
        return;
    }
    for (element, is_member) in set.into_iter().flat_map(FieldSet::elements) {
        let below = set.and_then(|set| set.below(element));
        path.push(element.clone());
        find(own.step(element), below, is_member && below.is_none(), path, atomic);
        path.pop();
    }
}
