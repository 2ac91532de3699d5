//! Where objects live. Nothing else changes state: every write gets a revision of its own, and is remembered
//! for a while so that watches can replay it.

use crate::kinds::Storage;
use crate::object::Object;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::task::Waker;

/// What tells the objects of one storage apart. Cluster-scoped objects have an empty namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) namespace: Box<str>,
    pub(crate) name: Box<str>,
}

impl Key {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    pub(crate) fn of(object: &Object) -> Self {
        Self::new(object.namespace(), object.name())
    }
}

/// A write that watches can replay.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) revision: u64,
    pub(crate) change: Change,
}

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Added(Arc<Object>),
    Modified {
        before: Arc<Object>,
        after: Arc<Object>,
    },
    Deleted {
        before: Arc<Object>,
        /// The object as it was last, with the revision of its deletion.
        last: Arc<Object>,
    },
}

impl Event {
    fn key(&self) -> Key {
        match &self.change {
            Change::Added(object) | Change::Modified { after: object, .. } | Change::Deleted { last: object, .. } => {
                Key::of(object)
            }
        }
    }

    /// The object before the write.
    fn before(&self) -> Option<&Arc<Object>> {
        match &self.change {
            Change::Added(_) => None,
            Change::Modified { before, .. } | Change::Deleted { before, .. } => Some(before),
        }
    }
}

#[derive(Debug, Default)]
struct Table {
    objects: BTreeMap<Key, Arc<Object>>,
    log: VecDeque<Event>,
    /// Writes up to this revision can no longer be replayed.
    forgotten: u64,
    waiting: Vec<Waker>,
}

/// All objects of a cluster.
#[derive(Debug)]
pub(crate) struct Store {
    tables: BTreeMap<Storage, Table>,
    revision: u64,
    /// How many writes of each storage are remembered.
    window: usize,
    /// Writes that the controllers have not seen yet.
    unseen: Vec<(Storage, Change)>,
    /// By the uid of an owner: what refers to it.
    owned: BTreeMap<String, BTreeSet<Place>>,
}

/// Where an object is.
pub(crate) type Place = (Storage, Key);

/// Objects of one storage as they were at a revision.
pub(crate) struct Snapshot<'a> {
    now: Option<&'a BTreeMap<Key, Arc<Object>>>,
    /// What was different then: the object, or none.
    then: BTreeMap<Key, Option<Arc<Object>>>,
}

impl Store {
    /// An empty store that remembers `window` writes of each kind.
    pub(crate) fn new(window: usize) -> Self {
        Self { tables: BTreeMap::new(), revision: 0, window, unseen: Vec::new(), owned: BTreeMap::new() }
    }

