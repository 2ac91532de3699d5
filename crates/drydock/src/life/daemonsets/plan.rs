//! What is to be done about a DaemonSet (kubernetes v1.34 `pkg/controller/daemon/daemon_controller.go`).

use super::Told;
use super::node::{self, Fit};
use super::update;
use crate::life::client::Tone;
use crate::life::workload::amount::{Rounding, resolve};
use crate::life::workload::revisions::HASH_LABEL;
use crate::life::workload::{counts, created, min_ready, pods};
use crate::object::Object;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A DaemonSet, the nodes, and its pods on them, oldest first.
pub(super) struct Daemons<'a> {
    pub(super) set: &'a Object,
    pub(super) fits: BTreeMap<&'a str, Fit>,
    pub(super) pods: BTreeMap<String, Vec<Arc<Object>>>,
    pub(super) hash: &'a str,
    pub(super) now: Timestamp,
    min_ready: SignedDuration,
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The nodes that get a pod.
    pub(super) create: Vec<String>,
    pub(super) delete: Vec<Arc<Object>>,
    pub(super) told: Vec<Told>,
}

impl<'a> Daemons<'a> {
    pub(super) fn new(
        set: &'a Object,
        nodes: &'a [Arc<Object>],
        members: Vec<Arc<Object>>,
        hash: &'a str,
        now: Timestamp,
    ) -> Self {
        let fits = nodes.iter().map(|node| (node.name(), node::fit(set, node))).collect();
        let mut pods: BTreeMap<String, Vec<Arc<Object>>> = BTreeMap::new();
        for pod in members {
            // Those that have ended and are told to go are as good as gone.
            if !(pods::is_finished(&pod) && pod.is_being_deleted()) {
                pods.entry(node::of_pod(&pod).to_owned()).or_default().push(pod);
            }
        }
        for pods in pods.values_mut() {
            pods.sort_by_cached_key(|pod| {
                (pod.text(&["spec", "nodeName"]).is_empty(), created(pod), pod.name().to_owned())
            });
        }
        Self { set, fits, pods, hash, now, min_ready: min_ready(set) }
    }

    pub(super) fn is_available(&self, pod: &Object) -> bool {
        pods::is_available(pod, self.min_ready, self.now)
    }

    pub(super) fn is_updated(&self, pod: &Object) -> bool {
        let generation = self.set.annotation("deprecated.daemonset.template.generation");
        pod.label(HASH_LABEL) == Some(self.hash)
            || (generation.is_some() && pod.label("pod-template-generation") == generation)
    }

    pub(super) fn on(&self, node: &str) -> &[Arc<Object>] {
        self.pods.get(node).map_or(&[], Vec::as_slice)
    }

    pub(super) fn wanted(&self) -> i64 {
        i64::try_from(self.fits.values().filter(|fit| **fit == Fit::Wanted).count()).unwrap_or(i64::MAX)
    }

    pub(super) fn surge(&self) -> i64 {
        let surge = self.set.at(&["spec", "updateStrategy", "rollingUpdate", "maxSurge"]);
        resolve(surge.filter(|_| self.rolls()), self.wanted(), Rounding::Up)
    }

    pub(super) fn unavailable(&self) -> i64 {
        let amount = self.set.at(&["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"]);
        let unavailable = resolve(amount, self.wanted(), Rounding::Up);
        if unavailable == 0 && self.surge() == 0 { 1 } else { unavailable }
    }

    fn rolls(&self) -> bool {
        self.set.text(&["spec", "updateStrategy", "type"]) != "OnDelete"
    }

    /// What to do: first what is missing or too much, and when there is nothing of that, the update.
    pub(super) fn plan(&self) -> Plan {
        let mut plan = Plan::default();
        for (name, fit) in &self.fits {
            self.tend(name, *fit, &mut plan);
        }
        let known: BTreeSet<&str> = self.fits.keys().copied().collect();
        for (node, pods) in self.pods.iter().filter(|(node, _)| !known.contains(node.as_str())) {
            let lost = pods.iter().filter(|pod| pod.text(&["spec", "nodeName"]).is_empty() && !node.is_empty());
            plan.delete.extend(lost.filter(|pod| !pod.is_being_deleted()).cloned());
        }
        if plan.create.is_empty() && plan.delete.is_empty() && self.rolls() {
            update::update(self, &mut plan);
        }
        plan
    }

    fn tend(&self, node: &str, fit: Fit, plan: &mut Plan) {
        let pods = self.on(node);
        if fit == Fit::Wanted && pods.is_empty() {
            plan.create.push(node.to_owned());
            return;
        }
        let staying = pods.iter().filter(|pod| !pod.is_being_deleted());
        if fit == Fit::Unwanted {
            plan.delete.extend(staying.cloned());
            return;
        }
        let mut running = Vec::new();
        for pod in staying {
            let place = format!("{}/{} on node {node}", pod.namespace(), pod.name());
            match pod.text(&["status", "phase"]) {
                "Failed" => {
                    let message = format!("Found failed daemon pod {place}, will try to kill it");
                    plan.told.push((Tone::Warning, "FailedDaemonPod", message));
                    plan.delete.push(Arc::clone(pod));
                }
                "Succeeded" => {
                    let message = format!("Found succeeded daemon pod {place}, will try to delete it");
                    plan.told.push((Tone::Normal, "SucceededDaemonPod", message));
                    plan.delete.push(Arc::clone(pod));
                }
                _ => running.push(pod),
            }
        }
        if self.surge() == 0 {
            plan.delete.extend(running.into_iter().skip(1).cloned());
        } else if running.is_empty() && fit == Fit::Wanted {
            plan.create.push(node.to_owned());
        } else {
            self.thin_out(&running, plan);
        }
    }

