//! Controllers that look at one object at a time: a write says which objects it concerns, and each is brought one step
//! further when its time has come.

use super::Controller;
use super::queue::Queue;
use super::workload::soon;
use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::store::{Change, Key};
use jiff::Timestamp;

/// Brings objects of one kind one step further.
pub(crate) trait Reconciler: Send {
    /// The objects that a write concerns.
    fn concerned(&mut self, storage: &Storage, change: &Change, cluster: &mut Cluster) -> Vec<Key>;

    /// Brings an object one step further. Says when to look again.
    fn reconcile(&mut self, cluster: &mut Cluster, key: &Key) -> Option<Timestamp>;
}

/// A reconciler with the objects that it has to look at.
#[derive(Debug)]
pub(crate) struct Reconciling<R> {
    reconciler: R,
    queue: Queue<Key>,
}

impl<R> Reconciling<R> {
    pub(crate) fn new(reconciler: R) -> Self {
        Self { reconciler, queue: Queue::default() }
    }
}

impl<R: Reconciler> Controller for Reconciling<R> {
    fn observe(&mut self, storage: &Storage, change: &Change, cluster: &mut Cluster) {
        for key in self.reconciler.concerned(storage, change, cluster) {
            self.queue.add(key, soon(cluster.now));
        }
    }

    fn work(&mut self, cluster: &mut Cluster) -> bool {
        let mut worked = false;
        while let Some(key) = self.queue.pop(cluster.now) {
            worked = true;
            if let Some(due) = self.reconciler.reconcile(cluster, &key) {
                self.queue.add(key, due);
            }
        }
        worked
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.queue.next_due()
    }
}
