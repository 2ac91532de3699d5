//! What a witness has seen.

use super::watch::Change;
use crate::object::Object;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Everything seen so far.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Container ids by the name of what they belong to.
    containers: BTreeMap<String, BTreeSet<String>>,
    /// Versions of the Pods that are there, by uid.
    pods: BTreeMap<String, String>,
    /// Jobs that are there, by uid, and whether each is at rest.
    jobs: BTreeMap<String, bool>,
    /// How Jobs with a made-up name are called: `g-*`.
    names: BTreeMap<String, String>,
}

impl Seen {
    pub(super) fn pod(&mut self, change: Change) {
        match change {
            Change::Is(pod) => {
                self.count(&pod);
                self.pods.insert(pod.metadata.uid, pod.metadata.resource_version);
            }
            Change::Gone(pod) => {
                self.count(&pod);
                self.pods.remove(&pod.metadata.uid);
            }
            Change::All(pods) => {
                self.pods.clear();
                for pod in pods {
                    self.pod(Change::Is(pod));
                }
            }
        }
    }

    pub(super) fn job(&mut self, change: Change) {
        match change {
            Change::Is(job) => {
                self.names.insert(job.metadata.name.clone(), job.name());
                self.jobs.insert(job.metadata.uid.clone(), job.is_at_rest());
            }
            Change::Gone(job) => {
                self.jobs.remove(&job.metadata.uid);
            }
            Change::All(jobs) => {
                self.jobs.clear();
                for job in jobs {
                    self.job(Change::Is(job));
                }
            }
        }
    }

    pub(super) fn jobs_at_rest(&self) -> bool {
        self.jobs.values().all(|at_rest| *at_rest)
    }

    /// Counts the containers of a Pod that were started.
    pub(super) fn count(&mut self, pod: &Object) {
        let ids = started(pod);
        if !ids.is_empty() {
            self.containers.entry(belongs_to(pod)).or_default().extend(ids);
        }
    }

    /// Whether it knows these Pods at least as they are, and no others.
    pub(super) fn has_caught_up(&self, pods: &[&Object]) -> bool {
        let number = |version: &str| version.parse::<u64>().unwrap_or_default();
        let knows = |pod: &Object| {
            let known = self.pods.get(&pod.metadata.uid);
            known.is_some_and(|known| number(known) >= number(&pod.metadata.resource_version))
        };
        pods.iter().all(|pod| knows(pod)) && self.pods.keys().all(|uid| pods.iter().any(|pod| pod.metadata.uid == *uid))
    }

    /// How many containers were started of what is called so.
    pub(super) fn runs_of(&self, name: &str) -> usize {
        let called = |known: &String| self.names.get(known).unwrap_or(known) == name;
        self.containers.iter().filter(|(known, _)| called(known)).map(|(_, ids)| ids.len()).sum()
    }

    /// How many containers were started of Jobs whose names start so.
    pub(super) fn runs_like(&self, start: &str) -> usize {
        self.containers.iter().filter(|(known, _)| known.starts_with(start)).map(|(_, ids)| ids.len()).sum()
    }

    /// `d 1, x 2`, or `none`
    pub(super) fn runs(&self) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (name, ids) in &self.containers {
            let name = self.names.get(name).unwrap_or(name);
            *counts.entry(name).or_default() += ids.len();
        }
        if counts.is_empty() {
            return "none".to_owned();
        }
        counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
    }
}

/// The Job or Deployment that a Pod belongs to, else its own name.
fn belongs_to(pod: &Object) -> String {
    match pod.controller() {
        Some(owner) if owner.kind == "ReplicaSet" => {
            let hash = pod.metadata.labels.get("pod-template-hash").map(|hash| format!("-{hash}"));
            let deployment = hash.and_then(|hash| owner.name.strip_suffix(&hash).map(str::to_owned));
            deployment.unwrap_or_else(|| owner.name.clone())
        }
        Some(owner) => owner.name.clone(),
        None => pod.name(),
    }
}

/// The ids of containers that were started: a container has one from then on, also after a restart.
fn started(pod: &Object) -> BTreeSet<String> {
    let statuses = pod.status["containerStatuses"].as_array().into_iter().flatten();
    statuses
        .flat_map(|status| {
            [
                &status["containerID"],
                &status["state"]["terminated"]["containerID"],
                &status["lastState"]["terminated"]["containerID"],
            ]
        })
        .filter_map(Value::as_str)
        .filter(|id| !id.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(uid: &str, version: &str, owner: Option<(&str, &str)>, id: &str) -> Object {
        let owners: Vec<Value> =
            owner.iter().map(|(kind, name)| json!({"kind": kind, "name": name, "controller": true})).collect();
        serde_json::from_value(json!({
            "metadata": {"name": format!("pod-{uid}"), "uid": uid, "resourceVersion": version,
                "labels": {"pod-template-hash": "abc"}, "ownerReferences": owners},
            "status": {"containerStatuses": [{"containerID": id, "lastState": {}}]},
        }))
        .unwrap()
    }

    #[test]
    fn every_container_counts_once_for_what_it_belongs_to() {
        let mut seen = Seen::default();
        seen.pod(Change::Is(pod("1", "5", Some(("Job", "x")), "")));
        assert_eq!(seen.runs(), "none");
        seen.pod(Change::Is(pod("1", "6", Some(("Job", "x")), "c1")));
        seen.pod(Change::Gone(pod("1", "7", Some(("Job", "x")), "c1")));
        seen.pod(Change::Is(pod("2", "8", Some(("Job", "x")), "c2")));
        seen.pod(Change::Is(pod("3", "9", Some(("ReplicaSet", "d-abc")), "c3")));
        seen.pod(Change::Is(pod("4", "10", None, "c4")));
        assert_eq!(seen.runs(), "d 1, pod-4 1, x 2");
    }

    #[test]
    fn made_up_names_have_a_star() {
        let mut seen = Seen::default();
        let job = json!({"metadata": {"name": "g-12345", "generateName": "g-", "uid": "j"}});
        seen.job(Change::Is(serde_json::from_value(job).unwrap()));
        seen.pod(Change::Is(pod("1", "5", Some(("Job", "g-12345")), "c1")));
        assert_eq!(seen.runs(), "g-* 1");
    }

    #[test]
    fn it_has_caught_up_when_it_knows_the_same_pods() {
        let mut seen = Seen::default();
        let one = pod("1", "9", None, "c1");
        assert!(!seen.has_caught_up(&[&one]));
        seen.pod(Change::Is(pod("1", "8", None, "c1")));
        assert!(!seen.has_caught_up(&[&one]));
        seen.pod(Change::Is(pod("1", "10", None, "c1")));
        assert!(seen.has_caught_up(&[&one]));
        assert!(!seen.has_caught_up(&[]), "the deletion has not arrived");
    }

    #[test]
    fn a_job_that_will_be_removed_is_not_at_rest() {
        let finished = json!({"conditions": [{"type": "Complete", "status": "True"}]});
        let mut seen = Seen::default();
        let mut job = |spec: Value, status: &Value| {
            let job = json!({"metadata": {"name": "x", "uid": "j"}, "spec": spec, "status": status});
            seen.job(Change::Is(serde_json::from_value(job).unwrap()));
            seen.jobs_at_rest()
        };
        assert!(!job(json!({}), &json!({})));
        assert!(job(json!({}), &finished));
        assert!(!job(json!({"ttlSecondsAfterFinished": 0}), &finished));
        assert!(job(json!({"ttlSecondsAfterFinished": 600}), &finished));
    }
}
