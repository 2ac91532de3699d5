//! What a job gets to work with.

use crate::clock::Clock;
use crate::driver::log::keep_end;
use crate::event::{Event, Events};
use crate::job::Occasion;
use crate::mask::Mask;
use crate::retry::Retry;
use crate::version::Version;
use serde_json::Value;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// The release that is being deployed.
#[derive(Clone, Debug, Default)]
pub struct Release {
    /// What it is called.
    pub name: String,
    /// Where it is.
    pub namespace: String,
    /// The version that is declared.
    pub version: Option<Version>,
    /// What was deployed before.
    pub past: Past,
    /// Whatever the jobs in code want to know of it.
    pub configuration: Value,
}

/// What was deployed of a release before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Past {
    /// Whether a deploy of it has ever succeeded.
    pub is_installed: bool,
    /// The version that was deployed last, completely.
    pub version: Option<Version>,
    /// The newest version that a deploy has begun with since, and not completed.
    pub attempted: Option<Version>,
}

/// A program that ends its own process group as soon as its standard input ends: when the process that started it is gone,
/// however that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watchdog {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// What a job gets to work with.
#[derive(Clone)]
pub struct Context {
    pub(crate) client: kube::Client,
    pub(crate) release: Arc<Release>,
    pub(crate) component: Option<(String, Value)>,
    pub(crate) occasion: Occasion,
    pub(crate) cancellation: CancellationToken,
    pub(crate) clock: Clock,
    pub(crate) job: String,
    pub(crate) attempt: u32,
    pub(crate) nonce: String,
    pub(crate) events: Events,
    pub(crate) lines: Arc<Mutex<Lines>>,
    pub(crate) mask: Mask,
    pub(crate) watchdog: Option<Watchdog>,
    pub(crate) retry: Retry,
}

/// The last lines that a job has logged.
#[derive(Default)]
pub(crate) struct Lines {
    lines: VecDeque<String>,
    bytes: usize,
}

impl Context {
    /// The cluster.
    pub fn client(&self) -> &kube::Client {
        &self.client
    }

    /// The release that is being deployed.
    pub fn release(&self) -> &Release {
        &self.release
    }

    /// The namespace of the release.
    pub fn namespace(&self) -> &str {
        &self.release.namespace
    }

    /// The component that the job belongs to; none for a global one.
    pub fn component(&self) -> Option<&str> {
        self.component.as_ref().map(|(name, _)| name.as_str())
    }

    /// The configuration of the component.
    pub fn configuration(&self) -> &Value {
        self.component.as_ref().map_or(&self.release.configuration, |(_, configuration)| configuration)
    }

    /// Whether what the job belongs to is installed or upgraded.
    pub fn occasion(&self) -> Occasion {
        self.occasion
    }

    /// The number of the attempt, from 1 on.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// By what it is asked to run once more: the same text for as long as it is the same wish; empty without one.
    pub fn nonce(&self) -> &str {
        &self.nonce
    }

    /// What time it is.
    pub fn now(&self) -> jiff::Timestamp {
        self.clock.now()
    }

    /// The clock that [`now`](Self::now) reads.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Is cancelled when the deploy is, and at the end of the job's time.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Retries API calls until the retry limit or shortly after a cancellation.
    pub fn retry(&self) -> Retry {
        self.retry.clone()
    }

    /// Values that never reach a log, a reason or the ledger: a job that reads a Secret hides its values here.
    pub fn mask(&self) -> &Mask {
        &self.mask
    }

    /// What ends a program that the job starts, if this process is killed.
    pub fn watchdog(&self) -> Option<&Watchdog> {
        self.watchdog.as_ref()
    }

    /// Prints a line: as an event, and into the ledger.
    pub fn log(&self, line: impl Into<String>) {
        let line = self.mask.apply(&line.into());
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.clone());
        self.events.send(Event::Log { job: self.job.clone(), line });
    }
}

impl Lines {
    const LIMIT: usize = 64 * 1024;

    fn push(&mut self, mut line: String) {
        let end = (0..=line.len().min(Self::LIMIT)).rev().find(|end| line.is_char_boundary(*end));
        line.truncate(end.unwrap_or_default());
        self.bytes += line.len() + 1;
        self.lines.push_back(line);
        while self.bytes > Self::LIMIT && self.lines.len() > 1 {
            self.bytes -= self.lines.pop_front().map_or(0, |line| line.len() + 1);
        }
    }

    /// The last lines, in this many bytes.
    pub(crate) fn tail(&self, bytes: usize) -> String {
        if bytes == 0 {
            return String::new();
        }
        let text: String = self.lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        keep_end(text, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept() {
        let mut lines = Lines::default();
        for number in 0..10_000 {
            lines.push(format!("line {number}"));
        }
        assert!(lines.bytes <= Lines::LIMIT);
        assert_eq!(lines.tail(24), "line 9998\nline 9999\n");
        assert_eq!(lines.tail(0), "");
        lines.push("x".repeat(10 * Lines::LIMIT));
        assert!(lines.bytes <= Lines::LIMIT + 1);
        assert_eq!(lines.tail(8), "xxxxxx\n", "the end of a line that is too long");
    }
}
