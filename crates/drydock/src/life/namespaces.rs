//! The namespace controller: a namespace that is being deleted takes everything in it along.

use super::Controller;
use crate::cluster::Cluster;
use crate::conditions::{condition, set_condition};
use crate::kinds::{Kind, Storage};
use crate::object::Object;
use crate::store::{Change, Key};
use crate::verbs::delete::{DeleteOptions, Propagation};
use crate::verbs::write::{Source, Write};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

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
    let mut left = Left::default();
    for storage in storages {
        let Some(kind) = cluster.kinds.of_storage(&storage).cloned().filter(|kind| kind.namespaced) else { continue };
        let keys: Vec<Key> = cluster.store.list(&storage, Some(name)).map(|object| Key::of(object)).collect();
        for key in keys {
            // What refuses to go keeps the namespace, as in a real cluster.
            let _ = cluster.remove(&kind, &key, &options);
            if let Some(object) = cluster.store.get(&storage, &key) {
                left.count(&kind, object);
            }
        }
    }
    let Some(kind) = cluster.kinds.by_kind("v1", "Namespace").cloned() else { return true };
    let now = crate::clock::time(cluster.now);
    let write = Write::internal("kube-controller-manager").through("status");
    let _ = cluster.modify(&kind, &Key::new("", name), &write, Source::Patch, |_, old| {
        let mut new = Object::clone(old);
        for condition in left.conditions() {
            set_condition(&mut new, condition, &now);
        }
        Ok(new)
    });
    if !left.is_empty() {
        return false;
    }
    let write = Write::internal("kube-controller-manager").through("finalize");
    let _ = cluster.modify(&kind, &Key::new("", name), &write, Source::Patch, |_, old| {
        let mut new = Object::clone(old);
        new.remove(&["spec", "finalizers"]);
        Ok(new)
    });
    cluster.find("", "namespaces", "", name).is_none()
}

/// What is still in a namespace, and what holds it.
#[derive(Default)]
struct Left {
    resources: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
}

impl Left {
    fn count(&mut self, kind: &Kind, object: &Object) {
        *self.resources.entry(format!("{}.{}", kind.plural, kind.group)).or_default() += 1;
        for finalizer in object.finalizers() {
            *self.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }

    fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// The conditions of the namespace, in their order.
    fn conditions(&self) -> [Value; 5] {
        let list = |counts: &BTreeMap<String, usize>, verb: &str| {
            let parts: Vec<String> =
                counts.iter().map(|(name, count)| format!("{name} {verb} {count} resource instances")).collect();
            parts.join(", ")
        };
        let remaining = if self.resources.is_empty() {
            condition("NamespaceContentRemaining", false, "ContentRemoved", "All content successfully removed")
        } else {
            let message = format!("Some resources are remaining: {}", list(&self.resources, "has"));
            condition("NamespaceContentRemaining", true, "SomeResourcesRemain", &message)
        };
        let held = if self.finalizers.is_empty() {
            let message = "All content-preserving finalizers finished";
            condition("NamespaceFinalizersRemaining", false, "ContentHasNoFinalizers", message)
        } else {
            let finalizers = list(&self.finalizers, "in");
            let message = format!("Some content in the namespace has finalizers remaining: {finalizers}");
            condition("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain", &message)
        };
        let deleted = "All content successfully deleted, may be waiting on finalization";
        [
            condition(
                "NamespaceDeletionDiscoveryFailure",
                false,
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            condition(
                "NamespaceDeletionGroupVersionParsingFailure",
                false,
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            condition("NamespaceDeletionContentFailure", false, "ContentDeleted", deleted),
            remaining,
            held,
        ]
    }
}
