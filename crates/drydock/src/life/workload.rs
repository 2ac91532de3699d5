//! What the controllers of workloads share: which objects belong to which, when pods count, how templates become pods.

pub(crate) mod amount;
pub(crate) mod condition;
pub(crate) mod family;
pub(crate) mod hash;
pub(crate) mod nodes;
pub(crate) mod pods;
pub(crate) mod retries;
pub(crate) mod revisions;
pub(crate) mod selection;

use crate::kinds::Storage;
use crate::life::client::Client;
use crate::object::{Object, Owner};
use crate::status::Status;
use crate::store::Key;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// From a change until a controller acts on it.
const REACT: SignedDuration = SignedDuration::from_millis(4);

/// When a controller acts on what happens now.
pub(crate) fn soon(now: Timestamp) -> Timestamp {
    later(now, REACT)
}

/// A time so much later.
pub(crate) fn later(time: Timestamp, duration: SignedDuration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}

pub(crate) fn pods_storage() -> Storage {
    Storage::core("pods")
}

/// A storage of the `apps` group.
pub(crate) fn apps(plural: &str) -> Storage {
    Storage::new("apps", plural)
}

/// The owner that manages an object.
pub(crate) fn controller_of(object: &Object) -> Option<Owner<'_>> {
    object.owners().find(|owner| owner.controller)
}

/// Whether an object is managed by exactly this owner.
pub(crate) fn is_controlled_by(object: &Object, owner: &Object) -> bool {
    controller_of(object).is_some_and(|controller| controller.uid == owner.uid())
}

/// The owner reference of what an object manages.
pub(crate) fn reference_to(owner: &Object) -> Value {
    json!({"apiVersion": owner.api_version(), "kind": owner.kind(), "name": owner.name(), "uid": owner.uid(),
        "controller": true, "blockOwnerDeletion": true})
}

/// When an object was made.
pub(crate) fn created(object: &Object) -> Timestamp {
    parse_time(object.text(&["metadata", "creationTimestamp"])).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Reads a time as the API writes it.
pub(crate) fn parse_time(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// A count of an object, zero where it is absent or makes no sense.
pub(crate) fn count(object: &Object, path: &[&str]) -> i64 {
    object.integer(path).unwrap_or_default().max(0)
}

/// `spec.replicas`, one where it is absent.
pub(crate) fn wanted_replicas(object: &Object) -> i64 {
    object.integer(&["spec", "replicas"]).unwrap_or(1).max(0)
}

/// `spec.minReadySeconds`.
pub(crate) fn min_ready(object: &Object) -> SignedDuration {
    SignedDuration::from_secs(count(object, &["spec", "minReadySeconds"]))
}

/// Writes the status of an object, if it is another one.
pub(crate) fn report(
    client: &mut Client<'_>,
    storage: &Storage,
    object: &Object,
    status: impl Into<Value>,
) -> Result<(), Status> {
    let status = status.into();
    if object.at(&["status"]) == Some(&status) {
        return Ok(());
    }
    client.change_status(storage, &Key::of(object), |stored| stored.set(&["status"], status)).map(|_| ())
}

/// A map of counts, without those that are zero and that the API leaves out then.
pub(crate) fn counts(always: &[(&str, i64)], unless_zero: &[(&str, i64)]) -> serde_json::Map<String, Value> {
    let kept = unless_zero.iter().filter(|(_, number)| *number != 0);
    always.iter().chain(kept).map(|(name, number)| ((*name).to_owned(), json!(number))).collect()
}
