//! Disruption budgets: how many of the pods that they select are healthy, and how many may be evicted.

use super::client::{Client, Tone};
use super::reconciler::Reconciler;
use super::workload::amount::{Rounding, resolve};
use super::workload::selection::Selection;
use super::workload::{condition, controller_of, later, parse_time, pods, report, wanted_replicas};
use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::object::{Object, Owner};
use crate::selector::LabelSelector;
use crate::store::{Change, Key};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pod that was to be evicted and is still there after so long was not evicted.
const EVICTION_TAKES: SignedDuration = SignedDuration::from_mins(2);

/// Budgets that have to be looked at.
#[derive(Debug)]
pub(crate) struct Disruption {
    selection: Selection,
}

pub(crate) fn storage() -> Storage {
    Storage::new("policy", "poddisruptionbudgets")
}

/// What a budget selects. One whose selector is empty selects everything.
pub(crate) fn selector(budget: &Object) -> Option<LabelSelector> {
    LabelSelector::from_object(budget.at(&["spec", "selector"])?)
}

impl Disruption {
    pub(crate) fn new() -> Self {
        Self { selection: Selection::new(storage(), selector) }
    }
}

impl Reconciler for Disruption {
    fn concerned(&mut self, storage: &Storage, change: &Change, cluster: &mut Cluster) -> Vec<Key> {
        self.selection.observe(storage, change, cluster)
    }

    fn reconcile(&mut self, cluster: &mut Cluster, key: &Key) -> Option<Timestamp> {
        let budget = cluster.store.get(&storage(), key).cloned()?;
        let pods = self.selection.pods(cluster, key);
        let mut client = Client::of_controller(cluster, "controllermanager");
        let now = client.now();
        if pods.is_empty() {
            client.tell(&budget, Tone::Normal, "NoPods", "No matching pods found");
        }
        let scale = expected_scale(client.cluster, &pods);
        let (status, due) = status(&budget, &pods, scale, now);
        // A budget that is gone needs no status.
        let _ = report(&mut client, &storage(), &budget, status);
        due
    }
}

/// How many pods the controllers of some pods want together.
fn expected_scale(cluster: &Cluster, pods: &[Arc<Object>]) -> i64 {
    let mut scales: BTreeMap<&str, i64> = BTreeMap::new();
    for pod in pods {
        if let Some(owner) = controller_of(pod) {
            scales.entry(owner.uid).or_insert_with_key(|_| scale_of(cluster, pod.namespace(), &owner));
        }
    }
    scales.values().sum()
}

fn scale_of(cluster: &Cluster, namespace: &str, owner: &Owner<'_>) -> i64 {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    let plural = match owner.kind {
        "ReplicaSet" => "replicasets",
        "StatefulSet" => "statefulsets",
        "ReplicationController" => "replicationcontrollers",
        _ => return 0,
    };
    let Some(found) = cluster.find(group, plural, namespace, owner.name).filter(|found| found.uid() == owner.uid)
    else {
        return 0;
    };
    // The Deployment says how many there should be, not the set that it is just rolling out.
    let above = controller_of(found).filter(|owner| owner.kind == "Deployment");
    let above = above.and_then(|owner| cluster.find("apps", "deployments", namespace, owner.name));
    wanted_replicas(above.unwrap_or(found))
}

