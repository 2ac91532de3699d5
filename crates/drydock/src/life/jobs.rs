//! Jobs: pods are made until enough of them have succeeded, or too many failed (Kubernetes v1.34 `controller/job`).

mod backoff;
mod claim;
mod decide;
mod indexes;
mod pod;
mod policy;
mod progress;
mod spec;
mod sync;
mod template;
#[cfg(test)]
mod tests;
mod track;

use super::Controller;
use super::client::Client;
use super::queue::Queue;
use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::object::Object;
use crate::store::{Change, Key};
use backoff::Backoff;
use claim::Loose;
use jiff::{SignedDuration, Timestamp};
use pod::{controller_of, is_tracked};
pub(super) use progress::{finish, is_finished};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Changes of pods are gathered so long before their Job is looked at.
const BATCH: SignedDuration = SignedDuration::from_secs(1);
/// The first wait after a look that failed, and the longest.
const FIRST_RETRY: SignedDuration = SignedDuration::from_secs(1);
const LONGEST_RETRY: SignedDuration = SignedDuration::from_secs(60);

/// Jobs to look at, and what is remembered of those that are not over.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    queue: Queue<Key>,
    /// How often in a row looking at a Job has failed.
    failures: BTreeMap<Key, u32>,
    backoffs: BTreeMap<Key, Backoff>,
    /// Jobs that are not over and select their pods by labels that somebody has chosen.
    with_own_selectors: BTreeSet<Key>,
    loose: Loose,
    /// Pods that nobody may be left to count.
    orphans: BTreeSet<Key>,
}

impl Controller for Jobs {
    fn observe(&mut self, storage: &Storage, change: &Change, cluster: &mut Cluster) {
        if storage.is("", "pods") {
            self.loose.observe(change);
            match change {
                Change::Added(pod) => self.see_pod(None, pod, cluster),
                Change::Modified { before, after } => self.see_pod(Some(before), after, cluster),
                Change::Deleted { last, .. } => self.see_deletion(last, cluster),
            }
        } else if storage.is("batch", "jobs") {
            match change {
                Change::Added(job) => self.see_job(None, job, cluster),
                Change::Modified { before, after } => self.see_job(Some(before), after, cluster),
                Change::Deleted { last, .. } => {
                    self.forget(&Key::of(last));
                    self.free_pods(last, cluster);
                }
            }
        }
    }

    fn work(&mut self, cluster: &mut Cluster) -> bool {
        let mut client = Client::of_controller(cluster, "job-controller");
        let mut worked = !self.orphans.is_empty();
        while let Some(pod) = self.orphans.pop_first() {
            claim::let_go_of_orphan(&mut client, &pod);
        }
        while let Some(key) = self.queue.pop(client.now()) {
            worked = true;
            self.sync(&mut client, key);
        }
        worked
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.queue.next_due()
    }
}

impl Jobs {
    fn add(&mut self, key: Key, now: Timestamp, delay: SignedDuration) {
        self.queue.add(key, now.checked_add(delay).unwrap_or(Timestamp::MAX));
    }

    fn see_pod(&mut self, before: Option<&Arc<Object>>, pod: &Object, cluster: &Cluster) {
        if pod.is_being_deleted() {
            return self.see_deletion(pod, cluster);
        }
        let controller = controller_of(pod);
        let is_in_other_hands = before.is_some_and(|before| controller_of(before) != controller);
        if is_in_other_hands && let Some(job) = before.and_then(|before| claim::owner_of(cluster, before)) {
            self.add(Key::of(job), cluster.now, BATCH);
        }
        if controller.is_some() {
            if let Some(job) = claim::owner_of(cluster, pod) {
                self.add(Key::of(job), cluster.now, BATCH);
            }
            return;
        }
        if is_tracked(pod) {
            self.orphans.insert(Key::of(pod));
        }
        let labels = |pod: &Object| pod.at(&["metadata", "labels"]).cloned();
        if before.is_none_or(|before| is_in_other_hands || labels(before) != labels(pod)) {
            let own = self.with_own_selectors.iter().filter(|key| *key.namespace == *pod.namespace());
            let jobs: Vec<Key> = own.cloned().chain(claim::named_by_labels(cluster, pod)).collect();
            for job in jobs {
                self.add(job, cluster.now, BATCH);
            }
        }
    }

    fn see_deletion(&mut self, pod: &Object, cluster: &Cluster) {
        match claim::owner_of(cluster, pod) {
            Some(job) if !is_finished(job) => self.add(Key::of(job), cluster.now, BATCH),
            _ if is_tracked(pod) => {
                self.orphans.insert(Key::of(pod));
            }
            _ => {}
        }
    }

    fn see_job(&mut self, before: Option<&Arc<Object>>, job: &Object, cluster: &Cluster) {
        let key = Key::of(job);
        if is_finished(job) {
            self.forget(&key);
            self.free_pods(job, cluster);
            return;
        }
        if claim::has_own_selector(job) {
            self.with_own_selectors.insert(key.clone());
        }
        let is_same = before.is_some_and(|before| before.generation() == job.generation());
        self.add(key, cluster.now, if is_same { BATCH } else { SignedDuration::ZERO });
    }

    fn forget(&mut self, key: &Key) {
        self.queue.remove(key);
        self.failures.remove(key);
        self.backoffs.remove(key);
        self.with_own_selectors.remove(key);
    }

    /// Lets the pods go of a Job that no longer counts them.
    fn free_pods(&mut self, job: &Object, cluster: &Cluster) {
        let owned = cluster.store.owned_by(job.uid()).filter(|(storage, _)| storage.is("", "pods"));
        self.orphans.extend(owned.map(|(_, key)| key.clone()));
        self.orphans.extend(self.loose.near(job));
    }

    fn sync(&mut self, client: &mut Client<'_>, key: Key) {
        let Some(job) = client.get(&claim::jobs(), &key) else { return };
        if claim::is_managed_elsewhere(&job) || is_finished(&job) {
            return;
        }
        let backoff = self.backoffs.get(&key).copied().unwrap_or_default();
        let synced = sync::sync(client, &job, self.loose.near(&job), backoff);
        if let Some(backoff) = synced.backoff {
            self.backoffs.insert(key.clone(), backoff);
        }
        if let Some(delay) = synced.again_in {
            self.add(key.clone(), client.now(), delay.max(SignedDuration::from_millis(1)));
        }
        if synced.failure.is_none() {
            self.failures.remove(&key);
            return;
        }
        let failures = self.failures.entry(key.clone()).or_default();
        let delay = FIRST_RETRY.checked_mul(1 << (*failures).min(6)).unwrap_or(LONGEST_RETRY).min(LONGEST_RETRY);
        *failures = failures.saturating_add(1);
        self.add(key, client.now(), delay);
    }
}
