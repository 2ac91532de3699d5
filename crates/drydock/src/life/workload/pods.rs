//! Pods as their controllers see them: whether they count, since when they are ready, how they are made.

use super::{condition, later, parse_time, reference_to};
use crate::object::Object;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// Whether a pod has neither finished nor been told to go.
pub(crate) fn is_active(pod: &Object) -> bool {
    !is_finished(pod) && !pod.is_being_deleted()
}

pub(crate) fn is_finished(pod: &Object) -> bool {
    matches!(pod.text(&["status", "phase"]), "Succeeded" | "Failed")
}

pub(crate) fn is_ready(pod: &Object) -> bool {
    condition::holds(pod.list(&["status", "conditions"]), "Ready")
}

/// Since when a pod has been ready.
pub(crate) fn ready_since(pod: &Object) -> Option<Timestamp> {
    let ready = condition::find(pod.list(&["status", "conditions"]), "Ready")?;
    (ready["status"] == "True").then(|| ready["lastTransitionTime"].as_str().and_then(parse_time))?
}

/// When a ready pod has been so for long enough.
pub(crate) fn available_at(pod: &Object, min_ready: SignedDuration) -> Option<Timestamp> {
    Some(later(ready_since(pod)?, min_ready))
}

/// Whether a pod has been ready for long enough.
pub(crate) fn is_available(pod: &Object, min_ready: SignedDuration, now: Timestamp) -> bool {
    is_ready(pod) && (min_ready.is_zero() || available_at(pod, min_ready).is_some_and(|time| time <= now))
}

/// When the next of some pods that are ready becomes available.
pub(crate) fn next_available<'a>(
    pods: impl IntoIterator<Item = &'a Object>,
    min_ready: SignedDuration,
    now: Timestamp,
) -> Option<Timestamp> {
    pods.into_iter().filter_map(|pod| available_at(pod, min_ready)).filter(|time| *time > now).min()
}

/// A pod of an owner's template, still without a name.
pub(crate) fn from_template(owner: &Object, template: &Value) -> Object {
    let mut metadata = serde_json::Map::new();
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = template.pointer(&format!("/metadata/{field}")) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    metadata.insert("namespace".to_owned(), json!(owner.namespace()));
    metadata.insert("ownerReferences".to_owned(), json!([reference_to(owner)]));
    let spec = template.get("spec").cloned().unwrap_or_else(|| json!({}));
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    Object::from_value(pod).unwrap_or_default()
}

/// A pod of an owner's template, whose name begins with the owner's.
pub(crate) fn generated(owner: &Object, template: &Value) -> Object {
    let mut pod = from_template(owner, template);
    pod.set(&["metadata", "generateName"], format!("{}-", owner.name()));
    pod
}

/// The highest restart count of a pod's containers.
pub(crate) fn restarts(pod: &Object) -> i64 {
    let statuses = pod.list(&["status", "containerStatuses"]);
    statuses.iter().filter_map(|status| status["restartCount"].as_i64()).max().unwrap_or_default()
}
