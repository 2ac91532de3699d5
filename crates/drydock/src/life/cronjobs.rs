//! CronJobs: a Job is made at each time of a schedule, and old ones are deleted
//! (Kubernetes v1.34 `controller/cronjob`).

mod due;
mod sync;

use super::Controller;
use super::client::Client;
use super::queue::Queue;
use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::object::Object;
use crate::store::{Change, Key};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// The first wait after a look that failed, and the longest.
const FIRST_RETRY: SignedDuration = SignedDuration::from_millis(5);
const LONGEST_RETRY: SignedDuration = SignedDuration::from_secs(1000);

/// CronJobs to look at.
#[derive(Debug, Default)]
pub(crate) struct CronJobs {
    queue: Queue<Key>,
    /// How often in a row looking at a CronJob has failed.
    failures: BTreeMap<Key, u32>,
}

impl Controller for CronJobs {
    fn observe(&mut self, storage: &Storage, change: &Change, cluster: &mut Cluster) {
        if storage.is("batch", "jobs") {
            let (before, after) = match change {
                Change::Added(job) => (None, Some(job)),
                Change::Modified { before, after } => (Some(before), Some(after)),
                Change::Deleted { before, .. } => (Some(before), None),
            };
            for job in before.into_iter().chain(after) {
                self.queue.extend_at(cluster.now, owner_of(cluster, job));
            }
        } else if storage.is("batch", "cronjobs") {
            match change {
                Change::Added(cron) => self.queue.add(Key::of(cron), cluster.now),
                Change::Modified { before, after } => {
                    let when = ["schedule", "timeZone"];
                    let is_same = when.iter().all(|field| before.at(&["spec", field]) == after.at(&["spec", field]));
                    let wait = if is_same { None } else { sync::next_in(after, cluster.now) };
                    let due = cluster.now.checked_add(wait.unwrap_or_default()).unwrap_or(cluster.now);
                    self.queue.add(Key::of(after), due);
                }
                Change::Deleted { last, .. } => {
                    self.queue.remove(&Key::of(last));
                    self.failures.remove(&Key::of(last));
                }
            }
        }
    }

    fn work(&mut self, cluster: &mut Cluster) -> bool {
        let mut client = Client::of_controller(cluster, "cronjob-controller");
        let mut worked = false;
        while let Some(key) = self.queue.pop(client.now()) {
            worked = true;
            let Some(cron) = client.get(&sync::cron_jobs(), &key) else { continue };
            let now = client.now();
            let wait = if let Ok(wait) = sync::sync(&mut client, &cron) {
                self.failures.remove(&key);
                wait
            } else {
                let failures = self.failures.entry(key.clone()).or_default();
                let doubled = FIRST_RETRY.checked_mul(1 << (*failures).min(18)).unwrap_or(LONGEST_RETRY);
                *failures = failures.saturating_add(1);
                Some(doubled.min(LONGEST_RETRY))
            };
            if let Some(due) = wait.and_then(|wait| now.checked_add(wait).ok()) {
                self.queue.add(key, due);
            }
        }
        worked
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.queue.next_due()
    }
}

/// The CronJob that controls a Job.
fn owner_of(cluster: &Cluster, job: &Object) -> Option<Key> {
    let owner = job.owners().find(|owner| owner.controller).filter(|owner| owner.kind == "CronJob")?;
    let key = Key::new(job.namespace(), owner.name);
    cluster.store.get(&sync::cron_jobs(), &key).filter(|cron| cron.uid() == owner.uid).map(|_| key)
}
