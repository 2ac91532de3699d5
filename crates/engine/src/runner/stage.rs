//! The stages of a deploy: the jobs of a phase, and components with their phases.

use super::notes::Shared;
use super::{CANCELLED, Deploy};
use crate::component::{Component, Decision, DeployContext};
use crate::error::Error;
use crate::event::Event;
use crate::graph::{Flow, Node, walk};
use crate::job::{Failure, Occasion, Phase, Scope};
use crate::registry::Entry;
use crate::report::{Action, ComponentFailure, ComponentReport, JobOutcome, JobReport, PhaseReport, Span, between};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long the Secrets of a component that has failed are asked for.
const LAST_LOOK: Duration = Duration::from_secs(10);

/// How a stage ended, and what its end waited for.
pub(super) struct Stage {
    pub(super) flow: Flow,
    pub(super) spans: Vec<usize>,
}

impl Stage {
    pub(super) fn blocked() -> Self {
        Self { flow: Flow::Blocked, spans: Vec::new() }
    }
}

/// Which jobs of a phase are due.
#[derive(Clone, Copy)]
pub(super) enum Due {
    /// All, on this install or upgrade.
    All(Occasion),
    /// Those that an earlier deploy owes: their component is unchanged.
    Owed,
}

impl Due {
    pub(super) fn at(occasion: Occasion) -> Self {
        Self::All(occasion)
    }
}

