//! The runner: global pre-jobs, then each component with its own jobs before and after, then global post-jobs.

mod job;
mod manager;
mod notes;
mod preview;
mod stage;

pub use manager::{Exceptions, Lock, Manager, Settings, violations};
pub use preview::{JobPreview, Preview, Would};

use crate::component::DeployContext;
use crate::driver::pods::resolve;
use crate::error::Error;
use crate::event::{Event, Events};
use crate::fingerprint::References;
use crate::graph::{Flow, Node, walk};
use crate::job::{Failure, Phase, Scope};
use crate::lease::Tenure;
use crate::ledger::store::Books;
use crate::lookout::Lookout;
use crate::mask::Mask;
use crate::registry::{Registry, Work};
use crate::report::{Action, Report};
use crate::retry::Retry;
use jiff::Timestamp;
use notes::{Notes, Shared};
use stage::{Due, Stage};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// One deploy while it is carried out.
struct Deploy<'a> {
    manager: &'a Manager,
    /// The cluster; refuses calls once the lease is lost.
    client: kube::Client,
    tenure: Option<Tenure>,
    registry: &'a Registry,
    books: Books,
    lookout: Option<Lookout>,
    labels: BTreeMap<String, String>,
    cancellation: CancellationToken,
    events: Events,
    retry: Retry,
    notes: Arc<Shared<Notes>>,
    /// Values of Secrets, of all jobs: helm may print what a job's pod only reads.
    mask: Mask,
}

impl Deploy<'_> {
    async fn run(self) -> Report {
        let started = self.manager.clock.now();
        self.decide().await;
        let due = Due::at(self.manager.occasion());
        let before = self.phase(&Scope::Global, Phase::Pre, due, &[]).await;
        let components = match before.flow {
            Flow::Open => self.components(&before).await,
            Flow::Blocked => {
                let why = if self.cancellation.is_cancelled() { CANCELLED } else { "a global pre-job failed" };
                self.registry.components().iter().for_each(|component| self.skip_component(component.name(), why));
                Stage::blocked()
            }
        };
        match components.flow {
            Flow::Open => drop(self.phase(&Scope::Global, Phase::Post, due, &components.spans).await),
            Flow::Blocked => {
                let cancelled = self.cancellation.is_cancelled();
                let why = if cancelled { CANCELLED.to_owned() } else { self.what_failed() };
                self.skip_phase(&Scope::Global, Phase::Post, &why);
            }
        }
        self.settle().await;
        self.end(started)
    }

    /// Which components failed, as a reason to stop.
    fn what_failed(&self) -> String {
        let names: Vec<String> = self.notes.with(|notes| {
            let failed = notes.components.values().filter(|component| component.action == Action::Failed);
            failed.map(|component| format!("`{}`", component.name)).collect()
        });
        match names.as_slice() {
            [] => "the deploy failed".to_owned(),
            names => format!("{} failed", names.join(" and ")),
        }
    }

    /// One job, without deploying its component.
    async fn run_one(self, id: &str) -> Report {
        let started = self.manager.clock.now();
        let occasion = self.manager.occasion();
        for entry in self.registry.jobs().iter().filter(|entry| entry.id == id) {
            let occasion = entry.when.only.unwrap_or(occasion);
            let (report, _) = self.job(entry, occasion).await;
            self.note_job(report);
        }
        self.end(started)
    }

    fn end(self, started: Timestamp) -> Report {
        let is_cancelled = self.cancellation.is_cancelled();
        let now = self.manager.clock.now();
        self.notes.with(|notes| notes.report(self.registry, &self.manager.settings, is_cancelled, started, now))
    }

    /// Decides what to do with each component, before anything is changed.
    async fn decide(&self) {
        let wanted = self.registry.component_nodes().into_iter();
        let nodes: Vec<Node> = wanted.map(|node| Node { after: Vec::new(), ..node }).collect();
        let run = |index: usize| async move {
            let component = &self.registry.components()[index];
            let name = component.name();
            if !self.is_selected(name) {
                return Flow::Open;
            }
            let context = self.deploy_context(name);
            let decided = tokio::select! {
                decided = component.decide(&context) => decided,
                () = self.cancellation.cancelled() => Err(Failure::new(CANCELLED)),
            };
            if let Ok(decision) = &decided {
                self.events.send(Event::Decided { component: name.to_owned(), decision: decision.clone() });
            }
            let decided = decided.map_err(|failure| self.mask.apply(&failure.whole_message()));
            self.notes.with(|notes| drop(notes.decisions.insert(name.to_owned(), decided)));
            Flow::Open
        };
        walk(&nodes, self.manager.settings.parallel, run, |_, _| {}).await;
    }

    /// Whether a component is to be deployed at all.
    fn is_selected(&self, component: &str) -> bool {
        self.manager.settings.components.as_ref().is_none_or(|only| only.contains(component))
    }

    fn deploy_context(&self, component: &str) -> DeployContext {
        DeployContext {
            client: self.client.clone(),
            release: Arc::clone(&self.manager.release),
            component: component.to_owned(),
            cancellation: self.cancellation.clone(),
            tenure: self.tenure.clone(),
            clock: self.manager.clock.clone(),
            events: self.events.clone(),
            mask: self.mask.clone(),
            watchdog: self.manager.settings.watchdog.clone(),
            owed: BTreeMap::new(),
            retry: self.retry.clone(),
        }
    }

    /// Hides the Secrets that the pods of any job name, as they are now. What a job borrows counts as it is now, too.
    async fn hide_secrets(&self, retry: &Retry) -> Result<(), Error> {
        let namespace = &self.manager.release.namespace;
        let mut names = BTreeSet::new();
        for entry in self.registry.jobs() {
            let Work::Pod(job) = &entry.work else { continue };
            // A Deployment that does not exist yet names nothing.
            if let Ok(job) = resolve(job, &self.client, namespace, retry).await? {
                names.extend(References::of(&job.template).secrets);
            }
        }
        self.mask.share().hide_secrets(&self.client, namespace, &names, retry).await
    }

    /// Ends the deploy before its time.
    fn abort(&self, reason: String) {
        self.notes.with(|notes| {
            notes.aborted.get_or_insert(reason);
        });
        self.cancellation.cancel();
    }

    /// The engine cannot continue.
    fn break_off(&self, error: Error) {
        self.notes.with(|notes| notes.break_off(error));
        self.cancellation.cancel();
    }
}

const CANCELLED: &str = "the deploy was cancelled";
