//! How full the nodes are: pods are spread, those of one controller first.

use crate::life::workload::{controller_of, pods};
use crate::object::Object;
use crate::store::Change;
use std::collections::BTreeMap;

/// How many pods there are on each node, of each controller and in all.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    numbers: BTreeMap<(String, String), usize>,
}

/// The key under which all pods of a node count.
const ALL: &str = "";

impl Crowd {
    /// Takes note of a pod's change.
    pub(super) fn note(&mut self, change: &Change) {
        let (before, after) = match change {
            Change::Added(after) => (None, Some(after)),
            Change::Modified { before, after } => (Some(before), Some(after)),
            Change::Deleted { before, .. } => (Some(before), None),
        };
        for pod in before.into_iter().filter(|pod| counts(pod)) {
            for key in keys(pod) {
                if let Some(number) = self.numbers.get_mut(&key) {
                    *number = number.saturating_sub(1);
                    if *number == 0 {
                        self.numbers.remove(&key);
                    }
                }
            }
        }
        for pod in after.into_iter().filter(|pod| counts(pod)) {
            for key in keys(pod) {
                *self.numbers.entry(key).or_default() += 1;
            }
        }
    }

    /// How crowded a node is for a pod: its siblings, then all others.
    pub(super) fn on(&self, node: &str, pod: &Object) -> (usize, usize) {
        let number = |owner: &str| self.numbers.get(&(node.to_owned(), owner.to_owned())).copied().unwrap_or_default();
        let siblings = controller_of(pod).map_or(0, |owner| number(owner.uid));
        (siblings, number(ALL))
    }
}

fn counts(pod: &Object) -> bool {
    !pod.text(&["spec", "nodeName"]).is_empty() && pods::is_active(pod)
}

fn keys(pod: &Object) -> impl Iterator<Item = (String, String)> {
    let node = pod.text(&["spec", "nodeName"]);
    let owner = controller_of(pod).map(|owner| owner.uid);
    [Some(ALL), owner].into_iter().flatten().map(move |owner| (node.to_owned(), owner.to_owned()))
}
