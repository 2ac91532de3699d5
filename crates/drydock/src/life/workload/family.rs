//! Who belongs to whom: owners and their members, and members that nobody owns yet.

use super::{controller_of, is_controlled_by, reference_to};
use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::life::client::Client;
use crate::object::Object;
use crate::selector::LabelSelector;
use crate::store::{Change, Key};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Objects of one kind and their members of another.
#[derive(Debug)]
pub(crate) struct Family {
    owners: Storage,
    kind: &'static str,
    members: Storage,
    /// Members that no owner manages.
    orphans: BTreeSet<Key>,
}

impl Family {
    pub(crate) fn new(owners: Storage, kind: &'static str, members: Storage) -> Self {
        Self { owners, kind, members, orphans: BTreeSet::new() }
    }

    /// Takes note of a write. Says which owners have to be looked at.
    pub(crate) fn observe(&mut self, storage: &Storage, change: &Change, cluster: &Cluster) -> Vec<Key> {
        if *storage == self.owners {
            return match change {
                Change::Added(owner) | Change::Modified { after: owner, .. } => vec![Key::of(owner)],
                Change::Deleted { .. } => Vec::new(),
            };
        }
        if *storage != self.members {
            return Vec::new();
        }
        let (before, after) = match change {
            Change::Added(after) => (None, Some(after)),
            Change::Modified { before, after } => (Some(before), Some(after)),
            Change::Deleted { before, .. } => (Some(before), None),
        };
        let mut concerned: Vec<Key> =
            [before, after].into_iter().flatten().filter_map(|it| self.owner_of(it)).collect();
        concerned.dedup();
        match after {
            Some(after) if controller_of(after).is_none() => {
                self.orphans.insert(Key::of(after));
                let same = before.is_some_and(|before| {
                    controller_of(before).is_none()
                        && before.at(&["metadata", "labels"]) == after.at(&["metadata", "labels"])
                });
                if !same && !after.is_being_deleted() {
                    let owners = cluster.store.list(&self.owners, Some(after.namespace()));
                    concerned.extend(owners.filter(|owner| selects(owner, after)).map(|owner| Key::of(owner)));
                }
            }
            Some(after) => {
                self.orphans.remove(&Key::of(after));
            }
            None => {
                if let Some(before) = before {
                    self.orphans.remove(&Key::of(before));
                }
            }
        }
        concerned
    }

    fn owner_of(&self, member: &Object) -> Option<Key> {
        let owner = controller_of(member)?;
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        (owner.kind == self.kind && group == &*self.owners.group).then(|| Key::new(member.namespace(), owner.name))
    }

    /// The members of an owner. Those that its selector no longer fits are let go, orphans that it fits are taken in.
    pub(crate) fn claim(&self, client: &mut Client<'_>, owner: &Object) -> Vec<Arc<Object>> {
        self.claim_those(client, owner, |_| true)
    }

    /// As [`Family::claim`], but only those members that a test lets through are looked at.
    pub(crate) fn claim_those(
        &self,
        client: &mut Client<'_>,
        owner: &Object,
        test: impl Fn(&Object) -> bool,
    ) -> Vec<Arc<Object>> {
        let mut members = Vec::new();
        let open = !owner.is_being_deleted();
        for member in client.owned(&self.members, owner) {
            if !is_controlled_by(&member, owner) || !test(&member) {
                continue;
            }
            if selects(owner, &member) {
                members.push(member);
            } else if open && !member.is_being_deleted() {
                let _ = client.change(&self.members, &Key::of(&member), |member| release(member, owner));
            }
        }
        if open {
            let start = Key::new(owner.namespace(), "");
            let orphans = self.orphans.range(start..).take_while(|key| *key.namespace == *owner.namespace());
            for key in orphans {
                let Some(orphan) = client.get(&self.members, key) else { continue };
                let free = !orphan.is_being_deleted() && controller_of(&orphan).is_none();
                if !free || !selects(owner, &orphan) || !test(&orphan) {
                    continue;
                }
                // Somebody else was quicker.
                members.extend(client.change(&self.members, key, |orphan| adopt(orphan, owner)));
            }
        }
        members
    }
}

/// Whether an owner's selector fits an object. A selector that selects everything selects nothing here.
pub(crate) fn selects(owner: &Object, member: &Object) -> bool {
    selector_of(owner).is_some_and(|selector| selector.matches(member.at(&["metadata", "labels"])))
}

/// The selector of an owner, if it has one that is not empty.
pub(crate) fn selector_of(owner: &Object) -> Option<LabelSelector> {
    let selector = owner.at(&["spec", "selector"])?;
    // Those of the first days are plain maps.
    let plain = selector.get("matchLabels").is_none() && selector.get("matchExpressions").is_none();
    let selector = if plain {
        LabelSelector::from_object(&serde_json::json!({"matchLabels": selector}))
    } else {
        LabelSelector::from_object(selector)
    };
    selector.filter(|selector| !selector.is_empty())
}

fn release(member: &mut Object, owner: &Object) {
    let left: Vec<Value> = member
        .list(&["metadata", "ownerReferences"])
        .iter()
        .filter(|reference| reference.get("uid").and_then(Value::as_str) != Some(owner.uid()))
        .cloned()
        .collect();
    if left.is_empty() {
        member.remove(&["metadata", "ownerReferences"]);
    } else {
        member.set(&["metadata", "ownerReferences"], left);
    }
}

fn adopt(member: &mut Object, owner: &Object) {
    release(member, owner);
    let mut references = member.list(&["metadata", "ownerReferences"]).to_vec();
    references.push(reference_to(owner));
    member.set(&["metadata", "ownerReferences"], references);
}
