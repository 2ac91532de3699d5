//! StatefulSets: pods with names that stay, one after the other, each with claims of its own.

mod claims;
mod identity;
mod plan;

use super::client::{Client, Tone};
use super::reconciler::Reconciler;
use super::workload::family::{Family, selector_of};
use super::workload::retries::Retries;
use super::workload::{apps, later, min_ready, pods, pods_storage, report, revisions};
use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::object::Object;
use crate::status::Status;
use crate::store::{Change, Key};
use identity::Ordinals;
use jiff::{SignedDuration, Timestamp};
use plan::{Action, Plan, Templates};
use std::sync::Arc;

/// How soon claims that are about to go are looked at again.
const CLAIMS_GO: SignedDuration = SignedDuration::from_secs(1);

/// StatefulSets that have to be looked at.
#[derive(Debug)]
pub(crate) struct StatefulSets {
    family: Family,
    retries: Retries,
}

impl StatefulSets {
    pub(crate) fn new() -> Self {
        let family = Family::new(apps("statefulsets"), "StatefulSet", pods_storage());
        Self { family, retries: Retries::default() }
    }
}

impl Reconciler for StatefulSets {
    fn concerned(&mut self, storage: &Storage, change: &Change, cluster: &mut Cluster) -> Vec<Key> {
        self.family.observe(storage, change, cluster)
    }

    fn reconcile(&mut self, cluster: &mut Cluster, key: &Key) -> Option<Timestamp> {
        let set = cluster.store.get(&apps("statefulsets"), key).cloned();
        let Some(set) = set.filter(|set| selector_of(set).is_some()) else {
            self.retries.forget(key);
            return None;
        };
        let mut client = Client::of_controller(cluster, "statefulset-controller");
        let now = client.now();
        let pods = self.family.claim_those(&mut client, &set, |pod| identity::is_member(&set, pod));
        match bring_on(&mut client, &set, &pods) {
            Ok(waits) => {
                self.retries.forget(key);
                let available = pods::next_available(pods.iter().map(AsRef::as_ref), min_ready(&set), now);
                available.into_iter().chain(waits.then(|| later(now, CLAIMS_GO))).min()
            }
            Err(status) if super::is_of_a_namespace_that_goes(&status) => None,
            Err(_) => Some(self.retries.fail(key, now)),
        }
    }
}

/// Says whether the set waits for claims of earlier pods to go.
fn bring_on(client: &mut Client<'_>, set: &Object, pods: &[Arc<Object>]) -> Result<bool, Status> {
    let known = revisions::list(client, set);
    let mut collisions = set.integer(&["status", "collisionCount"]).or(Some(0));
    let update = revisions::enact(client, set, &known, &["controller.kubernetes.io/hash"], &mut collisions)?;
    let current = known.iter().find(|revision| revision.name() == set.text(&["status", "currentRevision"]));
    let current = Arc::clone(current.unwrap_or(&update));
    let templates = Templates { current: Arc::clone(&current), update: Arc::clone(&update) };
    let claims = |name: &str| client.get(&Storage::core("persistentvolumeclaims"), &Key::new(set.namespace(), name));
    let Plan { actions, mut status, waits_for_claims } = plan::plan(set, pods, &templates, &claims, client.now());
    let done = actions.into_iter().try_for_each(|action| act(client, set, &templates, action));
    status["collisionCount"] = collisions.unwrap_or_default().into();
    let written = report(client, &apps("statefulsets"), set, status);
    let live: Vec<String> = pods
        .iter()
        .filter_map(|pod| pod.label(revisions::HASH_LABEL))
        .chain([current.name(), update.name()])
        .map(str::to_owned)
        .collect();
    revisions::truncate(client, set, &known, &live);
    done.and(written.map(|()| waits_for_claims))
}

fn act(client: &mut Client<'_>, set: &Object, templates: &Templates, action: Action) -> Result<(), Status> {
    match action {
        Action::Create { ordinal, revision } => {
            let pod = identity::pod(set, templates.get(revision), ordinal);
            claims::make(client, set, &pod, ordinal)?;
            let name = pod.name().to_owned();
            let made = client.create(&pods_storage(), pod);
            match made {
                Err(status) if status.reason == "AlreadyExists" => Err(status),
                made => {
                    if let Ok(pod) = &made {
                        claims::own(client, set, pod, ordinal, Ordinals::of(set).contains(ordinal));
                    }
                    tell(client, set, "create", &name, made.map(|_| ()))
                }
            }
        }
        Action::Delete(pod) => {
            let gone = client.delete(&pods_storage(), &Key::of(&pod)).map(|_| ());
            tell(client, set, "delete", pod.name(), gone)
        }
        Action::MakeClaims(pod, ordinal) => {
            claims::make(client, set, &pod, ordinal)?;
            claims::own(client, set, &pod, ordinal, Ordinals::of(set).contains(ordinal));
            Ok(())
        }
        Action::OwnClaims(pod, ordinal) => {
            claims::own(client, set, &pod, ordinal, Ordinals::of(set).contains(ordinal));
            Ok(())
        }
        Action::Identify(pod, ordinal) => {
            claims::own(client, set, &pod, ordinal, Ordinals::of(set).contains(ordinal));
            let changed = client.change(&pods_storage(), &Key::of(&pod), |pod| identity::label(pod, ordinal));
            tell(client, set, "update", pod.name(), changed.map(|_| ()))
        }
    }
}

fn tell(client: &mut Client<'_>, set: &Object, verb: &str, pod: &str, done: Result<(), Status>) -> Result<(), Status> {
    let title = match verb {
        "create" => "Create",
        "delete" => "Delete",
        _ => "Update",
    };
    let place = format!("{verb} Pod {pod} in StatefulSet {}", set.name());
    match &done {
        Ok(()) => client.tell(set, Tone::Normal, &format!("Successful{title}"), &format!("{place} successful")),
        Err(status) => {
            let why = format!("{place} failed error: {}", status.message);
            client.tell(set, Tone::Warning, &format!("Failed{title}"), &why);
        }
    }
    done
}