    /// The revision of the last write.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn get(&self, storage: &Storage, key: &Key) -> Option<&Arc<Object>> {
        self.tables.get(storage)?.objects.get(key)
    }

    /// All objects of a storage, or those of one namespace, by namespace and name.
    pub(crate) fn list<'a>(
        &'a self,
        storage: &Storage,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Arc<Object>> + use<'a> {
        let objects = self.tables.get(storage).map(|table| &table.objects);
        range(objects, namespace, None).map(|(_, object)| object)
    }

    /// The storages that hold anything.
    pub(crate) fn storages(&self) -> impl Iterator<Item = &Storage> {
        self.tables.iter().filter(|(_, table)| !table.objects.is_empty()).map(|(storage, _)| storage)
    }

    /// Stores an object, new or changed, under the next revision.
    pub(crate) fn put(&mut self, storage: &Storage, mut object: Object) -> Arc<Object> {
        self.revision += 1;
        object.set(&["metadata", "resourceVersion"], self.revision.to_string());
        let object = Arc::new(object);
        let (revision, window) = (self.revision, self.window);
        let table = self.tables.entry(storage.clone()).or_default();
        let before = table.objects.insert(Key::of(&object), Arc::clone(&object));
        let change = match before {
            None => Change::Added(Arc::clone(&object)),
            Some(before) => Change::Modified { before, after: Arc::clone(&object) },
        };
        self.unseen.push((storage.clone(), change.clone()));
        table.remember(Event { revision, change: change.clone() }, window);
        self.note_owners(storage, &change);
        object
    }

    /// Takes an object away, under the next revision. Gives it back as it was last.
    pub(crate) fn delete(&mut self, storage: &Storage, key: &Key) -> Option<Arc<Object>> {
        let table = self.tables.get_mut(storage)?;
        let before = table.objects.remove(key)?;
        self.revision += 1;
        let mut last = Object::clone(&before);
        last.set(&["metadata", "resourceVersion"], self.revision.to_string());
        let last = Arc::new(last);
        let change = Change::Deleted { before, last: Arc::clone(&last) };
        self.unseen.push((storage.clone(), change.clone()));
        table.remember(Event { revision: self.revision, change: change.clone() }, self.window);
        self.note_owners(storage, &change);
        Some(last)
    }

    fn note_owners(&mut self, storage: &Storage, change: &Change) {
        let (before, after) = match change {
            Change::Added(after) => (None, Some(after)),
            Change::Modified { before, after } => (Some(before), Some(after)),
            Change::Deleted { before, .. } => (Some(before), None),
        };
        for (object, owner) in before.into_iter().flat_map(|object| object.owners().map(move |owner| (object, owner))) {
            if let Some(owned) = self.owned.get_mut(owner.uid) {
                owned.remove(&(storage.clone(), Key::of(object)));
                if owned.is_empty() {
                    self.owned.remove(owner.uid);
                }
            }
        }
        for (object, owner) in after.into_iter().flat_map(|object| object.owners().map(move |owner| (object, owner))) {
            self.owned.entry(owner.uid.to_owned()).or_default().insert((storage.clone(), Key::of(object)));
        }
    }

    /// What refers to an owner by its uid.
    pub(crate) fn owned_by(&self, uid: &str) -> impl Iterator<Item = &Place> {
        self.owned.get(uid).into_iter().flatten()
    }

    /// The writes since this was last asked.
    pub(crate) fn take_changes(&mut self) -> Vec<(Storage, Change)> {
        std::mem::take(&mut self.unseen)
    }

    pub(crate) fn has_changes(&self) -> bool {
        !self.unseen.is_empty()
    }

    /// Forgets all writes so far, as a compaction does: whoever asks for them is told that they are gone.
    pub(crate) fn compact(&mut self) {
        for table in self.tables.values_mut() {
            table.log.clear();
            table.forgotten = self.revision;
        }
    }

    /// The oldest revision from which the writes of a storage can be replayed.
    pub(crate) fn oldest(&self, storage: &Storage) -> u64 {
        self.tables.get(storage).map_or(0, |table| table.forgotten)
    }

    /// The writes of a storage after a revision, or none if some of them are forgotten.
    pub(crate) fn since(&self, storage: &Storage, revision: u64) -> Option<impl Iterator<Item = &Event> + use<'_>> {
        let table = self.tables.get(storage);
        if table.is_some_and(|table| revision < table.forgotten) {
            return None;
        }
        Some(table.into_iter().flat_map(move |table| {
            let start = table.log.partition_point(|event| event.revision <= revision);
            table.log.range(start..)
        }))
    }

    /// The objects of a storage as they were at a revision, or none if that is too long ago.
    pub(crate) fn at(&self, storage: &Storage, revision: u64) -> Option<Snapshot<'_>> {
        let mut then = BTreeMap::new();
        for event in self.since(storage, revision)? {
            then.entry(event.key()).or_insert_with(|| event.before().cloned());
        }
        Some(Snapshot { now: self.tables.get(storage).map(|table| &table.objects), then })
    }

    /// Wakes `waker` at the next write of a storage.
    pub(crate) fn wake_on_write(&mut self, storage: &Storage, waker: &Waker) {
        let waiting = &mut self.tables.entry(storage.clone()).or_default().waiting;
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }
}

impl Table {
    fn remember(&mut self, event: Event, window: usize) {
        self.log.push_back(event);
        while self.log.len() > window {
            if let Some(event) = self.log.pop_front() {
                self.forgotten = event.revision;
            }
        }
        for waker in self.waiting.drain(..) {
            waker.wake();
        }
    }
}

