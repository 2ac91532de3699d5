//! What a ReplicaSet needs, and what it reports.

use crate::life::workload::{condition, counts, min_ready, pods, wanted_replicas};
use crate::object::{Object, strings};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

/// No more pods are made or deleted at once.
const BURST: usize = 500;

/// How many pods there are to make or to delete.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Create(usize),
    Delete(usize),
}

pub(super) fn plan(set: &Object, active: usize) -> Plan {
    let wanted = usize::try_from(wanted_replicas(set)).unwrap_or(usize::MAX);
    if active <= wanted {
        Plan::Create((wanted - active).min(BURST))
    } else {
        Plan::Delete((active - wanted).min(BURST))
    }
}

/// The status of a set that had these active pods when it was looked at.
pub(super) fn status(set: &Object, active: &[Arc<Object>], failure: Option<&str>, now: Timestamp) -> Value {
    let min_ready = min_ready(set);
    let labels: Vec<(&str, &str)> = strings(set.at(&["spec", "template", "metadata", "labels"])).collect();
    let number = |test: &dyn Fn(&Object) -> bool| {
        i64::try_from(active.iter().filter(|pod| test(pod)).count()).unwrap_or(i64::MAX)
    };
    let replicas = number(&|_| true);
    let mut conditions = set.list(&["status", "conditions"]).to_vec();
    match failure {
        Some(message) => {
            let reason = if replicas < wanted_replicas(set) { "FailedCreate" } else { "FailedDelete" };
            condition::set(&mut conditions, condition::new("ReplicaFailure", "True", reason, message, now));
        }
        None => condition::remove(&mut conditions, "ReplicaFailure"),
    }
    let mut status = counts(
        &[("replicas", replicas)],
        &[
            ("fullyLabeledReplicas", number(&|pod| labels.iter().all(|(key, value)| pod.label(key) == Some(value)))),
            ("readyReplicas", number(&pods::is_ready)),
            ("availableReplicas", number(&|pod| pods::is_available(pod, min_ready, now))),
            ("observedGeneration", set.generation()),
        ],
    );
    if !conditions.is_empty() {
        status.insert("conditions".to_owned(), json!(conditions));
    }
    Value::Object(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(replicas: i64) -> Object {
        Object::from_value(json!({"metadata": {"generation": 2}, "spec": {"replicas": replicas, "minReadySeconds": 10,
            "template": {"metadata": {"labels": {"app": "web"}}}}}))
        .unwrap()
    }

    fn pod(ready: Option<&str>) -> Arc<Object> {
        let conditions = ready.map(|since| json!([{"type": "Ready", "status": "True", "lastTransitionTime": since}]));
        let pod =
            json!({"metadata": {"labels": {"app": "web"}}, "status": {"phase": "Running", "conditions": conditions}});
        Arc::new(Object::from_value(pod).unwrap())
    }

    #[test]
    fn the_difference_is_made_up_but_not_all_at_once() {
        assert_eq!(plan(&set(3), 1), Plan::Create(2));
        assert_eq!(plan(&set(3), 3), Plan::Create(0));
        assert_eq!(plan(&set(0), 3), Plan::Delete(3));
        assert_eq!(plan(&set(2000), 0), Plan::Create(500));
    }

    #[test]
    fn a_pod_is_available_when_it_has_been_ready_for_long_enough() {
        let pods = [pod(None), pod(Some("1970-01-01T00:00:00Z")), pod(Some("1970-01-01T00:00:05Z"))];
        let status = status(&set(4), &pods, Some("no"), Timestamp::from_second(12).unwrap());
        assert_eq!(
            status,
            json!({"replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 2, "availableReplicas": 1, "observedGeneration": 2,
                "conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no",
                    "lastTransitionTime": "1970-01-01T00:00:12Z"}]})
        );
    }
}
