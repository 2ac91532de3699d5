//! Nodes that have stopped reporting.

use crate::life::workload::later;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// A node reports this often…
const HEARTBEAT_SECONDS: i64 = 10;
/// …and is missed so long after its last report.
const GRACE: SignedDuration = SignedDuration::from_secs(50);

/// Which nodes are lost, and since when.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    lost: BTreeMap<String, Timestamp>,
    changes: u64,
}

impl Outages {
    pub(crate) fn begin(&mut self, node: &str, now: Timestamp) {
        if !self.lost.contains_key(node) {
            self.lost.insert(node.to_owned(), now);
            self.changes += 1;
        }
    }

    pub(crate) fn end(&mut self, node: &str) {
        if self.lost.remove(node).is_some() {
            self.changes += 1;
        }
    }

    pub(crate) fn is_lost(&self, node: &str) -> bool {
        self.lost.contains_key(node)
    }

    /// How many outages have begun or ended.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// When a lost node is missed.
    pub(super) fn missed_at(&self, node: &str) -> Option<Timestamp> {
        let since = self.lost.get(node)?.as_second();
        let last = Timestamp::from_second(since - since.rem_euclid(HEARTBEAT_SECONDS)).ok()?;
        Some(later(last, GRACE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_missed_forty_to_fifty_seconds_after_it_was_lost() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut outages = Outages::default();
        outages.begin("n", at(17));
        outages.begin("n", at(30));
        assert_eq!((outages.missed_at("n"), outages.changes()), (Some(at(60)), 1));
        outages.end("n");
        assert_eq!((outages.missed_at("n"), outages.changes()), (None, 2));
    }
}