impl<'a> Snapshot<'a> {
    /// The objects, or those of one namespace, that come after a key.
    pub(crate) fn list(
        self,
        namespace: Option<&str>,
        after: Option<&Key>,
    ) -> impl Iterator<Item = Arc<Object>> + use<'a> {
        let changed = self.then;
        if changed.is_empty() {
            let objects: Vec<Arc<Object>> =
                range(self.now, namespace, after).map(|(_, object)| Arc::clone(object)).collect();
            return objects.into_iter();
        }
        let mut merged: BTreeMap<Key, Option<Arc<Object>>> = BTreeMap::new();
        let wanted = |key: &Key| {
            namespace.is_none_or(|namespace| &*key.namespace == namespace) && after.is_none_or(|after| key > after)
        };
        for (key, object) in changed.iter().filter(|(key, _)| wanted(key)) {
            merged.insert(key.clone(), object.clone());
        }
        for (key, object) in range(self.now, namespace, after) {
            merged.entry(key.clone()).or_insert_with(|| Some(Arc::clone(object)));
        }
        merged.into_values().flatten().collect::<Vec<_>>().into_iter()
    }
}

fn range<'a>(
    objects: Option<&'a BTreeMap<Key, Arc<Object>>>,
    namespace: Option<&str>,
    after: Option<&Key>,
) -> impl Iterator<Item = (&'a Key, &'a Arc<Object>)> + use<'a> {
    let start = match (after, namespace) {
        (Some(after), Some(namespace)) if &*after.namespace < namespace => Bound::Included(Key::new(namespace, "")),
        (Some(after), _) => Bound::Excluded(after.clone()),
        (None, Some(namespace)) => Bound::Included(Key::new(namespace, "")),
        (None, None) => Bound::Unbounded,
    };
    let namespace: Option<Box<str>> = namespace.map(Into::into);
    objects
        .map(|objects| objects.range((start, Bound::Unbounded)))
        .into_iter()
        .flatten()
        .take_while(move |(key, _)| namespace.as_ref().is_none_or(|namespace| key.namespace == *namespace))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn storage() -> Storage {
        Storage { group: "".into(), plural: "configmaps".into() }
    }

    fn object(namespace: &str, name: &str, value: i64) -> Object {
        Object::from_value(json!({"metadata": {"namespace": namespace, "name": name}, "value": value})).unwrap()
    }

    fn names(objects: impl Iterator<Item = Arc<Object>>) -> Vec<String> {
        objects.map(|object| format!("{}/{}={}", object.namespace(), object.name(), object.fields()["value"])).collect()
    }

    #[test]
    fn a_snapshot_shows_what_was_there() {
        let mut store = Store::new(100);
        store.put(&storage(), object("a", "x", 1));
        store.put(&storage(), object("a", "y", 1));
        store.put(&storage(), object("b", "z", 1));
        let then = store.revision();
        store.put(&storage(), object("a", "x", 2));
        store.delete(&storage(), &Key::new("a", "y"));
        store.put(&storage(), object("a", "new", 1));
        let list = |namespace, after: Option<&Key>| names(store.at(&storage(), then).unwrap().list(namespace, after));
        assert_eq!(list(None, None), ["a/x=1", "a/y=1", "b/z=1"]);
        assert_eq!(list(Some("a"), Some(&Key::new("a", "x"))), ["a/y=1"]);
        let now: Vec<_> = store.list(&storage(), Some("a")).cloned().collect();
        assert_eq!(names(now.into_iter()), ["a/new=1", "a/x=2"]);
    }

    #[test]
    fn writes_are_replayed_until_they_are_forgotten() {
        let mut store = Store::new(2);
        for value in 1..=4 {
            store.put(&storage(), object("a", "x", value));
        }
        assert!(store.since(&storage(), 1).is_none());
        assert_eq!(store.oldest(&storage()), 2);
        let revisions: Vec<u64> = store.since(&storage(), 2).unwrap().map(|event| event.revision).collect();
        assert_eq!(revisions, [3, 4]);
        store.compact();
        assert!(store.at(&storage(), 3).is_none());
        assert_eq!(store.since(&storage(), 4).unwrap().count(), 0);
    }

    #[test]
    fn a_deleted_object_carries_the_revision_of_its_deletion() {
        let mut store = Store::new(10);
        store.put(&storage(), object("a", "x", 1));
        let last = store.delete(&storage(), &Key::new("a", "x")).unwrap();
        assert_eq!(last.resource_version(), "2");
        assert!(store.delete(&storage(), &Key::new("a", "x")).is_none());
    }
}
