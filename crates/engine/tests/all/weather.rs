//! Hard weather: components that cannot be decided, renewals that hang, Secrets that are printed, jobs that are skipped
//! on request.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot continue has failed")]

use crate::support::{Lab, NAMESPACE, Part, pod, registry, release, told};
use jobwright_drydock::{Fault, Faults};
use jobwright_engine::{
    Action, Component, Context, Decision, DeployContext, DeployOutcome, Error, Event, Events, Failure, Job, JobOutcome,
    Manager, Occasion, Past, Registry, Release, Report, Retires, Settings, When, async_trait,
};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A component whose files cannot be read.
struct Unreadable;

#[async_trait]
impl Component for Unreadable {
    fn name(&self) -> &'static str {
        "api"
    }

    async fn decide(&self, _: &DeployContext) -> Result<Decision, Failure> {
        Err(Failure::new("cannot read `charts/api`"))
    }

    async fn deploy(&self, _: &DeployContext, _: Occasion) -> Result<(), Failure> {
        panic!("it was not decided")
    }
}

#[tokio::test(start_paused = true)]
async fn a_component_that_cannot_be_decided_fails_and_the_deploy_ends() {
    let lab = Lab::new().await;
    let mut registry = Registry::new();
    registry.component(Unreadable).component(Part::new("web")).pod(pod("check", "echo check"));
    let deploy = lab.deploy("1", &registry);
    let report = tokio::time::timeout(Duration::from_hours(1), deploy).await.unwrap().unwrap();
    let ended: Vec<(Action, &str)> = report.components.iter().map(|one| (one.action, one.reason.as_str())).collect();
    assert_eq!(ended, [(Action::Failed, "cannot read `charts/api`"), (Action::Installed, "it is new")]);
    assert_eq!(report.outcome, DeployOutcome::Failed);
}

/// A job in code that notes when it works.
struct Working {
    name: &'static str,
    diary: Arc<Mutex<Vec<(&'static str, Instant)>>>,
}

#[async_trait]
impl Job for Working {
    fn id(&self) -> &'static str {
        "work"
    }

    fn when(&self) -> When {
        When::before_all()
    }

    fn retires(&self) -> Retires {
        Retires::never("test")
    }

    fn timeout(&self) -> Duration {
        Duration::from_hours(1)
    }

    async fn run(&self, _: &Context) -> Result<(), Failure> {
        // It does not listen to cancellations.
        for _ in 0..600 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            self.diary.lock().unwrap().push((self.name, Instant::now()));
        }
        Ok(())
    }
}

fn manager(lab: &Lab, faults: &Faults, revision: &str, holder: &str, skew: i64) -> Manager {
    let client = Client::new(faults.around(lab.drydock.clone()), NAMESPACE);
    let drydock = lab.drydock.clone();
    let clock = jobwright_engine::Clock::new(move || drydock.now() + jiff::SignedDuration::from_secs(skew));
    let settings = Settings { revision: revision.to_owned(), holder: holder.to_owned(), ..Settings::default() };
    Manager::new(client, release(None), clock, settings)
}

async fn work(manager: Manager, name: &'static str, diary: Arc<Mutex<Vec<(&'static str, Instant)>>>) -> Report {
    let mut registry = Registry::new();
    registry.job(Working { name, diary });
    manager.deploy(&registry, CancellationToken::new(), Events::nowhere()).await.unwrap()
}

/// Two processes deploy; the calls of the first fail after a while.
async fn race(fault: Option<Fault>, holders: [&str; 2], skew: i64) -> [Report; 2] {
    let lab = Lab::new().await;
    let diary = Arc::default();
    let (first, second) = (Faults::new(0), Faults::new(0));
    let fails = async {
        tokio::time::sleep(Duration::from_secs(12)).await;
        if let Some(fault) = fault {
            first.on(|_| true).fail(fault);
        }
    };
    let later = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        work(manager(&lab, &second, "2", holders[1], skew), "second", Arc::clone(&diary)).await
    };
    let (one, two, ()) =
        tokio::join!(work(manager(&lab, &first, "1", holders[0], 0), "first", Arc::clone(&diary)), later, fails);
    let diary = diary.lock().unwrap().clone();
    let last = diary.iter().filter(|(name, _)| *name == "first").map(|(_, time)| *time).max().unwrap();
    let next = diary.iter().filter(|(name, _)| *name == "second").map(|(_, time)| *time).min().unwrap();
    assert!(last < next, "the first worked until {:?} after the second began", last - next);
    [one, two]
}

