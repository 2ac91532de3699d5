//! What a controller has to look at, and when.

use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Keys, each due once: at the earliest time it was added for.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    by_time: BTreeMap<Timestamp, BTreeSet<K>>,
    by_key: BTreeMap<K, Timestamp>,
}

impl<K: Ord + Clone> Queue<K> {
    /// Adds a key, due at a time. A key that is due earlier stays so.
    pub(crate) fn add(&mut self, key: K, at: Timestamp) {
        if let Some(known) = self.by_key.get(&key) {
            if *known <= at {
                return;
            }
            let known = *known;
            self.take(known, &key);
        }
        self.by_time.entry(at).or_default().insert(key.clone());
        self.by_key.insert(key, at);
    }

    /// Adds keys, all due at a time.
    pub(crate) fn extend_at(&mut self, at: Timestamp, keys: impl IntoIterator<Item = K>) {
        for key in keys {
            self.add(key, at);
        }
    }

    /// Takes a key away, whenever it is due.
    pub(crate) fn remove(&mut self, key: &K) {
        if let Some(at) = self.by_key.remove(key) {
            self.take(at, key);
        }
    }

    fn take(&mut self, at: Timestamp, key: &K) {
        if let Some(keys) = self.by_time.get_mut(&at) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_time.remove(&at);
            }
        }
    }

    /// The next key that is due now.
    pub(crate) fn pop(&mut self, now: Timestamp) -> Option<K> {
        let (at, keys) = self.by_time.first_key_value()?;
        let at = *at;
        if at > now {
            return None;
        }
        let key = keys.first()?.clone();
        self.take(at, &key);
        self.by_key.remove(&key);
        Some(key)
    }

    /// When the next key is due.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.by_time.first_key_value().map(|(at, _)| *at)
    }
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Self { by_time: BTreeMap::new(), by_key: BTreeMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_due_once_at_its_earliest_time() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut queue = Queue::default();
        queue.add("b", at(5));
        queue.add("a", at(9));
        queue.add("a", at(3));
        queue.add("a", at(7));
        assert_eq!(queue.next_due(), Some(at(3)));
        assert_eq!(queue.pop(at(2)), None);
        assert_eq!(queue.pop(at(9)), Some("a"));
        assert_eq!(queue.pop(at(9)), Some("b"));
        assert_eq!(queue.pop(at(9)), None);
        queue.add("c", at(1));
        queue.remove(&"c");
        assert_eq!(queue.next_due(), None);
    }
}
