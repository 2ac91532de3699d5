//! What the Job controller sees in a pod.

use crate::object::{Object, Owner};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::cmp::Reverse;
use std::sync::Arc;

/// Holds a pod until its end has been counted.
pub(super) const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// Annotation and label: which index a pod works on.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Annotations: how often its index failed before, counted and not.
pub(super) const INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
pub(super) const INDEX_IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// A pod of a Job.
#[derive(Clone, Debug)]
pub(super) struct Pod(pub(super) Arc<Object>);

impl Pod {
    fn phase(&self) -> &str {
        self.0.text(&["status", "phase"])
    }

    pub(super) fn uid(&self) -> &str {
        self.0.uid()
    }

    pub(super) fn is_being_deleted(&self) -> bool {
        self.0.is_being_deleted()
    }

    pub(super) fn has_succeeded(&self) -> bool {
        self.phase() == "Succeeded"
    }

    /// Whether it ended badly, whatever its Job makes of pods that are being deleted.
    pub(super) fn has_failed(&self) -> bool {
        self.phase() == "Failed"
    }

    fn is_over(&self) -> bool {
        self.has_succeeded() || self.has_failed()
    }

    pub(super) fn is_active(&self) -> bool {
        !self.is_over() && !self.is_being_deleted()
    }

    pub(super) fn is_terminating(&self) -> bool {
        !self.is_over() && self.is_being_deleted()
    }

    pub(super) fn is_tracked(&self) -> bool {
        is_tracked(&self.0)
    }

    pub(super) fn index(&self) -> Option<i64> {
        self.0.annotation(INDEX)?.parse().ok().filter(|index| *index >= 0)
    }

    /// How often its index failed before it, as far as that counts.
    pub(super) fn index_failures(&self) -> i64 {
        self.count(INDEX_FAILURES)
    }

    pub(super) fn index_ignored_failures(&self) -> i64 {
        self.count(INDEX_IGNORED_FAILURES)
    }

    fn count(&self, annotation: &str) -> i64 {
        self.0.annotation(annotation).and_then(|count| count.parse::<i32>().ok()).map_or(0, |count| count.max(0).into())
    }

    fn condition(&self, wanted: &str) -> Option<&Value> {
        self.0.list(&["status", "conditions"]).iter().find(|condition| condition["type"] == wanted)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.condition("Ready").is_some_and(|condition| condition["status"] == "True")
    }

    /// The restarts of all its containers, as long as it runs.
    pub(super) fn restarts(&self) -> i64 {
        let lists = ["initContainerStatuses", "containerStatuses"];
        let statuses = lists.iter().flat_map(|list| self.0.list(&["status", list]));
        statuses.map(restarts_of).fold(0, i64::saturating_add)
    }

