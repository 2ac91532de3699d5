//! DaemonSets: a pod on every node that can have it.

mod node;
mod plan;
mod update;

use super::client::{Client, Tone};
use super::reconciler::Reconciler;
use super::replicasets::{create_pod, delete_pod};
use super::workload::family::{Family, selector_of};
use super::workload::retries::Retries;
use super::workload::revisions::{self, HASH_LABEL};
use super::workload::{apps, is_controlled_by, min_ready, pods, pods_storage, report};
use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::object::Object;
use crate::status::Status;
use crate::store::{Change, Key};
use jiff::Timestamp;
use plan::{Daemons, Plan};
use std::sync::Arc;

/// DaemonSets that have to be looked at.
#[derive(Debug)]
pub(crate) struct DaemonSets {
    family: Family,
    retries: Retries,
}

impl DaemonSets {
    pub(crate) fn new() -> Self {
        let family = Family::new(apps("daemonsets"), "DaemonSet", pods_storage());
        Self { family, retries: Retries::default() }
    }
}

impl Reconciler for DaemonSets {
    fn concerned(&mut self, storage: &Storage, change: &Change, cluster: &mut Cluster) -> Vec<Key> {
        let mut keys = self.family.observe(storage, change, cluster);
        if storage.is("", "nodes") && node::may_have_other_pods(change) {
            keys.extend(cluster.store.list(&apps("daemonsets"), None).map(|set| Key::of(set)));
        }
        keys
    }

    fn reconcile(&mut self, cluster: &mut Cluster, key: &Key) -> Option<Timestamp> {
        let set = cluster.store.get(&apps("daemonsets"), key).cloned();
        let Some(set) = set.filter(|set| selector_of(set).is_some() && !set.is_being_deleted()) else {
            self.retries.forget(key);
            return None;
        };
        let mut client = Client::of_controller(cluster, "daemonset-controller");
        let now = client.now();
        let pods = self.family.claim(&mut client, &set);
        match bring_on(&mut client, &set, pods) {
            Ok(pods) => {
                self.retries.forget(key);
                pods::next_available(pods.iter().map(AsRef::as_ref), min_ready(&set), now)
            }
            Err(status) if super::is_of_a_namespace_that_goes(&status) => None,
            Err(_) => Some(self.retries.fail(key, now)),
        }
    }
}

fn bring_on(client: &mut Client<'_>, set: &Object, pods: Vec<Arc<Object>>) -> Result<Vec<Arc<Object>>, Status> {
    let known = revisions::list(client, set);
    let mut collisions = set.integer(&["status", "collisionCount"]);
    let revision = revisions::enact(client, set, &known, &[HASH_LABEL], &mut collisions)?;
    let hash = revision.label(HASH_LABEL).unwrap_or_default().to_owned();
    let nodes: Vec<Arc<Object>> = client.cluster.store.list(&Storage::core("nodes"), None).cloned().collect();
    let daemons = Daemons::new(set, &nodes, pods, &hash, client.now());
    let done = carry_out(client, set, daemons.plan(), &hash);
    let pods: Vec<Arc<Object>> =
        client.owned(&pods_storage(), set).into_iter().filter(|pod| is_controlled_by(pod, set)).collect();
    let live: Vec<String> = pods
        .iter()
        .filter_map(|pod| pod.label(HASH_LABEL))
        .map(|hash| format!("{}-{hash}", set.name()))
        .chain([revision.name().to_owned()])
        .collect();
    revisions::truncate(client, set, &known, &live);
    let mut status = Daemons::new(set, &nodes, pods.clone(), &hash, client.now()).status();
    if let Some(collisions) = collisions {
        status.insert("collisionCount".to_owned(), collisions.into());
    }
    if let Some(conditions) = set.at(&["status", "conditions"]) {
        status.insert("conditions".to_owned(), conditions.clone());
    }
    report(client, &apps("daemonsets"), set, status)?;
    done.map(|()| pods)
}

fn carry_out(client: &mut Client<'_>, set: &Object, plan: Plan, hash: &str) -> Result<(), Status> {
    for (tone, reason, message) in plan.told {
        client.tell(set, tone, reason, &message);
    }
    let mut done = Ok(());
    for name in plan.create {
        done = done.and(create_pod(client, set, node::pod(set, &name, hash)));
    }
    for pod in plan.delete {
        done = done.and(delete_pod(client, set, &pod));
    }
    done
}

/// What is told about pods that have ended.
type Told = (Tone, &'static str, String);
