//! What is to be done about a StatefulSet (kubernetes v1.34 `pkg/controller/statefulset/stateful_set_control.go`).

use super::claims;
use super::identity::{self, Ordinals};
use crate::life::workload::revisions::HASH_LABEL;
use crate::life::workload::{count, counts, min_ready, pods, wanted_replicas};
use crate::object::Object;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// No more is done in one round.
const BURST: usize = 500;

/// The revision that pods have, and the one that they are to have.
#[derive(Debug)]
pub(super) struct Templates {
    pub(super) current: Arc<Object>,
    pub(super) update: Arc<Object>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Revision {
    Current,
    Update,
}

impl Templates {
    pub(super) fn get(&self, revision: Revision) -> &Object {
        match revision {
            Revision::Current => &self.current,
            Revision::Update => &self.update,
        }
    }
}

/// Something to do. What fails ends the round.
#[derive(Debug, PartialEq)]
pub(super) enum Action {
    Create {
        ordinal: i64,
        revision: Revision,
    },
    Delete(Arc<Object>),
    /// A pod that waits may wait for claims that somebody has deleted.
    MakeClaims(Arc<Object>, i64),
    OwnClaims(Arc<Object>, i64),
    /// Labels, and owners of claims, that say who a pod is.
    Identify(Arc<Object>, i64),
}

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) actions: Vec<Action>,
    pub(super) status: Value,
    /// A pod cannot come yet, because the claims of an earlier one are still there.
    pub(super) waits_for_claims: bool,
}

/// Finds a claim of the set's namespace.
pub(super) type FindClaim<'a> = &'a dyn Fn(&str) -> Option<Arc<Object>>;

struct Round<'a> {
    set: &'a Object,
    templates: &'a Templates,
    find_claim: FindClaim<'a>,
    now: Timestamp,
    /// One after the other, each when those before it are available.
    ordered: bool,
    actions: Vec<Action>,
    waits_for_claims: bool,
}

/// Pods by their numbers. Places without a pod are not there, for there may be very many.
type Pods = BTreeMap<i64, Arc<Object>>;

/// Whether the round goes on.
#[derive(PartialEq)]
enum Flow {
    Continue,
    Stop,
}

pub(super) fn plan(
    set: &Object,
    pods: &[Arc<Object>],
    templates: &Templates,
    find_claim: FindClaim<'_>,
    now: Timestamp,
) -> Plan {
    let ordered = set.text(&["spec", "podManagementPolicy"]) != "Parallel";
    let mut round = Round { set, templates, find_claim, now, ordered, actions: Vec::new(), waits_for_claims: false };
    let updated_away = if set.is_being_deleted() { 0 } else { round.play(pods) };
    let status = round.status(pods, updated_away);
    Plan { actions: round.actions, status, waits_for_claims: round.waits_for_claims }
}

