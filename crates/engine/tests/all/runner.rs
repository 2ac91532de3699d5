//! Jobs in code and the order of a deploy: phases, concurrency, cancellation, panics, deadlines, reports.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::support::{Lab, Part, pod, release, told};
use jobwright_engine::{
    Action, Context, Decision, DeployOutcome, Error, Event, Events, Exceptions, Failure, Job, JobOutcome, Needed,
    Occasion, OnFailure, Past, Registry, Release, Retires, Retries, RunPolicy, Settings, When, async_trait,
};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What jobs did, in order.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn read(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

type Act = fn(&Context) -> Result<(), Failure>;

/// A job in code whose parts can be chosen.
#[derive(Clone)]
struct Step {
    id: &'static str,
    when: When,
    diary: Diary,
    takes: Duration,
    act: Act,
    after: &'static [&'static str],
    needed: Needed,
    retires: Retires,
    retries: u32,
    on_failure: OnFailure,
    run: RunPolicy,
    deaf: bool,
}

fn step(diary: &Diary, id: &'static str, when: When) -> Step {
    Step {
        id,
        when,
        diary: diary.clone(),
        takes: Duration::from_secs(1),
        act: |_| Ok(()),
        after: &[],
        needed: Needed::Yes,
        retires: Retires::never("test"),
        retries: 0,
        on_failure: OnFailure::Stop,
        run: RunPolicy::Always,
        deaf: false,
    }
}

#[async_trait]
impl Job for Step {
    fn id(&self) -> &str {
        self.id
    }

    fn when(&self) -> When {
        self.when.clone()
    }

    fn retires(&self) -> Retires {
        self.retires.clone()
    }

    async fn needed(&self, _: &Context) -> Result<Needed, Failure> {
        Ok(self.needed.clone())
    }

    async fn run(&self, context: &Context) -> Result<(), Failure> {
        self.diary.note(self.id.to_owned());
        let sleep = tokio::time::sleep(self.takes);
        if self.deaf {
            sleep.await;
        } else {
            tokio::select! {
                () = sleep => {}
                () = context.cancellation().cancelled() => return Err(Failure::new("it heard")),
            }
        }
        (self.act)(context)
    }

    fn after(&self) -> Vec<String> {
        self.after.iter().map(|name| (*name).to_owned()).collect()
    }

    fn timeout(&self) -> Duration {
        Duration::from_mins(1)
    }

    fn retries(&self) -> Retries {
        Retries { limit: self.retries, backoff: Duration::from_secs(5) }
    }

    fn on_failure(&self) -> OnFailure {
        self.on_failure
    }

    fn run_policy(&self) -> RunPolicy {
        self.run
    }
}

#[tokio::test(start_paused = true)]
async fn phases_come_in_order_and_components_at_once() {
    let (lab, diary) = (Lab::new().await, Diary::default());
    let mut registry = Registry::new();
    registry
        .component(Part { depends_on: &["db"], ..Part::new("api") })
        .component(Part::new("db"))
        .component(Part::new("web"))
        .job(step(&diary, "last", When::after_all()))
        .job(step(&diary, "first", When::before_all()))
        .job(step(&diary, "api-after", When::after("api")))
        .job(step(&diary, "api-before", When::before("api")))
        .job(step(&diary, "db-before", When::before("db")))
        .job(step(&diary, "web-before", When::before("web")));
    let report = lab.deploy("1", &registry).await.unwrap();
    assert_eq!(report.outcome, DeployOutcome::Succeeded);
    assert_eq!(diary.read(), ["first", "db-before", "web-before", "api-before", "api-after", "last"]);
    let path: Vec<String> = report.critical_path.iter().map(|step| step.name.clone()).collect();
    let expected = "job first, job db-before, component db, job api-before, component api, job api-after, job last";
    assert_eq!(path.join(", "), expected);
    assert_eq!(report.took.as_secs(), 1 + 1 + 10 + 1 + 10 + 1 + 1, "web runs beside them");
    let phases: Vec<String> = report.phases.iter().map(|phase| format!("{} {}", phase.scope, phase.phase)).collect();
    assert_eq!(phases, ["global pre", "db pre", "web pre", "api pre", "api post", "global post"]);
}

