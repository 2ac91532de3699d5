//! The runner: global pre-jobs, then each component with its own jobs before and after, then global post-jobs.

mod job;
mod preview;
mod stage;

pub use preview::{JobPreview, Preview, Would};

use crate::clock::Clock;
use crate::component::{Decision, DeployContext};
use crate::context::Release;
use crate::error::Error;
use crate::event::{Event, Events};
use crate::graph::{Flow, walk};
use crate::guard::{self, Violation};
use crate::job::{Failure, Occasion, Phase, Retires, Scope};
use crate::lease::{Claim, Lease};
use crate::ledger::store::{Books, Owner};
use crate::lookout::Lookout;
use crate::names::{self, MANAGED_BY, RELEASE};
use crate::registry::{Entry, Registry, Work};
use crate::report::{
    Action, ComponentReport, DeployOutcome, JobOutcome, JobReport, PhaseReport, Report, Span, between, critical_path,
};
use crate::version::Version;
use jiff::Timestamp;
use stage::Stage;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Deploys releases with their jobs. Two of them in one process know nothing of each other.
#[derive(Clone)]
pub struct Manager {
    client: kube::Client,
    release: Arc<Release>,
    clock: Clock,
    settings: Settings,
}

/// Rules of upgrades that need not hold for once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exceptions {
    /// Versions may be left out.
    pub skip_version: bool,
    /// An older version may follow a newer one.
    pub older: bool,
}

/// How a release is deployed.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many components, and how many jobs of a phase, are worked on at once.
    pub parallel: usize,
    /// How long a job in code that is cancelled may take to end.
    pub grace: Duration,
    /// Who deploys: a text that nobody else has.
    pub holder: String,
    /// How long to wait for somebody else who is deploying.
    pub patience: Duration,
    /// Which application of the release this is: the same text goes on with what was interrupted.
    pub revision: String,
    /// A request for one more run of every selected job; empty for none.
    pub nonce: String,
    /// Only these jobs; all if none.
    pub only: Option<BTreeSet<String>>,
    /// Not these jobs.
    pub skip: BTreeSet<String>,
    /// Versions from which this one can be upgraded to; the same and the previous minor one if none.
    pub upgrade_from: Option<Vec<Version>>,
    /// What may happen although it is against the rules of upgrades.
    pub allow: Exceptions,
    /// What pods say while they run is told as events.
    pub follow_logs: bool,
    /// Nothing is written into the cluster of what happens, and nobody else is waited for.
    pub without_records: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            parallel: 4,
            grace: Duration::from_secs(10),
            holder: "jobwright".to_owned(),
            patience: Duration::from_mins(10),
            revision: String::new(),
            nonce: String::new(),
            only: None,
            skip: BTreeSet::new(),
            upgrade_from: None,
            allow: Exceptions::default(),
            follow_logs: false,
            without_records: false,
        }
    }
}

/// A release that nobody else deploys meanwhile.
pub struct Lock {
    lease: Lease,
    name: String,
}

impl Lock {
    /// Lets others have it.
    pub async fn release(self) {
        self.lease.release().await;
    }
}

/// One deploy while it goes on.
struct Deploy<'a> {
    manager: &'a Manager,
    registry: &'a Registry,
    books: Books,
    lookout: Option<Lookout>,
    labels: BTreeMap<String, String>,
    cancellation: CancellationToken,
    events: Events,
    notes: Mutex<Notes>,
}

/// What is known so far.
#[derive(Default)]
struct Notes {
    decisions: BTreeMap<String, Result<Decision, String>>,
    jobs: BTreeMap<String, JobReport>,
    /// The jobs whose ledgers and Jobs were looked at.
    driven: BTreeSet<String>,
    components: BTreeMap<String, ComponentReport>,
    phases: Vec<PhaseReport>,
    spans: Vec<Span>,
    /// Why the deploy ended early.
    aborted: Option<String>,
    /// What kept the engine from doing its work.
    broken: Option<Error>,
}

impl Manager {
    /// A manager of one release.
    pub fn new(client: kube::Client, release: Release, clock: Clock, settings: Settings) -> Self {
        Self { client, release: Arc::new(release), clock, settings }
    }

    /// The rules that this release would break.
    pub fn violations(&self, registry: &Registry) -> Vec<Violation> {
        let Release { version, previous, .. } = &*self.release;
        violations(registry.retirements(), version.as_ref(), previous.as_ref(), &self.settings)
    }

    /// Takes the release for itself, so that nobody else deploys it meanwhile.
    pub async fn lock(&self, cancellation: &CancellationToken, events: &Events) -> Result<Lock, Error> {
        let owner = self.owner();
        let books = Books::open(self.client.clone(), owner.clone(), self.clock.clone()).await?;
        let claim = Claim {
            namespace: self.release.namespace.clone(),
            name: names::record(&self.release.name, &[&owner.namespace, &owner.identity, ""]),
            holder: self.settings.holder.clone(),
            labels: owner.labels.clone(),
            patience: self.settings.patience,
            epoch_above: books.highest_epoch(),
        };
        let name = claim.name.clone();
        tokio::select! {
            lease = Lease::take(&self.client, claim, &self.clock, events) => Ok(Lock { lease: lease?, name }),
            () = cancellation.cancelled() => Err(Error::Cancelled),
        }
    }

