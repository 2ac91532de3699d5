//! A cluster in memory with a release on it, and who deploys it.

#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "clippy takes only what is marked as a test for one")]

use jobwright_drydock::{Drydock, Faults, Faulty};
use jobwright_engine::{
    Clock, Component, Decision, DeployContext, Error, Events, Failure, Manager, Occasion, PodJob, Registry, Release,
    Report, Retires, Settings, When, async_trait,
};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub(crate) const NAMESPACE: &str = "shop";

/// A cluster, and a way to it that may go wrong.
pub(crate) struct Lab {
    pub(crate) drydock: Drydock,
    pub(crate) faults: Faults,
}

impl Lab {
    pub(crate) async fn new() -> Self {
        Self::on(Drydock::new()).await
    }

    pub(crate) async fn on(drydock: Drydock) -> Self {
        let lab = Self { drydock, faults: Faults::new(0) };
        let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}})).unwrap();
        let namespaces = Api::<Namespace>::all(lab.stranger());
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        lab
    }

    /// The client of whoever is under test.
    pub(crate) fn client(&self) -> Client {
        let service: Faulty<Drydock> = self.faults.around(self.drydock.clone());
        Client::new(service, NAMESPACE)
    }

    /// A client whose calls always go well and are not counted.
    pub(crate) fn stranger(&self) -> Client {
        Client::new(self.drydock.clone(), NAMESPACE)
    }

    pub(crate) fn clock(&self) -> Clock {
        let drydock = self.drydock.clone();
        Clock::new(move || drydock.now())
    }

    pub(crate) fn manager(&self, settings: Settings) -> Manager {
        self.manager_of(release(None), settings)
    }

    pub(crate) fn manager_of(&self, release: Release, settings: Settings) -> Manager {
        Manager::new(self.client(), release, self.clock(), settings)
    }

    pub(crate) async fn deploy(&self, revision: &str, registry: &Registry) -> Result<Report, Error> {
        let settings = Settings { revision: revision.to_owned(), ..Settings::default() };
        self.manager(settings).deploy(registry, CancellationToken::new(), Events::nowhere()).await
    }

    pub(crate) async fn jobs(&self) -> Vec<Job> {
        let jobs = Api::<Job>::namespaced(self.stranger(), NAMESPACE);
        jobs.list(&ListParams::default()).await.unwrap().items
    }

    pub(crate) async fn pods(&self) -> Vec<Pod> {
        let pods = Api::<Pod>::namespaced(self.stranger(), NAMESPACE);
        pods.list(&ListParams::default()).await.unwrap().items
    }

    pub(crate) async fn ledgers(&self) -> Vec<ConfigMap> {
        let maps = Api::<ConfigMap>::namespaced(self.stranger(), NAMESPACE);
        let ledgers = ListParams::default().labels("jobwright.io/ledger=1");
        maps.list(&ledgers).await.unwrap().items
    }

    /// A part of a job's ledger.
    pub(crate) async fn ledger(&self, job: &str, part: &str) -> Value {
        let ledgers = self.ledgers().await;
        let found = ledgers.iter().find(|ledger| ledger.labels().get("jobwright.io/job").is_some_and(|of| of == job));
        let data = found.and_then(|ledger| ledger.data.as_ref()).expect("the job has a ledger");
        serde_json::from_str(&data[part]).unwrap()
    }

    /// How often containers with this line have started, by the witness.
    pub(crate) fn starts_of(&self, line: &str) -> usize {
        self.drydock.witness().iter().filter(|started| started.command.last().is_some_and(|last| last == line)).count()
    }

    pub(crate) async fn pass(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

pub(crate) fn release(version: Option<&str>) -> Release {
    Release {
        name: "shop".to_owned(),
        namespace: NAMESPACE.to_owned(),
        version: version.map(|version| version.parse().unwrap()),
        ..Release::default()
    }
}

/// A job that is a pod with a shell line.
pub(crate) fn pod(id: &str, line: &str) -> PodJob {
    let template =
        json!({"spec": {"containers": [{"name": "m", "image": "busybox:1", "command": ["sh", "-c", line]}]}});
    PodJob::new(id, When::before_all(), Retires::never("test"), template)
}

pub(crate) fn registry(jobs: impl IntoIterator<Item = PodJob>) -> Registry {
    let mut registry = Registry::new();
    for job in jobs {
        registry.pod(job);
    }
    registry
}

/// A component that is deployed by waiting.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) depends_on: &'static [&'static str],
    pub(crate) takes: Duration,
    pub(crate) result: Result<(), &'static str>,
    pub(crate) decision: Decision,
}

impl Part {
    pub(crate) fn new(name: &'static str) -> Self {
        let decision = Decision::Install("it is new".to_owned());
        Self { name, depends_on: &[], takes: Duration::from_secs(10), result: Ok(()), decision }
    }
}

#[async_trait]
impl Component for Part {
    fn name(&self) -> &str {
        self.name
    }

    fn depends_on(&self) -> Vec<String> {
        self.depends_on.iter().map(|name| (*name).to_owned()).collect()
    }

    async fn decide(&self, _: &DeployContext) -> Result<Decision, Failure> {
        Ok(self.decision.clone())
    }

    async fn deploy(&self, context: &DeployContext, _: Occasion) -> Result<(), Failure> {
        tokio::select! {
            () = tokio::time::sleep(self.takes) => self.result.map_err(Failure::new),
            () = context.cancellation().cancelled() => Err(Failure::new("cancelled")),
        }
    }
}

/// The jobs of a report, a line each: id, outcome, reason.
pub(crate) fn told(report: &Report) -> Vec<String> {
    let line = |job: &jobwright_engine::JobReport| format!("{} {:?} {}", job.id, job.outcome, job.reason);
    report.jobs.iter().map(line).collect()
}