    /// When it ended, as well as that is known.
    pub(super) fn finished_at(&self) -> Timestamp {
        self.last_exit()
            .or_else(|| {
                let condition = self.condition("Ready").filter(|condition| condition["status"] == "False")?;
                time(&condition["lastTransitionTime"])
            })
            .or_else(|| {
                let deletion = time(self.0.at(&["metadata", "deletionTimestamp"])?)?;
                let grace = self.0.integer(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or_default();
                deletion.checked_sub(SignedDuration::from_secs(grace)).ok()
            })
            .unwrap_or_else(|| self.created_at())
    }

    fn created_at(&self) -> Timestamp {
        self.0.at(&["metadata", "creationTimestamp"]).and_then(time).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// When the last of its containers ended, if all have. Init containers that run on count as well.
    fn last_exit(&self) -> Option<Timestamp> {
        let is_sidecar = |name: &Value| {
            let containers = self.0.list(&["spec", "initContainers"]);
            containers.iter().any(|container| container["name"] == *name && container["restartPolicy"] == "Always")
        };
        let sidecars =
            self.0.list(&["status", "initContainerStatuses"]).iter().filter(|status| is_sidecar(&status["name"]));
        let ends: Option<Vec<Timestamp>> = self
            .0
            .list(&["status", "containerStatuses"])
            .iter()
            .chain(sidecars)
            .map(|status| status.pointer("/state/terminated/finishedAt").and_then(time))
            .collect();
        ends?.into_iter().max()
    }

    /// Pods that are worth less come first: those that have come less far, then the newer ones
    /// (Kubernetes v1.34 `controller_utils.go`).
    pub(super) fn worth(&self) -> impl Ord + use<> {
        let phase = match self.phase() {
            "Pending" => 0,
            "Unknown" => 1,
            _ => 2,
        };
        let ready = self.is_ready();
        let ready_since = self
            .condition("Ready")
            .filter(|_| ready)
            .and_then(|condition| time(&condition["lastTransitionTime"]))
            .unwrap_or(Timestamp::MIN);
        let restarts = self.0.list(&["status", "containerStatuses"]).iter().map(restarts_of).max().unwrap_or_default();
        let assigned = !self.0.text(&["spec", "nodeName"]).is_empty();
        (assigned, phase, ready, Reverse(ready_since), Reverse(restarts), Reverse(self.created_at()))
    }
}

/// The controller of an object.
pub(super) fn controller_of(object: &Object) -> Option<Owner<'_>> {
    object.owners().find(|owner| owner.controller)
}

pub(super) fn is_tracked(pod: &Object) -> bool {
    pod.finalizers().any(|finalizer| finalizer == TRACKING)
}

fn restarts_of(status: &Value) -> i64 {
    status["restartCount"].as_i64().unwrap_or_default()
}

/// A time in an object.
pub(super) fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(value: Value) -> Pod {
        Pod(Arc::new(Object::from_value(value).unwrap()))
    }

    #[test]
    fn a_pod_ended_when_its_last_container_did_or_when_it_was_no_longer_ready_or_deleted() {
        let mut object = json!({"metadata": {"creationTimestamp": "2026-11-16T03:00:00Z"}});
        let ended = |object: &Value| pod(object.clone()).finished_at().to_string();
        assert_eq!(ended(&object), "2026-11-16T03:00:00Z");
        object["metadata"]["deletionTimestamp"] = json!("2026-11-16T03:01:30Z");
        object["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        assert_eq!(ended(&object), "2026-11-16T03:01:00Z");
        let ready = json!({"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-16T03:00:40Z"});
        object["status"]["conditions"] = json!([ready]);
        assert_eq!(ended(&object), "2026-11-16T03:00:40Z");
        let exit = |time: &str| json!({"name": "a", "state": {"terminated": {"finishedAt": time}}});
        object["status"]["containerStatuses"] = json!([exit("2026-11-16T03:00:20Z"), exit("2026-11-16T03:00:10Z")]);
        assert_eq!(ended(&object), "2026-11-16T03:00:20Z");
        object["status"]["containerStatuses"][1] = json!({"name": "b", "state": {"running": {}}});
        assert_eq!(ended(&object), "2026-11-16T03:00:40Z");
    }

    #[test]
    fn pods_that_have_come_less_far_are_worth_less() {
        let ready = |time: &str| json!([{"type": "Ready", "status": "True", "lastTransitionTime": time}]);
        let pods = [
            json!({"spec": {"nodeName": "n"}, "status": {"phase": "Running", "conditions": ready("2026-11-16T03:00:00Z")}}),
            json!({"spec": {"nodeName": "n"}, "status": {"phase": "Running", "conditions": ready("2026-11-16T03:00:09Z")}}),
            json!({"spec": {"nodeName": "n"}, "status": {"phase": "Running"}}),
            json!({"spec": {"nodeName": "n"}, "status": {"phase": "Pending"}}),
            json!({"metadata": {"creationTimestamp": "2026-11-16T03:00:00Z"}, "status": {"phase": "Pending"}}),
            json!({"metadata": {"creationTimestamp": "2026-11-16T03:00:01Z"}, "status": {"phase": "Pending"}}),
        ];
        for pair in pods.windows(2) {
            assert!(pod(pair[0].clone()).worth() > pod(pair[1].clone()).worth(), "{pair:?}");
        }
    }
}
