//! Which pods belong to a Job: those that it controls and selects. Others that it selects are taken in if they belong
//! to nobody, and those that it no longer selects are let go (Kubernetes v1.34 `controller_ref_manager.go`).

use super::pod::{Pod, controller_of, is_tracked};
use super::progress::is_finished;
use super::template;
use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::life::client::Client;
use crate::object::Object;
use crate::selector::LabelSelector;
use crate::status::Status;
use crate::store::{Change, Key};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// Pods that have no controller, by namespace and by the Job that their labels name.
#[derive(Debug, Default)]
pub(super) struct Loose(BTreeMap<Box<str>, BTreeMap<String, BTreeSet<Key>>>);

impl Loose {
    pub(super) fn observe(&mut self, change: &Change) {
        let (before, after) = match change {
            Change::Added(after) => (None, Some(after)),
            Change::Modified { before, after } => (Some(before), Some(after)),
            Change::Deleted { before, .. } => (Some(before), None),
        };
        let label = |pod: &Object| pod.label(CONTROLLER_UID).unwrap_or_default().to_owned();
        if let Some(pod) = before.filter(|pod| controller_of(pod).is_none())
            && let Some(labels) = self.0.get_mut(pod.namespace())
            && let Some(pods) = labels.get_mut(&label(pod))
        {
            pods.remove(&Key::of(pod));
            if pods.is_empty() {
                labels.remove(&label(pod));
            }
        }
        if let Some(pod) = after.filter(|pod| controller_of(pod).is_none()) {
            let labels = self.0.entry(pod.namespace().into()).or_default();
            labels.entry(label(pod)).or_default().insert(Key::of(pod));
        }
    }

    /// Those that a Job may select.
    pub(super) fn near(&self, job: &Object) -> Vec<Key> {
        let Some(labels) = self.0.get(job.namespace()) else { return Vec::new() };
        if has_own_selector(job) {
            labels.values().flatten().cloned().collect()
        } else {
            labels.get(job.uid()).into_iter().flatten().cloned().collect()
        }
    }
}

/// Whether a Job selects its pods by labels that somebody has chosen.
pub(super) fn has_own_selector(job: &Object) -> bool {
    job.at(&["spec", "manualSelector"]) == Some(&Value::Bool(true))
}

pub(super) fn pods() -> Storage {
    Storage::core("pods")
}

pub(super) fn jobs() -> Storage {
    Storage::new("batch", "jobs")
}

fn selector_of(job: &Object) -> Option<LabelSelector> {
    LabelSelector::from_object(job.at(&["spec", "selector"])?)
}

fn selects(selector: &LabelSelector, pod: &Object) -> bool {
    selector.matches(pod.at(&["metadata", "labels"]))
}

/// The Job that a pod's labels name, if it selects the pod.
pub(super) fn named_by_labels(cluster: &Cluster, pod: &Object) -> Option<Key> {
    let key = Key::new(pod.namespace(), pod.label(JOB_NAME)?);
    let job = cluster.store.get(&jobs(), &key)?;
    selector_of(job).is_some_and(|selector| selects(&selector, pod)).then_some(key)
}

/// The Job that controls a pod.
pub(super) fn owner_of<'a>(cluster: &'a Cluster, pod: &Object) -> Option<&'a Arc<Object>> {
    let owner = controller_of(pod).filter(|owner| owner.kind == "Job")?;
    cluster.store.get(&jobs(), &Key::new(pod.namespace(), owner.name)).filter(|job| job.uid() == owner.uid)
}

/// The pods of a Job, once those that changed hands have done so.
pub(super) fn claim(client: &mut Client<'_>, job: &Object, loose: Vec<Key>) -> Result<Vec<Pod>, Status> {
    let Some(selector) = selector_of(job) else {
        return Err(Status::new(500, "InternalError", "couldn't convert Job selector"));
    };
    let mut claimed = Vec::new();
    for pod in client.owned(&pods(), job) {
        if controller_of(&pod).is_none_or(|owner| owner.uid != job.uid()) {
            continue;
        }
        if selects(&selector, &pod) {
            claimed.push(Pod(pod));
        } else if !job.is_being_deleted() {
            disown(client, job, &pod)?;
        }
    }
    if job.is_being_deleted() {
        return Ok(claimed);
    }
    for key in loose {
        let Some(pod) = client.get(&pods(), &key) else { continue };
        if controller_of(&pod).is_none() && !pod.is_being_deleted() && selects(&selector, &pod) {
            claimed.extend(adopt(client, job, &key)?);
        }
    }
    Ok(claimed)
}

fn adopt(client: &mut Client<'_>, job: &Object, key: &Key) -> Result<Option<Pod>, Status> {
    let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": job.name(), "uid": job.uid(),
        "controller": true, "blockOwnerDeletion": true});
    let adopted = client.change(&pods(), key, |pod| {
        let mut owners = pod.list(&["metadata", "ownerReferences"]).to_vec();
        owners.retain(|known| known["uid"] != owner["uid"]);
        owners.push(owner);
        pod.set(&["metadata", "ownerReferences"], owners);
        template::hold(pod);
    });
    unless_gone(adopted).map(|pod| pod.map(Pod))
}

fn disown(client: &mut Client<'_>, job: &Object, pod: &Object) -> Result<(), Status> {
    let disowned = client.change(&pods(), &Key::of(pod), |pod| {
        let mut owners = pod.list(&["metadata", "ownerReferences"]).to_vec();
        owners.retain(|known| known["uid"] != job.uid());
        pod.set(&["metadata", "ownerReferences"], owners);
        template::let_go(pod);
    });
    unless_gone(disowned).map(drop)
}

/// What is gone needs nothing more.
pub(super) fn unless_gone<T>(result: Result<T, Status>) -> Result<Option<T>, Status> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(status) if status.code == 404 => Ok(None),
        Err(status) => Err(status),
    }
}

/// Lets go of a pod whose Job is over or gone.
pub(super) fn let_go_of_orphan(client: &mut Client<'_>, key: &Key) {
    let Some(pod) = client.get(&pods(), key).filter(|pod| is_tracked(pod)) else { return };
    if controller_of(&pod).is_some_and(|owner| owner.kind != "Job" || owner.api_version != "batch/v1") {
        return;
    }
    let is_looked_after = |job: &Arc<Object>| is_managed_elsewhere(job) || !is_finished(job);
    if owner_of(client.cluster, &pod).is_none_or(|job| !is_looked_after(job)) {
        // A pod that cannot be changed stays as it is; its next change is a new chance.
        let _ = client.change(&pods(), key, template::let_go);
    }
}

/// Whether another controller looks after a Job.
pub(super) fn is_managed_elsewhere(job: &Object) -> bool {
    !matches!(job.text(&["spec", "managedBy"]), "" | "kubernetes.io/job-controller")
}
