//! A deploy of a plan, from its first write to its last: the lock, the record, components and jobs.

use crate::build::{Options, build, fingerprint};
use crate::content;
use crate::plan::PlanFile;
use crate::record::{Deploying, Record, Records};
use crate::{Driver, Helm, HelmReleases};
use jobwright_engine::{
    Clock, DeployOutcome, Error, Events, Fence, JobOutcome, Lock, Manager, Past, Registry, Release, Report, Retry,
    Settings,
};
use jobwright_jobs::backfill::Environment;
use jobwright_jobs::init_cert::Dialling;
use kube::Client;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A plan, and how it is deployed.
pub struct Deployment<'a> {
    /// The plan.
    pub file: &'a PlanFile,
    /// The cluster.
    pub client: Client,
    /// The cluster's time, not just this machine's: the record holds times that another machine compares with its own
    /// clock, such as when a helm has certainly ended. Machines whose clocks differ by more than a few seconds have to
    /// correct them, for example by the `Date` header of an answer of the API server, as `jobwright` does.
    pub clock: Clock,
    /// The helm that deploys charts; none if the plan has none.
    pub helm: Option<Helm>,
    /// Where helm keeps its releases.
    pub driver: Driver,
    /// This machine.
    pub host: String,
    /// How the engine works; which application of the release it is, is found out.
    pub settings: Settings,
    /// Components are deployed even if nothing has changed.
    pub redeploy: bool,
    /// Every selected job runs once more.
    pub force: bool,
    /// Pending Helm releases are nobody's any more.
    pub unlock: bool,
    /// What the environment says of object storage, for backfills.
    pub environment: Environment,
    /// How servers are asked what they show.
    pub dialling: Dialling,
}

