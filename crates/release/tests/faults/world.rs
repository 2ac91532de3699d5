//! A cluster for one play, and the runners that deploy to it.

use crate::judge::reveals;
use crate::programs::Programs;
use crate::scenario::{NAMESPACE, SECRET, Scenario};
use crate::support::journal::{Journal, Witnessed};
use jiff::Timestamp;
use jobwright_drydock::{Call, Drydock, Fault, Faults, Faulty};
use jobwright_engine::{Clock, DeployOutcome, Event, Events, Exceptions, Report, Settings};
use jobwright_release::{Deployment, Dialling, Driver, Environment, Helm, PlanFile};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

/// `--timeout` of every deploy.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(8);
/// More calls than any deploy makes that pauses between retries.
const MOST_CALLS: usize = 10_000;
/// How long a deploy may take to end once it was cancelled: 10 s for calls that fail, 10 s for jobs in code, and what is
/// recorded after that. It is less than the five minutes for which a deploy that is not cancelled retries.
pub(crate) const STOPPING: Duration = Duration::from_mins(1);

/// A cluster, and everything that bears witness of what happens on it.
pub(crate) struct World<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) drydock: Drydock,
    helm_release: String,
    pub(crate) journal: Journal,
    pub(crate) programs: Arc<Programs>,
    /// Events that contain the secret.
    leaks: Arc<Mutex<Vec<String>>>,
}

/// A process that deploys.
pub(crate) struct Runner {
    pub(crate) name: String,
    pub(crate) faults: Faults,
    /// `--allow-older`.
    older: bool,
    /// A call of it that the network delivers late, when it may have been given up.
    pub(crate) overdue: Option<Call>,
    /// It makes calls without end, and time does not pass.
    flood: Arc<Notify>,
}

/// A deploy that is over.
#[derive(Debug)]
pub(crate) struct Deployed {
    pub(crate) runner: String,
    pub(crate) version: &'static str,
    pub(crate) began: Timestamp,
    pub(crate) outcome: Outcome,
}

/// How a deploy ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Reported(Report),
    #[expect(dead_code, reason = "its text is for whoever reads a failure")]
    Refused(String),
    /// Its process was killed.
    Killed,
    /// It did not end in time.
    Hung,
    /// It made calls without end and without a pause.
    Flooded,
}

impl Runner {
    pub(crate) fn new(name: impl Into<String>, faults: Faults) -> Self {
        let (flood, calls) = (Arc::new(Notify::new()), AtomicUsize::new(0));
        let alarm = Arc::clone(&flood);
        let count = move |_: &Call| {
            if calls.fetch_add(1, Ordering::Relaxed) == MOST_CALLS {
                alarm.notify_one();
            }
            false
        };
        faults.on(count).fail(Fault::Internal);
        Self { name: name.into(), faults, older: false, overdue: None, flood }
    }

    /// May deploy an older version than the deployed one.
    pub(crate) fn older(mut self) -> Self {
        self.older = true;
        self
    }
}

impl Deployed {
    pub(crate) fn succeeded(&self) -> bool {
        matches!(&self.outcome, Outcome::Reported(report) if report.outcome == DeployOutcome::Succeeded)
    }
}

impl<'a> World<'a> {
    pub(crate) async fn new(scenario: &'a Scenario, play: usize) -> Self {
        let (drydock, journal) = (Drydock::new(), Journal::default());
        let helm_release = format!("web-{play:05}");
        let directory = scenario.new_directory(play);
        let programs = Programs::new(directory, drydock.clone(), &helm_release, journal.clone());
        let world = Self { scenario, drydock, helm_release, journal, programs, leaks: Arc::default() };
        world.prepare().await;
        world
    }

