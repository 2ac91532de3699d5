//! What stands in a ledger.

use crate::fence::Fence;
use crate::fingerprint::Fingerprint;
use crate::version::Version;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a run or an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Outcome {
    /// Well.
    Succeeded,
    /// Not well.
    Failed,
    /// Somebody took its Job away before anybody had seen how it ended.
    Unknown,
    /// A run with something else took its place.
    Superseded,
    /// The deploy was cancelled, and it with it.
    Cancelled,
}

impl Outcome {
    /// Whether it says something of the inputs that later runs have to know.
    pub(crate) fn settles(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Unknown)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::Superseded => "superseded",
            Self::Cancelled => "cancelled",
        })
    }
}

/// Where things stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// The number of the format.
    pub(crate) format: u32,
    /// The holder of the lease that wrote it last.
    #[serde(default)]
    pub(crate) fence: Option<Fence>,
    /// The number of the next run.
    pub(crate) next: u64,
    /// Requests for one more run that were taken up, oldest first.
    #[serde(default)]
    pub(crate) handled: Vec<String>,
    /// The run that is going.
    #[serde(default)]
    pub(crate) active: Option<Active>,
}

impl Default for Head {
    fn default() -> Self {
        Self { format: super::format::NEWEST, fence: None, next: 1, handled: Vec::new(), active: None }
    }
}

impl Head {
    /// How many requests are remembered: an older one that comes again counts as new.
    const REMEMBERED: usize = 32;

    /// Remembers a request for one more run; an empty one asks for nothing.
    pub(crate) fn handle(&mut self, request: &str) {
        if request.is_empty() || self.has_handled(request) {
            return;
        }
        self.handled.push(request.to_owned());
        let excess = self.handled.len().saturating_sub(Self::REMEMBERED);
        self.handled.drain(..excess);
    }

    /// Whether a request for one more run was taken up.
    pub(crate) fn has_handled(&self, request: &str) -> bool {
        self.handled.iter().any(|handled| handled == request)
    }
}

/// A run that is going, or is going to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Active {
    /// Its number.
    pub run: u64,
    /// The Job of its attempt.
    pub job: String,
    /// The uid of that Job. Without one, the Job has not started yet, whether it is there or not.
    pub uid: Option<String>,
    /// The number of the attempt, from 1 on.
    pub attempt: u32,
    /// What it runs with.
    pub fingerprint: Fingerprint,
    /// When the attempt was decided on, by the clock of the process that did.
    pub started_at: Timestamp,
    /// The version that was declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// The deploy that started the run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// The request for one more run that it answers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub nonce: String,
    /// When the attempt may start at the earliest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// It is being stopped by us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<Stopping>,
    /// When a cancelled deploy left it running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_at: Option<Timestamp>,
}

/// Why a run is being stopped, and what that makes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopping {
    /// What is recorded once it has stopped.
    pub outcome: Outcome,
    /// Why.
    pub reason: String,
}

/// How a run ended, for good. Stored as a row: fingerprint, version, outcome, run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Row", into = "Row")]
pub struct Done {
    /// What it ran with.
    pub fingerprint: Fingerprint,
    /// The version that was declared.
    pub version: Option<Version>,
    /// How it ended.
    pub outcome: Outcome,
    /// Its number.
    pub run: u64,
}

type Row = (Fingerprint, Option<Version>, Outcome, u64);

impl From<Row> for Done {
    fn from((fingerprint, version, outcome, run): Row) -> Self {
        Self { fingerprint, version, outcome, run }
    }
}

impl From<Done> for Row {
    fn from(done: Done) -> Self {
        (done.fingerprint, done.version, done.outcome, done.run)
    }
}

/// An attempt that has ended, in detail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The number of the run.
    pub run: u64,
    /// The number of the attempt.
    pub attempt: u32,
    /// Its Job.
    pub job: String,
    /// The version that was declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// What it ran with.
    pub fingerprint: Fingerprint,
    /// The deploy that started it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// The request for one more run that it answers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub nonce: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Why; empty where there is nothing to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What its container ended with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// When its Job started, by the cluster's clock. Where no Job was seen: when the attempt was decided on, by the
    /// clock of the process that did.
    pub started_at: Timestamp,
    /// When it ended, by the same clock as [`started_at`](Self::started_at).
    pub finished_at: Timestamp,
    /// No container of it was ever started: both times only say when that was decided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_started: bool,
    /// Why there is no log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_unavailable: Option<String>,
    /// Whether the run ended with it.
    #[serde(rename = "final", default)]
    pub is_final: bool,
}
