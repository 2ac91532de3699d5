//! What may be chosen for a job: when it runs again, what happens to runs in the way, how failures count.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// When a job that has run before runs again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunPolicy {
    /// Never again with what it has succeeded with. Right for migrations.
    #[default]
    OncePerFingerprint,
    /// If it differs from what succeeded last. Right for backfills: A, B, A runs three times.
    OnChange,
    /// As `OnChange`, and when the release is applied again after the finished Job's time has passed.
    OnChangeOrExpired,
    /// Never again once it has succeeded.
    Once,
    /// Each time the release is applied.
    Always,
}

/// What happens when the previous run of a job, with something else, is still going.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnSupersede {
    /// It is waited for.
    #[default]
    Wait,
    /// It is stopped, and the new run starts when nothing of it is left.
    Replace,
    /// The new run fails.
    Fail,
}

/// What happens when nobody can say how a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnUnknown {
    /// The job fails until somebody has looked.
    #[default]
    Fail,
    /// It runs again.
    RunAgain,
}

/// What happens to a run that is going when the deploy is cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnCancel {
    /// It goes on, and the next deploy takes it up. Half a migration is worse than a late one.
    #[default]
    Leave,
    /// It is stopped.
    Stop,
}

/// What a failed job means for the deploy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnFailure {
    /// Its component stops; a global job stops the deploy.
    #[default]
    Stop,
    /// The whole deploy ends.
    Abort,
    /// The deploy goes on as if it had succeeded, and reports it.
    Continue,
}

/// How often a failed attempt is made again, and how long after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retries {
    /// Attempts after the first.
    pub limit: u32,
    /// The wait before the second attempt; it doubles with each further one.
    pub backoff: Duration,
}

impl Retries {
    /// The longest wait between two attempts.
    const LONGEST: Duration = Duration::from_mins(5);

    /// How long to wait after this attempt failed; none if it was the last.
    pub(crate) fn wait_after(&self, attempt: u32) -> Option<Duration> {
        let doublings = attempt.saturating_sub(1).min(16);
        (attempt <= self.limit)
            .then(|| self.backoff.saturating_mul(1 << doublings).min(Self::LONGEST.max(self.backoff)))
    }
}

/// What is kept of runs, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// How long a finished Job stays.
    pub finished: Duration,
    /// How many attempts the ledger knows in detail.
    pub runs: usize,
    /// How much of the end of a log the ledger keeps; 0 for nothing.
    pub log_bytes: usize,
}

impl Default for Keep {
    fn default() -> Self {
        Self { finished: Duration::from_hours(1), runs: 10, log_bytes: 16 * 1024 }
    }
}

/// How long a startup failure may last before an attempt is given up: it often heals, when a Secret or a node arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For an image that cannot be pulled, or a ConfigMap or Secret that does not exist.
    pub with_trouble: Duration,
    /// For a pod that no node has room for: new nodes take minutes.
    pub with_scheduling: Duration,
    /// For a Job that is being deleted: a pod on a lost node is not removed until the node comes back.
    pub with_removal: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            with_trouble: Duration::from_mins(1),
            with_scheduling: Duration::from_mins(5),
            with_removal: Duration::from_mins(10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound() {
        let retries = Retries { limit: 9, backoff: Duration::from_secs(10) };
        let seconds: Vec<u64> = (1..=9).map(|attempt| retries.wait_after(attempt).unwrap().as_secs()).collect();
        assert_eq!(seconds, [10, 20, 40, 80, 160, 300, 300, 300, 300]);
        assert_eq!(retries.wait_after(10), None);
        let slow = Retries { limit: 2, backoff: Duration::from_hours(1) };
        assert_eq!(slow.wait_after(2), Some(Duration::from_hours(1)));
    }
}