impl Round<'_> {
    /// Says how many pods were taken away to be updated.
    fn play(&mut self, pods: &[Arc<Object>]) -> i64 {
        let ordinals = Ordinals::of(self.set);
        let numbered = pods.iter().filter_map(|pod| Some((identity::ordinal(pod)?, Arc::clone(pod))));
        let (kept, condemned): (Pods, Pods) = numbered.partition(|(ordinal, _)| ordinals.contains(*ordinal));
        for ordinal in ordinals.start..ordinals.end {
            let flow = match kept.get(&ordinal) {
                Some(pod) => self.tend(ordinal, pod),
                None => self.fill(ordinal),
            };
            if (flow == Flow::Stop && self.ordered) || self.actions.len() >= BURST {
                return 0;
            }
        }
        for (ordinal, pod) in &condemned {
            if !self.claims_are_owned_rightly(pod, *ordinal) {
                self.actions.push(Action::OwnClaims(Arc::clone(pod), *ordinal));
            }
        }
        let first_unavailable = kept.values().chain(condemned.values()).find(|pod| self.is_unavailable(pod));
        let first_unavailable = first_unavailable.map(|pod| pod.uid().to_owned());
        for pod in condemned.values().rev() {
            if self.dismiss(pod, first_unavailable.as_deref()) == Flow::Stop && self.ordered {
                return 0;
            }
        }
        self.update(ordinals, &kept)
    }

    /// Makes the pod that is missing at a place.
    fn fill(&mut self, ordinal: i64) -> Flow {
        let name = format!("{}-{ordinal}", self.set.name());
        let stale = self.claims(ordinal).iter().any(|claim| claims::is_stale(self.set, claim, &name));
        self.waits_for_claims |= stale;
        if !stale {
            self.actions.push(Action::Create { ordinal, revision: self.revision_for(ordinal) });
        }
        Flow::Stop
    }

    /// Looks after a pod of the set.
    fn tend(&mut self, ordinal: i64, pod: &Arc<Object>) -> Flow {
        if pods::is_finished(pod) {
            if !pod.is_being_deleted() {
                self.actions.push(Action::Delete(Arc::clone(pod)));
            }
            return Flow::Stop;
        }
        let has_claims = !self.set.list(&["spec", "volumeClaimTemplates"]).is_empty();
        if has_claims && pod.text(&["status", "phase"]) == "Pending" {
            self.actions.push(Action::MakeClaims(Arc::clone(pod), ordinal));
        }
        if self.ordered && self.is_unavailable(pod) {
            return Flow::Stop;
        }
        if !identity::is_labelled(pod) || !self.claims_are_owned_rightly(pod, ordinal) {
            self.actions.push(Action::Identify(Arc::clone(pod), ordinal));
        }
        Flow::Continue
    }

    /// Takes a pod away that is too many.
    fn dismiss(&mut self, pod: &Arc<Object>, first_unavailable: Option<&str>) -> Flow {
        if pod.is_being_deleted() {
            return Flow::Stop;
        }
        if self.ordered && !self.is_available(pod) && first_unavailable != Some(pod.uid()) {
            return Flow::Stop;
        }
        self.actions.push(Action::Delete(Arc::clone(pod)));
        Flow::Stop
    }

    /// Takes the last pod away that has another revision, if all after it are available.
    fn update(&mut self, ordinals: Ordinals, kept: &Pods) -> i64 {
        if self.set.text(&["spec", "updateStrategy", "type"]) == "OnDelete" {
            return 0;
        }
        let partition = count(self.set, &["spec", "updateStrategy", "rollingUpdate", "partition"]);
        for ordinal in (ordinals.start.saturating_add(partition)..ordinals.end).rev() {
            let Some(pod) = kept.get(&ordinal) else { return 0 };
            if pod.label(HASH_LABEL) != Some(self.templates.update.name()) && !pod.is_being_deleted() {
                self.actions.push(Action::Delete(Arc::clone(pod)));
                return 1;
            }
            if self.is_unavailable(pod) {
                return 0;
            }
        }
        0
    }

    fn revision_for(&self, ordinal: i64) -> Revision {
        let index = ordinal - count(self.set, &["spec", "ordinals", "start"]);
        let strategy = ["spec", "updateStrategy", "rollingUpdate"];
        let rolling = self.set.text(&["spec", "updateStrategy", "type"]) != "OnDelete";
        let first_updated = match self.set.at(&strategy) {
            Some(_) => count(self.set, &["spec", "updateStrategy", "rollingUpdate", "partition"]),
            None if rolling => count(self.set, &["status", "currentReplicas"]),
            None => 0,
        };
        if index < first_updated { Revision::Current } else { Revision::Update }
    }

    fn is_available(&self, pod: &Object) -> bool {
        pods::is_available(pod, min_ready(self.set), self.now)
    }

    fn is_unavailable(&self, pod: &Object) -> bool {
        !self.is_available(pod) || pod.is_being_deleted()
    }

    fn claims(&self, ordinal: i64) -> Vec<Arc<Object>> {
        let templates = self.set.list(&["spec", "volumeClaimTemplates"]).iter();
        templates.filter_map(|template| (self.find_claim)(&claims::name(self.set, template, ordinal))).collect()
    }

    fn claims_are_owned_rightly(&self, pod: &Object, ordinal: i64) -> bool {
        let stays = Ordinals::of(self.set).contains(ordinal);
        self.claims(ordinal).iter().all(|claim| claims::is_owned_rightly(self.set, claim, pod, stays))
    }

    fn status(&self, pods: &[Arc<Object>], updated_away: i64) -> Value {
        let number = |test: &dyn Fn(&Object) -> bool| {
            i64::try_from(pods.iter().filter(|pod| test(pod)).count()).unwrap_or(i64::MAX)
        };
        let running = |pod: &Object| pod.text(&["status", "phase"]) == "Running" && pods::is_ready(pod);
        let of = |revision: &Object| {
            number(&|pod| pod.label(HASH_LABEL) == Some(revision.name()) && !pod.is_being_deleted())
        };
        let (replicas, ready) = (number(&|_| true), number(&running));
        let updated = of(&self.templates.update);
        let mut current = of(&self.templates.current) - updated_away;
        let mut current_revision = self.templates.current.name();
        let wanted = wanted_replicas(self.set);
        let rolling = self.set.text(&["spec", "updateStrategy", "type"]) != "OnDelete";
        if rolling && [updated, ready, replicas] == [wanted; 3] {
            current = updated;
            current_revision = self.templates.update.name();
        }
        let available = number(&|pod| running(pod) && self.is_available(pod));
        let mut status = counts(
            &[("replicas", replicas), ("availableReplicas", available)],
            &[
                ("readyReplicas", ready),
                ("currentReplicas", current.max(0)),
                ("updatedReplicas", updated),
                ("observedGeneration", self.set.generation()),
            ],
        );
        status.insert("currentRevision".to_owned(), json!(current_revision));
        status.insert("updateRevision".to_owned(), json!(self.templates.update.name()));
        if let Some(conditions) = self.set.at(&["status", "conditions"]) {
            status.insert("conditions".to_owned(), conditions.clone());
        }
        Value::Object(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(replicas: i64, policy: &str, partition: i64) -> Object {
        Object::from_value(
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "uid": "s"},
            "spec": {"replicas": replicas, "podManagementPolicy": policy,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}}}),
        )
        .unwrap()
    }

    fn pod(ordinal: i64, revision: &str, ready: bool) -> Arc<Object> {
        let name = format!("db-{ordinal}");
        let ready = if ready { "True" } else { "False" };
        let pod = json!({"metadata": {"name": name, "uid": name, "labels": {HASH_LABEL: revision, "statefulset.kubernetes.io/pod-name": name}},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "1970-01-01T00:00:00Z"}]}});
        Arc::new(Object::from_value(pod).unwrap())
    }

    fn play(set: &Object, pods: &[Arc<Object>]) -> Vec<String> {
        let revision = |name: &str| Arc::new(Object::from_value(json!({"metadata": {"name": name}})).unwrap());
        let templates = Templates { current: revision("old"), update: revision("new") };
        let plan = plan(set, pods, &templates, &|_| None, Timestamp::UNIX_EPOCH);
        let word = |action: &Action| match action {
            Action::Create { ordinal, revision } => format!("create {ordinal} {revision:?}"),
            Action::Delete(pod) => format!("delete {}", pod.name()),
            other => format!("{other:?}"),
        };
        plan.actions.iter().map(word).collect()
    }

    #[test]
    fn pods_come_one_by_one_or_all_at_once() {
        assert_eq!(play(&set(3, "OrderedReady", 0), &[]), ["create 0 Update"]);
        assert_eq!(play(&set(3, "OrderedReady", 0), &[pod(0, "new", false)]), [""; 0]);
        assert_eq!(play(&set(3, "OrderedReady", 2), &[pod(0, "old", true)]), ["create 1 Current"]);
        assert_eq!(play(&set(2, "Parallel", 0), &[]), ["create 0 Update", "create 1 Update"]);
        assert_eq!(play(&set(i64::from(i32::MAX), "Parallel", 0), &[]).len(), BURST);
    }

    #[test]
    fn pods_go_from_the_last_one_down() {
        let pods = [pod(0, "new", true), pod(1, "new", true), pod(2, "new", true)];
        assert_eq!(play(&set(1, "OrderedReady", 0), &pods), ["delete db-2"]);
        assert_eq!(play(&set(1, "Parallel", 0), &pods), ["delete db-2", "delete db-1"]);
    }

    #[test]
    fn an_update_replaces_from_the_last_one_down_to_the_partition() {
        let all = |ready| [pod(0, "old", true), pod(1, "old", true), pod(2, "new", ready)];
        assert_eq!(play(&set(3, "OrderedReady", 0), &all(true)), ["delete db-1"]);
        assert_eq!(play(&set(3, "OrderedReady", 0), &all(false)), [""; 0]);
        assert_eq!(play(&set(3, "OrderedReady", 2), &all(true)), [""; 0]);
    }

    #[test]
    fn a_pod_that_never_got_ready_is_not_replaced_when_they_come_in_order() {
        assert_eq!(play(&set(1, "OrderedReady", 0), &[pod(0, "old", false)]), [""; 0]);
        assert_eq!(play(&set(1, "Parallel", 0), &[pod(0, "old", false)]), ["delete db-0"]);
    }
}
