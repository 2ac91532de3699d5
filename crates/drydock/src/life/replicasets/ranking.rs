//! Which pods go first when there are too many (kubernetes v1.34 `controller_utils.go`, `ActivePodsWithRanks`).

use crate::life::workload::{created, pods};
use crate::object::Object;
use jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The pods to delete, of all the active ones. `neighbours` says how many siblings are on each node.
pub(super) fn choose<'a>(
    active: &'a [Arc<Object>],
    neighbours: &BTreeMap<String, usize>,
    number: usize,
    now: Timestamp,
) -> Vec<&'a Arc<Object>> {
    let mut pods: Vec<&Arc<Object>> = active.iter().collect();
    if number < pods.len() {
        pods.sort_by_cached_key(|pod| worth(pod, neighbours, now));
    }
    pods.truncate(number);
    pods
}

/// What a pod is worth. Ages count in powers of two, so that of pods about as old any may go.
fn worth(pod: &Object, neighbours: &BTreeMap<String, usize>, now: Timestamp) -> impl Ord + use<> {
    let node = pod.text(&["spec", "nodeName"]);
    let crowd = neighbours.get(node).copied().unwrap_or_default();
    (
        (Reverse(node.is_empty()), phase(pod), pods::is_ready(pod), deletion_cost(pod), Reverse(crowd)),
        pods::ready_since(pod).map(|since| magnitude(since, now)),
        Reverse(pods::restarts(pod)),
        magnitude(created(pod), now),
        pod.uid().to_owned(),
    )
}

fn phase(pod: &Object) -> u8 {
    match pod.text(&["status", "phase"]) {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    }
}

fn deletion_cost(pod: &Object) -> i32 {
    pod.annotation(DELETION_COST).and_then(|cost| cost.parse().ok()).unwrap_or_default()
}

/// How long ago something was, in powers of two.
fn magnitude(time: Timestamp, now: Timestamp) -> Option<u32> {
    u128::try_from(now.duration_since(time).as_nanos()).ok()?.checked_ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, node: &str, phase: &str, ready: Option<i64>, restarts: i64, cost: &str) -> Arc<Object> {
        let ready = ready.map(|second| {
            json!([{"type": "Ready", "status": "True", "lastTransitionTime": Timestamp::from_second(second).unwrap().to_string()}])
        });
        let pod = json!({"metadata": {"name": name, "uid": name, "creationTimestamp": "1970-01-01T00:00:00Z",
                "annotations": {DELETION_COST: cost}},
            "spec": {"nodeName": node},
            "status": {"phase": phase, "conditions": ready, "containerStatuses": [{"restartCount": restarts}]}});
        Arc::new(Object::from_value(pod).unwrap())
    }

    #[test]
    fn what_serves_least_goes_first() {
        let pods = [
            pod("old", "n", "Running", Some(10), 0, ""),
            pod("young", "n", "Running", Some(990), 0, ""),
            pod("dear", "n", "Running", Some(990), 0, "5"),
            pod("crowded", "full", "Running", Some(10), 0, ""),
            pod("restarting", "n", "Running", None, 7, ""),
            pod("unready", "n", "Running", None, 0, ""),
            pod("pending", "n", "Pending", None, 0, ""),
            pod("unassigned", "", "Pending", None, 0, ""),
        ];
        let neighbours = BTreeMap::from([("full".to_owned(), 5), ("n".to_owned(), 2)]);
        let chosen = choose(&pods, &neighbours, 7, Timestamp::from_second(1000).unwrap());
        let names: Vec<&str> = chosen.iter().map(|pod| pod.name()).collect();
        assert_eq!(names, ["unassigned", "pending", "restarting", "unready", "crowded", "young", "old"]);
    }
}
