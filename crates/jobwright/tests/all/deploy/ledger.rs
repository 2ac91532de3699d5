//! `status`, `history` and `logs`: good after the Jobs are gone.

use crate::deploy::stage::{Stage, job};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt as _};

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
fn history_prints_both_times_and_no_duration_of_a_run_that_never_started() {
    let stage = Stage::new(&format!("jobs:\n{}", job("migrate", "true", "phase: pre")));
    stage.jobwright("deploy -q").expect(0);
    let maps = Api::<ConfigMap>::namespaced(stage.client(), "shop");
    let ledgers = ListParams::default().labels("jobwright.io/ledger=1");
    let mut ledger = stage.block_on(maps.list(&ledgers)).unwrap().items.remove(0);
    let data = ledger.data.as_mut().unwrap();
    let mut runs: serde_json::Value = serde_json::from_str(&data["runs"]).unwrap();
    runs[0]["startedAt"] = "2026-01-01T00:00:00.25Z".into();
    runs[0]["finishedAt"] = "2026-01-01T00:01:05Z".into();
    let mut unstarted = runs[0].clone();
    unstarted["run"] = 2.into();
    unstarted["neverStarted"] = true.into();
    unstarted["finishedAt"] = "2026-01-02T00:00:00Z".into();
    runs.as_array_mut().unwrap().push(unstarted);
    data.insert("runs".to_owned(), runs.to_string());
    stage.block_on(maps.replace(&ledger.name_any(), &PostParams::default(), &ledger)).unwrap();
    let text = stage.jobwright("history").expect(0).out;
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let succeeded = ["succeeded", "1.4.0"];
    assert_eq!(lines[1], [&["2026-01-02T00:00:00Z", "migrate", "2", "1"][..], &succeeded].concat(), "{text}");
    let times = ["2026-01-01T00:00:00Z", "2026-01-01T00:01:05Z"];
    assert_eq!(lines[2][..2], times, "{text}");
    assert_eq!(lines[2][6], "1m04s", "{text}");
    let document = stage.jobwright("history -o json").expect(0).json();
    assert!(document["runs"][0]["startedAt"].is_null(), "{document}");
    assert_eq!(document["runs"][1]["startedAt"], "2026-01-01T00:00:00.25Z");
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
