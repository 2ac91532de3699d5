//! Nodes: those that stop reporting are marked, tainted and emptied; those that are cordoned get no more pods.

mod eviction;
mod outages;
mod state;

pub(crate) use outages::Outages;

use super::Controller;
use super::client::{Client, Tone};
use super::queue::Queue;
use super::workload::{later, pods_storage, soon};
use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::object::Object;
use crate::store::{Change, Key};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How long after its node a pod is collected.
const COLLECT: SignedDuration = SignedDuration::from_secs(40);

/// What there is to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Node(Key),
    /// Whether a pod has to leave its node.
    Pod(Key),
    /// Whether a pod's node is gone.
    Stray(Key),
}

/// Nodes and the pods on them.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    queue: Queue<Task>,
    pods: BTreeMap<String, BTreeSet<Key>>,
    /// Since when pods have put up with taints that they tolerate for a while.
    patience: BTreeMap<Key, Timestamp>,
    /// How many outages began or ended before this was last looked at.
    seen: u64,
}

impl Controller for Nodes {
    fn observe(&mut self, storage: &Storage, change: &Change, cluster: &mut Cluster) {
        let now = cluster.now;
        if storage.is("", "nodes") {
            match change {
                Change::Added(node) | Change::Modified { after: node, .. } => {
                    self.queue.add(Task::Node(Key::of(node)), soon(now));
                }
                Change::Deleted { last, .. } => {
                    for pod in self.pods.get(last.name()).into_iter().flatten() {
                        self.queue.add(Task::Stray(pod.clone()), later(now, COLLECT));
                    }
                }
            }
        } else if *storage == pods_storage() {
            self.note_pod(change, now);
        }
    }

    fn work(&mut self, cluster: &mut Cluster) -> bool {
        if self.seen != cluster.outages.changes() {
            self.seen = cluster.outages.changes();
            for node in cluster.store.list(&Storage::core("nodes"), None) {
                self.queue.add(Task::Node(Key::of(node)), cluster.now);
            }
        }
        let mut worked = false;
        while let Some(task) = self.queue.pop(cluster.now) {
            worked = true;
            match &task {
                Task::Node(key) => self.look_at_node(cluster, key),
                Task::Pod(key) => {
                    let since = *self.patience.entry(key.clone()).or_insert(cluster.now);
                    match eviction::evict(cluster, key, since) {
                        Some(due) => self.queue.add(task, due),
                        None => {
                            self.patience.remove(key);
                        }
                    }
                }
                Task::Stray(key) => eviction::collect(cluster, key),
            }
        }
        worked
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.queue.next_due()
    }
}

impl Nodes {
    fn note_pod(&mut self, change: &Change, now: Timestamp) {
        let node = |pod: &Object| pod.text(&["spec", "nodeName"]).to_owned();
        match change {
            Change::Added(pod) | Change::Modified { after: pod, .. } => {
                let name = node(pod);
                if !name.is_empty() && self.pods.entry(name).or_default().insert(Key::of(pod)) {
                    self.queue.add(Task::Pod(Key::of(pod)), soon(now));
                }
            }
            Change::Deleted { last, .. } => {
                if let Some(pods) = self.pods.get_mut(&node(last)) {
                    pods.remove(&Key::of(last));
                }
                self.queue.remove(&Task::Pod(Key::of(last)));
                self.patience.remove(&Key::of(last));
            }
        }
    }

    fn look_at_node(&mut self, cluster: &mut Cluster, key: &Key) {
        let storage = Storage::core("nodes");
        let Some(node) = cluster.store.get(&storage, key).cloned() else { return };
        let pods: Vec<Key> = self.pods.get(&*key.name).into_iter().flatten().cloned().collect();
        if let Some(missed_at) = cluster.outages.missed_at(&key.name) {
            if missed_at > cluster.now {
                self.queue.add(Task::Node(key.clone()), missed_at);
            } else if state::is_heard_of(&node) {
                give_up_on(cluster, &node, &pods);
            }
        } else if state::is_given_up(&node) {
            hear_from(cluster, &node);
        }
        let Some(node) = cluster.store.get(&storage, key).cloned() else { return };
        let taints = state::taints(&node, cluster.now);
        if taints != node.list(&["spec", "taints"]) {
            let mut client = Client::of_controller(cluster, "node-controller");
            // It is gone meanwhile.
            let _ = client.change(&storage, key, |node| state::set_taints(node, taints));
        }
        // Those that wait may have to wait longer, or no more.
        let drives_out = state::drives_out(cluster.store.get(&storage, key).map(Arc::as_ref));
        for pod in pods {
            if drives_out {
                self.queue.add(Task::Pod(pod), cluster.now);
            } else if self.patience.remove(&pod).is_some() {
                self.queue.remove(&Task::Pod(pod));
            }
        }
    }
}

/// A node has not reported for too long.
fn give_up_on(cluster: &mut Cluster, node: &Object, pods: &[Key]) {
    let mut client = Client::of_controller(cluster, "node-controller");
    let now = client.now();
    let told = format!("Node {} status is now: NodeNotReady", node.name());
    client.tell(node, Tone::Normal, "NodeNotReady", &told);
    // Whatever is gone meanwhile needs no marks.
    let _ = client.change_status(&Storage::core("nodes"), &Key::of(node), |node| state::set_unknown(node, now));
    for key in pods {
        let Some(pod) = client.get(&pods_storage(), key) else { continue };
        if super::workload::pods::is_ready(&pod) {
            client.tell(&pod, Tone::Warning, "NodeNotReady", "Node is not ready");
            let _ = client.change_status(&pods_storage(), key, |pod| state::set_unready(pod, now));
        }
    }
}

/// A node reports again.
fn hear_from(cluster: &mut Cluster, node: &Object) {
    let mut client = Client::new(cluster, "kubelet", "kubelet");
    let now = client.now();
    let told = format!("Node {} status is now: NodeReady", node.name());
    // It is gone meanwhile.
    let _ = client.change_status(&Storage::core("nodes"), &Key::of(node), |node| state::set_known(node, now));
    client.tell(node, Tone::Normal, "NodeReady", &told);
}
