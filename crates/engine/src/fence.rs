//! The fence: which holder of which Lease wrote something.

use serde::{Deserialize, Serialize};

/// Which holder of which Lease wrote something. Epochs of two Leases do not compare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// The uid of the Lease.
    pub lease: String,
    /// How often it had changed hands.
    pub epoch: u64,
}

/// What this holder knew of something when it read its fence.
#[derive(Clone, Copy, Debug)]
pub enum Known<'a> {
    /// Nothing: it reads it for the first time.
    Nothing,
    /// It carried this when this holder read or wrote it last.
    Fence(Option<&'a Fence>),
}

impl Fence {
    /// Whether something that carries `written` shows that another holder works on it.
    pub fn is_broken_by(&self, written: Option<&Self>, known: Known<'_>) -> bool {
        written.is_some_and(|written| {
            if written.lease == self.lease {
                return written.epoch > self.epoch;
            }
            // A fence of another Lease is older, unless it came while this Lease was held.
            matches!(known, Known::Fence(before) if before != Some(written))
        })
    }
}

impl std::fmt::Display for Fence {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let short = self.lease.split('-').next().unwrap_or_default();
        write!(formatter, "{short}.{}", self.epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence(lease: &str, epoch: u64) -> Fence {
        Fence { lease: lease.to_owned(), epoch }
    }

    #[test]
    fn a_higher_epoch_of_the_same_lease_breaks_a_fence_and_an_older_one_does_not() {
        let ours = fence("a", 3);
        assert!(ours.is_broken_by(Some(&fence("a", 4)), Known::Nothing));
        assert!(!ours.is_broken_by(Some(&fence("a", 3)), Known::Nothing));
        assert!(!ours.is_broken_by(Some(&fence("a", 2)), Known::Nothing));
        assert!(!ours.is_broken_by(None, Known::Nothing));
    }

    #[test]
    fn another_lease_breaks_a_fence_only_if_it_wrote_meanwhile() {
        let ours = fence("a", 9);
        let earlier = fence("b", 40);
        assert!(!ours.is_broken_by(Some(&earlier), Known::Fence(Some(&earlier))));
        assert!(!ours.is_broken_by(Some(&earlier), Known::Nothing));
        for before in [Some(&earlier), Some(&ours), None] {
            assert!(ours.is_broken_by(Some(&fence("c", 1)), Known::Fence(before)), "{before:?}");
        }
    }
}
