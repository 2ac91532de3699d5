//! The garbage collector: what has lost its owners goes too, and owners that wait for their dependants are let go
//! when those are gone, or on their own.

use super::Controller;
use crate::cluster::Cluster;
use crate::kinds::{Kind, Storage};
use crate::object::{Object, Owner};
use crate::store::{Change, Key, Place};
use crate::verbs::delete::{DeleteOptions, FOREGROUND, ORPHAN, Propagation, set_finalizers};
use crate::verbs::write::{Source, Write};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the collector knows, and what it has to look at.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    /// By uid: owners that wait for their dependants.
    waiting: BTreeMap<String, Place>,
    queue: BTreeSet<Place>,
}

impl Controller for Collector {
    fn observe(&mut self, storage: &Storage, change: &Change, cluster: &mut Cluster) {
        match change {
            Change::Added(object) => self.enter(storage, object),
            Change::Modified { before, after } => {
                self.leave(before);
                self.enter(storage, after);
            }
            Change::Deleted { last, .. } => {
                self.leave(last);
                self.waiting.remove(last.uid());
                self.queue.extend(cluster.store.owned_by(last.uid()).cloned());
            }
        }
    }

    fn work(&mut self, cluster: &mut Cluster) -> bool {
        let mut worked = false;
        while let Some((storage, key)) = self.queue.pop_first() {
            worked = true;
            let Some(kind) = cluster.kinds.of_storage(&storage).cloned() else { continue };
            let Some(object) = cluster.store.get(&storage, &key).cloned() else { continue };
            let has =
                |wanted: &str| object.is_being_deleted() && object.finalizers().any(|finalizer| finalizer == wanted);
            if has(ORPHAN) {
                orphan_dependants(cluster, &kind, &object);
            } else if has(FOREGROUND) {
                await_dependants(cluster, &kind, &object);
            } else if !object.is_being_deleted() && object.owners().next().is_some() {
                check_owners(cluster, &kind, &object);
            }
        }
        worked
    }
}

impl Collector {
    fn enter(&mut self, storage: &Storage, object: &Object) {
        let place = (storage.clone(), Key::of(object));
        for owner in object.owners() {
            self.queue.insert(place.clone());
            self.queue.extend(self.waiting.get(owner.uid).cloned());
        }
        if object.is_being_deleted()
            && object.finalizers().any(|finalizer| finalizer == FOREGROUND || finalizer == ORPHAN)
        {
            self.waiting.insert(object.uid().to_owned(), place.clone());
            self.queue.insert(place);
        }
    }

    fn leave(&mut self, object: &Object) {
        for owner in object.owners() {
            self.queue.extend(self.waiting.get(owner.uid).cloned());
        }
    }
}

fn dependants(cluster: &Cluster, owner: &Object) -> Vec<(Arc<Kind>, Arc<Object>)> {
    let places = cluster.store.owned_by(owner.uid());
    places
        .filter_map(|(storage, key)| {
            Some((cluster.kinds.of_storage(storage)?.clone(), cluster.store.get(storage, key)?.clone()))
        })
        .collect()
}

fn orphan_dependants(cluster: &mut Cluster, kind: &Arc<Kind>, owner: &Object) {
    for (dependant_kind, dependant) in dependants(cluster, owner) {
        drop_owners(cluster, &dependant_kind, &dependant, |uid| uid == owner.uid());
    }
    drop_finalizer(cluster, kind, owner, ORPHAN);
}

fn await_dependants(cluster: &mut Cluster, kind: &Arc<Kind>, owner: &Object) {
    let blocking: Vec<_> = dependants(cluster, owner)
        .into_iter()
        .filter(|(_, dependant)| {
            dependant.owners().any(|reference| reference.uid == owner.uid() && reference.blocks_deletion)
        })
        .collect();
    if blocking.is_empty() {
        drop_finalizer(cluster, kind, owner, FOREGROUND);
    }
    for (dependant_kind, dependant) in blocking {
        if !dependant.is_being_deleted() {
            check_owners(cluster, &dependant_kind, &dependant);
        }
    }
}

/// Deletes an object that no owner holds any more.
fn check_owners(cluster: &mut Cluster, kind: &Arc<Kind>, object: &Object) {
    let (mut solid, mut gone, mut waiting) = (false, Vec::new(), Vec::new());
    for owner in object.owners() {
        match state_of(cluster, object, &owner) {
            OwnerState::Solid => solid = true,
            OwnerState::Gone => gone.push(owner.uid.to_owned()),
            OwnerState::Waiting => waiting.push(owner.uid.to_owned()),
        }
    }
    if solid {
        if !gone.is_empty() || !waiting.is_empty() {
            drop_owners(cluster, kind, object, |uid| gone.iter().chain(&waiting).any(|known| known == uid));
        }
        return;
    }
    let has_dependants = cluster.store.owned_by(object.uid()).next().is_some();
    let propagation = if !waiting.is_empty() && has_dependants {
        Propagation::Foreground
    } else {
        object.finalizers().find_map(Propagation::of_finalizer).unwrap_or(Propagation::Background)
    };
    let options = DeleteOptions {
        propagation: Some(propagation),
        uid: Some(object.uid().to_owned()),
        ..DeleteOptions::default()
    };
    // Whoever changed or deleted it meanwhile is noticed by the next look.
    let _ = cluster.remove(kind, &Key::of(object), &options);
}

enum OwnerState {
    /// It is there.
    Solid,
    /// It is not there, or another object has its name.
    Gone,
    /// It waits for its dependants to go.
    Waiting,
}

fn state_of(cluster: &Cluster, dependant: &Object, owner: &Owner<'_>) -> OwnerState {
    let Some(kind) = cluster.kinds.by_kind(owner.api_version, owner.kind) else {
        // A kind that nobody knows: its objects cannot be looked up, so nothing is deleted on their account.
        return OwnerState::Solid;
    };
    let namespace = if kind.namespaced { dependant.namespace() } else { "" };
    match cluster.store.get(&kind.storage, &Key::new(namespace, owner.name)) {
        Some(object) if object.uid() != owner.uid => OwnerState::Gone,
        Some(object) if object.is_being_deleted() && object.finalizers().any(|finalizer| finalizer == FOREGROUND) => {
            OwnerState::Waiting
        }
        Some(_) => OwnerState::Solid,
        None => OwnerState::Gone,
    }
}

fn drop_owners(cluster: &mut Cluster, kind: &Arc<Kind>, object: &Object, dropped: impl Fn(&str) -> bool) {
    change(cluster, kind, object, |new| {
        let metadata = new.metadata_mut();
        if let Some(Value::Array(owners)) = metadata.get_mut("ownerReferences") {
            owners.retain(|owner| !owner.get("uid").and_then(Value::as_str).is_some_and(&dropped));
            if owners.is_empty() {
                metadata.remove("ownerReferences");
            }
        }
    });
}

fn drop_finalizer(cluster: &mut Cluster, kind: &Arc<Kind>, object: &Object, finalizer: &str) {
    change(cluster, kind, object, |new| {
        let left = new.finalizers().filter(|known| *known != finalizer).map(str::to_owned).collect();
        set_finalizers(new, left);
    });
}

fn change(cluster: &mut Cluster, kind: &Arc<Kind>, object: &Object, change: impl FnOnce(&mut Object)) {
    let write = Write::internal("kube-controller-manager");
    // An object that cannot be changed (its rules refuse it as it is) stays as it is, as in a real cluster.
    let _ = cluster.modify(kind, &Key::of(object), &write, Source::Patch, |_, old| {
        let mut new = Object::clone(old);
        change(&mut new);
        Ok(new)
    });
}
