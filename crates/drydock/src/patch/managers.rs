//! The books on who manages which field, `metadata.managedFields`
//! (apimachinery v0.34 `util/managedfields/internal`, structured-merge-diff v6.3 `merge`).
//!
//! # Flow
//!
//! A write that is not an apply calls [`track_update`] with the object that it is about to store, read by its schema
//! and with defaults, but before admission and before the kind generates or carries over anything: the server's books
//! only know what clients asked for. [`apply`](super::apply::apply) keeps the books itself. At the very end, all
//! writes call [`keep_times`].
//!
//! # Guarantees
//!
//! - What a write changes is its manager's, and nobody else's, afterwards; what it removes is nobody's.
//! - A write that changes nothing leaves the books as they are, times included.
//! - Books that cannot be kept, because the object has not the types of its schema or a client wrote nonsense into
//!   them, are dropped rather than guessed at.
//!
//! # Assumptions
//!
//! - Objects are as the API writes them in the version of the request. Empty structs and nulls that Go always writes
//!   may be missing.
//! - An old object has been stored: it has a uid.

mod entries;
mod ownership;
pub(crate) mod scale;
#[cfg(test)]
pub(super) mod testing;

pub(super) use entries::{Entry, Identity, Managers, Operation};
pub(super) use ownership::{Conflict, Ledger, without_untracked};

use super::fields::Tracked;
use crate::object::Object;
use crate::schema::View;
use jiff::Timestamp;
use serde_json::{Map, Value};

/// Who writes, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manager {
    /// The name that the client gave, or the one from its user agent.
    pub(crate) name: String,
    /// The version of the request: `batch/v1`.
    pub(crate) api_version: String,
    /// The endpoint: `status`, `scale`; empty for the object itself.
    pub(crate) subresource: String,
}

/// The versions of a kind.
pub(crate) trait Versions {
    /// The schema of a version, and an object of another version in its words. None if that version is not served.
    fn convert(&self, object: &Value, api_version: &str) -> Option<(View<'_>, Value)>;
}

/// What every write brings to the books.
#[derive(Clone, Copy)]
pub(crate) struct Write<'a> {
    /// The schema of the kind in the version of the request.
    pub(crate) schema: View<'a>,
    /// Who writes.
    pub(crate) manager: &'a Manager,
    /// When.
    pub(crate) now: Timestamp,
    /// Which changes count on this endpoint.
    pub(crate) tracked: &'a Tracked,
    /// How managers that used another version see the object. Without it their entries are dropped.
    pub(crate) versions: Option<&'a dyn Versions>,
}

/// The longest name that is taken from a user agent.
const LONGEST_NAME: usize = 128;

/// The name of a manager that gave none: what stands before the first slash of its user agent
/// (apiserver v0.34 `endpoints/handlers/create.go`).
pub(crate) fn name_from_user_agent(user_agent: &str) -> String {
    let mut name = String::new();
    let product = user_agent.split('/').next().unwrap_or_default();
    for character in product.chars().filter(|character| !character.is_control()) {
        if name.len() + character.len_utf8() > LONGEST_NAME {
            break;
        }
        name.push(character);
    }
    name
}

/// Writes into the books of `new` what changed since `old`, which is none for a new object.
///
/// A client that sends books of its own has them taken instead of the old ones, unless it writes to a subresource; an
/// empty list or a list of one empty entry clears them.
pub(crate) fn track_update(write: &Write<'_>, old: Option<&Object>, new: &mut Object) {
    let sent = new.remove(&["metadata", "managedFields"]);
    let managers = if write.manager.subresource.is_empty() && is_reset(write.schema, sent.as_ref()) {
        Managers::default()
    } else {
        let sent = sent.as_ref().filter(|_| write.manager.subresource.is_empty());
        let sent = sent.and_then(|sent| Managers::read(Some(sent)).ok()).filter(|managers| !managers.is_empty());
        sent.unwrap_or_else(|| Managers::of(old).unwrap_or_default())
    };
    // Books that were never opened, or were closed, stay closed.
    if managers.is_empty() && old.is_some() {
        return;
    }
    let ledger = Ledger { write };
    let (before, after) = (value_without_books(old), value_without_books(Some(new)));
    if let Ok(managers) = ledger.update(managers, &before, &after, &write.manager.name) {
        managers.write(new);
    }
}

/// Whether a client asks for the books to be cleared. To custom resources an empty list is as good as none.
fn is_reset(schema: View<'_>, sent: Option<&Value>) -> bool {
    match sent.and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => schema.is_typed(),
        Some([Value::Object(entry)]) => entry.is_empty(),
        _ => false,
    }
}

/// An object as the books compare it.
pub(super) fn value_without_books(object: Option<&Object>) -> Value {
    let mut object = object.cloned().unwrap_or_default();
    object.remove(&["metadata", "managedFields"]);
    object.into_value()
}

/// Gives the entries of `new` their old times back if nothing but times differs from `old`, so that a write which
/// changes nothing stores nothing (apiserver v0.34 `endpoints/handlers/fieldmanager/equality.go`).
///
/// To be called last, when `new` is as it would be stored; its resourceVersion does not count.
pub(crate) fn keep_times(old: &Object, new: &mut Object) {
    let (Some(old_books), Some(new_books)) = (books(old), books(new)) else { return };
    if without_times(old_books) == without_times(new_books) && without_version(old) == without_version(new) {
        let old_books = Value::Array(old_books.to_vec());
        new.metadata_mut().insert("managedFields".to_owned(), old_books);
    }
}

fn books(object: &Object) -> Option<&[Value]> {
    object.at(&["metadata", "managedFields"]).and_then(Value::as_array).map(Vec::as_slice)
}

fn without_times(books: &[Value]) -> Vec<Map<String, Value>> {
    let entries = books.iter().map(|entry| entry.as_object().cloned().unwrap_or_default());
    entries
        .map(|mut entry| {
            entry.remove("time");
            entry
        })
        .collect()
}

fn without_version(object: &Object) -> Value {
    let mut object = value_without_books(Some(object));
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    object
}

#[cfg(test)]
mod tests;
