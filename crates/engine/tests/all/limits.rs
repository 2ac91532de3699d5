//! Limits of waiting and of records: watches that lag or fail, Jobs that nothing starts, ledgers that are full.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot continue has failed")]

use crate::support::{Lab, NAMESPACE, pod, registry, told};
use jobwright_drydock::{Drydock, Fault, When};
use jobwright_engine::{
    DeployOutcome, Error, Event, Events, JobOutcome, Manager, OnSupersede, RETRY_LIMIT, Release, Retries, Settings,
};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

#[tokio::test(start_paused = true)]
async fn an_attempt_is_not_judged_by_the_job_of_the_attempt_before_while_the_watch_lags() {
    let lab = Lab::new().await;
    let line = "test $JOBWRIGHT_ATTEMPT = 2";
    let mut job = pod("flaky", line);
    job.retries = Retries { limit: 1, backoff: Duration::from_secs(10) };
    // The watch says nothing of the first Job. It is read instead, because the answer to its start is lost.
    lab.faults.on(|call| call.verb == "watch" && call.resource == "jobs").times(1).fail(Fault::Silence);
    lab.faults.on(|call| call.verb == "patch" && call.resource == "jobs").times(1).fail(Fault::Hang(When::After));
    let report = lab.deploy("1", &registry([job])).await.unwrap();
    assert_eq!((report.jobs[0].outcome, report.jobs[0].attempts), (JobOutcome::Succeeded, 2), "{:?}", told(&report));
    assert_eq!(lab.starts_of(line), 2);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_the_watch_does_not_show_is_read_before_it_is_stopped() {
    let lab = Lab::new().await;
    let mut job = pod("migrate", "sleep 30");
    job.timeout = Duration::from_mins(1);
    // For longer than the Job may take.
    lab.faults.on(|call| call.verb == "watch" && call.resource == "jobs").times(1).fail(Fault::Silence);
    let report = lab.deploy("1", &registry([job])).await.unwrap();
    assert_eq!(told(&report), ["migrate Succeeded run 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_keeps_failing_is_reported_and_ends_the_deploy_at_the_retry_limit() {
    for (resource, verb) in [("jobs", "list"), ("pods", "list"), ("jobs", "watch"), ("pods", "watch")] {
        let lab = Lab::new().await;
        lab.faults.on(move |call| call.verb == verb && call.resource == resource).fail(Fault::Unavailable);
        let (events, mut heard) = Events::channel();
        let begun = Instant::now();
        let registry = registry([pod("migrate", "sleep 3600")]);
        let manager = lab.manager(Settings::default());
        let deploy = manager.deploy(&registry, CancellationToken::new(), events);
        let report = tokio::time::timeout(RETRY_LIMIT * 3, deploy).await.expect("it never ends").unwrap();
        let error = report.error.expect("the engine stopped").whole_message();
        let what = if resource == "jobs" { "Jobs" } else { "pods" };
        assert!(error.starts_with(&format!("cannot watch the {what} of the release, retried for ")), "{error}");
        assert!(begun.elapsed() < RETRY_LIMIT + Duration::from_secs(30), "{verb} {resource}: {:?}", begun.elapsed());
        let mut reports = 0;
        while let Ok(event) = heard.try_recv() {
            let expected = format!("watch the {what} of the release");
            reports += usize::from(matches!(event, Event::Retrying { doing, .. } if doing == expected));
        }
        assert!((4..=6).contains(&reports), "{verb} {resource}: reported {reports} times in five minutes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_nothing_starts_fails_at_its_time_limit() {
    // Nothing works in this cluster: no Job gets a start time.
    let lab = Lab::on(Drydock::builder().bare().build()).await;
    let mut job = pod("migrate", "true");
    job.timeout = Duration::from_mins(2);
    job.on_supersede = OnSupersede::Wait;
    let registry = registry([job]);
    let report = tokio::time::timeout(Duration::from_hours(24), lab.deploy("1", &registry)).await;
    let report = report.expect("it waits indefinitely").unwrap();
    let reason = "migrate Failed NotStarted: the Job controller did not start its Job within its time limit";
    assert_eq!(told(&report), [reason]);
    assert!((180..240).contains(&report.took.as_secs()), "{:?}", report.took);
    assert!(lab.jobs().await.is_empty(), "it cannot start later");
}

#[tokio::test(start_paused = true)]
async fn a_lease_under_which_nothing_could_be_read_is_released() {
    let lab = Lab::new().await;
    lab.faults.on(|call| call.verb == "list" && call.resource == "configmaps").fail(Fault::Internal);
    let failed = lab.deploy("1", &registry([pod("migrate", "true")])).await;
    assert!(matches!(failed, Err(Error::Cluster { .. })), "{failed:?}");
    let leases = Api::<Lease>::namespaced(lab.stranger(), NAMESPACE);
    let lease = leases.list(&ListParams::default()).await.unwrap().items.remove(0);
    assert_eq!(lease.spec.unwrap().holder_identity, None, "the next process would have to wait");
}

/// The words of a command between backticks that begins like this.
fn find_command<'t>(advice: &'t str, start: &str) -> Vec<&'t str> {
    let command = advice.split('`').find(|part| part.starts_with(start));
    command.unwrap_or_else(|| panic!("no `{start}` in: {advice}")).split_whitespace().collect()
}

#[tokio::test(start_paused = true)]
async fn advice_for_a_full_ledger_works_and_leaves_other_releases_alone() {
    let lab = Lab::new().await;
    let deploy = async |release: &str, revision: &str, line: &str| {
        let release = Release { name: release.to_owned(), namespace: NAMESPACE.to_owned(), ..Release::default() };
        let settings = Settings { revision: revision.to_owned(), ..Settings::default() };
        let manager = Manager::new(lab.client(), release, lab.clock(), settings);
        let registry = registry([pod("migrate", line)]);
        manager.deploy(&registry, CancellationToken::new(), Events::nowhere()).await.unwrap()
    };
    for release in ["shop", "other"] {
        assert_eq!(deploy(release, "1", "echo one").await.outcome, DeployOutcome::Succeeded);
    }
    let maps = Api::<ConfigMap>::namespaced(lab.stranger(), NAMESPACE);
    let ours = ListParams::default().labels("jobwright.io/ledger=1,jobwright.io/release=shop");
    let mut ledger = maps.list(&ours).await.unwrap().items.remove(0);
    let done: Vec<_> = (0..2300).map(|run| json!([format!("{run:032x}"), null, "Succeeded", run])).collect();
    ledger.data.as_mut().unwrap().insert("done".to_owned(), json!(done).to_string());
    maps.replace(&ledger.name_any(), &PostParams::default(), &ledger).await.unwrap();

    let refused = deploy("shop", "2", "echo two").await;
    let advice = &refused.jobs[0].reason;
    assert!(advice.starts_with("its ledger is full"), "{advice}");
    let ["kubectl", "delete", map, "-n", NAMESPACE] = find_command(advice, "kubectl delete configmap/")[..] else {
        panic!("{advice}");
    };
    let name = map.strip_prefix("configmap/").unwrap();
    maps.delete(name, &DeleteParams::default()).await.unwrap();
    let ["kubectl", "delete", "job", "-l", selector, "-n", NAMESPACE] = find_command(advice, "kubectl delete job")[..]
    else {
        panic!("{advice}");
    };
    let jobs = Api::<Job>::namespaced(lab.stranger(), NAMESPACE);
    let chosen = ListParams::default().labels(selector);
    jobs.delete_collection(&DeleteParams::background(), &chosen).await.unwrap();

    assert_eq!(deploy("shop", "3", "echo two").await.outcome, DeployOutcome::Succeeded);
    let left = lab.jobs().await;
    let of_other = |job: &&Job| job.labels()["jobwright.io/release"] == "other";
    assert_eq!(left.iter().filter(of_other).count(), 1, "the other release's Job was deleted");
}
