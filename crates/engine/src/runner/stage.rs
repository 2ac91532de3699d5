//! The stages of a deploy: the jobs of a phase, and components with their phases.

use super::{Deploy, tell};
use crate::component::Decision;
use crate::event::Event;
use crate::graph::{Flow, Node, walk};
use crate::job::{Occasion, Phase, Scope};
use crate::registry::Entry;
use crate::report::{Action, ComponentReport, JobOutcome, JobReport, PhaseReport, Span, between};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

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

impl Deploy<'_> {
    /// Runs the jobs of a phase, in the order of `after`.
    pub(super) async fn phase(&self, scope: &Scope, phase: Phase, occasion: Occasion, after: &[usize]) -> Stage {
        let entries = self.registry.jobs_of(scope, phase);
        if entries.is_empty() {
            return Stage { flow: Flow::Open, spans: after.to_vec() };
        }
        self.events.send(Event::PhaseStarted { scope: scope.clone(), phase });
        let started = self.manager.clock.now();
        let nodes: Vec<Node> =
            entries.iter().map(|entry| Node { name: entry.id.clone(), after: entry.after.clone() }).collect();
        let spans: Mutex<BTreeMap<&str, usize>> = Mutex::default();
        let flow = Mutex::new(Flow::Open);
        let run = |index: usize| {
            let (entry, spans, flow) = (entries[index], &spans, &flow);
            async move {
                let (span, job_flow) = self.timed_job(entry, occasion, after, spans).await;
                if let Some(span) = span {
                    lock(spans).insert(entry.id.as_str(), span);
                }
                if job_flow == Flow::Blocked {
                    *lock(flow) = Flow::Blocked;
                }
                job_flow
            }
        };
        let skip =
            |index: usize, by: &str| self.skip_job(entries[index], &format!("`{by}` comes before it and failed"));
        walk(&nodes, self.manager.settings.parallel, run, skip).await;
        let took = between(started, self.manager.clock.now());
        self.lock().phases.push(PhaseReport { scope: scope.clone(), phase, took });
        let spans: Vec<usize> = lock(&spans).values().copied().collect();
        let flow = lock(&flow).clone();
        Stage { flow, spans: if spans.is_empty() { after.to_vec() } else { spans } }
    }

    /// Runs a job and notes when; what was skipped took no time and nobody waited for it.
    async fn timed_job<'e>(
        &self,
        entry: &'e Entry,
        occasion: Occasion,
        after: &[usize],
        spans: &Mutex<BTreeMap<&'e str, usize>>,
    ) -> (Option<usize>, Flow) {
        let started = self.manager.clock.now();
        let (report, flow) = self.job(entry, occasion).await;
        let before: Vec<usize> = match entry.after.as_slice() {
            [] => after.to_vec(),
            names => names.iter().filter_map(|name| lock(spans).get(name.as_str()).copied()).collect(),
        };
        let has_run = report.outcome != JobOutcome::Skipped;
        let span = has_run.then(|| self.note_span(format!("job {}", entry.id), started, before));
        self.note_job(report);
        (span, flow)
    }

    fn note_span(&self, name: String, started: Timestamp, after: Vec<usize>) -> usize {
        let ended = self.manager.clock.now();
        let mut notes = self.lock();
        notes.spans.push(Span { name, started, ended, after });
        notes.spans.len() - 1
    }

    pub(super) fn note_job(&self, report: JobReport) {
        self.events.send(Event::JobDone(report.clone()));
        self.lock().jobs.insert(report.id.clone(), report);
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
        let spans: Mutex<BTreeMap<String, Vec<usize>>> = Mutex::default();
        let flow = Mutex::new(Flow::Open);
        let run = |index: usize| {
            let (node, spans, flow) = (&nodes[index], &spans, &flow);
            async move {
                let waited: Vec<usize> =
                    node.after.iter().filter_map(|name| lock(spans).get(name).cloned()).flatten().collect();
                let after = if waited.is_empty() { before.spans.clone() } else { waited };
                let stage = self.component(index, &after).await;
                lock(spans).insert(node.name.clone(), stage.spans);
                if stage.flow == Flow::Blocked {
                    *lock(flow) = Flow::Blocked;
                }
                stage.flow
            }
        };
        let skip = |index: usize, by: &str| {
            self.skip_component(&nodes[index].name, &format!("it depends on `{by}`, which failed"));
        };
        walk(&nodes, self.manager.settings.parallel, run, skip).await;
        let ends: Vec<usize> = lock(&spans).values().flatten().copied().collect();
        let flow = lock(&flow).clone();
        Stage { flow, spans: if ends.is_empty() { before.spans.clone() } else { ends } }
    }

    /// A component: its pre-jobs, itself, its post-jobs.
    async fn component(&self, index: usize, after: &[usize]) -> Stage {
        let component = &self.registry.components()[index];
        let name = component.name();
        let scope = Scope::Component(name.to_owned());
        if self.cancellation.is_cancelled() {
            self.skip_component(name, "the deploy was cancelled");
            return Stage::blocked();
        }
        let decision = match self.lock().decisions.get(name).cloned() {
            Some(Ok(decision)) => decision,
            Some(Err(reason)) => {
                self.skip_jobs_of(name, "nobody can tell whether its component has to be deployed");
                self.note_component(name, Action::Failed, reason, None, Duration::ZERO);
                return Stage::blocked();
            }
            None => Decision::Unchanged(String::new()),
        };
        let reason = decision.reason().to_owned();
        let Some(occasion) = decision.occasion() else {
            self.skip_jobs_of(name, "its component is unchanged");
            self.note_component(name, Action::Unchanged, reason, Some(decision), Duration::ZERO);
            return Stage { flow: Flow::Open, spans: after.to_vec() };
        };
        let pre = self.phase(&scope, Phase::Pre, occasion, after).await;
        if pre.flow == Flow::Blocked || self.cancellation.is_cancelled() {
            let why = if pre.flow == Flow::Blocked { "a pre-job of it failed" } else { "the deploy was cancelled" };
            self.skip_phase(&scope, Phase::Post, "its component was not deployed");
            let action = if pre.flow == Flow::Blocked { Action::Failed } else { Action::Skipped };
            self.note_component(name, action, why.to_owned(), Some(decision), Duration::ZERO);
            return Stage::blocked();
        }
        self.events.send(Event::Deploying { component: name.to_owned(), occasion });
        let started = self.manager.clock.now();
        let context = self.deploy_context(name);
        let deployed = component.deploy(&context, occasion).await;
        let took = between(started, self.manager.clock.now());
        let span = self.note_span(format!("component {name}"), started, pre.spans);
        if let Err(failure) = deployed {
            self.skip_phase(&scope, Phase::Post, "the deploy of its component failed");
            self.note_component(name, Action::Failed, tell(&failure), Some(decision), took);
            if failure.does_end_deploy() {
                self.abort(format!("component `{name}` ended the deploy: {}", tell(&failure)));
            }
            return Stage::blocked();
        }
        let post = self.phase(&scope, Phase::Post, occasion, &[span]).await;
        let done = match occasion {
            Occasion::Install => Action::Installed,
            Occasion::Upgrade => Action::Upgraded,
        };
        if post.flow == Flow::Blocked {
            self.note_component(name, Action::Failed, "a post-job of it failed".to_owned(), Some(decision), took);
            return Stage::blocked();
        }
        let completed = if self.cancellation.is_cancelled() { Ok(()) } else { component.complete(&context).await };
        match completed {
            Ok(()) => self.note_component(name, done, reason, Some(decision), took),
            Err(failure) => {
                self.note_component(name, Action::Failed, tell(&failure), Some(decision), took);
                return Stage::blocked();
            }
        }
        Stage { flow: Flow::Open, spans: post.spans }
    }

    pub(super) fn skip_component(&self, name: &str, reason: &str) {
        self.skip_jobs_of(name, reason);
        let decision = self.lock().decisions.get(name).and_then(|decided| decided.clone().ok());
        self.note_component(name, Action::Skipped, reason.to_owned(), decision, Duration::ZERO);
    }

    fn skip_jobs_of(&self, name: &str, reason: &str) {
        let scope = Scope::Component(name.to_owned());
        self.skip_phase(&scope, Phase::Pre, reason);
        self.skip_phase(&scope, Phase::Post, reason);
    }

    fn note_component(&self, name: &str, action: Action, reason: String, decision: Option<Decision>, took: Duration) {
        let event = Event::ComponentDone { component: name.to_owned(), action, reason: reason.clone(), took };
        self.events.send(event);
        let report = ComponentReport { name: name.to_owned(), action, reason, decision, took };
        self.lock().components.insert(name.to_owned(), report);
    }
}

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

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