    /// Deploys the release. Nothing is changed if anything in the registry cannot work or breaks a rule.
    pub async fn deploy(
        &self,
        registry: &Registry,
        cancellation: CancellationToken,
        events: Events,
    ) -> Result<Report, Error> {
        self.check(registry)?;
        if self.settings.without_records {
            let books = Books::in_memory(self.owner(), self.clock.clone());
            return Box::pin(self.begin(registry, books, cancellation.child_token(), events).run()).await;
        }
        let lock = self.lock(&cancellation, &events).await?;
        self.deploy_locked(lock, registry, cancellation, events).await
    }

    /// Deploys the release, which has been taken before.
    pub async fn deploy_locked(
        &self,
        lock: Lock,
        registry: &Registry,
        cancellation: CancellationToken,
        events: Events,
    ) -> Result<Report, Error> {
        self.locked(lock, registry, cancellation, events, Deploy::run).await
    }

    /// Runs one job, whatever becomes of its component.
    pub async fn run_job(
        &self,
        lock: Lock,
        registry: &Registry,
        job: &str,
        cancellation: CancellationToken,
        events: Events,
    ) -> Result<Report, Error> {
        self.locked(lock, registry, cancellation, events, async |deploy| deploy.run_one(job).await).await
    }

    fn check(&self, registry: &Registry) -> Result<(), Error> {
        let problems = registry.problems();
        if !problems.is_empty() {
            return Err(Error::Registry(problems));
        }
        let violations = self.violations(registry);
        if violations.is_empty() { Ok(()) } else { Err(Error::Violations(violations)) }
    }

    async fn locked<'a>(
        &'a self,
        lock: Lock,
        registry: &'a Registry,
        cancellation: CancellationToken,
        events: Events,
        run: impl AsyncFnOnce(Deploy<'a>) -> Result<Report, Error>,
    ) -> Result<Report, Error> {
        let Lock { lease, name } = lock;
        if let Err(error) = self.check(registry) {
            lease.release().await;
            return Err(error);
        }
        // Whoever had it before may have written until the moment it was taken.
        let books = Books::open(self.client.clone(), self.owner(), self.clock.clone()).await?.under(lease.epoch());
        let deploy = self.begin(registry, books, cancellation.child_token(), events);
        let result = tokio::select! {
            // It is large, and would make everything large that waits for it.
            result = Box::pin(run(deploy)) => result,
            () = lease.lost() => return Err(Error::LostLease { name }),
        };
        lease.release().await;
        result
    }

    /// Whether the release is new to the cluster.
    fn occasion(&self) -> Occasion {
        match self.release.previous {
            None => Occasion::Install,
            Some(_) => Occasion::Upgrade,
        }
    }

    fn owner(&self) -> Owner {
        let labels = BTreeMap::from([
            (MANAGED_BY.to_owned(), names::FIELD_MANAGER.to_owned()),
            (RELEASE.to_owned(), self.release.name.clone()),
        ]);
        Owner {
            namespace: self.release.namespace.clone(),
            identity: self.release.name.clone(),
            base: self.release.name.clone(),
            labels,
            reference: None,
        }
    }

    fn begin<'a>(
        &'a self,
        registry: &'a Registry,
        books: Books,
        cancellation: CancellationToken,
        events: Events,
    ) -> Deploy<'a> {
        let labels = self.owner().labels;
        let had_pods = books.snapshot().into_values().flatten().any(|ledger| ledger.had_pods());
        let has_pods = had_pods || registry.jobs().iter().any(|job| matches!(job.work, Work::Pod(_)));
        let lookout = has_pods.then(|| Lookout::open(&self.client, &self.release.namespace, &labels));
        Deploy { manager: self, registry, books, lookout, labels, cancellation, events, notes: Mutex::default() }
    }
}

