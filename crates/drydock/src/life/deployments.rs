//! Deployments: one ReplicaSet for each template that a Deployment has had, and a rollout from one to the next.

mod rollout;
mod scale;
mod set;
mod status;

use super::client::{Client, Tone};
use super::reconciler::Reconciler;
use super::workload::family::{Family, selector_of};
use super::workload::retries::Retries;
use super::workload::{apps, controller_of, is_controlled_by, pods, pods_storage};
use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::object::Object;
use crate::status::Status;
use crate::store::{Change, Key};
use jiff::Timestamp;
use rollout::{Rollout, Step};
use serde_json::json;
use std::sync::Arc;

/// Deployments that have to be looked at.
#[derive(Debug)]
pub(crate) struct Deployments {
    family: Family,
    retries: Retries,
}

impl Deployments {
    pub(crate) fn new() -> Self {
        let family = Family::new(apps("deployments"), "Deployment", apps("replicasets"));
        Self { family, retries: Retries::default() }
    }
}

impl Reconciler for Deployments {
    fn concerned(&mut self, storage: &Storage, change: &Change, cluster: &mut Cluster) -> Vec<Key> {
        let mut keys = self.family.observe(storage, change, cluster);
        if let (true, Change::Deleted { last, .. }) = (storage.is("", "pods"), change) {
            keys.extend(deployment_of_pod(cluster, last));
        }
        keys
    }

    fn reconcile(&mut self, cluster: &mut Cluster, key: &Key) -> Option<Timestamp> {
        let Some(deployment) = cluster.store.get(&apps("deployments"), key).cloned() else {
            self.retries.forget(key);
            return None;
        };
        let mut client = Client::of_controller(cluster, "deployment-controller");
        if selector_of(&deployment).is_none() {
            let why = "This deployment is selecting all pods. A non-empty selector is required.";
            client.tell(&deployment, Tone::Warning, "SelectingAll", why);
            return None;
        }
        let sets = self.family.claim(&mut client, &deployment);
        let running: Vec<bool> = sets.iter().map(|set| has_running_pods(&client, set)).collect();
        let now = client.now();
        let plan = Rollout::new(&deployment, sets.into_iter().zip(running).collect(), now).decide();
        for step in plan.steps {
            if let Err(status) = apply(&mut client, key, &deployment, step) {
                return (!super::is_of_a_namespace_that_goes(&status)).then(|| self.retries.fail(key, now));
            }
        }
        self.retries.forget(key);
        plan.due
    }
}

/// One that replaces all pods at once waits for the last of the old ones to go.
fn deployment_of_pod(cluster: &Cluster, pod: &Object) -> Option<Key> {
    let set = controller_of(pod).filter(|owner| owner.kind == "ReplicaSet")?;
    let set = cluster.find("apps", "replicasets", pod.namespace(), set.name)?;
    let deployment = controller_of(set).filter(|owner| owner.kind == "Deployment")?;
    Some(Key::new(pod.namespace(), deployment.name))
}

fn has_running_pods(client: &Client<'_>, set: &Object) -> bool {
    client.owned(&pods_storage(), set).iter().any(|pod| is_controlled_by(pod, set) && !pods::is_finished(pod))
}

fn apply(client: &mut Client<'_>, key: &Key, deployment: &Object, step: Step) -> Result<(), Status> {
    match step {
        Step::Create(set) => create(client, key, deployment, set),
        Step::Change(set) => {
            let changed = client.change(&apps("replicasets"), &Key::of(&set), |stored| {
                for path in [&["metadata", "annotations"], &["spec", "minReadySeconds"], &["spec", "replicas"]] {
                    if let Some(value) = set.at(path) {
                        stored.set(path, value.clone());
                    }
                }
            });
            changed.map(|_| ())
        }
        Step::Delete(set) => match client.delete(&apps("replicasets"), &set) {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(()),
        },
        Step::Tell(message) => {
            client.tell(deployment, Tone::Normal, "ScalingReplicaSet", &message);
            Ok(())
        }
        Step::Report(report) => write_status(client, key, &report).map(|_| ()),
    }
}

/// Writes the status, and the revision beside it, as they are in an object.
fn write_status(client: &mut Client<'_>, key: &Key, report: &Object) -> Result<Arc<Object>, Status> {
    client.change_status(&apps("deployments"), key, |stored| {
        stored.set(&["status"], report.at(&["status"]).cloned().unwrap_or_else(|| json!({})));
        if let Some(revision) = report.annotation(set::REVISION) {
            stored.set(&["metadata", "annotations", set::REVISION], revision);
        }
    })
}

fn create(client: &mut Client<'_>, key: &Key, deployment: &Object, set: Object) -> Result<(), Status> {
    let name = set.name().to_owned();
    let Err(refused) = client.create(&apps("replicasets"), set) else { return Ok(()) };
    let now = client.now();
    let mut report = deployment.clone();
    if refused.reason == "AlreadyExists" {
        // Something else has the name that the hash gives: another hash next time.
        let collisions = deployment.integer(&["status", "collisionCount"]).unwrap_or_default() + 1;
        report.set(&["status", "collisionCount"], collisions);
        write_status(client, key, &report)?;
    } else if !super::is_of_a_namespace_that_goes(&refused) {
        let why = format!("Failed to create new replica set {name:?}: {}", refused.message);
        if status::has_deadline(deployment) {
            status::set_progress(&mut report, "False", "ReplicaSetCreateError", &why, now);
            write_status(client, key, &report)?;
        }
        client.tell(deployment, Tone::Warning, "ReplicaSetCreateError", &why);
    }
    Err(refused)
}
