//! `status`, `history` and `logs`: good after the Jobs are gone.

use crate::deploy::stage::{Stage, job};
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::{DeleteParams, ListParams};

fn played() -> Stage {
    let jobs = job("migrate", "echo one; echo two", "phase: pre, keep: {finished: 1s}")
        + &job(
            "flaky",
            "echo try $JOBWRIGHT_ATTEMPT; test $JOBWRIGHT_ATTEMPT = 2",
            "phase: pre, retries: {limit: 1, backoff: 1s}",
        );
    let stage = Stage::new(&format!("jobs:\n{jobs}"));
    stage.jobwright("deploy -q").expect(0);
    let jobs = Api::<Job>::namespaced(stage.client(), "shop");
    stage.block_on(jobs.delete_collection(&DeleteParams::background(), &ListParams::default())).unwrap();
    stage
}

#[test]
fn history_has_every_attempt_newest_first() {
    let stage = played();
    let history = stage.jobwright("history flaky -o json").expect(0).json();
    let runs = history["runs"].as_array().unwrap();
    let of = |run: &serde_json::Value| (run["run"].as_u64(), run["attempt"].as_u64(), run["exitCode"].as_i64());
    assert_eq!(runs.iter().map(of).collect::<Vec<_>>(), [(Some(1), Some(2), Some(0)), (Some(1), Some(1), Some(1))]);
    for key in ["job", "version", "fingerprint", "outcome", "startedAt", "finishedAt"] {
        assert!(runs[0][key].is_string(), "{key} in {history}");
    }
    let text = stage.jobwright("history").expect(0).out;
    assert!(text.contains("migrate") && text.contains("flaky") && text.contains("failed"), "{text}");
}

#[test]
fn logs_are_there_when_the_pods_are_not() {
    let stage = played();
    assert_eq!(stage.jobwright("logs migrate").expect(0).out, "one\ntwo\n");
    assert_eq!(stage.jobwright("logs flaky --attempt 1").expect(0).out, "try 1\n");
    assert_eq!(stage.jobwright("logs flaky -o json").expect(0).json()["log"], "try 2\n");
    stage.jobwright("logs").expect(2);
    stage.jobwright("logs nothing").expect(2);
}

#[test]
fn status_says_how_every_job_stands_without_a_plan_too() {
    let stage = played();
    std::fs::remove_file(stage.path("jobwright.yaml")).unwrap();
    let status = stage.jobwright("status --release shop -n shop -o json").expect(0).json();
    let jobs: Vec<(&str, &str)> = status["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| (job["job"].as_str().unwrap(), job["last"]["outcome"].as_str().unwrap()))
        .collect();
    assert_eq!(jobs, [("flaky", "Succeeded"), ("migrate", "Succeeded")]);
}
