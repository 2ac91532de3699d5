//! Pod jobs on a cluster: runs, failures with their logs, early verdicts, what stays and what goes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::support::{Lab, NAMESPACE, pod, registry, told};
use jobwright_drydock::{Fault, When};
use jobwright_engine::{DeployOutcome, Event, Events, JobOutcome, OnUnknown, Retries, RunPolicy, Settings};
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[tokio::test(start_paused = true)]
async fn a_job_runs_once_and_leaves_proof_when_it_is_gone() {
    let lab = Lab::new().await;
    let line = "echo applying 001; sleep 20; echo done";
    let report = lab.deploy("1", &registry([pod("migrate", line)])).await.unwrap();
    assert_eq!((report.outcome, told(&report)), (DeployOutcome::Succeeded, vec!["migrate Succeeded run 1".to_owned()]));
    assert!(report.jobs[0].took >= Duration::from_secs(20));

    let job = lab.jobs().await.remove(0);
    assert!(job.name_any().starts_with("shop-migrate-"), "{}", job.name_any());
    let labels = job.labels();
    for (key, value) in
        [("app.kubernetes.io/managed-by", "jobwright"), ("jobwright.io/release", "shop"), ("jobwright.io/run", "1")]
    {
        assert_eq!(labels[key], value);
    }
    assert!(!labels.contains_key("jobwright.io/component"));
    let spec = job.spec.unwrap();
    assert_eq!((spec.backoff_limit, spec.active_deadline_seconds), (Some(0), Some(600)));

    lab.pass(Duration::from_hours(2)).await;
    assert!(lab.jobs().await.is_empty() && lab.pods().await.is_empty());
    let again = lab.deploy("2", &registry([pod("migrate", line)])).await.unwrap();
    assert_eq!(told(&again), ["migrate Skipped already succeeded in run 1"]);
    assert_eq!(lab.starts_of(line), 1);
    assert_eq!(lab.ledger("migrate", "logs").await, json!({"1": "applying 001\ndone\n"}));
}

