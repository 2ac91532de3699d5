//! The manager of a release: its settings, its lock, and the ways to deploy it.

use super::notes::Notes;
use super::{Deploy, Shared};
use crate::call;
use crate::clock::Clock;
use crate::context::{Past, Release, Watchdog};
use crate::error::Error;
use crate::event::{Event, Events};
use crate::fence::Fence;
use crate::guard::{self, Violation};
use crate::job::{Occasion, Retires};
use crate::lease::{Claim, DURATION, Lease, Tenure};
use crate::ledger::store::{Books, Owner};
use crate::lookout::Lookout;
use crate::mask::Mask;
use crate::names::{self, MANAGED_BY, RELEASE};
use crate::registry::{Registry, Work};
use crate::report::Report;
use crate::retry::Retry;
use crate::version::Version;
use kube::Client;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a deploy that has lost its lease may take to stop. Another process may start 5 s after the loss.
const STOPPING: Duration = Duration::from_secs(3);

/// Deploys a release with its jobs.
#[derive(Clone)]
pub struct Manager {
    pub(super) client: Client,
    pub(super) release: Arc<Release>,
    pub(super) clock: Clock,
    pub(super) settings: Settings,
}

/// Upgrade rules that a deploy may break.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exceptions {
    /// Versions may be skipped.
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
    /// The name of this process, for people.
    pub holder: String,
    /// How long to wait for another process that deploys the release.
    pub patience: Duration,
    /// Which deploy this is: the same string resumes what was interrupted.
    pub revision: String,
    /// A request for one more run of every selected job; empty for none.
    pub nonce: String,
    /// Only these components; all if none.
    pub components: Option<BTreeSet<String>>,
    /// Only these jobs; all if none.
    pub only: Option<BTreeSet<String>>,
    /// Not these jobs.
    pub skip: BTreeSet<String>,
    /// Jobs that earlier deploys skipped on request: they run now, as part of that install or upgrade.
    pub owed: BTreeMap<String, Occasion>,
    /// Versions from which this one can be upgraded to; the same and the previous minor one if none.
    pub upgrade_from: Option<Vec<Version>>,
    /// Upgrade rules that this deploy may break.
    pub allow: Exceptions,
    /// What pods print while they run is sent as events.
    pub follow_logs: bool,
    /// Nothing is recorded in the cluster, and no lease is taken.
    pub without_records: bool,
    /// Ends the programs of jobs if this process is killed. Without one they run on, and the next deploy starts them again.
    pub watchdog: Option<Watchdog>,
    /// Ends a deploy that cannot wait for its cancellation: work is dropped where it stands, and the lease is released.
    pub abandon: CancellationToken,
}

impl Settings {
    /// Waits for work, unless the deploy is abandoned: then the work is dropped where it stands.
    pub async fn unless_abandoned<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        tokio::select! {
            result = work => result,
            () = self.abandon.cancelled() => Err(Error::Abandoned),
        }
    }
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
            components: None,
            only: None,
            skip: BTreeSet::new(),
            owed: BTreeMap::new(),
            upgrade_from: None,
            allow: Exceptions::default(),
            follow_logs: false,
            without_records: false,
            watchdog: None,
            abandon: CancellationToken::new(),
        }
    }
}

/// A release that this process deploys, and no other.
pub struct Lock {
    lease: Lease,
    taken: Instant,
    /// Whether there may have been an earlier Lease, whose holder may still be working.
    is_disputed: bool,
    name: String,
    client: Client,
    books: Books,
    retry: Retry,
}

impl Lock {
    /// What distinguishes this holder from all others: whatever it writes carries this.
    pub fn fence(&self) -> &Fence {
        self.lease.fence()
    }

    /// A client whose calls have a deadline, and are refused once the lease is lost.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Retries of calls under the lock.
    pub fn retry(&self) -> &Retry {
        &self.retry
    }

    /// Waits until the holder that wrote something has certainly stopped, and says whether it had to: what was read before
    /// may have changed meanwhile. To be asked of whatever is written under the lock, apart from ledgers. If someone deleted the Lease of that holder, it may not have noticed yet.
    pub async fn outlast(&mut self, written: Option<&Fence>, cancellation: &CancellationToken) -> Result<bool, Error> {
        let is_other = written.is_some_and(|written| written.lease != self.fence().lease);
        let until = self.taken + DURATION;
        if !self.lease.is_new() || !is_other || until <= Instant::now() {
            self.is_disputed = false;
            return Ok(false);
        }
        self.is_disputed = true;
        tokio::select! {
            () = tokio::time::sleep_until(until) => {}
            () = self.lease.lost() => return Err(Error::LostLease { name: self.name.clone() }),
            () = cancellation.cancelled() => return Err(Error::Cancelled),
        }
        self.is_disputed = false;
        self.books = self.books.open_again().await?;
        Ok(true)
    }

    /// Releases the lock. A Lease that was created while an earlier holder may still be working is left to expire: the
    /// next process would take a free one immediately.
    pub async fn release(self) {
        if !self.is_disputed || self.taken.elapsed() >= DURATION {
            self.lease.release().await;
        }
    }
}

