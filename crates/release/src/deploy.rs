//! A deploy of a plan, from its first write to its last: the lock, the record, components and jobs.

use crate::build::{Options, build, fingerprint};
use crate::plan::PlanFile;
use crate::record::{Deploying, Record, Records};
use crate::{Driver, Helm, HelmReleases};
use jobwright_engine::{
    Clock, DeployOutcome, Error, Events, Failure, Manager, Registry, Release, Report, Settings, Version,
};
use jobwright_jobs::backfill::Environment;
use jobwright_jobs::init_cert::Dialling;
use kube::Client;
use tokio_util::sync::CancellationToken;

/// A plan, and how it is deployed.
pub struct Deployment<'a> {
    /// The plan.
    pub file: &'a PlanFile,
    /// The cluster.
    pub client: Client,
    /// Its time.
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

/// Why a deploy could not be carried out. A deploy that failed has a report instead.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// The engine refused, or could not go on.
    #[error(transparent)]
    Engine(#[from] Error),
    /// The record of the release could not be read or written.
    #[error(transparent)]
    Record(#[from] Failure),
}

impl Deployment<'_> {
    /// Deploys the plan, or goes on with a deploy of the same plan that was interrupted.
    pub async fn deploy(&self, cancellation: CancellationToken, events: Events) -> Result<Report, DeployError> {
        let lock = self.manager(None, self.settings.clone()).lock(&cancellation, &events).await?;
        let (registry, records) = self.open().await?;
        let (number, before) = self.begin(&records).await?;
        let settings = Settings {
            revision: number.to_string(),
            nonce: if self.force { format!("forced by deploy {number}") } else { String::new() },
            ..self.settings.clone()
        };
        let manager = self.manager(before.version, settings);
        let report = manager.deploy_locked(lock, &registry, cancellation, events).await;
        let succeeded = report.as_ref().is_ok_and(|report| report.outcome == DeployOutcome::Succeeded);
        self.end(&records, number, succeeded).await?;
        Ok(report?)
    }

    /// What the engine deploys, and what is known of the release.
    pub async fn open(&self) -> Result<(Registry, Records), Failure> {
        let release = &self.file.plan.release;
        let records = Records::open(self.client.clone(), &release.namespace, &release.name).await?;
        let options = Options {
            records: records.clone(),
            releases: HelmReleases::new(self.client.clone(), &release.namespace, self.driver),
            helm: self.helm.clone(),
            host: self.host.clone(),
            redeploy: self.redeploy,
            unlock: self.unlock,
            environment: self.environment.clone(),
            dialling: self.dialling.clone(),
            holder: self.settings.holder.clone(),
        };
        Ok((build(self.file, &options), records))
    }

    /// An engine for the release of the plan. `previous` is the version that is deployed.
    pub fn manager(&self, previous: Option<Version>, settings: Settings) -> Manager {
        let release = &self.file.plan.release;
        let release = Release {
            name: release.name.clone(),
            namespace: release.namespace.clone(),
            version: release.version.clone(),
            previous,
            configuration: serde_json::Value::Null,
        };
        Manager::new(self.client.clone(), release, self.clock.clone(), settings)
    }

    /// Writes down that a deploy begins, or goes on with one that was interrupted: the same plan, asked for in the
    /// same way, and not ended.
    async fn begin(&self, records: &Records) -> Result<(u64, Record), Failure> {
        let Settings { only, skip, .. } = &self.settings;
        let asked = format!("{only:?} {skip:?} {} {}", self.redeploy, self.force);
        let plan = fingerprint(self.file, &asked);
        let now = self.clock.now();
        let before = records.get().await;
        let interrupted = before.deploying.as_ref().filter(|deploying| deploying.plan == plan);
        let number = interrupted.map_or(before.deploys + 1, |deploying| deploying.number);
        let change = move |record: &mut Record| {
            record.deploys = number;
            record.deploying = Some(Deploying { number, plan: plan.clone(), since: now });
        };
        records.change(change).await?;
        Ok((number, before))
    }

    /// Writes down that a deploy has ended; one that has not is taken up by the next.
    async fn end(&self, records: &Records, number: u64, succeeded: bool) -> Result<(), Failure> {
        let version = self.file.plan.release.version.clone();
        let change = move |record: &mut Record| {
            if record.deploying.as_ref().is_some_and(|deploying| deploying.number == number) {
                record.deploying = None;
            }
            if succeeded {
                record.version.clone_from(&version);
            }
        };
        records.change(change).await.map(drop)
    }
}
