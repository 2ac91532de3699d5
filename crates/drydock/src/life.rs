//! What happens in a cluster by itself. Each controller sees what any client sees, and acts through the store.

mod definitions;
mod garbage;
mod namespaces;

use crate::cluster::Cluster;

/// All controllers of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    definitions: definitions::Definitions,
    garbage: garbage::Collector,
    namespaces: namespaces::Cleaner,
}

impl Lives {
    /// Lets every controller work until none has anything left to do now.
    pub(crate) fn settle(&mut self, cluster: &mut Cluster) {
        loop {
            for (storage, change) in cluster.store.take_changes() {
                self.definitions.observe(&storage, &change, cluster);
                self.garbage.observe(&storage, &change);
                self.namespaces.observe(&storage, &change);
            }
            let worked = self.definitions.work(cluster) | self.garbage.work(cluster) | self.namespaces.work(cluster);
            if !worked && !cluster.store.has_changes() {
                return;
            }
        }
    }
}
