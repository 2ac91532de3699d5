//! Server-side apply (structured-merge-diff v6.3 `merge/update.go`, apimachinery v0.34 `util/managedfields/internal`).
//!
//! # Flow
//!
//! The caller reads the applied configuration as plain JSON or YAML, *not* by the schema: what it leaves out, nulls and
//! empty values all mean something. It gets the merged object with its books kept, reads it by the schema, fills in
//! defaults and goes on as for any write, to [`keep_times`](super::managers::keep_times) at the end.
//!
//! # Guarantees
//!
//! - The manager's entry holds exactly the tracked fields of the configuration. A field that it no longer applies is
//!   removed if nobody else has it.
//! - Unless forced, no other manager loses a field that still exists.
//! - A configuration that changes nothing leaves the object as it is; only the books may gain an entry, without a
//!   time.

mod last_applied;
mod prune;

use super::fields::path_text;
use super::managers::{Conflict, Identity, Ledger, Managers, Operation, Write, value_without_books, without_untracked};
use super::typed::{Duplicates, Type, field_set, filled, merge, validate};
use super::unforeseen;
use crate::object::Object;
use crate::status::Status;
use serde_json::{Value, json};

/// Who has the fields of objects that were never applied to.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Merges a configuration into the live object of a kind, which is none if there is none yet.
pub(crate) fn apply(
    write: &Write<'_>,
    kind: &str,
    live: Option<&Object>,
    applied: &Object,
    force: bool,
) -> Result<Object, Status> {
    let managers =
        Managers::of(live).map_err(|error| unforeseen(format!("failed to decode managed fields: {error}")))?;
    if applied.api_version() != write.manager.api_version || applied.kind() != kind {
        return Err(Status::bad_request(format!("invalid object type: {}", type_text(applied))));
    }
    let request = Request { ledger: Ledger { write }, live: &value_without_books(live), applied };
    let outcome = match request.apply(managers.clone(), force) {
        Err(Refusal::Conflicts(conflicts)) => match last_applied::excuse(write, request.live, conflicts) {
            Ok(()) => request.apply(managers, true),
            Err(conflicts) => Err(Refusal::Conflicts(conflicts)),
        },
        outcome => outcome,
    };
    let (merged, managers) = outcome.map_err(|refusal| match refusal {
        Refusal::Conflicts(conflicts) => conflict_status(&conflicts),
        Refusal::Other(status) => status,
    })?;
    let mut object = Object::from_value(merged).unwrap_or_default();
    last_applied::renew(write, applied, &mut object);
    managers.write(&mut object);
    Ok(object)
}

/// What was merged from a configuration does not read as an object of its kind: `why`, in the words of the decoder.
pub(crate) fn unreadable(applied: &Object, why: &str) -> Status {
    let kind = type_text(applied);
    unforeseen(format!(
        "failed to convert new object ({}) to proper version: unable to convert unstructured object to {kind}: {why}",
        about(applied)
    ))
}

/// Why a configuration is not applied.
enum Refusal {
    Conflicts(Vec<Conflict>),
    Other(Status),
}

struct Request<'r, 'w, 'a> {
    ledger: Ledger<'w, 'a>,
    live: &'r Value,
    applied: &'r Object,
}

impl Request<'_, '_, '_> {
    fn apply(&self, mut managers: Managers, force: bool) -> Result<(Value, Managers), Refusal> {
        let write = self.ledger.write;
        if managers.is_empty() {
            managers = self
                .ledger
                .update(managers, &json!({}), self.live, BEFORE_FIRST_APPLY)
                .map_err(|error| refuse(format!("failed to create manager for existing fields: {error}")))?;
        }
        if self.applied.at(&["metadata", "managedFields"]).is_some_and(Value::is_array) {
            return Err(Refusal::Other(Status::bad_request("metadata.managedFields must be nil")));
        }
        let root = Type::of(write.schema);
        let applied = Value::Object(self.applied.fields().clone());
        validate(root, &applied, Duplicates::Refused).map_err(|error| {
            refuse(format!("failed to create typed patch object ({}): {error}", about(self.applied)))
        })?;
        validate(root, self.live, Duplicates::Allowed).map_err(|error| {
            refuse(format!("failed to create typed live object ({}): {error}", about(self.applied)))
        })?;

        managers = self.ledger.reconcile(managers, self.live);
        let identity = self.ledger.identity(Operation::Apply, &write.manager.name);
        let last = managers.get(&identity).cloned();
        let time = last.as_ref().and_then(|entry| entry.time.clone());
        let fields = write.tracked.filter(&field_set(root, &applied));
        managers.insert(identity.clone(), self.ledger.entry(fields, time));

        let merged = merge(root, self.live, &applied);
        let merged = prune::prune(self.ledger, merged, &managers, last.as_ref());
        self.ledger.take(&mut managers, self.live, &merged, Some(&identity), force).map_err(Refusal::Conflicts)?;
        Ok(self.finish(managers, &identity, merged))
    }

    /// Tells whether anything changed, and when.
    fn finish(&self, mut managers: Managers, identity: &Identity, merged: Value) -> (Value, Managers) {
        let view = self.ledger.write.schema;
        let is_same = super::fields::equal(&filled(view, self.live), &filled(view, &merged));
        if let Some(entry) = managers.get_mut(identity) {
            entry.fields = without_untracked(&entry.fields);
            if !is_same {
                entry.time = Some(self.ledger.now());
            }
        }
        managers.retain(|_, entry| !entry.fields.is_empty());
        (if is_same { self.live.clone() } else { merged }, managers)
    }
}

/// A configuration as messages name it: `default/x; batch/v1, Kind=Job`.
fn about(applied: &Object) -> String {
    format!("{}/{}; {}", applied.namespace(), applied.name(), type_text(applied))
}

fn refuse(message: String) -> Refusal {
    Refusal::Other(unforeseen(message))
}

/// A type as Go shows it: `batch/v1, Kind=Job`, `/v1, Kind=Pod`.
fn type_text(object: &Object) -> String {
    let version = object.api_version();
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{slash}{version}, Kind={}", object.kind())
}

/// The refusal of a configuration that others object to.
fn conflict_status(conflicts: &[Conflict]) -> Status {
    let message = match conflicts {
        [conflict] => format!("1 conflict: conflict with {}: {}", conflict.manager, path_text(&conflict.path)),
        several => {
            let mut lines = Vec::new();
            let mut manager = None;
            for conflict in several {
                if manager != Some(&conflict.manager) {
                    lines.push(format!("conflicts with {}:", conflict.manager));
                    manager = Some(&conflict.manager);
                }
                lines.push(format!("- {}", path_text(&conflict.path)));
            }
            format!("{} conflicts: {}", several.len(), lines.join("\n"))
        }
    };
    let causes = conflicts.iter().map(|conflict| {
        json!({
            "reason": "FieldManagerConflict",
            "message": format!("conflict with {}", conflict.manager),
            "field": path_text(&conflict.path),
        })
    });
    Status::new(409, "Conflict", format!("Apply failed with {message}")).with_causes(causes.collect())
}

#[cfg(test)]
mod tests;
