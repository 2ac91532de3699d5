//! The namespace controller: a namespace that is being deleted takes everything in it along.

use super::Controller;
use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::object::Object;
use crate::store::{Change, Key};
use crate::verbs::delete::{DeleteOptions, Propagation};
use crate::verbs::write::{Source, Write};
use std::collections::BTreeSet;

/// The namespaces that are on their way out.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    terminating: BTreeSet<String>,
    /// Something in them, or they themselves, changed.
    touched: bool,
}

impl Controller for Cleaner {
    fn observe(&mut self, storage: &Storage, change: &Change, _: &mut Cluster) {
        let object = match change {
            Change::Added(object) | Change::Modified { after: object, .. } | Change::Deleted { last: object, .. } => {
                object
            }
        };
        if storage.is("", "namespaces") && object.is_being_deleted() {
            self.terminating.insert(object.name().to_owned());
            self.touched = true;
        }
        self.touched |= self.terminating.contains(object.namespace());
    }

    fn work(&mut self, cluster: &mut Cluster) -> bool {
        if !std::mem::take(&mut self.touched) {
            return false;
        }
        for name in self.terminating.clone() {
            if clean(cluster, &name) {
                self.terminating.remove(&name);
            }
        }
        true
    }
}

/// Deletes what is in a namespace; lets the namespace go when it is empty. Says whether it is done with it.
fn clean(cluster: &mut Cluster, name: &str) -> bool {
    let options = DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
    let storages: Vec<Storage> = cluster.store.storages().cloned().collect();
    let mut left = false;
    for storage in storages {
        let Some(kind) = cluster.kinds.of_storage(&storage).cloned().filter(|kind| kind.namespaced) else { continue };
        let keys: Vec<Key> = cluster.store.list(&storage, Some(name)).map(|object| Key::of(object)).collect();
        for key in keys {
            // What refuses to go keeps the namespace, as in a real cluster.
            let _ = cluster.remove(&kind, &key, &options);
            left |= cluster.store.get(&storage, &key).is_some();
        }
    }
    if left {
        return false;
    }
    let Some(kind) = cluster.kinds.by_kind("v1", "Namespace").cloned() else { return true };
    let write = Write::internal("kube-controller-manager").through("finalize");
    let _ = cluster.modify(&kind, &Key::new("", name), &write, Source::Patch, |_, old| {
        let mut new = Object::clone(old);
        new.remove(&["spec", "finalizers"]);
        Ok(new)
    });
    cluster.find("", "namespaces", "", name).is_none()
}
