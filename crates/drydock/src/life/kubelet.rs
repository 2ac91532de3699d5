//! The kubelet: pods that are bound to a node run, stop and report, with the delays that a real node has.

mod container;
mod needs;
mod pod;
mod probes;
mod start;
mod status;

use super::Controller;
use super::client::Client;
use super::queue::Queue;
use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::object::Object;
use crate::store::{Change, Key};
use jiff::{SignedDuration, Timestamp};
use pod::Run;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// From a pod's binding until the kubelet first reports on it.
const ACCEPT: Duration = Duration::from_millis(15);
/// From then until its first container can start.
const SANDBOX: Duration = Duration::from_millis(450);
/// From a start until it is reported.
const REPORT_START: Duration = Duration::from_millis(300);
/// A container's end is noticed so long after it…
const NOTICE_EXIT: Duration = Duration::from_millis(600);
/// …but not sooner than so long after its start.
const NOTICE_AFTER_START: Duration = Duration::from_millis(1300);
/// From the last container's end until the pod has a final phase.
const FINISH: Duration = Duration::from_millis(1100);
/// From the last container's end until a pod that is being deleted is gone.
const REMOVE: Duration = Duration::from_millis(300);
/// How soon what could not start is tried again.
const RETRY: Duration = Duration::from_secs(12);

/// All pods that are on nodes, by their uids.
#[derive(Debug, Default)]
pub(crate) struct Kubelet {
    runs: BTreeMap<String, Run>,
    queue: Queue<String>,
    /// Pods of lost nodes, that wait until the node is heard of again.
    cut_off: BTreeSet<String>,
    /// How many outages began or ended before this was last looked at.
    seen: u64,
}

impl Controller for Kubelet {
    fn observe(&mut self, storage: &Storage, change: &Change, cluster: &mut Cluster) {
        if !storage.is("", "pods") {
            return;
        }
        match change {
            Change::Added(pod) | Change::Modified { after: pod, .. } if !pod.text(&["spec", "nodeName"]).is_empty() => {
                let uid = pod.uid().to_owned();
                let due = if self.runs.contains_key(&uid) { cluster.now } else { after(cluster.now, ACCEPT) };
                self.runs.entry(uid.clone()).or_insert_with(|| Run::new(pod));
                self.queue.add(uid, due);
            }
            Change::Deleted { last, .. } => {
                self.runs.remove(last.uid());
                self.cut_off.remove(last.uid());
                self.queue.remove(&last.uid().to_owned());
                cluster.logs.forget(last.uid());
            }
            _ => {}
        }
    }

    fn work(&mut self, cluster: &mut Cluster) -> bool {
        if self.seen != cluster.outages.changes() {
            self.seen = cluster.outages.changes();
            for uid in std::mem::take(&mut self.cut_off) {
                self.queue.add(uid, cluster.now);
            }
        }
        let mut worked = false;
        while let Some(uid) = self.queue.pop(cluster.now) {
            worked = true;
            let Some(run) = self.runs.get_mut(&uid) else { continue };
            let Some(pod) = find(cluster, &run.key, &uid) else { continue };
            if cluster.outages.is_lost(pod.text(&["spec", "nodeName"])) {
                self.cut_off.insert(uid);
                continue;
            }
            let mut client = Client::new(cluster, "kubelet", "kubelet");
            if let Some(due) = run.sync(&mut client, &pod) {
                self.queue.add(uid, due);
            }
        }
        worked
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.queue.next_due()
    }
}

fn find(cluster: &Cluster, key: &Key, uid: &str) -> Option<std::sync::Arc<Object>> {
    cluster.store.get(&Storage::core("pods"), key).filter(|pod| pod.uid() == uid).cloned()
}

/// A time so much later.
fn after(time: Timestamp, duration: Duration) -> Timestamp {
    let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}

/// How much later a time is, zero if it is earlier.
fn since(start: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(start)).unwrap_or_default()
}