impl Deployment<'_> {
    /// Deploys the plan, or resumes an interrupted deploy of the same plan with the same files.
    pub async fn deploy(&self, cancellation: CancellationToken, events: Events) -> Result<Report, Error> {
        let locker = self.manager(Past::default(), self.settings.clone());
        let mut lock = Box::pin(locker.lock(&cancellation, &events)).await?;
        let report = Box::pin(self.deploy_locked(&mut lock, cancellation, events)).await;
        lock.release().await;
        report
    }

    async fn deploy_locked(
        &self,
        lock: &mut Lock,
        cancellation: CancellationToken,
        events: Events,
    ) -> Result<Report, Error> {
        let beginning = async {
            let (registry, records) = self.open_locked(lock, &cancellation).await?;
            let before = records.get().await;
            self.manager(before.past(), self.settings.clone()).check(&registry)?;
            let deploying = self.begin(&records, &before, lock.fence()).await?;
            Ok((registry, records, before, deploying))
        };
        let (registry, records, before, deploying) = self.settings.unless_abandoned(Box::pin(beginning)).await?;
        let past = before.past();
        let settings = Settings {
            revision: deploying.id.clone(),
            nonce: if self.force { format!("forced by deploy {}", deploying.id) } else { String::new() },
            owed: before.owed,
            ..self.settings.clone()
        };
        let manager = self.manager(past, settings);
        let mut report = manager.deploy_locked(lock, &registry, cancellation, events).await?;
        let ending = self.settings.unless_abandoned(self.end(&records, &deploying, &report));
        if let Err(error) = ending.await {
            report.outcome = DeployOutcome::Failed;
            report.error.get_or_insert(Arc::new(error));
        }
        Ok(report)
    }

    /// Runs one job of the plan, without deploying its component.
    pub async fn run_job(&self, job: &str, cancellation: CancellationToken, events: Events) -> Result<Report, Error> {
        let locker = self.manager(Past::default(), self.settings.clone());
        let mut lock = Box::pin(locker.lock(&cancellation, &events)).await?;
        let report = Box::pin(self.run_locked(&mut lock, job, cancellation, events)).await;
        lock.release().await;
        report
    }

    async fn run_locked(
        &self,
        lock: &mut Lock,
        job: &str,
        cancellation: CancellationToken,
        events: Events,
    ) -> Result<Report, Error> {
        let opening = self.open_locked(lock, &cancellation);
        let (registry, records) = self.settings.unless_abandoned(Box::pin(opening)).await?;
        // Each invocation is a deploy of its own: a job that failed is tried again.
        let asked = format!("run {}", lock.fence());
        let settings = Settings {
            nonce: if self.force { asked.clone() } else { String::new() },
            revision: asked,
            ..self.settings.clone()
        };
        let manager = self.manager(records.get().await.past(), settings);
        let mut report = manager.run_job(lock, &registry, job, cancellation, events).await?;
        let has_run = report.jobs.iter().any(|report| report.id == job && report.outcome == JobOutcome::Succeeded);
        let paid = |record: &mut Record| {
            record.owed.remove(job);
        };
        if has_run && let Err(error) = self.settings.unless_abandoned(records.write(paid)).await {
            report.error.get_or_insert(Arc::new(error));
        }
        Ok(report)
    }

    /// What the engine deploys, and what is known of the release once no other process can change that any more.
    async fn open_locked(
        &self,
        lock: &mut Lock,
        cancellation: &CancellationToken,
    ) -> Result<(Registry, Records), Error> {
        let (client, fence, retry) = (lock.client().clone(), lock.fence().clone(), lock.retry().clone());
        let open = || self.open(client.clone(), Some(fence.clone()), retry.clone());
        let (registry, records) = Box::pin(open()).await?;
        let written = records.get().await.fence;
        if lock.outlast(written.as_ref(), cancellation).await? {
            return Box::pin(open()).await;
        }
        Ok((registry, records))
    }

    /// What the engine deploys, and what is known of the release.
    pub async fn open(&self, client: Client, fence: Option<Fence>, retry: Retry) -> Result<(Registry, Records), Error> {
        let release = &self.file.plan.release;
        let records = Records::open(client.clone(), &release.namespace, &release.name, fence, retry).await?;
        let options = Options {
            records: records.clone(),
            releases: HelmReleases::new(&release.namespace, self.driver),
            helm: self.helm.clone(),
            host: self.host.clone(),
            redeploy: self.redeploy,
            unlock: self.unlock,
            environment: self.environment.clone(),
            dialling: self.dialling.clone(),
            holder: self.settings.holder.clone(),
        };
        Ok((build(self.file, &records.get().await, &options), records))
    }

    /// An engine for the release of the plan.
    pub fn manager(&self, past: Past, settings: Settings) -> Manager {
        let release = &self.file.plan.release;
        let release = Release {
            name: release.name.clone(),
            namespace: release.namespace.clone(),
            version: release.version.clone(),
            past,
            configuration: serde_json::Value::Null,
        };
        Manager::new(self.client.clone(), release, self.clock.clone(), settings)
    }

    /// Records that a deploy begins, or resumes one that was interrupted: the same plan with the same files, asked for
    /// in the same way, and not ended.
    async fn begin(&self, records: &Records, before: &Record, fence: &Fence) -> Result<Deploying, Error> {
        let Settings { components, only, skip, .. } = &self.settings;
        let asked = format!("{components:?} {only:?} {skip:?} {} {}", self.redeploy, self.force);
        // What a repository will give is not known, so successes of one deploy do not count for another.
        let unpinned = if content::is_unpinned(self.file) { fence.to_string() } else { String::new() };
        let plan = fingerprint(self.file, &[&asked, &content::hash(self.file), &unpinned]);
        let interrupted = before.deploying.clone().filter(|deploying| deploying.plan == plan);
        let deploying = interrupted.unwrap_or_else(|| {
            let number = before.deploys + 1;
            Deploying { number, id: format!("{number}.{fence}"), plan, since: self.clock.now() }
        });
        let (begun, version) = (deploying.clone(), self.file.plan.release.version.clone());
        let change = move |record: &mut Record| {
            record.deploys = record.deploys.max(begun.number);
            record.deploying = Some(begun.clone());
            // From here on components may be of this version.
            record.attempted = record.attempted.clone().max(version.clone());
        };
        records.write(change).await?;
        Ok(deploying)
    }

    /// Records that a deploy has ended. One that the engine could not bring to its end is resumed by the next.
    async fn end(&self, records: &Records, deploying: &Deploying, report: &Report) -> Result<(), Error> {
        if report.error.is_some() {
            return Ok(());
        }
        let succeeded = report.outcome == DeployOutcome::Succeeded;
        // Components that were not selected may be of any version.
        let is_complete = succeeded && self.settings.components.is_none();
        let (version, number, owed) = (self.file.plan.release.version.clone(), deploying.number, report.owed.clone());
        let change = move |record: &mut Record| {
            if record.deploying.as_ref().is_some_and(|deploying| deploying.number == number) {
                record.deploying = None;
            }
            record.owed.clone_from(&owed);
            if is_complete {
                record.installed = true;
                record.attempted = None;
                record.version = version.clone().or(record.version.take());
            }
        };
        records.write(change).await.map(drop)
    }
}
