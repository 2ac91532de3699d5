//! The ledger: what is known of a job's runs, kept apart from the Job objects, so that a Job that is gone does not
//! mean "run again".
//!
//! A [`Ledger`] is a value; the machine makes the next one from it, and a [store](store) writes it by compare-and-swap.
//! The order of writes is what makes runs safe: the intent first, then the Job (held), then its uid, and only then may
//! it start. So a Job that never got its uid recorded has never started, and one that has lost its Job is `Unknown`.

mod entries;
mod format;
pub(crate) mod store;

pub(crate) use entries::Head;
pub use entries::{Active, Done, Outcome, Run, Stopping};
pub use format::FormatError;
pub(crate) use format::escaped_size;

use crate::fingerprint::Fingerprints;
use crate::policy::Keep;
use crate::version::Version;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// All that is known of a job's runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    pub(crate) head: Head,
    /// How runs ended, for good: never compacted.
    pub(crate) done: Vec<Done>,
    /// The last attempts in detail, oldest first.
    pub(crate) runs: Vec<Run>,
    /// The ends of their logs.
    pub(crate) logs: BTreeMap<String, String>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) outcome: Outcome,
    pub(crate) reason: String,
    pub(crate) exit_code: Option<i32>,
    /// When its Job started and ended; by the cluster's clock if it was seen.
    pub(crate) started_at: Timestamp,
    pub(crate) finished_at: Timestamp,
    pub(crate) never_started: bool,
    /// The end of its log, or why there is none.
    pub(crate) log: Result<String, String>,
    /// When a further attempt starts, and what its Job is called.
    pub(crate) next: Option<(Timestamp, String)>,
}

/// The most that all logs of a ledger take.
const LOGS_LIMIT: usize = 512 * 1024;
/// The most that `done` takes; what comes after that is refused, because forgetting would mean to run again.
const DONE_LIMIT: usize = 128 * 1024;

impl Ledger {
    /// The run that is going.
    pub fn active(&self) -> Option<&Active> {
        self.head.active.as_ref()
    }

