//! What a deploy would do, without doing it.

use super::stage::{Due, UNCHANGED};
use super::{Deploy, Manager};
use crate::call;
use crate::component::Decision;
use crate::error::Error;
use crate::event::Events;
use crate::job::{Needed, Occasion, Phase, Scope};
use crate::ledger::store::Books;
use crate::ledger::{Ledger, Outcome};
use crate::machine::{self, Observed, Spec, Step, Verdict};
use crate::policy::RunPolicy;
use crate::registry::{Entry, Registry};
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

/// What a deploy would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// What would become of the components, in the order they were added; why that cannot be told, if it cannot.
    pub components: Vec<(String, Result<Decision, String>)>,
    /// What would become of the jobs, in the order they were added.
    pub jobs: Vec<JobPreview>,
}

/// What would become of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPreview {
    /// What it is called.
    pub id: String,
    /// What it belongs to.
    pub scope: Scope,
    /// Before or after that.
    pub phase: Phase,
    /// What would become of it.
    pub would: Would,
    /// Why.
    pub reason: String,
}

/// What would become of a job, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Would {
    /// It would run.
    Run,
    /// A run that is going would be followed.
    GoOn,
    /// It would not run.
    Skip,
    /// It would fail without running.
    Fail,
}

impl Manager {
    /// What a deploy would do. Nothing is changed, and nobody is waited for.
    pub async fn preview(&self, registry: &Registry) -> Result<Preview, Error> {
        let problems = registry.problems();
        if !problems.is_empty() {
            return Err(Error::Registry(problems));
        }
        let (client, cancellation, events) = (call::bounded(&self.client), CancellationToken::new(), Events::nowhere());
        let books = Books::open(client.clone(), self.owner(), None, self.retry(&cancellation, &events)).await?;
        let deploy = self.begin(registry, client, None, books, self.retry(&cancellation, &events));
        deploy.decide().await;
        let mut decisions = deploy.notes.with(|notes| std::mem::take(&mut notes.decisions));
        deploy.hide_secrets(&deploy.retry).await?;
        deploy.foresee_components(&mut decisions).await;
        let mut jobs = Vec::new();
        for entry in registry.jobs() {
            let decided = entry.when.scope.component().map(|name| decisions.get(name));
            let due = match decided {
                None => Some(Due::at(self.occasion())),
                Some(Some(Ok(decision))) => {
                    Some(decision.occasion().map_or_else(|| deploy.due_if_unchanged(), Due::at))
                }
                Some(_) => None,
            };
            let (would, reason) = match due.map(|due| deploy.occasion_of(entry, due)) {
                Some(Some(occasion)) => deploy.preview(entry, occasion).await?,
                Some(None) => (Would::Skip, UNCHANGED.to_owned()),
                None => (Would::Skip, "its component is not deployed".to_owned()),
            };
            let (scope, phase) = (entry.when.scope.clone(), entry.when.phase);
            jobs.push(JobPreview { id: entry.id.clone(), scope, phase, would, reason });
        }
        let names = registry.components().iter().map(|component| component.name().to_owned());
        let unknown = || Ok(Decision::Unchanged("not selected by `--component`".to_owned()));
        let components =
            names.map(|name| (name.clone(), decisions.get(&name).cloned().unwrap_or_else(unknown))).collect();
        Ok(Preview { components, jobs })
    }
}

impl Deploy<'_> {
    /// Finds the components whose deploy would fail.
    async fn foresee_components(&self, decisions: &mut BTreeMap<String, Result<Decision, String>>) {
        for component in self.registry.components() {
            let Some(decided) = decisions.get_mut(component.name()) else { continue };
            if decided.as_ref().is_ok_and(|decision| decision.occasion().is_some())
                && let Err(failure) = component.foresee(&self.deploy_context(component.name())).await
            {
                *decided = Err(self.mask.apply(&failure.whole_message()));
            }
        }
    }

    /// Whether the deploy changes components before it runs a job.
    fn comes_after_components(&self, entry: &Entry) -> bool {
        let nodes = self.registry.component_nodes();
        let has_dependencies = |name: &str| nodes.iter().any(|node| node.name == name && !node.after.is_empty());
        entry.when.phase == Phase::Post || entry.when.scope.component().is_some_and(has_dependencies)
    }

    /// A job that would fail now. By its turn that may have changed.
    fn fails(&self, entry: &Entry, reason: String) -> (Would, String) {
        if self.comes_after_components(entry) {
            (Would::Run, format!("as far as can be told now: {reason}"))
        } else {
            (Would::Fail, reason)
        }
    }

    async fn preview(&self, entry: &Entry, occasion: Occasion) -> Result<(Would, String), Error> {
        if let Some(left) = self.leave_out(entry, occasion) {
            return Ok((Would::Skip, left.reason(occasion).to_owned()));
        }
        let prepared = match self.prepare(entry, occasion).await? {
            Ok(prepared) => prepared,
            // What is borrowed may come with the component, or with one before it.
            Err(reason) => return Ok(self.fails(entry, reason)),
        };
        let (spec, book, mut attempts) = prepared;
        let mut first = Observed::default();
        attempts.look(book.ledger().active(), &mut first).await?;
        // Leftovers are put away when it comes to it; here they would only be in the way of the answer.
        first.strays.clear();
        let step = machine::step(&spec, book.ledger(), &first, self.manager.clock.now());
        let step = match step {
            Step::Ask => match attempts.ask().await {
                Ok(Some(Needed::No(reason))) => return Ok((Would::Skip, format!("not needed: {reason}"))),
                Ok(Some(Needed::Yes) | None) => {
                    let asked = Observed { needed: Some(Needed::Yes), ..first };
                    machine::step(&spec, book.ledger(), &asked, self.manager.clock.now())
                }
                Err(reason) => return Ok(self.fails(entry, reason)),
            },
            other => other,
        };
        if let (Step::Record(next), None) = (&step, book.ledger().active())
            && let Some(active) = next.active()
            && let Err(reason) = attempts.foresee(active).await
        {
            return Ok(self.fails(entry, reason));
        }
        Ok(match (step, book.ledger().active()) {
            (Step::Done(Verdict::Skipped(skip)), _) => (Would::Skip, skip.to_string()),
            (Step::Done(verdict), _) => (Would::Fail, verdict.tell().1),
            (_, Some(active)) if spec.takes(active) => (Would::GoOn, format!("run {} is not over", active.run)),
            (_, Some(active)) => (Would::Run, format!("after run {}, which is still going", active.run)),
            (_, None) => (Would::Run, why(&spec, book.ledger())),
        })
    }
}

/// Why a job would run.
fn why(spec: &Spec, ledger: &Ledger) -> String {
    let last = ledger.runs().find(|run| run.is_final);
    let same = last.filter(|run| spec.fingerprints.include(&run.fingerprint));
    match (same, ledger.last_success()) {
        _ if !spec.nonce.is_empty() => "it is asked to run again".to_owned(),
        (Some(run), _) if run.outcome == Outcome::Failed => format!("run {} failed", run.run),
        (Some(run), _) if run.outcome == Outcome::Unknown => format!("nobody knows how run {} ended", run.run),
        (Some(run), _) if run.outcome == Outcome::Cancelled => format!("run {} was cancelled", run.run),
        _ if spec.run == RunPolicy::Always => "it runs each time".to_owned(),
        (Some(run), Some(_)) => format!("run {} has expired", run.run),
        (None, Some(done)) => match &done.version {
            Some(version) => format!("it has changed since run {} ({version})", done.run),
            None => format!("it has changed since run {}", done.run),
        },
        _ => "it has not run yet".to_owned(),
    }
}
