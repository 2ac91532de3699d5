//! What a Deployment reports: counts, availability, progress (kubernetes v1.34 `pkg/controller/deployment/progress.go`).

use super::rollout::Rollout;
use super::set::Set;
use crate::life::workload::{condition, count, counts, later, parse_time, wanted_replicas};
use crate::object::Object;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// A deadline so far away stands for none.
const NO_DEADLINE: i64 = i32::MAX as i64;

pub(super) fn has_deadline(deployment: &Object) -> bool {
    deployment.integer(&["spec", "progressDeadlineSeconds"]).is_some_and(|seconds| seconds != NO_DEADLINE)
}

/// The condition that says how the rollout goes.
pub(super) fn progress(deployment: &Object) -> Option<&Value> {
    condition::find(deployment.list(&["status", "conditions"]), "Progressing")
}

/// Sets that condition.
pub(super) fn set_progress(deployment: &mut Object, status: &str, reason: &str, message: &str, now: Timestamp) {
    let mut conditions = deployment.list(&["status", "conditions"]).to_vec();
    condition::set(&mut conditions, new("Progressing", status, reason, message, now));
    deployment.set(&["status", "conditions"], conditions);
}

fn new(kind: &str, status: &str, reason: &str, message: &str, now: Timestamp) -> Value {
    let mut condition = condition::new(kind, status, reason, message, now);
    condition["lastUpdateTime"] = json!(crate::clock::time(now));
    condition
}

/// Whether all replicas are there, of the current template, and no others.
pub(super) fn is_complete(deployment: &Object) -> bool {
    let wanted = wanted_replicas(deployment);
    ["updatedReplicas", "replicas", "availableReplicas"]
        .iter()
        .all(|field| count(deployment, &["status", field]) == wanted)
        && count(deployment, &["status", "observedGeneration"]) >= deployment.generation()
}

/// When lack of progress has to be looked for.
pub(super) fn deadline(deployment: &Object) -> Option<Timestamp> {
    let progress = progress(deployment).filter(|_| has_deadline(deployment))?;
    if is_complete(deployment)
        || matches!(
            progress["reason"].as_str(),
            Some("ProgressDeadlineExceeded" | "NewReplicaSetAvailable" | "DeploymentPaused")
        )
    {
        return None;
    }
    Some(later(timeout(deployment, progress)?, SignedDuration::from_secs(1)))
}

fn timeout(deployment: &Object, progress: &Value) -> Option<Timestamp> {
    let seconds = deployment.integer(&["spec", "progressDeadlineSeconds"])?;
    Some(later(parse_time(progress["lastUpdateTime"].as_str()?)?, SignedDuration::from_secs(seconds)))
}

/// The status with counts and availability.
pub(super) fn counted(rollout: &Rollout) -> Value {
    let deployment = &rollout.deployment;
    let sum = |number: fn(&Set) -> i64| rollout.sets().map(number).sum::<i64>();
    let available = sum(Set::available);
    let mut status = counts(
        &[],
        &[
            ("observedGeneration", deployment.generation()),
            ("replicas", sum(Set::actual)),
            ("updatedReplicas", rollout.new.as_ref().map_or(0, Set::actual)),
            ("readyReplicas", sum(Set::ready)),
            ("availableReplicas", available),
            ("unavailableReplicas", (sum(Set::wanted) - available).max(0)),
        ],
    );
    if let Some(collisions) = deployment.at(&["status", "collisionCount"]) {
        status.insert("collisionCount".to_owned(), collisions.clone());
    }
    let mut conditions = deployment.list(&["status", "conditions"]).to_vec();
    let (truth, reason, message) = if available >= rollout.wanted() - rollout.bounds.unavailable {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    condition::set(&mut conditions, new("Available", truth, reason, message, rollout.now));
    status.insert("conditions".to_owned(), json!(conditions));
    Value::Object(status)
}

/// The status with counts, availability, and how the rollout goes.
pub(super) fn judged(rollout: &Rollout) -> Value {
    let before = &rollout.deployment;
    let mut after = before.clone();
    after.set(&["status"], counted(rollout));
    let mut conditions = after.list(&["status", "conditions"]).to_vec();
    if has_deadline(before) {
        judge_progress(rollout, &after, &mut conditions);
    } else {
        condition::remove(&mut conditions, "Progressing");
    }
    match replica_failure(rollout) {
        Some(failure) => condition::set(&mut conditions, failure),
        None => condition::remove(&mut conditions, "ReplicaFailure"),
    }
    after.set(&["status", "conditions"], conditions);
    after.at(&["status"]).cloned().unwrap_or_default()
}

fn judge_progress(rollout: &Rollout, after: &Object, conditions: &mut Vec<Value>) {
    let before = &rollout.deployment;
    let current = progress(before);
    let reason = current.and_then(|current| current["reason"].as_str());
    let at = |object: &Object, field: &str| count(object, &["status", field]);
    if at(after, "replicas") == at(after, "updatedReplicas") && reason == Some("NewReplicaSetAvailable") {
        return;
    }
    let subject = match &rollout.new {
        Some(new) => format!("ReplicaSet {:?}", new.object.name()),
        None => format!("Deployment {:?}", before.name()),
    };
    let now = rollout.now;
    if is_complete(after) {
        let message = format!("{subject} has successfully progressed.");
        condition::set(conditions, new("Progressing", "True", "NewReplicaSetAvailable", &message, now));
    } else if has_progressed(before, after) {
        let message = format!("{subject} is progressing.");
        let mut condition = new("Progressing", "True", "ReplicaSetUpdated", &message, now);
        if let Some(current) = current.filter(|current| current["status"] == "True") {
            condition["lastTransitionTime"] = current["lastTransitionTime"].clone();
        }
        condition::remove(conditions, "Progressing");
        conditions.push(condition);
    } else if let Some(current) = current
        && reason != Some("NewReplicaSetAvailable")
        && (reason == Some("ProgressDeadlineExceeded") || timeout(before, current).is_some_and(|timeout| timeout < now))
    {
        let message = format!("{subject} has timed out progressing.");
        condition::set(conditions, new("Progressing", "False", "ProgressDeadlineExceeded", &message, now));
    }
}

fn has_progressed(before: &Object, after: &Object) -> bool {
    let at = |object: &Object, field: &str| count(object, &["status", field]);
    let old = |object: &Object| at(object, "replicas") - at(object, "updatedReplicas");
    let more = |field: &str| at(after, field) > at(before, field);
    more("updatedReplicas") || old(after) < old(before) || more("readyReplicas") || more("availableReplicas")
}

/// What keeps pods from being made: of the new set, or else of any.
fn replica_failure(rollout: &Rollout) -> Option<Value> {
    let failure = |set: &Set| {
        let failure = condition::find(set.object.list(&["status", "conditions"]), "ReplicaFailure")?;
        let mut failure = failure.clone();
        failure["lastUpdateTime"] = failure["lastTransitionTime"].clone();
        Some(failure)
    };
    rollout.new.as_ref().and_then(failure).or_else(|| rollout.old.iter().find_map(failure))
}