impl Deploy<'_> {
    async fn run(self) -> Result<Report, Error> {
        let started = self.manager.clock.now();
        self.decide().await;
        let occasion = self.manager.occasion();
        let before = self.phase(&Scope::Global, Phase::Pre, occasion, &[]).await;
        let components = match before.flow {
            Flow::Open => self.components(&before).await,
            Flow::Blocked => {
                let cancelled = self.cancellation.is_cancelled();
                let why = if cancelled { "the deploy was cancelled" } else { "a global pre-job failed" };
                self.registry.components().iter().for_each(|component| self.skip_component(component.name(), why));
                Stage::blocked()
            }
        };
        match components.flow {
            Flow::Open => drop(self.phase(&Scope::Global, Phase::Post, occasion, &components.spans).await),
            Flow::Blocked => {
                let cancelled = self.cancellation.is_cancelled();
                let why = if cancelled { "the deploy was cancelled".to_owned() } else { self.what_failed() };
                self.skip_phase(&Scope::Global, Phase::Post, &why);
            }
        }
        self.settle().await;
        self.end(started)
    }

    /// Which components failed, as a reason to go no further.
    fn what_failed(&self) -> String {
        let notes = self.lock();
        let failed = notes.components.values().filter(|component| component.action == Action::Failed);
        let names: Vec<String> = failed.map(|component| format!("`{}`", component.name)).collect();
        match names.as_slice() {
            [] => "the deploy failed".to_owned(),
            names => format!("{} failed", names.join(" and ")),
        }
    }

    /// One job, whatever becomes of its component.
    async fn run_one(self, id: &str) -> Result<Report, Error> {
        let started = self.manager.clock.now();
        let occasion = self.manager.occasion();
        for entry in self.registry.jobs().iter().filter(|entry| entry.id == id) {
            let occasion = entry.when.only.unwrap_or(occasion);
            let (report, _) = self.job(entry, occasion).await;
            self.note_job(report);
        }
        self.end(started)
    }

    fn end(self, started: Timestamp) -> Result<Report, Error> {
        let cancelled = self.cancellation.is_cancelled();
        let took = between(started, self.manager.clock.now());
        let notes = self.notes.into_inner().unwrap_or_else(PoisonError::into_inner);
        match notes.broken {
            Some(error) => Err(error),
            None => Ok(notes.report(self.registry, cancelled, took)),
        }
    }

    /// Decides what becomes of each component, before anything is changed.
    async fn decide(&self) {
        let nodes: Vec<_> = self
            .registry
            .component_nodes()
            .into_iter()
            .map(|node| crate::graph::Node { after: Vec::new(), ..node })
            .collect();
        let run = |index: usize| async move {
            let component = &self.registry.components()[index];
            let decided = component.decide(&self.deploy_context(component.name())).await;
            if let Ok(decision) = &decided {
                let name = component.name().to_owned();
                self.events.send(Event::Decided { component: name, decision: decision.clone() });
            }
            let decided = decided.map_err(|failure| failure.whole_message());
            self.lock().decisions.insert(component.name().to_owned(), decided);
            Flow::Open
        };
        walk(&nodes, self.manager.settings.parallel, run, |_, _| {}).await;
    }

    fn deploy_context(&self, component: &str) -> DeployContext {
        DeployContext {
            client: self.manager.client.clone(),
            release: Arc::clone(&self.manager.release),
            component: component.to_owned(),
            cancellation: self.cancellation.clone(),
            clock: self.manager.clock.clone(),
            events: self.events.clone(),
        }
    }

    /// Ends the deploy before its time.
    fn abort(&self, reason: String) {
        self.lock().aborted.get_or_insert(reason);
        self.cancellation.cancel();
    }

    /// The engine itself cannot go on.
    fn break_off(&self, error: Error) {
        self.lock().broken.get_or_insert(error);
        self.cancellation.cancel();
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Notes {
    fn report(mut self, registry: &Registry, cancelled: bool, took: Duration) -> Report {
        let jobs: Vec<JobReport> = registry.jobs().iter().filter_map(|job| self.jobs.remove(&job.id)).collect();
        let names = registry.components().iter().map(|component| component.name());
        let components: Vec<ComponentReport> = names.filter_map(|name| self.components.remove(name)).collect();
        let continues = |job: &JobReport| {
            let entry: Option<&Entry> = registry.jobs().iter().find(|entry| entry.id == job.id);
            entry.is_some_and(|entry| entry.on_failure == crate::policy::OnFailure::Continue)
        };
        let failed =
            jobs.iter().any(|job| matches!(job.outcome, JobOutcome::Failed | JobOutcome::Unknown) && !continues(job))
                || components.iter().any(|component| component.action == Action::Failed);
        let outcome = match (&self.aborted, cancelled, failed) {
            (Some(_), _, _) => DeployOutcome::Failed,
            (None, true, _) => DeployOutcome::Cancelled,
            (None, false, true) => DeployOutcome::Failed,
            (None, false, false) => DeployOutcome::Succeeded,
        };
        let critical_path = critical_path(&self.spans);
        Report { outcome, reason: self.aborted, components, jobs, phases: self.phases, critical_path, took }
    }
}

/// The rules that a release would break: jobs that should have gone, and upgrades that leave something out.
pub fn violations<'a>(
    retirements: impl Iterator<Item = (&'a str, &'a Retires)>,
    version: Option<&Version>,
    previous: Option<&Version>,
    settings: &Settings,
) -> Vec<Violation> {
    let mut found: Vec<Violation> =
        retirements.filter_map(|(job, retires)| guard::judge_retirement(job, retires, version)).collect();
    if let (Some(from), Some(to)) = (previous, version) {
        let upgrade = guard::judge_upgrade(from, to, settings.upgrade_from.as_deref());
        found.extend(upgrade.filter(|violation| match violation {
            Violation::Older { .. } => !settings.allow.older,
            Violation::Skips { .. } => !settings.allow.skip_version,
            Violation::Retired { .. } => true,
        }));
    }
    found
}

/// What a failure means, in a line.
fn tell(failure: &Failure) -> String {
    failure.whole_message()
}