#[tokio::test(start_paused = true)]
async fn jobs_of_a_phase_run_at_once_but_for_their_order_and_the_limit() {
    let (lab, diary) = (Lab::new().await, Diary::default());
    let mut registry = Registry::new();
    registry.job(Step { after: &["a"], ..step(&diary, "b", When::before_all()) });
    for id in ["a", "c", "d"] {
        registry.job(step(&diary, id, When::before_all()));
    }
    let report = lab.deploy("1", &registry).await.unwrap();
    assert_eq!((report.took.as_secs(), diary.read().last().unwrap().as_str()), (2, "b"));
    let settings = Settings { parallel: 1, revision: "2".to_owned(), ..Settings::default() };
    let report = lab.manager(settings).deploy(&registry, CancellationToken::new(), Events::nowhere()).await.unwrap();
    assert_eq!(report.took.as_secs(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_failed_pre_job_stops_its_component_and_what_depends_on_it() {
    let (lab, diary) = (Lab::new().await, Diary::default());
    let mut registry = Registry::new();
    registry
        .component(Part::new("db"))
        .component(Part { depends_on: &["db"], ..Part::new("api") })
        .component(Part::new("web"))
        .job(Step { act: |_| Err(Failure::new("no space")), ..step(&diary, "grow", When::before("db")) })
        .job(Step { after: &["grow"], ..step(&diary, "check", When::before("db")) })
        .job(step(&diary, "db-after", When::after("db")))
        .job(step(&diary, "api-before", When::before("api")))
        .job(step(&diary, "last", When::after_all()));
    let report = lab.deploy("1", &registry).await.unwrap();
    assert_eq!(report.outcome, DeployOutcome::Failed);
    assert_eq!(
        told(&report),
        [
            "grow Failed no space",
            "check Skipped `grow` comes before it and failed",
            "db-after Skipped its component was not deployed",
            "api-before Skipped it depends on `db`, which failed",
            "last Skipped `db` failed",
        ]
    );
    let components: Vec<(Action, &str)> =
        report.components.iter().map(|component| (component.action, component.reason.as_str())).collect();
    assert_eq!(
        components,
        [
            (Action::Failed, "a pre-job failed"),
            (Action::Skipped, "it depends on `db`, which failed"),
            (Action::Installed, "it is new"),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_deploy_skips_its_post_jobs_and_the_global_ones() {
    let (lab, diary) = (Lab::new().await, Diary::default());
    let mut registry = Registry::new();
    registry
        .component(Part { result: Err("helm said no"), ..Part::new("api") })
        .component(Part { decision: Decision::Unchanged("same chart".to_owned()), ..Part::new("web") })
        .job(step(&diary, "api-after", When::after("api")))
        .job(step(&diary, "web-after", When::after("web")))
        .job(step(&diary, "last", When::after_all()));
    let report = lab.deploy("1", &registry).await.unwrap();
    assert_eq!(
        told(&report),
        [
            "api-after Skipped the deploy of its component failed",
            "web-after Skipped its component is unchanged",
            "last Skipped `api` failed",
        ]
    );
    assert_eq!(diary.read(), [""; 0]);
    assert_eq!(report.components[1].action, Action::Unchanged);
}

#[tokio::test(start_paused = true)]
async fn failures_may_be_survived_or_end_everything() {
    let (lab, diary) = (Lab::new().await, Diary::default());
    let fails =
        |id, on_failure| Step { act: |_| Err(Failure::new("no")), on_failure, ..step(&diary, id, When::before("api")) };
    let mut registry = Registry::new();
    registry.component(Part::new("api")).job(fails("try", OnFailure::Continue));
    let report = lab.deploy("1", &registry).await.unwrap();
    assert_eq!((report.outcome, report.jobs[0].outcome), (DeployOutcome::Succeeded, JobOutcome::Failed));

    let mut registry = Registry::new();
    registry
        .component(Part::new("api"))
        .component(Part { takes: Duration::from_mins(9), ..Part::new("web") })
        .job(fails("must", OnFailure::Abort))
        .job(step(&diary, "last", When::after_all()));
    let report = lab.deploy("2", &registry).await.unwrap();
    assert_eq!(report.reason.as_deref(), Some("job `must` ended the deploy: no"));
    assert_eq!(report.outcome, DeployOutcome::Failed);
    assert!(report.took < Duration::from_mins(1), "web was cancelled: {:?}", report.components);

    let mut registry = Registry::new();
    let ends = Step {
        act: |_| Err(Failure::new("enough").ends_deploy()),
        retries: 5,
        ..step(&diary, "end", When::before_all())
    };
    registry.component(Part::new("api")).job(ends);
    let report = lab.deploy("3", &registry).await.unwrap();
    assert_eq!((report.reason.as_deref(), report.jobs[0].attempts), (Some("job `end` ended the deploy: enough"), 1));
}

#[tokio::test(start_paused = true)]
async fn attempts_in_code_are_made_again_unless_they_failed_for_good() {
    let (lab, diary) = (Lab::new().await, Diary::default());
    let third: Act = |context| if context.attempt() < 3 { Err(Failure::new("not yet")) } else { Ok(()) };
    let mut registry = Registry::new();
    registry.job(Step { act: third, retries: 2, ..step(&diary, "retry", When::before_all()) });
    let report = lab.deploy("1", &registry).await.unwrap();
    assert_eq!((report.jobs[0].outcome, report.jobs[0].attempts), (JobOutcome::Succeeded, 3));
    assert_eq!(report.took.as_secs(), 3 + 5 + 10);

    let mut registry = Registry::new();
    let act: Act = |_| Err(Failure::new("never").because("reasons").for_good());
    registry.job(Step { act, retries: 2, ..step(&diary, "final", When::before_all()) });
    let report = lab.deploy("1", &registry).await.unwrap();
    assert_eq!((told(&report), report.jobs[0].attempts), (vec!["final Failed never: reasons".to_owned()], 1));
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure() {
    let (lab, diary) = (Lab::new().await, Diary::default());
    let mut registry = Registry::new();
    registry.job(Step { act: |_| panic!("index out of bounds"), ..step(&diary, "bad", When::before_all()) }).job(step(
        &diary,
        "good",
        When::before_all(),
    ));
    let report = lab.deploy("1", &registry).await.unwrap();
    assert_eq!(told(&report), ["bad Failed it panicked: index out of bounds", "good Succeeded run 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_time_limit_is_really_one() {
    let (lab, diary) = (Lab::new().await, Diary::default());
    let mut registry = Registry::new();
    let slow = |id, deaf| Step { takes: Duration::from_hours(1), deaf, ..step(&diary, id, When::before_all()) };
    registry.job(slow("listens", false)).job(slow("deaf", true));
    let report = lab.deploy("1", &registry).await.unwrap();
    assert_eq!(
        told(&report),
        [
            "listens Failed it took longer than its time limit: it heard",
            "deaf Failed it took longer than its time limit, and it did not end: abandoned",
        ]
    );
    assert_eq!((report.jobs[0].took.as_secs(), report.jobs[1].took.as_secs()), (60, 70));
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_reaches_every_job_and_those_that_ignore_it_are_abandoned() {
    let (lab, diary) = (Lab::new().await, Diary::default());
    let mut registry = Registry::new();
    let slow = |id, deaf| Step { takes: Duration::from_secs(50), deaf, ..step(&diary, id, When::before_all()) };
    registry.job(slow("listens", false)).job(slow("deaf", true)).pod(pod("migrate", "sleep 300"));
    registry.component(Part::new("api")).job(step(&diary, "api-before", When::before("api")));
    let cancellation = CancellationToken::new();
    let (token, (events, mut heard)) = (cancellation.clone(), Events::channel());
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(20)).await;
        token.cancel();
    });
    let report = lab.manager(Settings::default()).deploy(&registry, cancellation, events).await.unwrap();
    assert_eq!(report.outcome, DeployOutcome::Cancelled);
    assert_eq!(
        told(&report),
        [
            "listens Failed cancelled with the deploy",
            "deaf Failed cancelled with the deploy",
            "migrate Unknown run 1 was left running; the next deploy waits for it",
            "api-before Skipped the deploy was cancelled",
        ]
    );
    assert_eq!(report.took.as_secs(), 30, "ten seconds of grace");
    assert_eq!(lab.ledger("deaf", "runs").await[0]["reason"], "it was cancelled, and it did not end: abandoned");
    assert!(lab.ledger("migrate", "head").await["active"]["leftAt"].is_string());
    let mut lines = Vec::new();
    while let Ok(event) = heard.try_recv() {
        if let Event::JobDone(report) = event {
            lines.push(report.id);
        }
    }
    assert_eq!(lines.len(), 4, "everybody is told of every job: {lines:?}");
}

#[tokio::test(start_paused = true)]
async fn jobs_in_code_say_whether_they_are_needed_and_leave_a_record() {
    let (lab, diary) = (Lab::new().await, Diary::default());
    let mut registry = Registry::new();
    let act: Act = |context| {
        context.log(format!("{} {:?} attempt {}", context.release().name, context.component(), context.attempt()));
        Ok(())
    };
    registry
        .component(Part::new("api"))
        .job(Step { act, ..step(&diary, "talk", When::before("api")) })
        .job(Step { needed: Needed::No("size is 30Gi".to_owned()), ..step(&diary, "grow", When::before("api")) });
    let report = lab.deploy("1", &registry).await.unwrap();
    assert_eq!(told(&report), ["talk Succeeded run 1", "grow Skipped not needed: size is 30Gi"]);
    assert_eq!(lab.ledger("talk", "logs").await, json!({"1": "shop Some(\"api\") attempt 1\n"}));
    let ledgers = lab.ledgers().await;
    assert_eq!(ledgers.len(), 1, "what did not run leaves no ledger");
    assert_eq!(ledgers[0].metadata.labels.as_ref().unwrap()["jobwright.io/component"], "api");
}

#[tokio::test(start_paused = true)]
async fn occasions_and_selections_are_observed() {
    let (lab, diary) = (Lab::new().await, Diary::default());
    let mut registry = Registry::new();
    registry
        .component(Part { decision: Decision::Upgrade("new chart".to_owned()), ..Part::new("api") })
        .job(step(&diary, "fresh", When::before("api").only(Occasion::Install)))
        .job(step(&diary, "left-out", When::before("api")))
        .job(step(&diary, "runs", When::before("api").only(Occasion::Upgrade)))
        .job(step(&diary, "first-time", When::after_all().only(Occasion::Install)));
    let settings = Settings { skip: ["left-out".to_owned()].into(), ..Settings::default() };
    let report = lab.manager(settings).deploy(&registry, CancellationToken::new(), Events::nowhere()).await.unwrap();
    assert_eq!(
        told(&report),
        [
            "fresh Skipped runs on install only",
            "left-out Skipped not selected by `--only` or `--skip`; due at the next deploy",
            "runs Succeeded run 1",
            "first-time Succeeded run 1",
        ]
    );
    let settings = Settings { only: Some(["runs".to_owned()].into()), revision: "2".to_owned(), ..Settings::default() };
    let report = lab.manager(settings).deploy(&registry, CancellationToken::new(), Events::nowhere()).await.unwrap();
    assert_eq!(report.jobs.iter().filter(|job| job.outcome == JobOutcome::Succeeded).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn guards_refuse_before_anything_is_changed() {
    let (lab, diary) = (Lab::new().await, Diary::default());
    let mut registry = Registry::new();
    registry.job(Step { retires: Retires::At("2.0.0".parse().unwrap()), ..step(&diary, "old", When::before_all()) });
    let deploy = |from: Option<&str>, to: &str, settings: Settings| {
        let version = from.map(|from| from.parse().unwrap());
        let past = Past { is_installed: version.is_some(), version, attempted: None };
        let release = Release { past, ..release(Some(to)) };
        let (manager, registry) = (lab.manager_of(release, settings), &registry);
        async move { manager.deploy(registry, CancellationToken::new(), Events::nowhere()).await }
    };
    let error = deploy(Some("1.2.0"), "1.4.0", Settings::default()).await.unwrap_err();
    assert!(error.to_string().contains("1.4.0 cannot follow 1.2.0"), "{error}");
    let error = deploy(Some("1.5.0"), "1.4.0", Settings::default()).await.unwrap_err();
    assert!(error.to_string().contains("older than 1.5.0"), "{error}");
    let error = deploy(Some("1.9.0"), "2.0.0", Settings::default()).await.unwrap_err();
    assert!(matches!(&error, Error::Violations(all) if all.len() == 2), "both are told: {error}");
    assert_eq!((lab.ledgers().await.len(), diary.read().len()), (0, 0));
    let allowed = Settings { allow: Exceptions { skip_version: true, ..Exceptions::default() }, ..Settings::default() };
    deploy(Some("1.2.0"), "1.4.0", allowed).await.unwrap();
    let allowed = Settings {
        allow: Exceptions { older: true, ..Exceptions::default() },
        revision: "2".to_owned(),
        ..Settings::default()
    };
    deploy(Some("1.5.0"), "1.4.0", allowed).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn two_managers_in_one_process_do_not_disturb_each_other() {
    let (one, other) = (Lab::new().await, Lab::new().await);
    let (first, second) = (Diary::default(), Diary::default());
    let make = |diary: &Diary, id: &'static str| {
        let mut registry = Registry::new();
        registry.job(step(diary, id, When::before_all()));
        registry
    };
    let (registry_one, registry_other) = (make(&first, "a"), make(&second, "b"));
    let (a, b) = tokio::join!(one.deploy("1", &registry_one), other.deploy("1", &registry_other));
    assert_eq!(
        (told(&a.unwrap()), told(&b.unwrap())),
        (vec!["a Succeeded run 1".into()], vec!["b Succeeded run 1".into()])
    );
    assert_eq!((first.read(), second.read()), (vec!["a".to_owned()], vec!["b".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn without_records_nothing_is_written() {
    let (lab, diary) = (Lab::new().await, Diary::default());
    let mut registry = Registry::new();
    registry.job(step(&diary, "a", When::before_all()));
    let settings = Settings { without_records: true, ..Settings::default() };
    let report = lab.manager(settings).deploy(&registry, CancellationToken::new(), Events::nowhere()).await.unwrap();
    assert_eq!((report.outcome, lab.faults.calls().len()), (DeployOutcome::Succeeded, 0));
}
