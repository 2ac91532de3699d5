//! Fields change hands (structured-merge-diff v6.3 `merge/update.go`).

use super::Write;
use super::entries::{Entry, Identity, MOST_UPDATERS, Managers, Operation, place};
use crate::clock;
use crate::patch::fields::{FieldSet, PathElement};
use crate::patch::typed::{Comparison, Duplicates, Type, compare, filled, reconcile, validate};
use crate::schema::View;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Fields that nobody manages (apimachinery v0.34 `managedfields/internal/stripmeta.go`).
static NEVER_TRACKED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// A field that another manager has with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::patch) struct Conflict {
    pub(in crate::patch) manager: Identity,
    pub(in crate::patch) path: Vec<PathElement>,
}

/// The books during one write.
#[derive(Clone, Copy)]
pub(in crate::patch) struct Ledger<'w, 'a> {
    pub(in crate::patch) write: &'w Write<'a>,
}

impl<'w, 'a> Ledger<'w, 'a> {
    /// The version of the request.
    pub(in crate::patch) fn version(self) -> &'w str {
        &self.write.manager.api_version
    }

    /// The schema of a version, and an object of another version in its words.
    pub(in crate::patch) fn at<'v>(
        self,
        object: &'v Value,
        from: &str,
        api_version: &str,
    ) -> Option<(View<'a>, Cow<'v, Value>)> {
        if from == api_version && api_version == self.version() {
            return Some((self.write.schema, Cow::Borrowed(object)));
        }
        let (view, converted) = self.write.versions?.convert(object, api_version)?;
        Some((view, Cow::Owned(converted)))
    }

    /// An entry of the writer of a kind.
    pub(in crate::patch) fn identity(self, operation: Operation, name: &str) -> Identity {
        let manager = self.write.manager;
        Identity::new(operation, name, &manager.api_version, &manager.subresource)
    }

    /// An entry of this write.
    pub(in crate::patch) fn entry(self, fields: FieldSet, time: Option<String>) -> Entry {
        Entry { api_version: self.version().to_owned(), fields, time }
    }

    pub(in crate::patch) fn now(self) -> String {
        clock::time(self.write.now)
    }

    /// Drops managers of versions that are gone, and follows changes of the schema.
    pub(in crate::patch) fn reconcile(self, mut managers: Managers, live: &Value) -> Managers {
        managers.retain(|_, entry| match self.at(live, self.version(), &entry.api_version) {
            Some((view, _)) => {
                entry.fields = reconcile(Type::of(view), &entry.fields);
                true
            }
            None => false,
        });
        managers
    }

    /// Gives what changed from `old` to `new` to an updater of this name, and takes it from the others.
    pub(in crate::patch) fn update(
        self,
        managers: Managers,
        old: &Value,
        new: &Value,
        name: &str,
    ) -> Result<Managers, String> {
        let root = Type::of(self.write.schema);
        validate(root, new, Duplicates::Allowed)?;
        validate(root, old, Duplicates::Allowed)?;
        let mut managers = self.reconcile(managers, old);
        let changes = self.take(&mut managers, old, new, None, true).unwrap_or_default();
        let changed = without_untracked(&changes.set());
        if !changed.is_empty() {
            let identity = self.identity(Operation::Update, name);
            let before = managers.get(&identity).map(|entry| entry.fields.clone()).unwrap_or_default();
            managers.insert(identity, self.entry(before.union(&changed), Some(self.now())));
        }
        managers.cap();
        Ok(managers)
    }

    /// As [`update`](Self::update) between the parts of an object that differ, for books in which everybody uses the
    /// version of this write: entries that a change does not touch stay as they are, unread. Gives the books back if it
    /// is not so easy.
    pub(super) fn update_touched(self, books: Value, old: &Value, new: &Value) -> Result<Vec<Value>, Value> {
        let entries = match books {
            Value::Array(entries) if entries.len() < MOST_UPDATERS => entries,
            books => return Err(books),
        };
        let is_of_version = |entry: &Value| entry.get("apiVersion").and_then(Value::as_str) == Some(self.version());
        let root = Type::of(self.write.schema);
        let is_easy = entries.iter().all(is_of_version)
            && validate(root, new, Duplicates::Allowed).is_ok()
            && validate(root, old, Duplicates::Allowed).is_ok();
        let Some(changes) = self.compare(old, new, self.version()).filter(|_| is_easy) else {
            return Err(Value::Array(entries));
        };
        let (set, removed) = (changes.set(), changes.removed);
        let taken = set.clone().union(&removed);
        if taken.is_empty() {
            return Ok(entries);
        }
        let identity = self.identity(Operation::Update, &self.write.manager.name);
        let is_touched =
            |entry: &Value| identity.is_of(entry) || entry.get("fieldsV1").is_none_or(|fields| taken.touches(fields));
        let (touched, mut kept): (Vec<Value>, Vec<Value>) = entries.into_iter().partition(is_touched);
        let touched = Value::Array(touched);
        let Ok(mut managers) = Managers::read(Some(&touched)) else {
            kept.extend(touched.as_array().into_iter().flatten().cloned());
            return Err(Value::Array(kept));
        };
        managers.retain(|_, entry| {
            entry.fields = entry.fields.difference(&taken);
            !entry.fields.is_empty()
        });
        let changed = without_untracked(&set);
        if !changed.is_empty() {
            let before = managers.remove(&identity).map(|entry| entry.fields).unwrap_or_default();
            managers.insert(identity, self.entry(before.union(&changed), Some(self.now())));
        }
        kept.extend(managers.into_entries());
        kept.sort_by(|left, right| place(left).cmp(&place(right)));
        Ok(kept)
    }

    /// Takes from all managers but one what changes from `old` to `new`. Unless by force, nothing is taken when
    /// somebody would lose a field that still exists.
    pub(in crate::patch) fn take(
        self,
        managers: &mut Managers,
        old: &Value,
        new: &Value,
        except: Option<&Identity>,
        force: bool,
    ) -> Result<Comparison, Vec<Conflict>> {
        let mut comparisons: BTreeMap<String, Option<Changes>> = BTreeMap::new();
        let mut conflicts: Vec<Conflict> = Vec::new();
        let mut taken: BTreeMap<Identity, FieldSet> = BTreeMap::new();
        let own = self.compare(old, new, self.version()).unwrap_or_default();
        let changes = |comparison: Comparison| Changes { set: comparison.set(), removed: comparison.removed };
        comparisons.insert(self.version().to_owned(), Some(changes(own.clone())));
        managers.retain(|identity, entry| {
            if except == Some(identity) {
                return true;
            }
            let version = entry.api_version.clone();
            let seen =
                comparisons.entry(version).or_insert_with_key(|version| self.compare(old, new, version).map(changes));
            let Some(seen) = seen else { return false };
            let lost = entry.fields.intersection(&seen.set);
            if !force {
                conflicts.extend(lost.paths().into_iter().map(|path| Conflict { manager: identity.clone(), path }));
            }
            taken.insert(identity.clone(), lost.union(&seen.removed));
            true
        });
        if !force && !conflicts.is_empty() {
            return Err(conflicts);
        }
        managers.retain(|identity, entry| {
            if let Some(taken) = taken.get(identity) {
                entry.fields = entry.fields.difference(taken);
            }
            !entry.fields.is_empty()
        });
        Ok(own)
    }

    /// The changes that count, as a version sees them.
    fn compare(self, old: &Value, new: &Value, api_version: &str) -> Option<Comparison> {
        let (view, old) = self.at(old, self.version(), api_version)?;
        let (_, new) = self.at(new, self.version(), api_version)?;
        let comparison = compare(Type::of(view), &filled(view, &old), &filled(view, &new));
        Some(comparison.only(self.write.tracked))
    }
}

/// What a write changes, as a version sees it.
struct Changes {
    /// What is new or has a new value.
    set: FieldSet,
    removed: FieldSet,
}

/// A set without the fields that nobody manages.
pub(in crate::patch) fn without_untracked(fields: &FieldSet) -> FieldSet {
    fields.difference(&NEVER_TRACKED)
}
