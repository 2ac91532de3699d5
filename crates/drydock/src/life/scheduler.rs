//! The scheduler: pods that nothing holds back are bound to a node.

use super::Controller;
use super::client::{Client, Tone};
use super::queue::Queue;
use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::object::Object;
use crate::store::{Change, Key};
use crate::verbs::write::{Source, Write};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// From a pod's creation until it is bound.
const BIND: SignedDuration = SignedDuration::from_millis(5);
/// How soon a pod that fits nowhere is looked at again, if nothing changes.
const RETRY: SignedDuration = SignedDuration::from_secs(30);

/// Pods that wait for a node.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    queue: Queue<Key>,
}

impl Controller for Scheduler {
    fn observe(&mut self, storage: &Storage, change: &Change, cluster: &mut Cluster) {
        let soon = cluster.now.checked_add(BIND).unwrap_or(cluster.now);
        if storage.is("", "pods") {
            match change {
                Change::Added(pod) | Change::Modified { after: pod, .. } if waits(pod) => {
                    self.queue.add(Key::of(pod), soon);
                }
                _ => {}
            }
        } else if storage.is("", "nodes") || storage.is("", "persistentvolumeclaims") {
            // What did not fit may fit now.
            let pods: Vec<Key> = cluster
                .store
                .list(&Storage::core("pods"), None)
                .filter(|pod| waits(pod))
                .map(|pod| Key::of(pod))
                .collect();
            for key in pods {
                self.queue.add(key, soon);
            }
        }
    }

    fn work(&mut self, cluster: &mut Cluster) -> bool {
        let mut worked = false;
        while let Some(key) = self.queue.pop(cluster.now) {
            worked = true;
            let Some(pod) = cluster.store.get(&Storage::core("pods"), &key).cloned().filter(|pod| waits(pod)) else {
                continue;
            };
            if !schedule(cluster, &pod) {
                self.queue.add(key, cluster.now.checked_add(RETRY).unwrap_or(cluster.now));
            }
        }
        worked
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.queue.next_due()
    }
}

fn waits(pod: &Object) -> bool {
    pod.text(&["spec", "nodeName"]).is_empty() && !pod.is_being_deleted() && pod.text(&["status", "phase"]) == "Pending"
}

/// Binds a pod, or says why not. Says whether it is done with it for now.
fn schedule(cluster: &mut Cluster, pod: &Object) -> bool {
    if !pod.list(&["spec", "schedulingGates"]).is_empty() {
        hold(cluster, pod, "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates");
        return true;
    }
    match choose(cluster, pod) {
        Ok(node) => {
            bind(cluster, pod, &node);
            true
        }
        Err(why) => {
            hold(cluster, pod, "Unschedulable", &why);
            let mut client = Client::new(cluster, "kube-scheduler", "default-scheduler");
            client.tell(pod, Tone::Warning, "FailedScheduling", &why);
            false
        }
    }
}

fn choose(cluster: &Cluster, pod: &Object) -> Result<String, String> {
    let nodes: Vec<&Object> = cluster.store.list(&Storage::core("nodes"), None).map(AsRef::as_ref).collect();
    let total = nodes.len();
    let helpless = |why: &str| {
        format!(
            "0/{total} nodes are available: {why}. preemption: 0/{total} nodes are available: {total} Preemption is not helpful for scheduling."
        )
    };
    if total == 0 {
        return Err("no nodes available to schedule pods".to_owned());
    }
    if let Some(claim) = missing_claim(cluster, pod) {
        return Err(helpless(&claim));
    }
    let mut reasons: Vec<&str> = Vec::new();
    for node in &nodes {
        match unfit(node, pod) {
            None => return Ok(node.name().to_owned()),
            Some(reason) => reasons.push(reason),
        }
    }
    let mut told: Vec<String> = Vec::new();
    let mut known: Vec<&str> = Vec::new();
    for reason in &reasons {
        if !known.contains(reason) {
            known.push(reason);
            told.push(format!("{} {reason}", reasons.iter().filter(|other| *other == reason).count()));
        }
    }
    Err(helpless(&told.join(", ")))
}

/// Why a pod does not fit on a node.
fn unfit(node: &Object, pod: &Object) -> Option<&'static str> {
    if node.at(&["spec", "unschedulable"]) == Some(&json!(true)) {
        return Some("node(s) were unschedulable");
    }
    let ready = node
        .list(&["status", "conditions"])
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    if !ready {
        return Some("node(s) had untolerated taint {node.kubernetes.io/not-ready: }");
    }
    let selector = pod.at(&["spec", "nodeSelector"]);
    if crate::object::strings(selector).any(|(key, value)| node.label(key) != Some(value)) {
        return Some("node(s) didn't match Pod's node affinity/selector");
    }
    None
}

fn missing_claim(cluster: &Cluster, pod: &Object) -> Option<String> {
    pod.list(&["spec", "volumes"]).iter().find_map(|volume| {
        let name = volume.pointer("/persistentVolumeClaim/claimName")?.as_str()?;
        match cluster.find("", "persistentvolumeclaims", pod.namespace(), name) {
            None => Some(format!("persistentvolumeclaim {name:?} not found")),
            Some(claim) if claim.text(&["status", "phase"]) != "Bound" => {
                Some("pod has unbound immediate PersistentVolumeClaims".to_owned())
            }
            Some(_) => None,
        }
    })
}

fn hold(cluster: &mut Cluster, pod: &Object, reason: &str, message: &str) {
    let now = crate::clock::time(cluster.now);
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": reason, "message": message,
        "lastProbeTime": Value::Null, "lastTransitionTime": now, "observedGeneration": pod.generation()});
    let mut client = Client::new(cluster, "kube-scheduler", "default-scheduler");
    // A pod that is gone needs no node.
    let _ = client.change_status(&Storage::core("pods"), &Key::of(pod), |pod| set_condition(pod, condition));
}

/// Sets a condition; the time of its change stays with its status.
fn set_condition(pod: &mut Object, mut condition: Value) {
    let conditions = pod.map_at(&["status"]).entry("conditions").or_insert_with(|| json!([]));
    let Value::Array(conditions) = conditions else { return };
    match conditions.iter_mut().find(|known| known["type"] == condition["type"]) {
        Some(known) => {
            if known["status"] == condition["status"] {
                condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
}

fn bind(cluster: &mut Cluster, pod: &Object, node: &str) {
    let now = crate::clock::time(cluster.now);
    let Some(kind) = cluster.kinds.by_kind("v1", "Pod").cloned() else { return };
    let write = Write::internal("kube-scheduler").through("binding");
    let bound = cluster.modify(&kind, &Key::of(pod), &write, Source::Patch, |_, old| {
        let mut new = Object::clone(old);
        new.set(&["spec", "nodeName"], node);
        let condition =
            json!({"type": "PodScheduled", "status": "True", "lastProbeTime": Value::Null, "lastTransitionTime": now});
        set_condition(&mut new, condition);
        Ok(new)
    });
    if bound.is_ok() {
        let mut client = Client::new(cluster, "kube-scheduler", "default-scheduler");
        let message = format!("Successfully assigned {}/{} to {node}", pod.namespace(), pod.name());
        client.tell(pod, Tone::Normal, "Scheduled", &message);
    }
}