#[tokio::test(start_paused = true)]
async fn a_successful_job_costs_no_more_than_eight_calls() {
    let lab = Lab::new().await;
    lab.deploy("1", &registry([pod("first", "sleep 5")])).await.unwrap();
    let one = lab.faults.calls().len();
    let lab = Lab::new().await;
    lab.deploy("1", &registry((0..11).map(|number| pod(&format!("job-{number}"), "sleep 5")))).await.unwrap();
    let eleven: Vec<String> = lab.faults.calls().iter().map(ToString::to_string).collect();
    let renewals = eleven.iter().filter(|call| call.starts_with("update leases")).count();
    let ten = eleven.len() - renewals - one;
    assert!(ten <= 80, "{ten} calls for ten jobs:\n{}", eleven.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_with_its_reason_and_its_log() {
    let lab = Lab::new().await;
    let report = lab.deploy("1", &registry([pod("migrate", "echo column exists; exit 3")])).await.unwrap();
    assert_eq!(report.outcome, DeployOutcome::Failed);
    assert_eq!(told(&report), ["migrate Failed container m ended with exit code 3"]);
    let runs = lab.ledger("migrate", "runs").await;
    assert_eq!((&runs[0]["outcome"], &runs[0]["exitCode"]), (&json!("Failed"), &json!(3)));
    assert_eq!(lab.ledger("migrate", "logs").await["1"], "column exists\n");
}

#[tokio::test(start_paused = true)]
async fn attempts_are_new_jobs_after_a_growing_wait() {
    let lab = Lab::new().await;
    let line = "echo attempt $JOBWRIGHT_ATTEMPT of $JOBWRIGHT_RUN_ID; test $JOBWRIGHT_ATTEMPT = 3";
    let mut job = pod("flaky", line);
    job.retries = Retries { limit: 2, backoff: Duration::from_secs(10) };
    let report = lab.deploy("1", &registry([job])).await.unwrap();
    assert_eq!((report.jobs[0].outcome, report.jobs[0].attempts), (JobOutcome::Succeeded, 3));
    assert_eq!((lab.starts_of(line), lab.jobs().await.len()), (3, 3));
    let starts: Vec<i64> = lab.drydock.witness().iter().map(|started| started.at.as_second()).collect();
    assert!(starts[1] - starts[0] >= 10 && starts[2] - starts[1] >= 20, "{starts:?}");
    let logs = lab.ledger("flaky", "logs").await;
    let id = |text: &serde_json::Value| text.as_str().unwrap().split(" of ").nth(1).unwrap().to_owned();
    assert_eq!(id(&logs["1"]), id(&logs["1.3"]), "attempts of a run share its id");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_start_fails_long_before_its_deadline() {
    let cases = [
        (json!({"containers": [{"name": "m", "image": "registry.invalid/none:1"}]}), "ImagePull"),
        (
            json!({"containers": [{"name": "m", "image": "busybox:1", "envFrom": [{"secretRef": {"name": "later"}}]}]}),
            "CreateContainerConfigError: secret \"later\" not found",
        ),
        (
            json!({"containers": [{"name": "m", "image": "busybox:1"}],
                   "volumes": [{"name": "v", "secret": {"secretName": "later"}}]}),
            "FailedMount: MountVolume.SetUp failed for volume \"v\"",
        ),
        (
            json!({"serviceAccountName": "later", "containers": [{"name": "m", "image": "busybox:1"}]}),
            "FailedCreate: Error creating: pods \"",
        ),
        (
            json!({"nodeSelector": {"disk": "fast"}, "containers": [{"name": "m", "image": "busybox:1"}]}),
            "Unschedulable: 0/1 nodes are available",
        ),
    ];
    for (spec, expected) in cases {
        let lab = Lab::new().await;
        let mut job = pod("migrate", "true");
        job.template = json!({"spec": spec});
        job.timeout = Duration::from_hours(10);
        let (events, mut heard) = Events::channel();
        let settings = Settings::default();
        let report = lab.manager(settings).deploy(&registry([job]), CancellationToken::new(), events).await.unwrap();
        let told = told(&report).remove(0);
        assert!(told.contains(expected), "{told}");
        assert!(report.took < Duration::from_mins(7), "{told}: {:?}", report.took);
        assert!(lab.jobs().await.is_empty(), "{told}: its Job is gone, so that nothing starts later");
        assert!(lab.drydock.witness().is_empty());
        let mut troubles = Vec::new();
        while let Ok(event) = heard.try_recv() {
            if let Event::Trouble { trouble: Some(trouble), .. } = event {
                troubles.push(trouble);
            }
        }
        assert!(troubles.iter().any(|trouble| trouble.contains(expected)), "told at once: {troubles:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_may_come_later() {
    let lab = Lab::new().await;
    let mut job = pod("migrate", "echo hello");
    job.template["spec"]["containers"][0]["envFrom"] = json!([{"secretRef": {"name": "later"}}]);
    let stranger = lab.stranger();
    let secret = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(40)).await;
        let secrets = Api::<k8s_openapi::api::core::v1::Secret>::namespaced(stranger, NAMESPACE);
        let secret = serde_json::from_value(json!({"metadata": {"name": "later"}})).unwrap();
        secrets.create(&PostParams::default(), &secret).await.unwrap();
    });
    let report = lab.deploy("1", &registry([job])).await.unwrap();
    secret.await.unwrap();
    assert_eq!(told(&report), ["migrate Succeeded run 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_job_tells_what_the_cluster_said() {
    let lab = Lab::new().await;
    let mut job = pod("migrate", "true");
    job.template["spec"]["containers"][0]["image"] = json!("");
    let report = lab.deploy("1", &registry([job])).await.unwrap();
    let told = told(&report).remove(0);
    assert!(told.starts_with("migrate Failed the API server refused its Job: Job.batch \"shop-migrate-"), "{told}");
    assert!(told.contains("spec.template.spec.containers[0].image: Required value"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_an_attempt_and_its_log_is_kept_or_missed_with_a_reason() {
    let lab = Lab::new().await;
    let mut job = pod("slow", "echo begun; sleep 3600");
    job.timeout = Duration::from_secs(30);
    let report = lab.deploy("1", &registry([job])).await.unwrap();
    assert_eq!(told(&report), ["slow Failed DeadlineExceeded: Job was active longer than specified deadline"]);
    let (runs, logs) = (lab.ledger("slow", "runs").await, lab.ledger("slow", "logs").await);
    assert!(logs["1"] == "begun\n" || runs[0]["logUnavailable"].is_string(), "{runs} {logs}");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_a_stranger_deletes_is_unknown_and_not_run_again_by_itself() {
    let lab = Lab::new().await;
    let line = "sleep 300";
    let stranger = delete_when_running(&lab, "migrate");
    let report = lab.deploy("1", &registry([pod("migrate", line)])).await.unwrap();
    stranger.await.unwrap();
    assert_eq!(report.jobs[0].outcome, JobOutcome::Unknown);
    let again = lab.deploy("2", &registry([pod("migrate", line)])).await.unwrap();
    assert!(told(&again)[0].contains("result of run 1 unknown"), "{:?}", told(&again));
    assert_eq!(lab.starts_of(line), 1);
    let mut job = pod("migrate", line);
    job.on_unknown = OnUnknown::RunAgain;
    let report = lab.deploy("3", &registry([job])).await.unwrap();
    assert_eq!(told(&report), ["migrate Succeeded run 2"]);
}

/// A stranger who deletes the Job of a job once it runs.
fn delete_when_running(lab: &Lab, job: &'static str) -> tokio::task::JoinHandle<()> {
    let jobs = Api::<Job>::namespaced(lab.stranger(), NAMESPACE);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let running = |found: &&Job| {
                found.labels()["jobwright.io/job"] == job
                    && found.status.as_ref().is_some_and(|status| status.active.unwrap_or_default() > 0)
            };
            let all = jobs.list(&ListParams::default()).await.unwrap().items;
            if let Some(found) = all.iter().find(running) {
                jobs.delete(&found.name_any(), &DeleteParams::background()).await.unwrap();
                return;
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn secrets_do_not_get_into_the_ledger() {
    let lab = Lab::new().await;
    let secrets = Api::<k8s_openapi::api::core::v1::Secret>::namespaced(lab.stranger(), NAMESPACE);
    let secret = json!({"metadata": {"name": "db"}, "stringData": {"password": "correct-horse", "flag": "on"}});
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    let mut job = pod("migrate", "echo on as $PASSWORD");
    job.template["spec"]["containers"][0]["env"] =
        json!([{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}]);
    lab.deploy("1", &registry([job])).await.unwrap();
    assert_eq!(lab.ledger("migrate", "logs").await["1"], "on as ***\n");
    let everything = serde_json::to_string(&lab.ledgers().await).unwrap();
    assert!(!everything.contains("correct-horse"));
}

#[tokio::test(start_paused = true)]
async fn a_change_of_a_config_map_that_a_job_names_is_a_change() {
    let lab = Lab::new().await;
    let maps = Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(lab.stranger(), NAMESPACE);
    let mut map = serde_json::from_value(json!({"metadata": {"name": "env"}, "data": {"A": "1"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    let job = || {
        let mut job = pod("sync", "echo $A");
        job.template["spec"]["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": "env"}}]);
        job.run = RunPolicy::OnChange;
        registry([job])
    };
    lab.deploy("1", &job()).await.unwrap();
    assert_eq!(told(&lab.deploy("2", &job()).await.unwrap()), ["sync Skipped unchanged since run 1"]);
    map.data.as_mut().unwrap().insert("A".to_owned(), "2".to_owned());
    maps.replace("env", &PostParams::default(), &map).await.unwrap();
    assert_eq!(told(&lab.deploy("3", &job()).await.unwrap()), ["sync Succeeded run 2"]);
}

#[tokio::test(start_paused = true)]
async fn conditions_tell_that_a_job_is_not_needed() {
    let lab = Lab::new().await;
    let maps = Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(lab.stranger(), NAMESPACE);
    let map = json!({"metadata": {"name": "schema"}, "data": {"version": "14"}});
    maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    let with = |api_version: Option<&str>, kind: &str, name: &str, path: &str, equals: serde_json::Value| {
        let mut job = pod("migrate", "true");
        job.skip_if = vec![jobwright_engine::Condition {
            api_version: api_version.map(str::to_owned),
            kind: kind.to_owned(),
            name: name.to_owned(),
            path: path.parse().unwrap(),
            equals,
        }];
        registry([job])
    };
    let report = lab.deploy("1", &with(None, "ConfigMap", "schema", "{.data.version}", json!(14))).await.unwrap();
    assert_eq!(told(&report), ["migrate Skipped not needed: ConfigMap `schema` has {.data.version} = 14"]);
    let report =
        lab.deploy("2", &with(None, "Namespace", NAMESPACE, "{.status.phase}", json!("Active"))).await.unwrap();
    assert_eq!(report.jobs[0].outcome, JobOutcome::Skipped, "{:?}", told(&report));
    let report = lab.deploy("3", &with(Some("apps/v1"), "Deployment", "api", "{.spec}", json!(1))).await.unwrap();
    assert_eq!(report.jobs[0].outcome, JobOutcome::Succeeded, "{:?}", told(&report));
    let report = lab.deploy("4", &with(None, "Nothing", "x", "{.spec}", json!(1))).await.unwrap();
    assert_eq!(report.jobs[0].outcome, JobOutcome::Skipped, "it has succeeded, so nobody asks");
}

#[tokio::test(start_paused = true)]
async fn no_container_starts_before_the_uid_of_its_job_is_recorded() {
    let line = "echo done";
    let whole = Lab::new().await;
    whole.deploy("1", &registry([pod("migrate", line)])).await.unwrap();
    let mut started = 0;
    for call in 1..=whole.faults.calls().len() {
        for when in [When::Before, When::After] {
            let lab = Lab::new().await;
            lab.faults.stop_at(call, when);
            let registry = registry([pod("migrate", line)]);
            tokio::select! {
                _ = lab.deploy("1", &registry) => {}
                () = lab.faults.stopped() => {}
            }
            lab.pass(Duration::from_secs(30)).await;
            if lab.starts_of(line) > 0 {
                started += 1;
                let uid = lab.jobs().await[0].uid().unwrap();
                let ledgers = serde_json::to_string(&lab.ledgers().await).unwrap();
                let has_ended = ledgers.contains("outcome");
                assert!(has_ended || ledgers.contains(&uid), "stopped {when:?} call {call}: {ledgers}");
            }
        }
    }
    assert!(started > 0, "no process was stopped after its container had started");
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_ends_the_reading_of_a_log_that_does_not_end() {
    for fault in [Fault::Hang(When::Before), Fault::Silence] {
        let lab = Lab::new().await;
        lab.faults.on(|call| call.subresource == "log").fail(fault.clone());
        let cancellation = CancellationToken::new();
        let cancel = async {
            let has_succeeded = |job: &Job| job.status.as_ref().is_some_and(|status| status.succeeded == Some(1));
            while !lab.jobs().await.iter().any(has_succeeded) {
                lab.pass(Duration::from_millis(100)).await;
            }
            lab.pass(Duration::from_secs(1)).await;
            cancellation.cancel();
            tokio::time::Instant::now()
        };
        let manager = lab.manager(Settings::default());
        let registry = registry([pod("migrate", "echo done; sleep 5")]);
        let (report, cancelled) =
            tokio::join!(manager.deploy(&registry, cancellation.clone(), Events::nowhere()), cancel);
        let took = cancelled.elapsed();
        assert!(took <= Duration::from_secs(15), "{fault:?}: {took:?} after the cancellation");
        let report = report.unwrap();
        assert_eq!(report.jobs[0].outcome, JobOutcome::Succeeded, "{fault:?}: {report:#?}");
        let runs = lab.ledger("migrate", "runs").await;
        assert!(runs[0]["logUnavailable"].is_string(), "{fault:?}: {runs}");
    }
}
