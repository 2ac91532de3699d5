//! The pods that a Job makes.

use super::decide::Tally;
use super::pod::{INDEX, INDEX_FAILURES, INDEX_IGNORED_FAILURES, TRACKING};
use super::spec::Spec;
use crate::object::Object;
use crate::verbs::delete::set_finalizers;
use serde_json::{Value, json};

/// The longest part of a name that the server completes.
const LONGEST_BASE: usize = 58;

/// A new pod of a Job, for an index or for none.
pub(super) fn pod(job: &Object, spec: &Spec<'_>, tally: &Tally<'_>, index: Option<i64>) -> Object {
    let mut pod = Object::default();
    pod.set(&["apiVersion"], "v1");
    pod.set(&["kind"], "Pod");
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = job.at(&["spec", "template", "metadata", field]).filter(|value| !value.is_null()) {
            pod.set(&["metadata", field], value.clone());
        }
    }
    pod.set(&["metadata", "namespace"], job.namespace());
    pod.set(&["metadata", "generateName"], format!("{}-", job.name()));
    let owner = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": job.name(), "uid": job.uid(),
        "controller": true, "blockOwnerDeletion": true}]);
    pod.set(&["metadata", "ownerReferences"], owner);
    hold(&mut pod);
    if let Some(spec) = job.at(&["spec", "template", "spec"]) {
        pod.set(&["spec"], spec.clone());
    }
    if let Some(index) = index {
        give_index(&mut pod, job.name(), index);
        if spec.index_limits().is_some() {
            note_failures(&mut pod, spec, tally, index);
        }
    }
    pod
}

/// Holds a pod until its end has been counted.
pub(super) fn hold(pod: &mut Object) {
    let mut finalizers: Vec<String> = pod.finalizers().map(str::to_owned).collect();
    if !finalizers.iter().any(|finalizer| finalizer == TRACKING) {
        finalizers.push(TRACKING.to_owned());
    }
    set_finalizers(pod, finalizers);
}

/// Lets go of a pod.
pub(super) fn let_go(pod: &mut Object) {
    let left = pod.finalizers().filter(|finalizer| *finalizer != TRACKING).map(str::to_owned).collect();
    set_finalizers(pod, left);
}

fn give_index(pod: &mut Object, job: &str, index: i64) {
    let ending = format!("-{index}-");
    let mut base: String = format!("{job}{ending}");
    if base.len() > LONGEST_BASE {
        let kept: String = base.chars().take(LONGEST_BASE.saturating_sub(ending.len())).collect();
        base = format!("{kept}{ending}");
    }
    pod.set(&["metadata", "generateName"], base);
    pod.set(&["metadata", "annotations", INDEX], index.to_string());
    pod.set(&["metadata", "labels", INDEX], index.to_string());
    pod.set(&["spec", "hostname"], format!("{job}-{index}"));
    for list in ["initContainers", "containers"] {
        let containers = pod.map_at(&["spec"]).get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            give_variable(container.entry("env").or_insert_with(|| json!([])));
        }
    }
}

fn give_variable(variables: &mut Value) {
    const NAME: &str = "JOB_COMPLETION_INDEX";
    let Value::Array(variables) = variables else { return };
    if variables.iter().all(|variable| variable["name"] != NAME) {
        let path = format!("metadata.labels['{INDEX}']");
        variables.push(json!({"name": NAME, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}));
    }
}

/// Notes in a pod how often its index has failed.
fn note_failures(pod: &mut Object, spec: &Spec<'_>, tally: &Tally<'_>, index: i64) {
    let (mut failures, mut ignored) = (0, 0);
    if let Some(replaced) = tally.held_back.get(&index) {
        (failures, ignored) = (replaced.index_failures(), replaced.index_ignored_failures());
        if spec.handling(replaced).counts() {
            failures += 1;
        } else {
            ignored += 1;
        }
    }
    pod.set(&["metadata", "annotations", INDEX_FAILURES], failures.to_string());
    if ignored > 0 {
        pod.set(&["metadata", "annotations", INDEX_IGNORED_FAILURES], ignored.to_string());
    }
}
