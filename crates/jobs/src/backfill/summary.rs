//! What became of a backfill: what was listed, what was sent, and what was not.

use super::checkpoint::Completed;
use super::kind::Kind;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// What became of a backfill.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Whether everything there is was sent.
    pub complete: bool,
    /// The kinds, each with what became of it.
    pub kinds: Vec<KindSummary>,
    /// What became of the batches.
    pub batches: Batches,
    /// What the run is called.
    pub run: String,
    /// Whether it went on from where another process had stopped.
    pub resumed: bool,
    /// Whether it was told to stop.
    pub cancelled: bool,
    /// Where it went.
    pub sink: String,
    /// Why it ended before its time.
    pub stopped: Option<String>,
    /// How long it took, in this process.
    pub seconds: f64,
    /// The complete run with the same key because of which nothing was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<Completed>,
    /// Why names alone decided what is secret: not all values of Secrets were known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names_only: Option<String>,
    /// Why nothing was done, other than that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

/// What became of the objects of a kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KindSummary {
    /// `Pod`.
    pub kind: String,
    /// `v1`.
    pub api_version: String,
    /// Whether it was listed to its end.
    pub finished: bool,
    /// What was counted.
    #[serde(flatten)]
    pub counts: Counts,
    /// What went wrong.
    pub errors: Vec<Problem>,
}

/// What is counted of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    /// Objects that the cluster has listed.
    pub listed: u64,
    /// Objects that have arrived. Those that had to be sent again are in it as often as they were.
    pub sent: u64,
    /// Objects that nobody wanted, by their names.
    pub skipped: u64,
    /// Objects that may have been sent twice, because a list had to begin again.
    pub repeated: u64,
    /// How often a list went on at a later moment, because the cluster had forgotten the first one.
    pub expired: u64,
    /// Pages that were read.
    pub pages: u64,
    /// Calls to the cluster that were made again.
    pub retried: u64,
}

/// What is counted of batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Batches {
    /// Batches that have arrived.
    pub sent: u64,
    /// Deliveries that were made again.
    pub retried: u64,
    /// Batches that were refused.
    pub failed: u64,
    /// What arrived, in bytes before they were compressed.
    pub bytes: u64,
}

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The status of HTTP; none where there was no answer.
    pub status: Option<u16>,
    /// What was said.
    pub message: String,
}

impl Problem {
    pub(crate) fn of(message: impl Into<String>) -> Self {
        Self { status: None, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(formatter, "{status}: {}", self.message),
            None => formatter.write_str(&self.message),
        }
    }
}

/// How a backfill ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Everything was sent.
    Complete,
    /// Some of it was sent.
    Partial,
    /// Nothing was sent, and of no kind is known that there is nothing.
    Failed,
    /// The cluster let nothing be listed.
    Forbidden,
    /// It was told to stop.
    Cancelled,
}

impl Summary {
    /// Nothing was done, because it had been done.
    pub(crate) fn keep(completed: Completed, sink: String) -> Self {
        Self { run: completed.run.clone(), kept: Some(completed), ..Self::idle(sink) }
    }

    /// Nothing was done, for this reason.
    pub(crate) fn skip(reason: &str, sink: String) -> Self {
        Self { skipped: Some(reason.to_owned()), ..Self::idle(sink) }
    }

    fn idle(sink: String) -> Self {
        Self {
            complete: true,
            kinds: Vec::new(),
            batches: Batches::default(),
            run: String::new(),
            resumed: false,
            cancelled: false,
            sink,
            stopped: None,
            seconds: 0.0,
            kept: None,
            names_only: None,
            skipped: None,
        }
    }

    /// How it ended.
    pub fn ending(&self) -> Ending {
        let nothing_listed = self.kinds.iter().all(|kind| kind.counts.listed == 0 && !kind.finished);
        let is_forbidden = |kind: &KindSummary| kind.errors.iter().any(|error| matches!(error.status, Some(401 | 403)));
        match () {
            () if self.cancelled => Ending::Cancelled,
            () if self.complete => Ending::Complete,
            () if nothing_listed && self.kinds.iter().any(is_forbidden) => Ending::Forbidden,
            () if self.kinds.iter().all(|kind| kind.counts.sent == 0 && !kind.is_complete()) => Ending::Failed,
            () => Ending::Partial,
        }
    }

    /// All kinds together.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for KindSummary { counts, .. } in &self.kinds {
            total.listed += counts.listed;
            total.sent += counts.sent;
            total.skipped += counts.skipped;
            total.repeated += counts.repeated;
            total.expired += counts.expired;
            total.pages += counts.pages;
            total.retried += counts.retried;
        }
        total
    }
}

impl KindSummary {
    pub(crate) fn new(kind: &Kind) -> Self {
        Self {
            kind: kind.kind.clone(),
            api_version: kind.api_version(),
            finished: false,
            counts: Counts::default(),
            errors: Vec::new(),
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.finished && self.errors.is_empty()
    }
}

/// Seconds, to the millisecond.
pub(crate) fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(kinds: &[(u64, u64, bool, Option<u16>)]) -> Summary {
        let kind = |(listed, sent, finished, error): &(u64, u64, bool, Option<u16>)| KindSummary {
            kind: "Pod".to_owned(),
            api_version: "v1".to_owned(),
            finished: *finished,
            counts: Counts { listed: *listed, sent: *sent, ..Counts::default() },
            errors: error.iter().map(|status| Problem { status: Some(*status), message: String::new() }).collect(),
        };
        let kinds: Vec<KindSummary> = kinds.iter().map(kind).collect();
        Summary {
            complete: kinds.iter().all(KindSummary::is_complete),
            kinds,
            batches: Batches::default(),
            run: String::new(),
            resumed: false,
            cancelled: false,
            sink: String::new(),
            stopped: None,
            seconds: 0.0,
            kept: None,
            names_only: None,
            skipped: None,
        }
    }

    #[test]
    fn how_it_ended_follows_from_what_was_counted() {
        for (kinds, ending) in [
            (&[(2, 2, true, None), (0, 0, true, None)][..], Ending::Complete),
            (&[], Ending::Complete),
            (&[(2, 2, true, None), (0, 0, false, Some(403))], Ending::Partial),
            (&[(0, 0, false, Some(403)), (0, 0, false, Some(403))], Ending::Forbidden),
            (&[(0, 0, true, None), (0, 0, false, Some(403))], Ending::Partial),
            (&[(5, 0, true, Some(400))], Ending::Failed),
            (&[(5, 3, true, Some(400))], Ending::Partial),
            (&[(5, 3, false, None)], Ending::Partial),
        ] {
            assert_eq!(summary(kinds).ending(), ending, "{kinds:?}");
        }
        assert_eq!(Summary { cancelled: true, ..summary(&[]) }.ending(), Ending::Cancelled);
    }
}