    /// While an update surges, an old pod stays beside a new one until that one is available.
    fn thin_out(&self, running: &[&Arc<Object>], plan: &mut Plan) {
        let (new, old): (Vec<&Arc<Object>>, Vec<&Arc<Object>>) =
            running.iter().partition(|pod| pod.label(HASH_LABEL) == Some(self.hash));
        let more = new.iter().skip(1).chain(old.iter().skip(1));
        plan.delete.extend(more.map(|pod| Arc::clone(pod)));
        if let (Some(new), Some(old)) = (new.first(), old.first())
            && (!pods::is_ready(old) || self.is_available(new))
        {
            plan.delete.push(Arc::clone(old));
        }
    }

    pub(super) fn status(&self) -> Map<String, Value> {
        let (mut current, mut misplaced, mut ready, mut updated, mut available) = (0, 0, 0, 0, 0);
        for (name, fit) in &self.fits {
            let Some(pod) = self.on(name).first() else { continue };
            if *fit != Fit::Wanted {
                misplaced += 1;
                continue;
            }
            current += 1;
            ready += i64::from(pods::is_ready(pod));
            available += i64::from(self.is_available(pod));
            updated += i64::from(self.is_updated(pod));
        }
        let wanted = self.wanted();
        counts(
            &[
                ("currentNumberScheduled", current),
                ("numberMisscheduled", misplaced),
                ("desiredNumberScheduled", wanted),
                ("numberReady", ready),
            ],
            &[
                ("observedGeneration", self.set.generation()),
                ("updatedNumberScheduled", updated),
                ("numberAvailable", available),
                ("numberUnavailable", wanted - available),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(strategy: &Value) -> Object {
        Object::from_value(
            json!({"metadata": {"name": "agent"}, "spec": {"updateStrategy": strategy, "template": {"spec": {}}}}),
        )
        .unwrap()
    }

    fn nodes(number: usize) -> Vec<Arc<Object>> {
        let node = |number: usize| Object::from_value(json!({"metadata": {"name": format!("n{number}")}})).unwrap();
        (0..number).map(|number| Arc::new(node(number))).collect()
    }

    fn pod(node: usize, hash: &str, ready: bool) -> Arc<Object> {
        let ready = if ready { "True" } else { "False" };
        let pod = json!({"metadata": {"name": format!("p{node}{hash}"), "labels": {HASH_LABEL: hash}}, "spec": {"nodeName": format!("n{node}")},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "1970-01-01T00:00:00Z"}]}});
        Arc::new(Object::from_value(pod).unwrap())
    }

    fn plan(strategy: &Value, number: usize, pods: Vec<Arc<Object>>) -> (Vec<String>, Vec<String>) {
        let (set, nodes) = (set(strategy), nodes(number));
        let plan = Daemons::new(&set, &nodes, pods, "new", Timestamp::UNIX_EPOCH).plan();
        (plan.create, plan.delete.iter().map(|pod| pod.name().to_owned()).collect())
    }

    fn words(list: &[&str]) -> Vec<String> {
        list.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn nodes_without_a_pod_get_one_and_second_ones_go() {
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}});
        assert_eq!(plan(&rolling, 3, vec![pod(1, "new", true)]), (words(&["n0", "n2"]), words(&[])));
        assert_eq!(plan(&rolling, 1, vec![pod(0, "new", true), pod(0, "old", true)]).1.len(), 1);
    }

    #[test]
    fn an_update_takes_so_many_at_once() {
        let old = |ready| vec![pod(0, "old", true), pod(1, "old", ready), pod(2, "old", true)];
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}});
        assert_eq!(plan(&rolling, 3, old(true)), (words(&[]), words(&["p0old", "p1old"])));
        assert_eq!(
            plan(&rolling, 3, old(false)),
            (words(&[]), words(&["p1old", "p0old"])),
            "those that do not work first"
        );
        assert_eq!(plan(&json!({"type": "OnDelete"}), 3, old(true)), (words(&[]), words(&[])));
    }

    #[test]
    fn a_surge_brings_new_ones_before_old_ones_go() {
        let surge = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}});
        let pods = vec![pod(0, "old", true), pod(1, "old", true)];
        assert_eq!(plan(&surge, 2, pods.clone()), (words(&["n0"]), words(&[])));
        let both = |ready| [pods.clone(), vec![pod(0, "new", ready)]].concat();
        assert_eq!(plan(&surge, 2, both(false)), (words(&[]), words(&[])));
        assert_eq!(plan(&surge, 2, both(true)), (words(&[]), words(&["p0old"])));
    }
}