    async fn prepare(&self) {
        let (client, parameters) = (self.client(), PostParams::default());
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}})).unwrap();
        Api::all(client.clone()).create(&parameters, &namespace).await.unwrap();
        let secret = json!({"metadata": {"name": "credentials"}, "stringData": {"password": SECRET}});
        let secret: Secret = serde_json::from_value(secret).unwrap();
        Api::default_namespaced(client.clone()).create(&parameters, &secret).await.unwrap();
        let legacy: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "legacy"}})).unwrap();
        Api::default_namespaced(client).create(&parameters, &legacy).await.unwrap();
    }

    /// A client that belongs to no runner and meets no faults.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.drydock.clone(), NAMESPACE)
    }

    /// Deletes the Lease of the release, as someone does who believes it stale.
    pub(crate) async fn delete_lease(&self) {
        let leases = Api::<Lease>::default_namespaced(self.client());
        for lease in leases.list(&ListParams::default()).await.unwrap() {
            leases.delete(&lease.name_any(), &DeleteParams::default()).await.unwrap();
        }
        self.journal.note_deletion();
    }

    /// Deploys a version and waits for its end.
    pub(crate) async fn deploy(&self, runner: &Runner, version: &'static str) -> Deployed {
        let began = self.drydock.now();
        let outcome = self.run(runner, version).await;
        self.programs.leave(&runner.name, matches!(outcome, Outcome::Killed)).await;
        Deployed { runner: runner.name.clone(), version, began, outcome }
    }

    async fn run(&self, runner: &Runner, version: &str) -> Outcome {
        let directory = self.programs.enter(&runner.name, version);
        let plan = self.scenario.plan(version, &self.helm_release);
        let file = PlanFile::parse(&directory.join("jobwright.yaml"), &plan).unwrap();
        let service: Faulty<Witnessed> = runner.faults.around(self.journal.around(
            &runner.name,
            version,
            runner.overdue.clone(),
            self.drydock.clone(),
        ));
        let clock = self.drydock.clone();
        let deployment = Deployment {
            file: &file,
            client: Client::new(service, NAMESPACE),
            clock: Clock::new(move || clock.now()),
            helm: Some(Helm { program: directory.join("helm"), version: "3.17.3".to_owned(), arguments: Vec::new() }),
            driver: Driver::Secrets,
            host: "machine".to_owned(),
            settings: Settings {
                holder: runner.name.clone(),
                allow: Exceptions { older: runner.older, ..Exceptions::default() },
                ..Settings::default()
            },
            redeploy: false,
            force: false,
            unlock: false,
            environment: Environment::default(),
            dialling: Dialling::Not("nothing serves here".to_owned()),
        };
        let (events, told) = Events::channel();
        let follower = self.follow(&runner.name, told);
        let cancellation = CancellationToken::new();
        let deploy = deployment.deploy(cancellation.clone(), events);
        let alarm = async {
            tokio::time::sleep(TIMEOUT).await;
            cancellation.cancel();
            std::future::pending::<()>().await;
        };
        let outcome = tokio::select! {
            done = tokio::time::timeout(TIMEOUT + STOPPING, deploy) => match done {
                Ok(Ok(report)) => Outcome::Reported(report),
                Ok(Err(error)) => Outcome::Refused(format!("{error:?}: {error}")),
                Err(_) => Outcome::Hung,
            },
            () = runner.faults.stopped() => Outcome::Killed,
            () = runner.flood.notified() => Outcome::Flooded,
            () = alarm => Outcome::Hung,
        };
        // Its tasks end with it.
        let _ = tokio::time::timeout(Duration::from_secs(1), follower).await;
        outcome
    }

    /// Follows what a runner reports: for its programs, and for secrets.
    fn follow(&self, runner: &str, mut events: UnboundedReceiver<Event>) -> tokio::task::JoinHandle<()> {
        let (runner, programs, leaks) = (runner.to_owned(), Arc::clone(&self.programs), Arc::clone(&self.leaks));
        tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                programs.hear(&runner, &event);
                let text = format!("{event:?}");
                if reveals(&text) {
                    leaks.lock().unwrap().push(text);
                }
            }
        })
    }

    pub(crate) fn take_leaks(&self) -> Vec<String> {
        std::mem::take(&mut self.leaks.lock().unwrap())
    }
}
