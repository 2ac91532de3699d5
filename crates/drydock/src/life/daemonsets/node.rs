//! A DaemonSet and a node: whether they go together, and the pod that is made for them.

use crate::life::workload::nodes::{fits_affinity, tolerates, untolerated};
use crate::life::workload::pods;
use crate::life::workload::revisions::HASH_LABEL;
use crate::object::Object;
use crate::store::Change;
use serde_json::{Value, json};

/// Whether a change of a node may make it fit other sets.
pub(super) fn may_have_other_pods(change: &Change) -> bool {
    match change {
        Change::Added(_) | Change::Deleted { .. } => true,
        Change::Modified { before, after } => {
            before.at(&["metadata", "labels"]) != after.at(&["metadata", "labels"])
                || before.at(&["spec"]) != after.at(&["spec"])
        }
    }
}

/// What a set wants with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// A pod.
    Wanted,
    /// No pod, but one that is there may stay.
    Tolerated,
    Unwanted,
}

pub(super) fn fit(set: &Object, node: &Object) -> Fit {
    let spec = set.at(&["spec", "template", "spec"]).unwrap_or(&Value::Null);
    let name = spec.get("nodeName").and_then(Value::as_str).unwrap_or_default();
    if !(name.is_empty() || name == node.name()) || !fits_affinity(spec, node) {
        return Fit::Unwanted;
    }
    let tolerations = tolerations(spec);
    if untolerated(node, &tolerations, &["NoExecute"]).is_some() {
        Fit::Unwanted
    } else if untolerated(node, &tolerations, &["NoSchedule"]).is_some() {
        Fit::Tolerated
    } else {
        Fit::Wanted
    }
}

/// What the pods tolerate, with what all daemons do.
fn tolerations(spec: &Value) -> Vec<Value> {
    let mut tolerations = spec.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    let on_the_host = spec.get("hostNetwork") == Some(&json!(true));
    let network = on_the_host.then_some(("node.kubernetes.io/network-unavailable", "NoSchedule"));
    let own = [
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
    ];
    for (key, effect) in own.into_iter().chain(network) {
        let toleration = json!({"key": key, "operator": "Exists", "effect": effect});
        let taint = json!({"key": key, "effect": effect});
        if !tolerations.iter().any(|known| tolerates(known, &taint) && known.get("tolerationSeconds").is_none()) {
            tolerations.push(toleration);
        }
    }
    tolerations
}

/// The pod of a set for a node. The scheduler puts it there.
pub(super) fn pod(set: &Object, node: &str, hash: &str) -> Object {
    let template = set.at(&["spec", "template"]).cloned().unwrap_or_default();
    let tolerations = tolerations(template.get("spec").unwrap_or(&Value::Null));
    let mut pod = pods::generated(set, &template);
    pod.set(&["metadata", "labels", HASH_LABEL], hash);
    if let Some(generation) = set.annotation("deprecated.daemonset.template.generation") {
        pod.set(&["metadata", "labels", "pod-template-generation"], generation);
    }
    pod.set(&["spec", "tolerations"], tolerations);
    let term = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]});
    let required = ["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
    pod.set(&required, json!({"nodeSelectorTerms": [term]}));
    pod
}

/// The node that a pod is on, or is made for.
pub(super) fn of_pod(pod: &Object) -> &str {
    let bound = pod.text(&["spec", "nodeName"]);
    if !bound.is_empty() {
        return bound;
    }
    let terms =
        ["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"];
    let fields = pod.list(&terms).iter().filter_map(|term| term["matchFields"].as_array()).flatten();
    let mut names =
        fields.filter(|field| field["key"] == "metadata.name").filter_map(|field| field["values"][0].as_str());
    names.next().unwrap_or_default()
}
