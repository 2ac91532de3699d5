//! What became of a deploy: each job and component with its reason and duration, and what it all waited for.

use crate::component::Decision;
use crate::error::Error;
use crate::job::{Occasion, Phase, Scope};
use crate::machine::Verdict;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What became of a deploy.
#[derive(Clone, Debug)]
pub struct Report {
    /// How it ended.
    pub outcome: DeployOutcome,
    /// Why a job or a component ended it early, if one did.
    pub reason: Option<String>,
    /// Why the engine stopped before the end, if it did: what is reported then is what happened until then.
    pub error: Option<Arc<Error>>,
    /// The components, in the order they were added.
    pub components: Vec<ComponentReport>,
    /// The jobs, in the order they were added.
    pub jobs: Vec<JobReport>,
    /// How long the phases took that had anything to do.
    pub phases: Vec<PhaseReport>,
    /// What the end had to wait for, from the first to the last.
    pub critical_path: Vec<PathStep>,
    /// How long it all took.
    pub took: Duration,
    /// Jobs that are due and were skipped on request, with the install or upgrade that they belong to.
    pub owed: BTreeMap<String, Occasion>,
}

/// How a deploy ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeployOutcome {
    /// Well.
    Succeeded,
    /// Not well.
    Failed,
    /// Before its time.
    Cancelled,
}

/// What became of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is new.
    Installed,
    /// It has changed.
    Upgraded,
    /// The plan no longer has it, and what was left of it is deleted.
    Removed,
    /// There was nothing to do.
    Unchanged,
    /// It could not be deployed, or one of its jobs failed.
    Failed,
    /// It was not tried.
    Skipped,
}

/// A component, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentReport {
    /// What it is called.
    pub name: String,
    /// What became of it.
    pub action: Action,
    /// Why.
    pub reason: String,
    /// What failed, if it did.
    pub failure: Option<ComponentFailure>,
    /// What was decided before it came to that; none if nothing was.
    pub decision: Option<Decision>,
    /// How long it took to deploy, without its jobs.
    pub took: Duration,
}

/// What failed of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComponentFailure {
    /// One of its jobs, before or after it was deployed.
    Job,
    /// It could not be decided whether to deploy it, or to deploy it failed.
    Component,
}

/// What became of a job, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// It ran, and succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// It did not run.
    Skipped,
    /// It is not known how it ended, or it still runs.
    Unknown,
}

/// A job, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct JobReport {
    /// What it is called.
    pub id: String,
    /// What it belongs to.
    pub scope: Scope,
    /// Before or after that.
    pub phase: Phase,
    /// What became of it.
    pub outcome: JobOutcome,
    /// Why.
    pub reason: String,
    /// The number of the run, if it came to one.
    pub run: Option<u64>,
    /// How many attempts were made.
    pub attempts: u32,
    /// How long it took.
    pub took: Duration,
}

/// A phase, and how long it took.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseReport {
    /// What its jobs belong to.
    pub scope: Scope,
    /// Before or after that.
    pub phase: Phase,
    /// How long it took.
    pub took: Duration,
}

/// Something that the end had to wait for.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStep {
    /// `job migrate`, `component api`.
    pub name: String,
    /// How long it took.
    pub took: Duration,
}

/// When something was going on, and what it came after.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) name: String,
    pub(crate) started: Timestamp,
    pub(crate) ended: Timestamp,
    pub(crate) after: Vec<usize>,
}

/// What the last of these had to wait for.
pub(crate) fn critical_path(spans: &[Span]) -> Vec<PathStep> {
    let last_of = |indexes: &mut dyn Iterator<Item = usize>| indexes.max_by_key(|index| (spans[*index].ended, *index));
    let mut path = Vec::new();
    let mut next = last_of(&mut (0..spans.len()));
    while let Some(index) = next {
        let span = &spans[index];
        path.push(PathStep { name: span.name.clone(), took: between(span.started, span.ended) });
        // What it came after was there before it, so this comes to an end.
        next = last_of(&mut span.after.iter().copied().filter(|before| *before < index));
    }
    path.reverse();
    path
}

/// The time between two moments; none if they are the wrong way round.
pub(crate) fn between(start: Timestamp, end: Timestamp) -> Duration {
    end.duration_since(start).try_into().unwrap_or_default()
}

impl Verdict {
    /// The verdict in a word, with its reason, run and attempts.
    pub(crate) fn tell(&self) -> (JobOutcome, String, Option<u64>, u32) {
        match self {
            Self::Succeeded { run, attempts } => (JobOutcome::Succeeded, format!("run {run}"), Some(*run), *attempts),
            Self::Skipped(skip) => (JobOutcome::Skipped, skip.to_string(), None, 0),
            Self::Failed { run, attempts, reason } => (JobOutcome::Failed, reason.clone(), *run, *attempts),
            Self::Unknown { run } => {
                let reason = format!(
                    "result of run {run} unknown: its Job was deleted before the result was recorded; check what it did, then run the job with `--again`, or set `onUnknown: RunAgain`"
                );
                (JobOutcome::Unknown, reason, Some(*run), 1)
            }
            Self::Cancelled { run: None } => (JobOutcome::Skipped, "the deploy was cancelled".to_owned(), None, 0),
            Self::Cancelled { run } => (JobOutcome::Failed, "cancelled with the deploy".to_owned(), *run, 1),
            Self::Left { run } => {
                let reason = format!("run {run} was left running; the next deploy waits for it");
                (JobOutcome::Unknown, reason, Some(*run), 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_critical_path_goes_back_by_what_ended_last() {
        let span = |name: &str, started: i64, ended: i64, after: &[usize]| Span {
            name: name.to_owned(),
            started: Timestamp::from_second(started).unwrap(),
            ended: Timestamp::from_second(ended).unwrap(),
            after: after.to_vec(),
        };
        let spans = [
            span("pre", 0, 5, &[]),
            span("db", 5, 40, &[0]),
            span("web", 5, 20, &[0]),
            span("migrate", 40, 50, &[1]),
            span("lint", 20, 25, &[2]),
            span("post", 50, 51, &[3, 4]),
        ];
        let path: Vec<String> =
            critical_path(&spans).iter().map(|step| format!("{} {}", step.name, step.took.as_secs())).collect();
        assert_eq!(path, ["pre 5", "db 35", "migrate 10", "post 1"]);
        assert!(critical_path(&[]).is_empty());
    }
}