#[tokio::test(start_paused = true)]
async fn two_processes_never_work_at_the_same_time() {
    for fault in [Fault::Slow(Duration::from_hours(1)), Fault::Internal, Fault::Conflict, Fault::Unavailable] {
        let [one, two] = Box::pin(race(Some(fault.clone()), ["first", "second"], 0)).await;
        assert!(matches!(one.error.as_deref(), Some(Error::LostLease { .. })), "{fault:?}: {one:?}");
        assert_eq!((one.outcome, one.jobs[0].outcome), (DeployOutcome::Failed, JobOutcome::Unknown), "{fault:?}");
        assert_eq!(two.outcome, DeployOutcome::Succeeded, "{fault:?}");
    }
    for skew in [-600, 600] {
        let reports = Box::pin(race(None, ["same", "same"], skew)).await;
        assert!(reports.iter().all(|report| report.outcome == DeployOutcome::Succeeded), "{skew}: {reports:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_a_pod_prints_reaches_no_event_report_or_ledger() {
    let lab = Lab::new().await;
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": "db"}, "stringData": {"password": "correct-horse"}}))
            .unwrap();
    let secrets = Api::<Secret>::namespaced(lab.stranger(), NAMESPACE);
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    let line = "echo the password is $PASSWORD; sleep 20; echo wrong: $PASSWORD > /dev/termination-log; exit 3";
    let mut job = pod("migrate", line);
    job.template["spec"]["containers"][0]["env"] =
        json!([{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}]);
    let settings = Settings { follow_logs: true, ..Settings::default() };
    let (events, mut received) = Events::channel();
    // The deploy is cancelled while the pod runs; a later one, whose plan does not know the job, records its end.
    let cancellation = CancellationToken::new();
    let stop = cancellation.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(15)).await;
        stop.cancel();
    });
    let first = registry([job]);
    let cancelled = lab.manager(settings.clone()).deploy(&first, cancellation, events.clone()).await.unwrap();
    assert_eq!(cancelled.outcome, DeployOutcome::Cancelled);
    lab.pass(Duration::from_mins(1)).await;
    let other = registry([pod("other", "echo other")]);
    let settings = Settings { revision: "2".to_owned(), ..settings };
    let report = lab.manager(settings).deploy(&other, CancellationToken::new(), events).await.unwrap();
    let mut heard = Vec::new();
    while let Some(event) = received.recv().await {
        heard.push(event);
    }
    assert!(heard.iter().any(|event| matches!(event, Event::Log { line, .. } if line == "the password is ***")));
    let ledgers = lab.ledgers().await;
    let runs = lab.ledger("migrate", "runs").await;
    assert_eq!(runs[0]["reason"], "container m ended with exit code 3: wrong: ***");
    for said in [format!("{heard:?}"), format!("{cancelled:?} {report:?}"), format!("{ledgers:?}")] {
        assert!(!said.contains("correct-horse") && !said.contains("Y29ycmVjdC1ob3JzZ"), "{said}");
    }
}

/// A deploy of a component that is unchanged, with a job before it.
async fn deploy_unchanged(lab: &Lab, settings: Settings) -> Report {
    let mut registry = Registry::new();
    let mut migrate = pod("migrate", "echo migrate");
    migrate.when = When::before("api");
    registry.component(Part { decision: Decision::Unchanged("same".to_owned()), ..Part::new("api") }).pod(migrate);
    lab.manager(settings).deploy(&registry, CancellationToken::new(), Events::nowhere()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn force_runs_the_jobs_of_unchanged_components_without_deploying_them() {
    let lab = Lab::new().await;
    let report = deploy_unchanged(&lab, Settings { nonce: "forced".to_owned(), ..Settings::default() }).await;
    assert_eq!(told(&report), ["migrate Succeeded run 1"]);
    assert_eq!(report.components[0].action, Action::Unchanged);
    let report = deploy_unchanged(&lab, Settings { revision: "2".to_owned(), ..Settings::default() }).await;
    assert_eq!(told(&report), ["migrate Skipped its component is unchanged"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_was_skipped_on_request_runs_at_the_next_deploy() {
    let lab = Lab::new().await;
    let mut registry = Registry::new();
    let mut migrate = pod("migrate", "echo migrate");
    migrate.when = When::before("api").only(Occasion::Install);
    registry.component(Part::new("api")).pod(migrate);
    let settings = Settings { skip: ["migrate".to_owned()].into(), ..Settings::default() };
    let skipped = lab.manager(settings).deploy(&registry, CancellationToken::new(), Events::nowhere()).await.unwrap();
    assert_eq!(skipped.owed, [("migrate".to_owned(), Occasion::Install)].into());
    let settings = Settings { revision: "2".to_owned(), owed: skipped.owed, ..Settings::default() };
    let report = deploy_unchanged(&lab, settings).await;
    assert_eq!(told(&report), ["migrate Succeeded run 1"]);
    assert!(report.owed.is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_a_version_a_release_is_installed_once() {
    let lab = Lab::new().await;
    let mut registry = Registry::new();
    let mut first = pod("first", "echo first");
    first.when = When::before_all().only(Occasion::Install);
    let mut later = pod("later", "echo later");
    later.when = When::after_all().only(Occasion::Upgrade);
    registry.pod(first).pod(later);
    for (is_installed, expected) in [
        (false, ["first Succeeded run 1", "later Skipped runs on upgrade only"]),
        (true, ["first Skipped runs on install only", "later Succeeded run 1"]),
    ] {
        let past = Past { is_installed, ..Past::default() };
        let manager = lab.manager_of(Release { past, ..release(None) }, Settings::default());
        let report = manager.deploy(&registry, CancellationToken::new(), Events::nowhere()).await.unwrap();
        assert_eq!(told(&report), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deploy_whose_ledger_cannot_be_written_ends_with_its_report() {
    for fault in [Fault::Internal, Fault::Slow(Duration::from_hours(1))] {
        let lab = Lab::new().await;
        lab.faults.on(|call| call.resource == "configmaps" && call.verb == "create").fail(fault.clone());
        let begun = Instant::now();
        let report = lab.deploy("1", &registry([pod("migrate", "echo migrate")])).await.unwrap();
        assert!(matches!(report.error.as_deref(), Some(Error::Cluster { .. })), "{fault:?}: {report:?}");
        assert_eq!((report.outcome, report.jobs[0].outcome), (DeployOutcome::Failed, JobOutcome::Failed));
        assert!(begun.elapsed() < Duration::from_mins(6), "{fault:?}: {:?}", begun.elapsed());
        assert_eq!(lab.starts_of("echo migrate"), 0);
    }
}
