//! Jobs that are over are deleted after their time (Kubernetes v1.34 `controller/ttlafterfinished`).

use super::Controller;
use super::client::Client;
use super::jobs::finish;
use super::queue::Queue;
use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::object::Object;
use crate::store::{Change, Key};
use crate::verbs::delete::{DeleteOptions, Propagation};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// How soon a deletion that was refused is tried again.
const RETRY: SignedDuration = SignedDuration::from_secs(1);

/// How long a real controller takes to see that a Job has ended, to ask for it once more and to delete it: with a TTL of
/// 0, clients see the end before it is gone.
const REACTION: SignedDuration = SignedDuration::from_millis(20);

/// Jobs that are to be deleted.
#[derive(Debug, Default)]
pub(crate) struct TimeToLive {
    queue: Queue<Key>,
}

impl Controller for TimeToLive {
    fn observe(&mut self, storage: &Storage, change: &Change, cluster: &mut Cluster) {
        if !storage.is("batch", "jobs") {
            return;
        }
        match change {
            Change::Added(job) | Change::Modified { after: job, .. } => {
                self.queue.remove(&Key::of(job));
                if let Some(end) = expiry(job) {
                    let soonest = cluster.now.checked_add(REACTION).unwrap_or(Timestamp::MAX);
                    self.queue.add(Key::of(job), end.max(soonest));
                }
            }
            Change::Deleted { last, .. } => self.queue.remove(&Key::of(last)),
        }
    }

    fn work(&mut self, cluster: &mut Cluster) -> bool {
        let mut worked = false;
        while let Some(key) = self.queue.pop(cluster.now) {
            worked = true;
            let mut client = Client::of_controller(cluster, "ttl-after-finished-controller");
            let Some(job) = client.get(&Storage::new("batch", "jobs"), &key) else { continue };
            let options = DeleteOptions {
                propagation: Some(Propagation::Foreground),
                uid: Some(job.uid().to_owned()),
                ..DeleteOptions::default()
            };
            if client.delete_with(&Storage::new("batch", "jobs"), &key, &options).is_err() {
                self.queue.add(key, cluster.now.checked_add(RETRY).unwrap_or(Timestamp::MAX));
            }
        }
        worked
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.queue.next_due()
    }
}

/// When a Job is to be deleted.
fn expiry(job: &Object) -> Option<Timestamp> {
    let seconds = job.integer(&["spec", "ttlSecondsAfterFinished"]).filter(|_| !job.is_being_deleted())?;
    let end: Timestamp = finish(job)?.get("lastTransitionTime").and_then(Value::as_str)?.parse().ok()?;
    end.checked_add(SignedDuration::from_secs(seconds)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_job_expires_so_long_after_its_end() {
        let job = |seconds: Value, condition: &str| {
            let end = json!({"type": condition, "status": "True", "lastTransitionTime": "2026-11-16T01:00:00Z"});
            let job = json!({"spec": {"ttlSecondsAfterFinished": seconds}, "status": {"conditions": [end]}});
            expiry(&Object::from_value(job).unwrap()).map(|time| time.to_string())
        };
        assert_eq!(job(json!(60), "Complete").as_deref(), Some("2026-11-16T01:01:00Z"));
        assert_eq!(job(json!(0), "Failed").as_deref(), Some("2026-11-16T01:00:00Z"));
        assert_eq!(job(Value::Null, "Complete"), None);
        assert_eq!(job(json!(60), "SuccessCriteriaMet"), None);
        assert_eq!(job(json!(i64::MAX), "Complete"), None);
    }
}
