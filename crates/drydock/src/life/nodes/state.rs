//! What is written about a node: its conditions, and the taints that follow from them.

use crate::life::workload::condition;
use crate::object::Object;
use jiff::Timestamp;
use serde_json::{Value, json};

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
const PRESSURES: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
];

fn ready(node: &Object) -> Option<&Value> {
    condition::find(node.list(&["status", "conditions"]), "Ready")
}

/// Whether what a node last said still stands.
pub(super) fn is_heard_of(node: &Object) -> bool {
    ready(node).is_some_and(|ready| ready["status"] != "Unknown")
}

/// Whether a node was marked because it had stopped reporting.
pub(super) fn is_given_up(node: &Object) -> bool {
    ready(node).is_some_and(|ready| ready["reason"] == "NodeStatusUnknown")
}

fn change(
    node: &mut Object,
    now: Timestamp,
    change: impl Fn(&mut Value) -> (&'static str, &'static str, &'static str),
) {
    let conditions = node.map_at(&["status"]).entry("conditions").or_insert_with(|| json!([]));
    for known in conditions.as_array_mut().into_iter().flatten().filter(|known| known.is_object()) {
        let before = known["status"].clone();
        let (status, reason, message) = change(known);
        known["status"] = json!(status);
        known["reason"] = json!(reason);
        known["message"] = json!(message);
        if before != status {
            known["lastTransitionTime"] = json!(crate::clock::time(now));
        }
    }
}

/// Nothing is known about the node any more.
pub(super) fn set_unknown(node: &mut Object, now: Timestamp) {
    change(node, now, |_| ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."));
}

/// The node says how it is.
pub(super) fn set_known(node: &mut Object, now: Timestamp) {
    change(node, now, |known| {
        known["lastHeartbeatTime"] = json!(crate::clock::time(now));
        match known["type"].as_str() {
            Some("Ready") => ("True", "KubeletReady", "kubelet is posting ready status"),
            Some("MemoryPressure") => {
                ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available")
            }
            Some("DiskPressure") => ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            _ => ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        }
    });
}

/// A pod of a lost node counts as not ready, whatever it said last.
pub(super) fn set_unready(pod: &mut Object, now: Timestamp) {
    let conditions = pod.map_at(&["status"]).entry("conditions").or_insert_with(|| json!([]));
    let mut conditions = conditions.as_array_mut().into_iter().flatten();
    if let Some(ready) = conditions.find(|condition| condition["type"] == "Ready") {
        ready["status"] = json!("False");
        ready["lastTransitionTime"] = json!(crate::clock::time(now));
    }
}

/// The taints that a node should have: those of others, and those that follow from its state.
pub(super) fn taints(node: &Object, now: Timestamp) -> Vec<Value> {
    let known = node.list(&["spec", "taints"]);
    let status = ready(node).and_then(|ready| ready["status"].as_str());
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    if node.at(&["spec", "unschedulable"]) == Some(&json!(true)) {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    match status {
        Some("True") => {}
        // It has never reported.
        None => wanted.push((NOT_READY, "NoSchedule")),
        Some("Unknown") => wanted.extend([(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]),
        Some(_) => wanted.extend([(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")]),
    }
    let conditions = node.list(&["status", "conditions"]);
    let pressed = PRESSURES.iter().filter(|(kind, _)| condition::holds(conditions, kind));
    wanted.extend(pressed.map(|(_, key)| (*key, "NoSchedule")));
    let is = |taint: &Value, (key, effect): (&str, &str)| taint["key"] == key && taint["effect"] == effect;
    let is_ours = |taint: &Value| {
        let keys = [UNREACHABLE, NOT_READY, UNSCHEDULABLE].into_iter().chain(PRESSURES.iter().map(|(_, key)| *key));
        keys.into_iter().any(|key| taint["key"] == key) && taint["effect"] != "PreferNoSchedule"
    };
    let kept = known.iter().filter(|taint| !is_ours(taint) || wanted.iter().any(|wanted| is(taint, *wanted)));
    let mut taints: Vec<Value> = kept.cloned().collect();
    for (key, effect) in wanted {
        if !taints.iter().any(|taint| is(taint, (key, effect))) {
            taints.push(json!({"key": key, "effect": effect, "timeAdded": crate::clock::time(now)}));
        }
    }
    taints
}

pub(super) fn set_taints(node: &mut Object, taints: Vec<Value>) {
    if taints.is_empty() {
        node.remove(&["spec", "taints"]);
    } else {
        node.set(&["spec", "taints"], taints);
    }
}

/// Whether a node has a taint that pods may have to leave for.
pub(super) fn drives_out(node: Option<&Object>) -> bool {
    node.is_some_and(|node| node.list(&["spec", "taints"]).iter().any(|taint| taint["effect"] == "NoExecute"))
}
