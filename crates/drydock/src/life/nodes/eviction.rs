//! Pods that have to leave: for a taint that they do not tolerate any longer, or because their node is gone.

use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::life::client::{Client, Tone};
use crate::life::workload::nodes::tolerates;
use crate::life::workload::{condition, later, pods, pods_storage};
use crate::object::Object;
use crate::store::Key;
use crate::verbs::delete::DeleteOptions;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// When a pod has to leave a node whose taints it was first seen under at a time, if ever.
fn leaves_at(node: &Object, pod: &Object, since: Timestamp) -> Option<Timestamp> {
    let taints = node.list(&["spec", "taints"]).iter().filter(|taint| taint["effect"] == "NoExecute");
    taints
        .filter_map(|taint| {
            let tolerations = pod.list(&["spec", "tolerations"]).iter();
            let tolerations: Vec<&Value> = tolerations.filter(|toleration| tolerates(toleration, taint)).collect();
            if tolerations.is_empty() {
                return Some(since);
            }
            let seconds = tolerations.iter().filter_map(|toleration| toleration["tolerationSeconds"].as_i64()).min()?;
            Some(later(since, SignedDuration::from_secs(seconds.max(0))))
        })
        .min()
}

/// Lets a pod leave if it has to. Says when it will have to.
pub(super) fn evict(cluster: &mut Cluster, key: &Key, since: Timestamp) -> Option<Timestamp> {
    let pod = cluster.store.get(&pods_storage(), key).cloned().filter(|pod| pods::is_active(pod))?;
    let node = cluster.find("", "nodes", "", pod.text(&["spec", "nodeName"]))?;
    let due = leaves_at(node, &pod, since)?;
    if due > cluster.now {
        return Some(due);
    }
    let mut client = Client::of_controller(cluster, "taint-eviction-controller");
    client.tell(
        &pod,
        Tone::Normal,
        "TaintManagerEviction",
        &format!("Marking for deletion Pod {}/{}", key.namespace, key.name),
    );
    mark(&mut client, &pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", None);
    // It is gone already.
    let _ = client.delete(&pods_storage(), key);
    None
}

/// Takes a pod away whose node is gone.
pub(super) fn collect(cluster: &mut Cluster, key: &Key) {
    let Some(pod) = cluster.store.get(&pods_storage(), key).cloned() else { return };
    let node = pod.text(&["spec", "nodeName"]);
    if node.is_empty() || cluster.store.get(&Storage::core("nodes"), &Key::new("", node)).is_some() {
        return;
    }
    let mut client = Client::of_controller(cluster, "pod-garbage-collector");
    let phase = (!pods::is_finished(&pod)).then_some("Failed");
    mark(&mut client, &pod, "DeletionByPodGC", "PodGC: node no longer exists", phase);
    let options = DeleteOptions { grace_seconds: Some(0), ..DeleteOptions::default() };
    // It is gone already, or a finalizer holds it.
    let _ = client.delete_with(&pods_storage(), key, &options);
}

fn mark(client: &mut Client<'_>, pod: &Object, reason: &str, message: &str, phase: Option<&str>) {
    let mut target = condition::new("DisruptionTarget", "True", reason, message, client.now());
    target["observedGeneration"] = json!(pod.generation());
    // It is gone already.
    let _ = client.change_status(&pods_storage(), &Key::of(pod), |pod| {
        let mut conditions = pod.list(&["status", "conditions"]).to_vec();
        condition::set(&mut conditions, target);
        pod.set(&["status", "conditions"], conditions);
        if let Some(phase) = phase {
            pod.set(&["status", "phase"], phase);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_leaves_when_its_shortest_toleration_has_run_out() {
        let node = json!({"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}});
        let node = Object::from_value(node).unwrap();
        let leaves = |tolerations: Value| {
            let pod = Object::from_value(json!({"spec": {"tolerations": tolerations}})).unwrap();
            leaves_at(&node, &pod, Timestamp::from_second(10).unwrap()).map(Timestamp::as_second)
        };
        let toleration = |seconds: Value| json!({"key": "k", "operator": "Exists", "tolerationSeconds": seconds});
        assert_eq!(leaves(json!([])), Some(10));
        assert_eq!(leaves(json!([toleration(json!(300)), toleration(json!(20))])), Some(30));
        assert_eq!(leaves(json!([{"operator": "Exists"}])), None);
    }
}