/// The status of a budget, and when something in it runs out.
fn status(budget: &Object, pods: &[Arc<Object>], scale: i64, now: Timestamp) -> (Value, Option<Timestamp>) {
    let number = i64::try_from(pods.len()).unwrap_or(i64::MAX);
    let (expected, desired) = match (budget.at(&["spec", "maxUnavailable"]), budget.at(&["spec", "minAvailable"])) {
        (Some(most), _) => (scale, (scale - resolve(Some(most), scale, Rounding::Up)).max(0)),
        (None, Some(Value::Number(least))) => (number, least.as_i64().unwrap_or_default()),
        (None, Some(least)) => (scale, resolve(Some(least), scale, Rounding::Up)),
        (None, None) => (0, 0),
    };
    let mut disrupted = Map::new();
    let mut due = None;
    for pod in pods.iter().filter(|pod| !pod.is_being_deleted()) {
        let Some(since) = budget.at(&["status", "disruptedPods", pod.name()]) else { continue };
        let Some(end) = since.as_str().and_then(parse_time).map(|since| later(since, EVICTION_TAKES)) else { continue };
        if end > now {
            disrupted.insert(pod.name().to_owned(), since.clone());
            due = due.into_iter().chain([end]).min();
        }
    }
    let healthy = pods
        .iter()
        .filter(|pod| !pod.is_being_deleted() && !disrupted.contains_key(pod.name()) && pods::is_ready(pod))
        .count();
    let healthy = i64::try_from(healthy).unwrap_or(i64::MAX);
    let allowed = if expected <= 0 { 0 } else { (healthy - desired).max(0) };
    let mut status = json!({"currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": expected,
        "disruptionsAllowed": allowed, "observedGeneration": budget.generation()});
    if !disrupted.is_empty() {
        status["disruptedPods"] = Value::Object(disrupted);
    }
    status["conditions"] = json!(conditions(budget, allowed, now));
    (status, due)
}

/// The conditions of a budget that allows so many disruptions.
pub(crate) fn conditions(budget: &Object, allowed: i64, now: Timestamp) -> Vec<Value> {
    let mut conditions = budget.list(&["status", "conditions"]).to_vec();
    let (truth, reason) = if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let mut new = condition::new("DisruptionAllowed", truth, reason, "", now);
    new["observedGeneration"] = json!(budget.generation());
    match conditions.iter_mut().find(|known| known["type"] == "DisruptionAllowed") {
        Some(known) => {
            if known["status"] == truth {
                new["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = new;
        }
        None => conditions.push(new),
    }
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(spec: &Value, ready: &[bool], disrupted: &Value) -> (i64, i64, i64) {
        let budget = json!({"metadata": {"generation": 1}, "spec": spec, "status": {"disruptedPods": disrupted}});
        let budget = Object::from_value(budget).unwrap();
        let pods: Vec<Arc<Object>> = ready
            .iter()
            .enumerate()
            .map(|(index, ready)| {
                let ready = if *ready { "True" } else { "False" };
                let pod = json!({"metadata": {"name": format!("p{index}")}, "status": {"conditions": [{"type": "Ready", "status": ready}]}});
                Arc::new(Object::from_value(pod).unwrap())
            })
            .collect();
        let (status, _) = status(&budget, &pods, 4, Timestamp::from_second(60).unwrap());
        let at = |field: &str| status[field].as_i64().unwrap();
        (at("currentHealthy"), at("desiredHealthy"), at("disruptionsAllowed"))
    }

    #[test]
    fn what_is_allowed_follows_from_what_is_healthy() {
        let all = [true, true, true, true];
        assert_eq!(judge(&json!({"minAvailable": 3}), &all, &json!(null)), (4, 3, 1));
        assert_eq!(judge(&json!({"minAvailable": "50%"}), &[true, true, false, true], &json!(null)), (3, 2, 1));
        assert_eq!(judge(&json!({"maxUnavailable": 1}), &[true, true, false, true], &json!(null)), (3, 3, 0));
        assert_eq!(judge(&json!({"maxUnavailable": "30%"}), &all, &json!(null)), (4, 2, 2));
        assert_eq!(judge(&json!({"minAvailable": 0}), &[], &json!(null)), (0, 0, 0));
    }

    #[test]
    fn a_pod_that_is_being_evicted_does_not_count_for_a_while() {
        let evicted = |time: &str| judge(&json!({"minAvailable": 2}), &[true, true, true], &json!({"p0": time}));
        assert_eq!(evicted("1970-01-01T00:00:30Z"), (2, 2, 0));
        assert_eq!(evicted("1969-12-31T23:50:00Z"), (3, 2, 1));
    }
}
