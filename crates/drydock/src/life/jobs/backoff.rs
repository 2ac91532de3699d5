//! How long a Job waits before it replaces pods that failed (Kubernetes v1.34 `job/backoff_utils.go`).

use jiff::{SignedDuration, Timestamp};

/// The wait after a first failure, and the longest.
const FIRST: SignedDuration = SignedDuration::from_secs(10);
const LONGEST: SignedDuration = SignedDuration::from_mins(10);

/// The failures of a Job's pods since one of them last succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Backoff(Option<Failures>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Failures {
    count: u64,
    last: Timestamp,
}

impl Backoff {
    /// So many failures, the last of them then.
    pub(super) fn new(count: u64, last: Timestamp) -> Self {
        Self((count > 0).then_some(Failures { count, last }))
    }

    /// What is remembered after pods have succeeded and failed, given the times when they did.
    pub(super) fn after(self, succeeded: &[Timestamp], failed: &[Timestamp]) -> Self {
        let last_success = succeeded.iter().max();
        let counts = |time: &&Timestamp| last_success.is_none_or(|success| *time > success);
        let count = failed.iter().filter(counts).count() as u64;
        let earlier = match (last_success, self.0) {
            (None, Some(failures)) => failures.count,
            _ => 0,
        };
        match failed.iter().filter(counts).max() {
            Some(last) => Self::new(earlier.saturating_add(count), *last),
            None if last_success.is_some() => Self(None),
            None => self,
        }
    }

    /// How long to wait still.
    pub(super) fn remaining(self, now: Timestamp) -> SignedDuration {
        let Some(failures) = self.0 else { return SignedDuration::ZERO };
        let doublings = u32::try_from(failures.count.saturating_sub(1).min(16)).unwrap_or_default();
        let delay = FIRST.checked_mul(1 << doublings).unwrap_or(LONGEST).min(LONGEST);
        delay.saturating_sub(now.duration_since(failures.last)).max(SignedDuration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn waits(backoff: Backoff, now: i64) -> i64 {
        backoff.remaining(at(now)).as_secs()
    }

    #[test]
    fn waits_double_up_to_ten_minutes_from_the_last_failure() {
        let mut backoff = Backoff::default();
        assert_eq!(waits(backoff, 0), 0);
        for wanted in [10, 20, 40, 80, 160, 320, 600, 600] {
            backoff = backoff.after(&[], &[at(100)]);
            assert_eq!(waits(backoff, 100), wanted);
        }
        assert_eq!(waits(backoff, 650), 50);
        assert_eq!(waits(backoff, 701), 0);
    }

    #[test]
    fn a_success_forgives_what_failed_before_it() {
        let failing = Backoff::default().after(&[], &[at(5), at(3)]);
        assert_eq!(waits(failing, 5), 20);
        assert_eq!(failing.after(&[at(6)], &[]), Backoff::default());
        assert_eq!(failing.after(&[at(6)], &[at(6), at(4)]), Backoff::default());
        assert_eq!(waits(failing.after(&[at(6)], &[at(7), at(4)]), 7), 10);
        assert_eq!(failing.after(&[], &[]), failing);
    }
}
