//! What happens in a backfill, while it happens.

use super::summary::{KindSummary, Problem};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Something that happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Note {
    /// Something is waited for before anything begins.
    Waiting {
        /// What.
        what: String,
        /// Why it is not there yet.
        why: String,
        /// How much time is left.
        left: Duration,
    },
    /// The ConfigMap that shows forced deploys does not exist.
    Untracked {
        /// Its name.
        config_map: String,
    },
    /// The cluster cannot be identified, so a checkpoint outside of it is not resumed.
    Unidentified,
    /// Not all values of Secrets are known, and why: names alone decide what is secret.
    NamesOnly(String),
    /// Somebody else is at it, and is waited for.
    Busy {
        /// Who.
        holder: String,
    },
    /// It is known what there is to do.
    Began {
        /// What the run is called.
        run: String,
        /// How many kinds are listed.
        kinds: usize,
        /// How many of them have been before, by another process.
        done: usize,
    },
    /// A run that was not finished is not gone on with, and why.
    BeganAnew(String),
    /// The cluster has forgotten the moment that a list shows: it goes on at a later one.
    WentOn {
        /// The kind.
        kind: String,
    },
    /// A list begins again.
    Restarted {
        /// The kind.
        kind: String,
        /// How many objects may be sent twice.
        repeated: u64,
    },
    /// A call to the cluster keeps failing and is retried.
    Failing {
        /// What the call does, on what.
        doing: String,
        /// What the cluster answered.
        error: String,
    },
    /// A page of a list is asked for again.
    Retrying {
        /// The kind.
        kind: String,
        /// What went wrong.
        problem: Problem,
        /// The pause.
        pause: Duration,
    },
    /// A batch is sent again.
    Resending {
        /// The batch.
        batch: String,
        /// What went wrong.
        problem: Problem,
        /// The pause.
        pause: Duration,
    },
    /// The end of the run is written again.
    Ending {
        /// What went wrong.
        problem: Problem,
        /// The pause.
        pause: Duration,
    },
    /// A batch was refused for good.
    Refused {
        /// The batch.
        batch: String,
        /// What the sink said.
        problem: Problem,
    },
    /// A kind has its verdict.
    KindDone(KindSummary),
    /// The checkpoint could not be written.
    Unwritten(String),
    /// It ends before its time.
    Stopping(String),
}

/// Hears of everything.
#[derive(Clone)]
pub struct Listener(Arc<dyn Fn(Note) + Send + Sync>);

impl Listener {
    /// Calls this for everything that happens.
    pub fn new(hear: impl Fn(Note) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    /// Nobody listens.
    pub fn nobody() -> Self {
        Self::new(|_| {})
    }

    pub(crate) fn tell(&self, note: Note) {
        (self.0)(note);
    }
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting { what, why, left } => {
                write!(formatter, "waiting for {what}, for {} s more at most: {why}", left.as_secs())
            }
            Self::Untracked { config_map } => {
                write!(formatter, "ConfigMap `{config_map}` does not exist: a forced deploy will not be noticed")
            }
            Self::Unidentified => {
                let why = "the cluster cannot be identified: namespace `kube-system` may not be read";
                write!(
                    formatter,
                    "{why}, so no checkpoint in a file is resumed; `--print-rbac` prints the role that allows it"
                )
            }
            Self::NamesOnly(why) => write!(formatter, "secrets are only known by the names of fields: {why}"),
            Self::Busy { holder } => write!(formatter, "waiting for `{holder}`, who is at it"),
            Self::Began { run, kinds, done: 0 } => write!(formatter, "run {run}: {kinds} kinds"),
            Self::Began { run, kinds, done } => {
                write!(formatter, "run {run} goes on: {done} of {kinds} kinds are done")
            }
            Self::BeganAnew(why) => write!(formatter, "begins anew: {why}"),
            Self::WentOn { kind } => {
                write!(formatter, "{kind}: the cluster has forgotten the moment of the list; it goes on at a later one")
            }
            Self::Restarted { kind, repeated } => {
                write!(formatter, "{kind}: the list begins again; {repeated} objects may be sent twice")
            }
            Self::Failing { doing, error } => write!(formatter, "cannot {doing}: {error}; retrying"),
            Self::Ending { problem, pause } => {
                write!(formatter, "cannot write the end: {problem}; retrying in {:.1} s", pause.as_secs_f64())
            }
            Self::Retrying { kind, problem, pause } => {
                write!(formatter, "{kind}: {problem}; again in {:.1} s", pause.as_secs_f64())
            }
            Self::Resending { batch, problem, pause } => {
                write!(formatter, "batch {batch}: {problem}; again in {:.1} s", pause.as_secs_f64())
            }
            Self::Refused { batch, problem } => write!(formatter, "batch {batch} was refused: {problem}"),
            Self::KindDone(kind) => {
                let counts = &kind.counts;
                write!(
                    formatter,
                    "{} {}: {} listed, {} sent",
                    kind.api_version, kind.kind, counts.listed, counts.sent
                )?;
                if counts.skipped > 0 {
                    write!(formatter, ", {} skipped", counts.skipped)?;
                }
                match kind.errors.first() {
                    Some(problem) => write!(formatter, ", {problem}"),
                    None if !kind.finished => write!(formatter, ", not to its end"),
                    None => Ok(()),
                }
            }
            Self::Unwritten(problem) => {
                write!(formatter, "{problem}; a process that comes after this one may send more twice")
            }
            Self::Stopping(why) => write!(formatter, "stopping: {why}"),
        }
    }
}
