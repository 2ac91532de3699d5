//! What happens in a cluster by itself. Each controller sees what any client sees, and acts as a client does.

mod accounts;
#[cfg(test)]
mod arbitrary;
pub(crate) mod client;
mod cronjobs;
mod daemonsets;
mod definitions;
mod deployments;
pub(crate) mod disruption;
mod endpoints;
mod events;
mod garbage;
mod jobs;
mod kubelet;
mod namespaces;
pub(crate) mod nodes;
pub(crate) mod queue;
mod reconciler;
mod replicasets;
mod scheduler;
mod statefulsets;
mod ttl;
mod volumes;
pub(crate) mod workload;

pub(crate) use events::Told;
use reconciler::Reconciling;

use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::status::Status;
use crate::store::Change;
use jiff::Timestamp;

/// Something that keeps a part of the cluster as it should be.
pub(crate) trait Controller: Send {
    /// Takes note of a write. What it means is found out when the controller works.
    fn observe(&mut self, storage: &Storage, change: &Change, cluster: &mut Cluster);

    /// Does what is due now. Says whether there was anything to do.
    fn work(&mut self, cluster: &mut Cluster) -> bool;

    /// When there will be something to do, if nothing is written until then.
    fn next_due(&self) -> Option<Timestamp> {
        None
    }
}

/// All controllers of a cluster.
#[derive(Default)]
pub(crate) struct Lives {
    controllers: Vec<Box<dyn Controller>>,
}

impl Lives {
    /// The controllers that are part of the API: definitions, owners, namespaces.
    pub(crate) fn of_the_api() -> Self {
        Self {
            controllers: vec![
                Box::<definitions::Definitions>::default(),
                Box::<garbage::Collector>::default(),
                Box::<namespaces::Cleaner>::default(),
            ],
        }
    }

    /// Those, and all that make a cluster live.
    pub(crate) fn of_a_cluster() -> Self {
        // A Job that is being deleted lets its pods go before the collector deletes them, or they would count as failed.
        let mut lives = Self { controllers: vec![Box::<jobs::Jobs>::default()] };
        lives.controllers.extend(Self::of_the_api().controllers);
        lives.controllers.extend::<[Box<dyn Controller>; 6]>([
            Box::<accounts::Accounts>::default(),
            Box::<volumes::Volumes>::default(),
            Box::<cronjobs::CronJobs>::default(),
            Box::<ttl::TimeToLive>::default(),
            Box::<scheduler::Scheduler>::default(),
            Box::<kubelet::Kubelet>::default(),
        ]);
        lives.controllers.extend(Self::of_workloads());
        lives
    }

    /// Those that keep workloads running.
    fn of_workloads() -> [Box<dyn Controller>; 8] {
        [
            Box::new(Reconciling::new(deployments::Deployments::new())),
            Box::new(Reconciling::new(replicasets::ReplicaSets::new())),
            Box::new(Reconciling::new(replicasets::ReplicaSets::of_the_first_days())),
            Box::new(Reconciling::new(statefulsets::StatefulSets::new())),
            Box::new(Reconciling::new(daemonsets::DaemonSets::new())),
            Box::new(Reconciling::new(endpoints::Endpoints::new())),
            Box::new(Reconciling::new(disruption::Disruption::new())),
            Box::<nodes::Nodes>::default(),
        ]
    }

    /// Lets every controller work until none has anything left to do now.
    pub(crate) fn settle(&mut self, cluster: &mut Cluster) {
        loop {
            for (storage, change) in cluster.store.take_changes() {
                for controller in &mut self.controllers {
                    controller.observe(&storage, &change, cluster);
                }
            }
            let mut worked = false;
            for controller in &mut self.controllers {
                worked |= controller.work(cluster);
            }
            if !worked && !cluster.store.has_changes() {
                return;
            }
        }
    }

    /// When something happens by itself, if nothing is written until then.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.controllers.iter().filter_map(|controller| controller.next_due()).min()
    }
}

/// Whether something was refused because its namespace is going.
pub(crate) fn is_of_a_namespace_that_goes(status: &Status) -> bool {
    status.has_cause("NamespaceTerminating")
}
