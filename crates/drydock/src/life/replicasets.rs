//! ReplicaSets, and ReplicationControllers before them: as many pods as are wanted.

mod plan;
mod ranking;

use super::client::{Client, Tone};
use super::reconciler::Reconciler;
use super::workload::family::Family;
use super::workload::retries::Retries;
use super::workload::{apps, controller_of, is_controlled_by, pods, pods_storage, report};
use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::object::Object;
use crate::status::Status;
use crate::store::{Change, Key};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Sets of pods of one kind, and those that have to be looked at.
#[derive(Debug)]
pub(crate) struct ReplicaSets {
    storage: Storage,
    component: &'static str,
    family: Family,
    retries: Retries,
}

impl ReplicaSets {
    pub(crate) fn new() -> Self {
        Self::of(apps("replicasets"), "ReplicaSet", "replicaset-controller")
    }

    /// The same for ReplicationControllers.
    pub(crate) fn of_the_first_days() -> Self {
        Self::of(Storage::core("replicationcontrollers"), "ReplicationController", "replication-controller")
    }

    fn of(storage: Storage, kind: &'static str, component: &'static str) -> Self {
        let family = Family::new(storage.clone(), kind, pods_storage());
        Self { storage, component, family, retries: Retries::default() }
    }
}

impl Reconciler for ReplicaSets {
    fn concerned(&mut self, storage: &Storage, change: &Change, cluster: &mut Cluster) -> Vec<Key> {
        self.family.observe(storage, change, cluster)
    }

    fn reconcile(&mut self, cluster: &mut Cluster, key: &Key) -> Option<Timestamp> {
        let Some(set) = cluster.store.get(&self.storage, key).cloned() else {
            self.retries.forget(key);
            return None;
        };
        let mut client = Client::of_controller(cluster, self.component);
        let now = client.now();
        let mut active = self.family.claim(&mut client, &set);
        active.retain(|pod| pods::is_active(pod));
        let managed = if set.is_being_deleted() { Ok(()) } else { manage(&mut client, &set, &active) };
        let failure = managed.err();
        let status = plan::status(&set, &active, failure.as_ref().map(|failure| failure.message.as_str()), now);
        // A set that is gone needs no status.
        let _ = report(&mut client, &self.storage, &set, status);
        if failure.is_some() {
            return Some(self.retries.fail(key, now));
        }
        self.retries.forget(key);
        pods::next_available(active.iter().map(AsRef::as_ref), super::workload::min_ready(&set), now)
    }
}

/// Makes the pods that are missing, or deletes those that are too many.
fn manage(client: &mut Client<'_>, set: &Object, active: &[Arc<Object>]) -> Result<(), Status> {
    match plan::plan(set, active.len()) {
        plan::Plan::Create(number) => create(client, set, number),
        plan::Plan::Delete(number) => {
            let neighbours = neighbours(client, set);
            let doomed = ranking::choose(active, &neighbours, number, client.now());
            doomed.into_iter().try_for_each(|pod| delete_pod(client, set, pod))
        }
    }
}

/// Makes pods in batches that double, so that what fails fails once or twice and not for every pod.
fn create(client: &mut Client<'_>, set: &Object, number: usize) -> Result<(), Status> {
    let template = set.at(&["spec", "template"]).cloned().unwrap_or(Value::Null);
    let (mut left, mut batch) = (number, 1);
    while left > 0 {
        let mut failure = None;
        for _ in 0..batch.min(left) {
            if let Err(status) = create_pod(client, set, pods::generated(set, &template)) {
                failure = Some(status);
            }
        }
        if let Some(status) = failure {
            return Err(status);
        }
        left -= batch.min(left);
        batch *= 2;
    }
    Ok(())
}

/// Makes a pod for its owner, and tells how it went.
pub(crate) fn create_pod(client: &mut Client<'_>, owner: &Object, pod: Object) -> Result<(), Status> {
    match client.create(&pods_storage(), pod) {
        Ok(pod) => {
            client.tell(owner, Tone::Normal, "SuccessfulCreate", &format!("Created pod: {}", pod.name()));
            Ok(())
        }
        // A namespace that is going takes no pods, and needs none.
        Err(status) if super::is_of_a_namespace_that_goes(&status) => Ok(()),
        Err(status) => {
            client.tell(owner, Tone::Warning, "FailedCreate", &format!("Error creating: {}", status.message));
            Err(status)
        }
    }
}

/// Deletes a pod for its owner, and tells how it went.
pub(crate) fn delete_pod(client: &mut Client<'_>, owner: &Object, pod: &Object) -> Result<(), Status> {
    match client.delete(&pods_storage(), &Key::of(pod)) {
        Ok(_) => {
            client.tell(owner, Tone::Normal, "SuccessfulDelete", &format!("Deleted pod: {}", pod.name()));
            Ok(())
        }
        Err(status) if status.code == 404 => Ok(()),
        Err(status) => {
            client.tell(owner, Tone::Warning, "FailedDelete", &format!("Error deleting: {}", status.message));
            Err(status)
        }
    }
}

/// How many active pods of the set and its siblings there are on each node.
fn neighbours(client: &Client<'_>, set: &Object) -> BTreeMap<String, usize> {
    let siblings = match controller_of(set) {
        Some(owner) => {
            let owner = json!({"metadata": {"uid": owner.uid}});
            client.owned(&apps("replicasets"), &Object::from_value(owner).unwrap_or_default())
        }
        None => vec![Arc::new(set.clone())],
    };
    let mut numbers = BTreeMap::new();
    for sibling in siblings {
        for pod in client.owned(&pods_storage(), &sibling) {
            if is_controlled_by(&pod, &sibling) && pods::is_active(&pod) {
                *numbers.entry(pod.text(&["spec", "nodeName"]).to_owned()).or_default() += 1;
            }
        }
    }
    numbers
}
