//! Whether a Deployment has to be restarted, and whether it has been: what `kubectl rollout status` asks, and that no
//! pod of before is left. Pure.

use super::issue::later;
use super::secrets::FIELD_MANAGER;
use crate::readiness::{self, Readiness};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::ResourceExt as _;
use kube::core::Selector;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// On pods: the fingerprint of the certificate for which they were restarted.
pub(super) const CERTIFICATE: &str = "jobwright.io/certificate";
const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";
/// API servers of one cluster do not differ by more.
const CLOCKS_DIFFER: Duration = Duration::from_secs(5);

/// How a Deployment stands to a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rollout {
    /// Pods of it may have loaded the pair before: it has to be restarted.
    Restart,
    /// It is on its way, and what it waits for.
    Waiting(String),
    /// It will not come up without help.
    Failed(String),
    /// It is rolled out. `proven` if every pod of it has surely started with this pair.
    Done { proven: bool },
}

/// A pair, as Deployments and pods know it.
#[derive(Clone, Debug)]
pub(super) struct Stamp {
    /// The fingerprint of its certificate.
    pub(super) fingerprint: String,
    /// When it was written, by the clock of the server.
    pub(super) written_at: Option<Timestamp>,
    /// When its Secret was made, if that has held no other pair: nobody could start without it.
    pub(super) made_at: Option<Timestamp>,
    /// Whether servers may still show the pair before it.
    pub(super) is_unfinished: bool,
}

impl Stamp {
    fn is_on(&self, annotations: &std::collections::BTreeMap<String, String>) -> bool {
        annotations.get(CERTIFICATE).is_some_and(|fingerprint| *fingerprint == self.fingerprint)
    }

    /// Whether a pod has started with this pair: it was restarted for it, made later than it, or could not have started
    /// before.
    fn is_loaded_by(&self, pod: &Pod, slack: Duration) -> bool {
        let made = pod.creation_timestamp().map(|time| time.0);
        let is_younger = made.zip(self.written_at).is_some_and(|(made, written)| made > later(written, slack));
        let has_waited = self.made_at.is_some_and(|made| first_start(pod).is_none_or(|started| started >= made));
        self.is_on(pod.annotations()) || is_younger || has_waited
    }
}

/// When the first container of a pod that still runs, or ran before, has started; none if none has.
fn first_start(pod: &Pod) -> Option<Timestamp> {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    let started =
        statuses.iter().flat_map(|status| [&status.state, &status.last_state]).flatten().filter_map(|state| {
            let running = state.running.as_ref().and_then(|running| running.started_at.as_ref());
            running.or(state.terminated.as_ref().and_then(|terminated| terminated.started_at.as_ref()))
        });
    started.map(|time| time.0).min()
}

/// Whether every pod that may serve has surely started with a pair.
pub(super) fn is_proven(pods: &[Pod], stamp: &Stamp) -> bool {
    living(pods).all(|pod| stamp.is_loaded_by(pod, CLOCKS_DIFFER))
}

/// Those of some pods that belong to a Deployment: by their owners, as labels may be on anything.
pub(super) fn owned_pods(deployment: &Deployment, sets: &[ReplicaSet], pods: Vec<Pod>) -> Vec<Pod> {
    let owner = |metadata: &ObjectMeta| controller(metadata).map(|controller| controller.uid.clone());
    let uid = deployment.metadata.uid.clone();
    let sets = sets.iter().filter(|set| uid.is_some() && owner(&set.metadata) == uid);
    let sets: BTreeSet<String> = sets.filter_map(|set| set.metadata.uid.clone()).collect();
    pods.into_iter().filter(|pod| owner(&pod.metadata).is_some_and(|owner| sets.contains(&owner))).collect()
}

fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|reference| reference.controller == Some(true))
}

/// Whether a pod only stands by: the pod of a Job without the Secret serves nobody, though its labels may put it behind the
/// Service. Our own is such a pod.
pub(super) fn is_bystander(pod: &Pod, secret: &str) -> bool {
    let is_of_job = controller(&pod.metadata).is_some_and(|owner| owner.kind == "Job");
    is_of_job && !serde_json::to_value(&pod.spec).is_ok_and(|spec| refers_to(&spec, secret))
}

/// Whether a part of a pod refers to a Secret, as a volume or for its environment.
fn refers_to(part: &Value, secret: &str) -> bool {
    match part {
        Value::Object(fields) => fields.iter().any(|(key, value)| match key.as_str() {
            "secretName" => value == secret,
            "secret" | "secretRef" | "secretKeyRef" => value["name"] == secret || refers_to(value, secret),
            _ => refers_to(value, secret),
        }),
        Value::Array(items) => items.iter().any(|item| refers_to(item, secret)),
        _ => false,
    }
}

fn living(pods: &[Pod]) -> impl Iterator<Item = &Pod> + Clone {
    let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default();
    pods.iter().filter(move |pod| !matches!(phase(pod).as_str(), "Succeeded" | "Failed"))
}

/// Says how a Deployment stands to a pair. `pods` are its own.
pub(super) fn judge(deployment: &Deployment, pods: &[Pod], stamp: &Stamp) -> Rollout {
    let living = living(pods);
    let proven = is_proven(pods, stamp);
    if !stamp.is_unfinished {
        return Rollout::Done { proven };
    }
    let stale = || living.clone().filter(|pod| !stamp.is_loaded_by(pod, Duration::ZERO));
    let template = deployment.spec.as_ref().and_then(|spec| spec.template.metadata.as_ref());
    let is_restarted = template.and_then(|metadata| metadata.annotations.as_ref()).is_some_and(|all| stamp.is_on(all));
    let is_paused = deployment.spec.as_ref().and_then(|spec| spec.paused).unwrap_or_default();
    if !is_restarted && stale().any(|pod| pod.metadata.deletion_timestamp.is_none()) {
        return Rollout::Restart;
    }
    if is_paused && stale().next().is_some() {
        return Rollout::Failed("it is paused: `kubectl rollout resume` lets it go on".to_owned());
    }
    let object = serde_json::to_value(deployment).unwrap_or_default();
    match readiness::judge("Deployment", &object) {
        Readiness::Failed(reason) => Rollout::Failed(reason),
        Readiness::Waiting(what) => Rollout::Waiting(what),
        Readiness::Ready => match stale().next() {
            Some(pod) => Rollout::Waiting(format!("pod `{}` of before is still there", pod.name_any())),
            None => Rollout::Done { proven },
        },
    }
}

/// What restarts a Deployment, as `kubectl rollout restart` does; only the very one that was looked at.
pub(super) fn restart(deployment: &Deployment, fingerprint: &str, now: Timestamp) -> Value {
    let seconds = Timestamp::from_second(now.as_second()).unwrap_or(now);
    json!({
        "metadata": {"resourceVersion": deployment.resource_version()},
        "spec": {"template": {"metadata": {"annotations": {
            RESTARTED_AT: seconds.to_string(),
            CERTIFICATE: fingerprint,
        }}}},
    })
}

/// How restarts are written.
pub(super) fn parameters() -> kube::api::PatchParams {
    kube::api::PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..kube::api::PatchParams::default() }
}

/// The pods of a Deployment, as a selector; none if it selects in a way that nobody knows.
pub(super) fn selector(deployment: &Deployment) -> Option<String> {
    let selector = deployment.spec.as_ref()?.selector.clone();
    Selector::try_from(selector).ok().map(|selector| selector.to_string()).filter(|text| !text.is_empty())
}