impl Manager {
    /// A manager of one release. The clock has to show the cluster's time, see [`Clock`].
    pub fn new(client: Client, release: Release, clock: Clock, settings: Settings) -> Self {
        Self { client, release: Arc::new(release), clock, settings }
    }

    /// The rules that this release would break.
    pub fn violations(&self, registry: &Registry) -> Vec<Violation> {
        let Release { version, past, .. } = &*self.release;
        violations(registry.retirements(), version.as_ref(), past, &self.settings)
    }

    /// The name of the Lease of the release.
    pub fn lease_name(&self) -> String {
        let owner = self.owner();
        names::record(&self.release.name, &[&owner.namespace, &owner.identity, ""])
    }

    /// Locks the release, waiting up to [`Settings::patience`] while another process deploys it.
    pub async fn lock(&self, cancellation: &CancellationToken, events: &Events) -> Result<Lock, Error> {
        let name = self.lease_name();
        let lease = Box::pin(self.take_lease(&name, cancellation, events)).await?;
        let taken = Instant::now();
        let client = call::guarded(&self.client, lease.tenure());
        let retry = self.retry(cancellation, events);
        let opened = Books::open(client.clone(), self.owner(), Some(lease.fence().clone()), retry.clone());
        let books = match self.settings.unless_abandoned(Box::pin(opened)).await {
            Ok(books) => books,
            Err(error) => {
                // The next process need not wait for a lease under which nothing was done, unless it is new: what an
                // earlier holder did is not known.
                if !lease.is_new() || taken.elapsed() >= DURATION {
                    lease.release().await;
                }
                return Err(error);
            }
        };
        let other = books.other_fence();
        let mut lock = Lock { lease, taken, is_disputed: false, name, client, books, retry };
        let outlasting = lock.outlast(other.as_ref(), cancellation);
        if let Err(error) = self.settings.unless_abandoned(Box::pin(outlasting)).await {
            lock.release().await;
            return Err(error);
        }
        // What else was written under an earlier Lease is for the caller to find out.
        lock.is_disputed = lock.lease.is_new();
        Ok(lock)
    }

    async fn take_lease(&self, name: &str, cancellation: &CancellationToken, events: &Events) -> Result<Lease, Error> {
        let owner = self.owner();
        let claim = Claim {
            namespace: self.release.namespace.clone(),
            name: name.to_owned(),
            holder: self.settings.holder.clone(),
            labels: owner.labels,
            patience: self.settings.patience,
        };
        let (sent, mut received) = Events::channel();
        let mut taking = std::pin::pin!(Lease::take(&self.client, claim, &self.clock, &sent));
        let mut holder = None;
        loop {
            tokio::select! {
                lease = &mut taking => return lease,
                Some(event) = received.recv() => {
                    if let Event::Busy { holder: other } = &event {
                        holder = Some(other.clone());
                    }
                    events.send(event);
                }
                () = cancellation.cancelled() => {
                    return Err(holder.map_or(Error::Cancelled, |holder| Error::CancelledWaiting { holder }));
                }
            }
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
            let cancellation = cancellation.child_token();
            let books = Books::in_memory(self.owner(), self.retry(&cancellation, &events));
            let client = call::bounded(&self.client);
            let retry = self.retry(&cancellation, &events);
            let deploy = self.begin(registry, client, None, books, retry);
            return Ok(Box::pin(deploy.run()).await);
        }
        let mut lock = Box::pin(self.lock(&cancellation, &events)).await?;
        lock.is_disputed = false;
        let report = Box::pin(self.deploy_locked(&lock, registry, cancellation, events)).await;
        lock.release().await;
        report
    }

    /// Deploys the release under its lock.
    pub async fn deploy_locked(
        &self,
        lock: &Lock,
        registry: &Registry,
        cancellation: CancellationToken,
        events: Events,
    ) -> Result<Report, Error> {
        self.locked(lock, registry, cancellation, events, Deploy::run).await
    }

    /// Runs one job under the lock of the release, without deploying its component.
    pub async fn run_job(
        &self,
        lock: &Lock,
        registry: &Registry,
        job: &str,
        cancellation: CancellationToken,
        events: Events,
    ) -> Result<Report, Error> {
        self.locked(lock, registry, cancellation, events, async |deploy| deploy.run_one(job).await).await
    }

    /// Fails if anything in the registry cannot work or breaks a rule. Every deploy begins with this.
    pub fn check(&self, registry: &Registry) -> Result<(), Error> {
        let problems = registry.problems();
        if !problems.is_empty() {
            return Err(Error::Registry(problems));
        }
        let violations = self.violations(registry);
        if violations.is_empty() { Ok(()) } else { Err(Error::Violations(violations)) }
    }

