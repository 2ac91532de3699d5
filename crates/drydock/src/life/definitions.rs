//! CustomResourceDefinitions: a definition that is accepted adds its kinds; one that goes takes its objects along.

use super::Controller;
use crate::cluster::Cluster;
use crate::conditions::{condition, set_condition};
use crate::kinds::custom;
use crate::kinds::{Kind, Storage};
use crate::object::Object;
use crate::store::{Change, Key};
use crate::verbs::delete::{DeleteOptions, Propagation, set_finalizers};
use crate::verbs::write::{Source, Write};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Held until the objects of the definition are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The definitions that have changed, or whose objects have.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    queue: BTreeSet<String>,
    /// Definitions that wait for their objects to go.
    leaving: BTreeSet<String>,
}

impl Controller for Definitions {
    fn observe(&mut self, storage: &Storage, change: &Change, cluster: &mut Cluster) {
        if !storage.is("apiextensions.k8s.io", "customresourcedefinitions") {
            if !self.leaving.is_empty() {
                let name = format!("{}.{}", storage.plural, storage.group);
                if self.leaving.contains(&name) {
                    self.queue.insert(name);
                }
            }
            return;
        }
        match change {
            Change::Added(definition) | Change::Modified { after: definition, .. } => {
                self.queue.insert(definition.name().to_owned());
            }
            Change::Deleted { last, .. } => {
                self.leaving.remove(last.name());
                cluster.kinds.remove(last.text(&["spec", "group"]), last.text(&["spec", "names", "plural"]));
            }
        }
    }

    fn work(&mut self, cluster: &mut Cluster) -> bool {
        let worked = !self.queue.is_empty();
        while let Some(name) = self.queue.pop_first() {
            let Some(definition) =
                cluster.find("apiextensions.k8s.io", "customresourcedefinitions", "", &name).cloned()
            else {
                continue;
            };
            if definition.is_being_deleted() {
                self.leaving.insert(name);
                empty(cluster, &definition);
            } else {
                establish(cluster, &definition);
            }
        }
        worked
    }
}

/// Adds the kinds of a definition and says so in its status.
fn establish(cluster: &mut Cluster, definition: &Object) {
    let group = definition.text(&["spec", "group"]);
    let names = definition.at(&["spec", "names"]).cloned().unwrap_or_default();
    let conflict = conflict(cluster, definition);
    if conflict.is_none() {
        cluster.kinds.remove(group, definition.text(&["spec", "names", "plural"]));
        for kind in custom::shared(definition) {
            cluster.kinds.add(kind);
        }
    }
    let now = crate::clock::time(cluster.now);
    change(cluster, definition, "status", |new| {
        let (accepted, established) = match &conflict {
            None => (
                condition("NamesAccepted", true, "NoConflicts", "no conflicts found"),
                condition("Established", true, "InitialNamesAccepted", "the initial names have been accepted"),
            ),
            Some(why) => (
                condition("NamesAccepted", false, "NamesConflict", why),
                condition("Established", false, "NotAccepted", "not all names are accepted"),
            ),
        };
        if conflict.is_none() {
            new.set(&["status", "acceptedNames"], names);
        }
        set_condition(new, accepted, &now);
        set_condition(new, established, &now);
        let storage: Vec<Value> = new
            .list(&["spec", "versions"])
            .iter()
            .filter(|version| version["storage"] == true)
            .filter_map(|version| version.get("name").cloned())
            .collect();
        let mut stored = new.list(&["status", "storedVersions"]).to_vec();
        for version in storage {
            if !stored.contains(&version) {
                stored.push(version);
            }
        }
        new.set(&["status", "storedVersions"], stored);
    });
    change(cluster, definition, "", |new| {
        let mut finalizers: Vec<String> = new.finalizers().map(str::to_owned).collect();
        if !finalizers.iter().any(|finalizer| finalizer == CLEANUP) {
            finalizers.push(CLEANUP.to_owned());
            set_finalizers(new, finalizers);
        }
    });
}

/// Whether another definition has the names already.
fn conflict(cluster: &Cluster, definition: &Object) -> Option<String> {
    let group = definition.text(&["spec", "group"]);
    let plural = definition.text(&["spec", "names", "plural"]);
    let kind = definition.text(&["spec", "names", "kind"]);
    let taken =
        cluster.kinds.all().find(|other| other.group == group && other.plural != plural && other.kind == kind)?;
    Some(format!("{:?} is already in use", taken.kind))
}

/// Deletes the objects of a definition; lets it go when there are none left.
fn empty(cluster: &mut Cluster, definition: &Object) {
    let group = definition.text(&["spec", "group"]);
    let plural = definition.text(&["spec", "names", "plural"]);
    let storage = Storage::new(group, plural);
    if let Some(kind) = cluster.kinds.of_storage(&storage).cloned() {
        delete_all(cluster, &kind);
    }
    if cluster.store.list(&storage, None).next().is_none() {
        change(cluster, definition, "", |new| {
            let left = new.finalizers().filter(|finalizer| *finalizer != CLEANUP).map(str::to_owned).collect();
            set_finalizers(new, left);
        });
    }
}

fn delete_all(cluster: &mut Cluster, kind: &Arc<Kind>) {
    let options = DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
    let keys: Vec<Key> = cluster.store.list(&kind.storage, None).map(|object| Key::of(object)).collect();
    for key in keys {
        // What refuses to go keeps the definition.
        let _ = cluster.remove(kind, &key, &options);
    }
}

fn change(cluster: &mut Cluster, definition: &Object, subresource: &str, change: impl FnOnce(&mut Object)) {
    let Some(kind) = cluster.kinds.by_kind("apiextensions.k8s.io/v1", "CustomResourceDefinition").cloned() else {
        return;
    };
    let write = Write::internal("kube-apiserver");
    let write = if subresource.is_empty() { write } else { write.through(subresource) };
    // It is gone or refused: the next change brings it back here.
    let _ = cluster.modify(&kind, &Key::of(definition), &write, Source::Patch, |_, old| {
        let mut new = Object::clone(old);
        change(&mut new);
        Ok(new)
    });
}
