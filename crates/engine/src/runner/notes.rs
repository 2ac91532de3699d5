//! What is known of a deploy so far, and the report that comes of it.

use super::manager::Settings;
use crate::component::Decision;
use crate::error::Error;
use crate::job::Occasion;
use crate::policy::OnFailure;
use crate::registry::{Entry, Registry};
use crate::report::{
    Action, ComponentReport, DeployOutcome, JobOutcome, JobReport, PhaseReport, Report, Span, between, critical_path,
};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A value that several tasks change. Its guard cannot outlive a closure, so that no task waits with it in hand.
pub(super) struct Shared<T>(Mutex<T>);

impl<T> Shared<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(super) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What is known of a deploy so far.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) decisions: BTreeMap<String, Result<Decision, String>>,
    pub(super) jobs: BTreeMap<String, JobReport>,
    /// The jobs whose ledgers and Jobs were looked at.
    pub(super) driven: BTreeSet<String>,
    pub(super) components: BTreeMap<String, ComponentReport>,
    pub(super) phases: Vec<PhaseReport>,
    pub(super) spans: Vec<Span>,
    /// Jobs that are due and were skipped on request.
    pub(super) owed: BTreeMap<String, Occasion>,
    /// Why the deploy ended early.
    pub(super) aborted: Option<String>,
    /// Why the engine stopped.
    broken: Option<Arc<Error>>,
}

impl Notes {
    pub(super) fn new(owed: BTreeMap<String, Occasion>) -> Self {
        Self { owed, ..Self::default() }
    }

    /// The engine cannot continue; the first reason counts.
    pub(super) fn break_off(&mut self, error: Error) {
        self.broken.get_or_insert(Arc::new(error));
    }

    /// The report, also on what the deploy did not come to.
    pub(super) fn report(
        &mut self,
        registry: &Registry,
        settings: &Settings,
        is_cancelled: bool,
        started: Timestamp,
        now: Timestamp,
    ) -> Report {
        let jobs: Vec<JobReport> = registry.jobs().iter().filter_map(|entry| self.job(entry, settings)).collect();
        let names = registry.components().iter().map(|component| component.name());
        let components: Vec<ComponentReport> = names.filter_map(|name| self.component(name, settings)).collect();
        let counts = |job: &JobReport| {
            let entry = registry.jobs().iter().find(|entry| entry.id == job.id);
            !entry.is_some_and(|entry| entry.on_failure == OnFailure::Continue)
        };
        let failed =
            jobs.iter().any(|job| matches!(job.outcome, JobOutcome::Failed | JobOutcome::Unknown) && counts(job))
                || components.iter().any(|component| component.action == Action::Failed);
        let outcome = match (self.broken.is_some() || self.aborted.is_some(), is_cancelled, failed) {
            (true, _, _) | (false, false, true) => DeployOutcome::Failed,
            (false, true, _) => DeployOutcome::Cancelled,
            (false, false, false) => DeployOutcome::Succeeded,
        };
        Report {
            outcome,
            reason: self.aborted.clone(),
            error: self.broken.clone(),
            components,
            jobs,
            phases: std::mem::take(&mut self.phases),
            critical_path: critical_path(&self.spans),
            took: between(started, now),
            owed: self.owed.clone(),
        }
    }

    fn job(&mut self, entry: &Entry, settings: &Settings) -> Option<JobReport> {
        let is_wanted = settings.only.as_ref().is_none_or(|only| only.contains(&entry.id));
        let noted = self.jobs.remove(&entry.id);
        if noted.is_some() || self.broken.is_none() || !is_wanted {
            return noted;
        }
        let mut report = super::stage::skipped(entry, "the deploy stopped before it");
        if self.driven.contains(&entry.id) {
            let reason = "the deploy stopped while it ran; the next deploy resumes it".to_owned();
            report = JobReport { outcome: JobOutcome::Unknown, reason, ..report };
        }
        Some(report)
    }

    fn component(&mut self, name: &str, settings: &Settings) -> Option<ComponentReport> {
        let is_wanted = settings.components.as_ref().is_none_or(|only| only.contains(name));
        let noted = self.components.remove(name);
        if noted.is_some() || self.broken.is_none() || !is_wanted {
            return noted;
        }
        Some(ComponentReport {
            name: name.to_owned(),
            action: Action::Skipped,
            reason: "the deploy stopped before it was deployed completely".to_owned(),
            failure: None,
            decision: self.decisions.remove(name).and_then(Result::ok),
            took: Duration::ZERO,
        })
    }
}