    async fn locked<'a>(
        &'a self,
        lock: &Lock,
        registry: &'a Registry,
        cancellation: CancellationToken,
        events: Events,
        run: impl AsyncFnOnce(Deploy<'a>) -> Report,
    ) -> Result<Report, Error> {
        self.check(registry)?;
        let cancellation = cancellation.child_token();
        let tenure = Some(lock.lease.tenure().clone());
        let (client, books) = (lock.client.clone(), lock.books.clone());
        let retry = lock.retry.under(cancellation.clone(), events);
        let deploy = self.begin(registry, client, tenure, books, retry);
        let notes = Arc::clone(&deploy.notes);
        let started = self.clock.now();
        // It is large, and would make everything large that waits for it.
        let mut running = Box::pin(run(deploy));
        tokio::select! {
            report = &mut running => Ok(report),
            () = lock.lease.lost() => {
                let lost = Error::LostLease { name: lock.name.clone() };
                notes.with(|notes| notes.break_off(lost));
                cancellation.cancel();
                if let Ok(report) = tokio::time::timeout(STOPPING, &mut running).await {
                    return Ok(report);
                }
                // Whatever has not stopped by itself ends with this.
                drop(running);
                Ok(notes.with(|notes| notes.report(registry, &self.settings, true, started, self.clock.now())))
            }
            () = self.settings.abandon.cancelled() => {
                drop(running);
                notes.with(|notes| notes.break_off(Error::Abandoned));
                Ok(notes.with(|notes| notes.report(registry, &self.settings, true, started, self.clock.now())))
            }
        }
    }

    pub(super) fn retry(&self, cancellation: &CancellationToken, events: &Events) -> Retry {
        Retry::new(self.clock.clone(), cancellation.clone(), events.clone())
    }

    /// Whether the release is new to the cluster.
    pub(super) fn occasion(&self) -> Occasion {
        if self.release.past.is_installed { Occasion::Upgrade } else { Occasion::Install }
    }

    pub(super) fn owner(&self) -> Owner {
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

    pub(super) fn begin<'a>(
        &'a self,
        registry: &'a Registry,
        client: Client,
        tenure: Option<Tenure>,
        books: Books,
        retry: Retry,
    ) -> Deploy<'a> {
        let labels = self.owner().labels;
        let had_pods = books.snapshot().into_values().flatten().any(|ledger| ledger.had_pods());
        let has_pods = had_pods || registry.jobs().iter().any(|job| matches!(job.work, Work::Pod(_)));
        let (cancellation, events) = (retry.cancellation().clone(), retry.events().clone());
        let lookout = has_pods.then(|| Lookout::open(&client, &self.release.namespace, &labels, &retry));
        let notes = Arc::new(Shared::new(Notes::new(self.settings.owed.clone())));
        let mask = Mask::default();
        Deploy {
            manager: self,
            client,
            tenure,
            registry,
            books,
            lookout,
            labels,
            cancellation,
            events,
            retry,
            notes,
            mask,
        }
    }
}

/// The rules that a release would break: jobs that should be gone, and upgrades that skip a version or go back. To
/// deploy the last complete version again is never a step back.
pub fn violations<'a>(
    retirements: impl Iterator<Item = (&'a str, &'a Retires)>,
    version: Option<&Version>,
    past: &Past,
    settings: &Settings,
) -> Vec<Violation> {
    let mut found: Vec<Violation> =
        retirements.filter_map(|(job, retires)| guard::judge_retirement(job, retires, version)).collect();
    let Some(to) = version.filter(|version| past.version.as_ref() != Some(version)) else { return found };
    for from in past.version.iter().chain(&past.attempted) {
        let upgrade = guard::judge_upgrade(from, to, settings.upgrade_from.as_deref());
        found.extend(upgrade.filter(|violation| match violation {
            Violation::Older { .. } => !settings.allow.older,
            Violation::Skips { .. } => !settings.allow.skip_version,
            Violation::Retired { .. } => true,
        }));
    }
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(version: Option<&str>, attempted: Option<&str>) -> Past {
        let parse = |text: Option<&str>| text.map(|text| text.parse().unwrap());
        Past { is_installed: version.is_some(), version: parse(version), attempted: parse(attempted) }
    }

    fn refuses(past: &Past, to: &str) -> bool {
        let version: Version = to.parse().unwrap();
        !violations(std::iter::empty(), Some(&version), past, &Settings::default()).is_empty()
    }

    #[test]
    fn an_upgrade_is_one_step_from_what_is_complete_and_from_what_was_begun() {
        assert!(refuses(&past(None, Some("1.0.0")), "7.3.0"), "1.0.0 is half deployed");
        assert!(!refuses(&past(None, Some("1.0.0")), "1.0.1"));
        assert!(!refuses(&past(Some("1.0.0"), Some("1.1.0")), "1.1.1"));
        assert!(refuses(&past(Some("1.0.0"), Some("1.1.0")), "1.2.0"), "some components are still at 1.0.0");
        assert!(!refuses(&past(Some("1.0.0"), Some("1.1.0")), "1.0.0"), "back to the last complete version");
        assert!(refuses(&past(Some("1.0.0"), Some("1.1.0")), "0.9.0"));
    }
}
