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

mod difference;
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
use difference::differing;
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
    let kept = old.and_then(|old| old.at(&["metadata", "managedFields"]));
    let (sent, same) = match sent {
        Some(sent) if Some(&sent) == kept => (None, Some(sent)),
        sent => (sent.filter(|_| write.manager.subresource.is_empty()), None),
    };
    let managers = if is_reset(write.schema, sent.as_ref()) {
        Managers::default()
    } else {
        let sent = sent.as_ref().and_then(|sent| Managers::read(Some(sent)).ok()).filter(|books| !books.is_empty());
        match (sent, old) {
            (Some(sent), _) => sent,
            (None, Some(old)) if write.schema.is_typed() => {
                let books = same.or_else(|| kept.cloned());
                return books.into_iter().for_each(|books| continue_books(write, old, new, books));
            }
            (None, old) => Managers::of(old).unwrap_or_default(),
        }
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

/// Goes on with the books of an object of a built-in kind as they are. Its schema never changes, so what is the same
/// before and after has been looked at before.
fn continue_books(write: &Write<'_>, old: &Object, new: &mut Object, books: Value) {
    let (before, after) = differing(old, new);
    if before == after {
        new.metadata_mut().insert("managedFields".to_owned(), books);
        return;
    }
    let ledger = Ledger { write };
    let books = match ledger.update_touched(books, &before, &after) {
        Ok(entries) if entries.is_empty() => return,
        Ok(entries) => {
            new.metadata_mut().insert("managedFields".to_owned(), Value::Array(entries));
            return;
        }
        Err(books) => books,
    };
    let managers = Managers::read(Some(&books)).unwrap_or_default();
    let (before, after) = (value_without_books(Some(old)), value_without_books(Some(new)));
    if !managers.is_empty()
        && let Ok(managers) = ledger.update(managers, &before, &after, &write.manager.name)
    {
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
    let are_same = old_books.len() == new_books.len()
        && old_books.iter().zip(new_books).all(|(old, new)| match (old.as_object(), new.as_object()) {
            (Some(old), Some(new)) => is_same_without(old, new, &["time"]),
            _ => false,
        });
    if !are_same || !is_same_but_version(old, new) {
        return;
    }
    let old_books = Value::Array(old_books.to_vec());
    new.metadata_mut().insert("managedFields".to_owned(), old_books);
}

fn books(object: &Object) -> Option<&[Value]> {
    object.at(&["metadata", "managedFields"]).and_then(Value::as_array).map(Vec::as_slice)
}

/// Whether objects are the same but for their books and their version.
fn is_same_but_version(old: &Object, new: &Object) -> bool {
    let metadata = |object| Object::get(object, "metadata").and_then(Value::as_object);
    let is_same = match (metadata(old), metadata(new)) {
        (Some(old), Some(new)) => is_same_without(old, new, &["managedFields", "resourceVersion"]),
        _ => false,
    };
    is_same && is_same_without(old.fields(), new.fields(), &["metadata"])
}

/// Whether maps are the same but for some entries.
fn is_same_without(left: &Map<String, Value>, right: &Map<String, Value>, without: &[&str]) -> bool {
    let counts = |entry: &(&String, &Value)| !without.contains(&entry.0.as_str());
    left.iter().filter(counts).eq(right.iter().filter(counts))
}

#[cfg(test)]
mod tests;
