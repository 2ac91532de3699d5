//! The scheduler: pods that nothing holds back are bound to a node.

mod crowd;

use super::Controller;
use super::client::{Client, Tone};
use super::queue::Queue;
use super::workload::nodes::{fits_affinity, tolerates, untolerated};
use crate::cluster::Cluster;
use crate::conditions::set_condition;
use crate::kinds::Storage;
use crate::object::Object;
use crate::store::{Change, Key};
use crate::verbs::write::{Source, Write};
use crowd::Crowd;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// From a pod's creation until it is bound.
const BIND: SignedDuration = SignedDuration::from_millis(5);
/// How soon a pod that fits nowhere is looked at again, if nothing changes.
const RETRY: SignedDuration = SignedDuration::from_secs(30);

/// Pods that wait for a node.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    queue: Queue<Key>,
    waiting: BTreeSet<Key>,
    crowd: Crowd,
}

impl Controller for Scheduler {
    fn observe(&mut self, storage: &Storage, change: &Change, cluster: &mut Cluster) {
        let soon = cluster.now.checked_add(BIND).unwrap_or(cluster.now);
        if storage.is("", "pods") {
            self.crowd.note(change);
            match change {
                Change::Added(pod) | Change::Modified { after: pod, .. } if waits(pod) => {
                    self.waiting.insert(Key::of(pod));
                    self.queue.add(Key::of(pod), soon);
                }
                Change::Added(pod) | Change::Modified { after: pod, .. } | Change::Deleted { last: pod, .. } => {
                    self.waiting.remove(&Key::of(pod));
                }
            }
        } else if storage.is("", "nodes") || storage.is("", "persistentvolumeclaims") {
            // What did not fit may fit now.
            for key in &self.waiting {
                self.queue.add(key.clone(), soon);
            }
        }
    }

    fn work(&mut self, cluster: &mut Cluster) -> bool {
        // One at a time: where the next one fits best depends on where this one went.
        let Some(key) = self.queue.pop(cluster.now) else { return false };
        let pod = cluster.store.get(&Storage::core("pods"), &key).cloned().filter(|pod| waits(pod));
        if let Some(pod) = pod
            && !schedule(cluster, &pod, &self.crowd)
        {
            self.queue.add(key, cluster.now.checked_add(RETRY).unwrap_or(cluster.now));
        }
        true
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.queue.next_due()
    }
}

fn waits(pod: &Object) -> bool {
    pod.text(&["spec", "nodeName"]).is_empty() && !pod.is_being_deleted() && pod.text(&["status", "phase"]) == "Pending"
}

/// Binds a pod, or says why not. Says whether it is done with it for now.
fn schedule(cluster: &mut Cluster, pod: &Object, crowd: &Crowd) -> bool {
    if !pod.list(&["spec", "schedulingGates"]).is_empty() {
        hold(cluster, pod, "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates");
        return true;
    }
    match choose(cluster, pod, crowd) {
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

fn choose(cluster: &Cluster, pod: &Object, crowd: &Crowd) -> Result<String, String> {
    let nodes: Vec<&Object> = cluster.store.list(&Storage::core("nodes"), None).map(AsRef::as_ref).collect();
    let total = nodes.len();
    let helpless = |why: &str| {
        format!(
            "0/{total} nodes are available: {why}. no new claims to deallocate, preemption: 0/{total} nodes are available: \
             {total} Preemption is not helpful for scheduling."
        )
    };
    if total == 0 {
        return Err("no nodes available to schedule pods".to_owned());
    }
    if let Some(claim) = missing_claim(cluster, pod) {
        // What follows is not asked for after that, and the scheduler tells of its own surprise (kube-scheduler 1.34.10).
        return Err(format!("0/{total} nodes are available: {claim}. not found"));
    }
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    let mut fitting: Vec<&str> = Vec::new();
    for node in &nodes {
        match unfit(node, pod) {
            None => fitting.push(node.name()),
            Some(reason) => *reasons.entry(reason).or_default() += 1,
        }
    }
    if let Some(node) = fitting.into_iter().min_by_key(|node| crowd.on(node, pod)) {
        return Ok(node.to_owned());
    }
    let mut told: Vec<String> = reasons.into_iter().map(|(reason, number)| format!("{number} {reason}")).collect();
    told.sort();
    Err(helpless(&told.join(", ")))
}

/// Why a pod does not fit on a node.
fn unfit(node: &Object, pod: &Object) -> Option<&'static str> {
    let tolerations = pod.list(&["spec", "tolerations"]);
    if node.at(&["spec", "unschedulable"]) == Some(&json!(true)) {
        let taint = json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"});
        if !tolerations.iter().any(|toleration| tolerates(toleration, &taint)) {
            return Some("node(s) were unschedulable");
        }
    }
    if untolerated(node, tolerations, &["NoSchedule", "NoExecute"]).is_some() {
        return Some("node(s) had untolerated taint(s)");
    }
    let spec = pod.at(&["spec"]).unwrap_or(&Value::Null);
    (!fits_affinity(spec, node)).then_some("node(s) didn't match Pod's node affinity/selector")
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
        "lastProbeTime": Value::Null, "observedGeneration": pod.generation()});
    let mut client = Client::new(cluster, "kube-scheduler", "default-scheduler");
    // A pod that is gone needs no node.
    let _ = client.change_status(&Storage::core("pods"), &Key::of(pod), |pod| set_condition(pod, condition, &now));
}

fn bind(cluster: &mut Cluster, pod: &Object, node: &str) {
    let now = crate::clock::time(cluster.now);
    let Some(kind) = cluster.kinds.by_kind("v1", "Pod").cloned() else { return };
    let write = Write::internal("kube-scheduler").through("binding");
    let bound = cluster.modify(&kind, &Key::of(pod), &write, Source::Patch, |_, old| {
        let mut new = Object::clone(old);
        new.set(&["spec", "nodeName"], node);
        let condition = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": Value::Null});
        set_condition(&mut new, condition, &now);
        Ok(new)
    });
    if bound.is_ok() {
        let mut client = Client::new(cluster, "kube-scheduler", "default-scheduler");
        let message = format!("Successfully assigned {}/{} to {node}", pod.namespace(), pod.name());
        client.tell(pod, Tone::Normal, "Scheduled", &message);
    }
}
