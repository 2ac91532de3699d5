//! Which pods something selects: a Service, a disruption budget. Kept from change to change, so that nothing is searched.

use super::pods_storage;
use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::object::Object;
use crate::selector::LabelSelector;
use crate::store::{Change, Key};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Objects of one kind, and the pods that their selectors fit.
#[derive(Debug)]
pub(crate) struct Selection {
    storage: Storage,
    read: fn(&Object) -> Option<LabelSelector>,
    selected: BTreeMap<Key, Selected>,
}

#[derive(Debug)]
struct Selected {
    selector: LabelSelector,
    pods: BTreeSet<Key>,
}

impl Selection {
    /// `read` says what an object selects, if it selects at all.
    pub(crate) fn new(storage: Storage, read: fn(&Object) -> Option<LabelSelector>) -> Self {
        Self { storage, read, selected: BTreeMap::new() }
    }

    /// Takes note of a write. Says which objects it concerns: themselves, or pods that they select or have selected.
    pub(crate) fn observe(&mut self, storage: &Storage, change: &Change, cluster: &Cluster) -> Vec<Key> {
        if *storage == self.storage {
            let key = match change {
                Change::Added(object) | Change::Modified { after: object, .. } => {
                    self.select(object, cluster);
                    Key::of(object)
                }
                Change::Deleted { last, .. } => {
                    self.selected.remove(&Key::of(last));
                    Key::of(last)
                }
            };
            return vec![key];
        }
        if *storage != pods_storage() {
            return Vec::new();
        }
        let (pod, there) = match change {
            Change::Added(pod) | Change::Modified { after: pod, .. } => (pod, true),
            Change::Deleted { last, .. } => (last, false),
        };
        let (pod_key, start) = (Key::of(pod), Key::new(pod.namespace(), ""));
        let mut concerned = Vec::new();
        let here = self.selected.range_mut(start..).take_while(|(key, _)| *key.namespace == *pod.namespace());
        for (key, selected) in here {
            let fits = there && selected.selector.matches(pod.at(&["metadata", "labels"]));
            let changed = if fits { selected.pods.insert(pod_key.clone()) } else { selected.pods.remove(&pod_key) };
            if fits || changed {
                concerned.push(key.clone());
            }
        }
        concerned
    }

    fn select(&mut self, object: &Object, cluster: &Cluster) {
        let key = Key::of(object);
        let Some(selector) = (self.read)(object) else {
            self.selected.remove(&key);
            return;
        };
        if self.selected.get(&key).is_some_and(|selected| selected.selector == selector) {
            return;
        }
        let pods = cluster.store.list(&pods_storage(), Some(object.namespace()));
        let pods =
            pods.filter(|pod| selector.matches(pod.at(&["metadata", "labels"]))).map(|pod| Key::of(pod)).collect();
        self.selected.insert(key, Selected { selector, pods });
    }

    /// The pods that an object selects.
    pub(crate) fn pods(&self, cluster: &Cluster, key: &Key) -> Vec<Arc<Object>> {
        let keys = self.selected.get(key).into_iter().flat_map(|selected| &selected.pods);
        keys.filter_map(|key| cluster.store.get(&pods_storage(), key).cloned()).collect()
    }
}