impl Deploy<'_> {
    /// The install or upgrade that a job is due for; none if it is not due.
    pub(super) fn occasion_of(&self, entry: &Entry, due: Due) -> Option<Occasion> {
        let owed = self.manager.settings.owed.get(&entry.id).copied();
        // The plan may have changed since, and run it on the other occasion only.
        let is_due = |occasion: &Occasion| entry.when.only.is_none_or(|only| only == *occasion);
        owed.filter(is_due).or(match due {
            Due::All(occasion) => Some(occasion),
            Due::Owed => None,
        })
    }

    /// The jobs of a component that were skipped on request.
    fn owed_by(&self, scope: &Scope) -> BTreeMap<String, Occasion> {
        let mut owed = self.notes.with(|notes| notes.owed.clone());
        owed.retain(|id, _| self.registry.jobs().iter().any(|entry| entry.id == *id && entry.when.scope == *scope));
        owed
    }

    /// Which jobs of a component that is unchanged are due.
    pub(super) fn due_if_unchanged(&self) -> Due {
        if self.manager.settings.nonce.is_empty() { Due::Owed } else { Due::All(Occasion::Upgrade) }
    }

    /// Runs the jobs of a phase, in the order of `after`.
    pub(super) async fn phase(&self, scope: &Scope, phase: Phase, due: Due, after: &[usize]) -> Stage {
        let entries = self.registry.jobs_of(scope, phase);
        if entries.is_empty() {
            return Stage { flow: Flow::Open, spans: after.to_vec() };
        }
        self.events.send(Event::PhaseStarted { scope: scope.clone(), phase });
        let started = self.manager.clock.now();
        let nodes: Vec<Node> =
            entries.iter().map(|entry| Node { name: entry.id.clone(), after: entry.after.clone() }).collect();
        let spans: Shared<BTreeMap<&str, usize>> = Shared::new(BTreeMap::new());
        let flow = Shared::new(Flow::Open);
        let run = |index: usize| {
            let (entry, spans, flow) = (entries[index], &spans, &flow);
            async move {
                let Some(occasion) = self.occasion_of(entry, due) else {
                    self.skip_job(entry, UNCHANGED);
                    return Flow::Open;
                };
                let (span, job_flow) = self.timed_job(entry, occasion, after, spans).await;
                if let Some(span) = span {
                    spans.with(|spans| spans.insert(entry.id.as_str(), span));
                }
                if job_flow == Flow::Blocked {
                    flow.with(|flow| *flow = Flow::Blocked);
                }
                job_flow
            }
        };
        let skip =
            |index: usize, by: &str| self.skip_job(entries[index], &format!("`{by}` comes before it and failed"));
        walk(&nodes, self.manager.settings.parallel, run, skip).await;
        let took = between(started, self.manager.clock.now());
        self.notes.with(|notes| notes.phases.push(PhaseReport { scope: scope.clone(), phase, took }));
        let spans: Vec<usize> = spans.with(|spans| spans.values().copied().collect());
        let flow = flow.with(|flow| flow.clone());
        Stage { flow, spans: if spans.is_empty() { after.to_vec() } else { spans } }
    }

    /// Runs a job and notes when; what was skipped took no time and nobody waited for it.
    async fn timed_job<'e>(
        &self,
        entry: &'e Entry,
        occasion: Occasion,
        after: &[usize],
        spans: &Shared<BTreeMap<&'e str, usize>>,
    ) -> (Option<usize>, Flow) {
        let started = self.manager.clock.now();
        let (report, flow) = self.job(entry, occasion).await;
        let before: Vec<usize> = match entry.after.as_slice() {
            [] => after.to_vec(),
            names => spans.with(|spans| names.iter().filter_map(|name| spans.get(name.as_str()).copied()).collect()),
        };
        let has_run = report.outcome != JobOutcome::Skipped;
        let span = has_run.then(|| self.note_span(format!("job {}", entry.id), started, before));
        self.note_job(report);
        (span, flow)
    }

    fn note_span(&self, name: String, started: Timestamp, after: Vec<usize>) -> usize {
        let ended = self.manager.clock.now();
        self.notes.with(|notes| {
            notes.spans.push(Span { name, started, ended, after });
            notes.spans.len() - 1
        })
    }

    pub(super) fn note_job(&self, report: JobReport) {
        self.events.send(Event::JobDone(report.clone()));
        self.notes.with(|notes| notes.jobs.insert(report.id.clone(), report));
    }

    pub(super) fn skip_phase(&self, scope: &Scope, phase: Phase, reason: &str) {
        for entry in self.registry.jobs_of(scope, phase) {
            self.skip_job(entry, reason);
        }
    }

    fn skip_job(&self, entry: &Entry, reason: &str) {
        self.note_job(skipped(entry, reason));
    }

    /// Deploys the components, each as soon as what it depends on is there.
    pub(super) async fn components(&self, before: &Stage) -> Stage {
        let nodes = self.registry.component_nodes();
        let spans: Shared<BTreeMap<String, Vec<usize>>> = Shared::new(BTreeMap::new());
        let flow = Shared::new(Flow::Open);
        let run = |index: usize| {
            let (node, spans, flow) = (&nodes[index], &spans, &flow);
            async move {
                let waited: Vec<usize> = spans
                    .with(|spans| node.after.iter().filter_map(|name| spans.get(name).cloned()).flatten().collect());
                let after = if waited.is_empty() { before.spans.clone() } else { waited };
                let stage = self.component(index, &after).await;
                spans.with(|spans| spans.insert(node.name.clone(), stage.spans));
                if stage.flow == Flow::Blocked {
                    flow.with(|flow| *flow = Flow::Blocked);
                }
                stage.flow
            }
        };
        let skip = |index: usize, by: &str| {
            self.skip_component(&nodes[index].name, &format!("it depends on `{by}`, which failed"));
        };
        walk(&nodes, self.manager.settings.parallel, run, skip).await;
        let ends: Vec<usize> = spans.with(|spans| spans.values().flatten().copied().collect());
        let flow = flow.with(|flow| flow.clone());
        Stage { flow, spans: if ends.is_empty() { before.spans.clone() } else { ends } }
    }

    /// A component: its pre-jobs, itself, its post-jobs.
    async fn component(&self, index: usize, after: &[usize]) -> Stage {
        let component = &self.registry.components()[index];
        let name = component.name();
        let scope = Scope::Component(name.to_owned());
        if !self.is_selected(name) {
            self.skip_jobs_of(name, "its component is not selected by `--component`");
            self.note_component(name, Ending::skipped("not selected by `--component`"), None, Duration::ZERO);
            return Stage { flow: Flow::Open, spans: after.to_vec() };
        }
        if self.cancellation.is_cancelled() {
            self.skip_component(name, CANCELLED);
            return Stage::blocked();
        }
        let decision = match self.notes.with(|notes| notes.decisions.get(name).cloned()) {
            Some(Ok(decision)) => decision,
            Some(Err(reason)) => {
                self.skip_jobs_of(name, "its component could not be checked for changes");
                self.note_component(name, Ending::failed(reason), None, Duration::ZERO);
                return Stage::blocked();
            }
            None => Decision::Unchanged(String::new()),
        };
        match decision.occasion() {
            Some(occasion) => self.deploy_component(&**component, &scope, decision, occasion, after).await,
            None => self.keep_component(name, &scope, decision, after).await,
        }
    }

    /// A component that is unchanged. Its jobs run only if they are forced, or owed by an earlier deploy.
    async fn keep_component(&self, name: &str, scope: &Scope, decision: Decision, after: &[usize]) -> Stage {
        let due = self.due_if_unchanged();
        let unchanged = Ending { action: Action::Unchanged, reason: decision.reason().to_owned(), failure: None };
        let mut stage = Stage { flow: Flow::Open, spans: after.to_vec() };
        for phase in [Phase::Pre, Phase::Post] {
            if stage.flow == Flow::Blocked || self.cancellation.is_cancelled() {
                self.skip_phase(scope, phase, "a job before it failed, or the deploy was cancelled");
                continue;
            }
            stage = self.phase(scope, phase, due, &stage.spans).await;
        }
        let ending = match stage.flow {
            Flow::Open => unchanged,
            Flow::Blocked => Ending::job_failed("a job of it failed"),
        };
        self.note_component(name, ending, Some(decision), Duration::ZERO);
        stage
    }

    /// A component that has changed: its pre-jobs, itself, its post-jobs.
    async fn deploy_component(
        &self,
        component: &dyn Component,
        scope: &Scope,
        decision: Decision,
        occasion: Occasion,
        after: &[usize],
    ) -> Stage {
        let name = component.name();
        let reason = decision.reason().to_owned();
        let pre = self.phase(scope, Phase::Pre, Due::at(occasion), after).await;
        if pre.flow == Flow::Blocked || self.cancellation.is_cancelled() {
            self.skip_phase(scope, Phase::Post, "its component was not deployed");
            let ending = match pre.flow {
                Flow::Blocked => Ending::job_failed("a pre-job failed"),
                Flow::Open => Ending::skipped(CANCELLED),
            };
            self.note_component(name, ending, Some(decision), Duration::ZERO);
            return Stage::blocked();
        }
        self.events.send(Event::Deploying { component: name.to_owned(), occasion });
        let started = self.manager.clock.now();
        let mut context = self.deploy_context(name);
        let deployed = self.deploy_masked(component, &context, occasion).await;
        let took = between(started, self.manager.clock.now());
        let span = self.note_span(format!("component {name}"), started, pre.spans);
        if let Err(failure) = deployed {
            let why = self.mask.apply(&failure.whole_message());
            self.skip_phase(scope, Phase::Post, "the deploy of its component failed");
            self.note_component(name, Ending::failed(why.clone()), Some(decision), took);
            if failure.does_end_deploy() {
                self.abort(format!("component `{name}` ended the deploy: {why}"));
            }
            return Stage::blocked();
        }
        let post = self.phase(scope, Phase::Post, Due::at(occasion), &[span]).await;
        if post.flow == Flow::Blocked {
            self.note_component(name, Ending::job_failed("a post-job failed"), Some(decision), took);
            return Stage::blocked();
        }
        context.owed = self.owed_by(scope);
        // A cancelled deploy has skipped post-jobs, so the next one has to come back to it.
        let completed = if self.cancellation.is_cancelled() { Ok(()) } else { component.complete(&context).await };
        if let Err(failure) = completed {
            let why = self.mask.apply(&failure.whole_message());
            self.note_component(name, Ending::failed(why), Some(decision), took);
            return Stage::blocked();
        }
        let action = match (&decision, occasion) {
            (Decision::Remove(_), _) => Action::Removed,
            (_, Occasion::Install) => Action::Installed,
            (_, Occasion::Upgrade) => Action::Upgraded,
        };
        self.note_component(name, Ending { action, reason, failure: None }, Some(decision), took);
        Stage { flow: Flow::Open, spans: post.spans }
    }

    /// Deploys a component, and hides Secrets in what it reports: those that exist before, and, if it fails, those that
    /// it has created itself.
    async fn deploy_masked(
        &self,
        component: &dyn Component,
        context: &DeployContext,
        occasion: Occasion,
    ) -> Result<(), Failure> {
        let stop = |error: Error| {
            let failure = Failure::new(error.whole_message());
            self.break_off(error);
            failure
        };
        self.hide_secrets(&self.retry).await.map_err(stop)?;
        let deployed = component.deploy(context, occasion).await;
        if deployed.is_err() {
            // What cannot be masked is not reported.
            self.hide_secrets(&self.retry.clone().within(LAST_LOOK)).await.map_err(stop)?;
        }
        deployed
    }

    pub(super) fn skip_component(&self, name: &str, reason: &str) {
        self.skip_jobs_of(name, reason);
        let decision = self.notes.with(|notes| notes.decisions.get(name).and_then(|decided| decided.clone().ok()));
        self.note_component(name, Ending::skipped(reason), decision, Duration::ZERO);
    }

    fn skip_jobs_of(&self, name: &str, reason: &str) {
        let scope = Scope::Component(name.to_owned());
        self.skip_phase(&scope, Phase::Pre, reason);
        self.skip_phase(&scope, Phase::Post, reason);
    }

    fn note_component(&self, name: &str, ending: Ending, decision: Option<Decision>, took: Duration) {
        let Ending { action, reason, failure } = ending;
        let event = Event::ComponentDone { component: name.to_owned(), action, reason: reason.clone(), took };
        self.events.send(event);
        let report = ComponentReport { name: name.to_owned(), action, reason, failure, decision, took };
        self.notes.with(|notes| notes.components.insert(name.to_owned(), report));
    }
}

/// How a component ended.
struct Ending {
    action: Action,
    reason: String,
    failure: Option<ComponentFailure>,
}

impl Ending {
    fn skipped(reason: &str) -> Self {
        Self { action: Action::Skipped, reason: reason.to_owned(), failure: None }
    }

    fn failed(reason: String) -> Self {
        Self { action: Action::Failed, reason, failure: Some(ComponentFailure::Component) }
    }

    fn job_failed(reason: &str) -> Self {
        Self { action: Action::Failed, reason: reason.to_owned(), failure: Some(ComponentFailure::Job) }
    }
}

pub(super) const UNCHANGED: &str = "its component is unchanged";

/// The report on a job that did not run.
pub(super) fn skipped(entry: &Entry, reason: &str) -> JobReport {
    JobReport {
        id: entry.id.clone(),
        scope: entry.when.scope.clone(),
        phase: entry.when.phase,
        outcome: JobOutcome::Skipped,
        reason: reason.to_owned(),
        run: None,
        attempts: 0,
        took: Duration::ZERO,
    }
}