    /// The last attempts, newest first.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = &Run> {
        self.runs.iter().rev()
    }

    /// The end of an attempt's log.
    pub fn log(&self, run: u64, attempt: u32) -> Option<&str> {
        self.logs.get(&log_key(run, attempt)).map(String::as_str)
    }

    /// The last success, with whatever.
    pub fn last_success(&self) -> Option<&Done> {
        self.done.iter().filter(|done| done.outcome == Outcome::Succeeded).max_by_key(|done| done.run)
    }

    /// The last success with these inputs.
    pub(crate) fn success_of(&self, fingerprints: &Fingerprints) -> Option<&Done> {
        let same = |done: &&Done| done.outcome == Outcome::Succeeded && fingerprints.include(&done.fingerprint);
        self.done.iter().filter(same).max_by_key(|done| done.run)
    }

    /// The newest version that has succeeded.
    pub(crate) fn newest_version(&self) -> Option<&Version> {
        let succeeded = self.done.iter().filter(|done| done.outcome == Outcome::Succeeded);
        succeeded.filter_map(|done| done.version.as_ref()).max()
    }

    /// The run with these inputs whose end nobody knows, if that was the last word on them.
    pub(crate) fn unknown_of(&self, fingerprints: &Fingerprints) -> Option<u64> {
        let same = self.done.iter().filter(|done| fingerprints.include(&done.fingerprint));
        same.max_by_key(|done| done.run).filter(|done| done.outcome == Outcome::Unknown).map(|done| done.run)
    }

    /// Whether these inputs have been tried before.
    pub(crate) fn has_tried(&self, fingerprints: &Fingerprints) -> bool {
        self.runs.iter().any(|run| fingerprints.include(&run.fingerprint))
            || self.done.iter().any(|done| fingerprints.include(&done.fingerprint))
    }

    /// Whether any of its runs was a Job of the cluster.
    pub(crate) fn had_pods(&self) -> bool {
        self.active().is_some_and(|active| !active.job.is_empty()) || self.runs.iter().any(|run| !run.job.is_empty())
    }

    /// Whether there is no room for the inputs of another run.
    pub(crate) fn is_full(&self) -> bool {
        format::size_of_done(&self.done) + 256 > DONE_LIMIT
    }

    /// A run is going to start.
    pub(crate) fn begin(&self, active: Active) -> Self {
        let mut next = self.clone();
        next.head.next = active.run + 1;
        next.head.handle(&active.nonce);
        next.head.active = Some(active);
        next
    }

    /// The run that is going has changed.
    pub(crate) fn amend(&self, change: impl FnOnce(&mut Active)) -> Self {
        let mut next = self.clone();
        if let Some(active) = &mut next.head.active {
            change(active);
        }
        next
    }

    /// An attempt of the run that is going has ended.
    pub(crate) fn conclude(&self, ending: Ending, keep: &Keep) -> Self {
        let Some(active) = self.head.active.clone() else { return self.clone() };
        let mut next = self.clone();
        let is_final = ending.next.is_none();
        let (tail, log_unavailable) = match ending.log {
            Ok(tail) => (tail, None),
            Err(why) => (String::new(), Some(why)),
        };
        if !tail.is_empty() {
            next.logs.insert(log_key(active.run, active.attempt), tail);
        }
        next.runs.push(Run {
            run: active.run,
            attempt: active.attempt,
            job: active.job.clone(),
            version: active.version.clone(),
            fingerprint: active.fingerprint.clone(),
            revision: active.revision.clone(),
            nonce: active.nonce.clone(),
            outcome: ending.outcome,
            reason: ending.reason,
            exit_code: ending.exit_code,
            started_at: ending.started_at,
            finished_at: ending.finished_at,
            never_started: ending.never_started,
            log_unavailable,
            is_final,
        });
        next.head.active = ending.next.map(|(at, job)| Active {
            attempt: active.attempt + 1,
            job,
            uid: None,
            not_before: Some(at),
            stopping: None,
            started_at: at,
            ..active.clone()
        });
        if is_final && ending.outcome.settles() {
            let done = Done {
                fingerprint: active.fingerprint,
                version: active.version,
                outcome: ending.outcome,
                run: active.run,
            };
            next.prove(done);
        }
        next.bound(keep);
        next
    }

    /// Adds how a run ended, for good. The same inputs and outcome take one row, with the newest version.
    fn prove(&mut self, mut done: Done) {
        let same = |other: &Done| other.fingerprint == done.fingerprint && other.outcome == done.outcome;
        let newest = self.done.iter().filter(|other| same(other)).filter_map(|other| other.version.clone()).max();
        self.done.retain(|other| !same(other));
        done.version = newest.max(done.version);
        self.done.push(done);
        // A job that must remember all its inputs is refused before it comes to this.
        while format::size_of_done(&self.done) > DONE_LIMIT && self.forget_oldest() {}
    }

    /// Forgets the oldest inputs that decide nothing under a policy that compares with the last success only.
    fn forget_oldest(&mut self) -> bool {
        let last = self.last_success().map(|done| done.run);
        let newest = self.newest_version().cloned();
        let decides = |done: &Done| {
            Some(done.run) == last || (done.outcome == Outcome::Succeeded && newest.is_some() && done.version == newest)
        };
        let oldest = self.done.iter().take(self.done.len().saturating_sub(1)).position(|done| !decides(done));
        oldest.map(|index| self.done.remove(index)).is_some()
    }

    /// The same ledger without logs: what is too large with them is still recorded.
    pub(crate) fn without_logs(mut self) -> Self {
        for run in self.runs.iter_mut().filter(|run| self.logs.contains_key(&log_key(run.run, run.attempt))) {
            run.log_unavailable = Some("the ledger was too large with it".to_owned());
        }
        self.logs.clear();
        self
    }

    fn bound(&mut self, keep: &Keep) {
        // The end of the last run decides what happens next, so at least that is kept.
        let excess = self.runs.len().saturating_sub(keep.runs.max(1));
        self.runs.drain(..excess);
        let keys: Vec<String> = self.runs().map(|run| log_key(run.run, run.attempt)).collect();
        self.logs.retain(|key, _| keys.contains(key));
        let mut size: usize = self.logs.values().map(|log| escaped_size(log)).sum();
        for key in keys.iter().rev() {
            if size > LOGS_LIMIT
                && let Some(log) = self.logs.remove(key)
            {
                size -= escaped_size(&log);
            }
        }
    }

    /// When what succeeded last had finished, as far as that is still known.
    pub(crate) fn last_success_at(&self) -> Option<Timestamp> {
        self.runs().find(|run| run.outcome == Outcome::Succeeded).map(|run| run.finished_at)
    }
}

fn log_key(run: u64, attempt: u32) -> String {
    if attempt == 1 { run.to_string() } else { format!("{run}.{attempt}") }
}

/// A time that much later.
pub(crate) fn later(time: Timestamp, duration: Duration) -> Timestamp {
    jiff::SignedDuration::try_from(duration)
        .ok()
        .and_then(|duration| time.checked_add(duration).ok())
        .unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
