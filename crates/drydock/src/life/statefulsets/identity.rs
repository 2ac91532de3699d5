//! Who a pod of a StatefulSet is: its number, its names, its claims.

use super::claims;
use crate::life::workload::revisions::HASH_LABEL;
use crate::life::workload::{count, pods, revisions, wanted_replicas};
use crate::object::Object;
use serde_json::{Value, json};

const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// The numbers that a set's pods have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ordinals {
    pub(super) start: i64,
    pub(super) end: i64,
}

impl Ordinals {
    pub(super) fn of(set: &Object) -> Self {
        let start = count(set, &["spec", "ordinals", "start"]);
        Self { start, end: start.saturating_add(wanted_replicas(set)) }
    }

    pub(super) fn contains(self, ordinal: i64) -> bool {
        (self.start..self.end).contains(&ordinal)
    }
}

/// The number at the end of a pod's name.
pub(super) fn ordinal(pod: &Object) -> Option<i64> {
    let (_, number) = pod.name().rsplit_once('-')?;
    number.parse::<i32>().ok().map(i64::from).filter(|_| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a pod is called like a member of a set.
pub(super) fn is_member(set: &Object, pod: &Object) -> bool {
    ordinal(pod).is_some() && pod.name().rsplit_once('-').is_some_and(|(parent, _)| parent == set.name())
}

/// Whether a pod says who it is.
pub(super) fn is_labelled(pod: &Object) -> bool {
    pod.label(POD_NAME) == Some(pod.name())
}

/// Lets a pod say who it is.
pub(super) fn label(pod: &mut Object, ordinal: i64) {
    let name = pod.name().to_owned();
    pod.set(&["metadata", "labels", POD_NAME], name);
    pod.set(&["metadata", "labels", POD_INDEX], ordinal.to_string());
}

/// A pod of a set, as a revision has it.
pub(super) fn pod(set: &Object, revision: &Object, ordinal: i64) -> Object {
    let mut pod = pods::from_template(set, &revisions::template(revision));
    let name = format!("{}-{ordinal}", set.name());
    pod.set(&["metadata", "name"], name.as_str());
    label(&mut pod, ordinal);
    pod.set(&["metadata", "labels", HASH_LABEL], revision.name());
    pod.set(&["spec", "hostname"], name);
    let service = set.text(&["spec", "serviceName"]);
    if !service.is_empty() {
        pod.set(&["spec", "subdomain"], service);
    }
    let templates = set.list(&["spec", "volumeClaimTemplates"]);
    if !templates.is_empty() {
        let mut volumes: Vec<Value> = templates
            .iter()
            .map(|template| {
                let claim = claims::name(set, template, ordinal);
                json!({"name": claims::template_name(template), "persistentVolumeClaim": {"claimName": claim}})
            })
            .collect();
        let own = |volume: &Value| templates.iter().any(|template| volume["name"] == claims::template_name(template));
        volumes.extend(pod.list(&["spec", "volumes"]).iter().filter(|volume| !own(volume)).cloned());
        pod.set(&["spec", "volumes"], volumes);
    }
    pod
}
