//! The decisions of the Job controller, without a cluster.

use super::backoff::Backoff;
use super::decide::{Step, Verdict, View};
use super::pod::Pod;
use super::progress::Progress;
use super::spec::Spec;
use super::template;
use crate::object::Object;
use crate::testing;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

/// Twelve o'clock, and so many seconds.
fn noon(seconds: i64) -> String {
    let noon: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
    crate::clock::time(Timestamp::from_second(noon.as_second() + seconds).unwrap())
}

/// A pod in a phase; ended pods ended at noon.
fn pod(name: &str, phase: &str, more: Value) -> Value {
    let mut pod = json!({"metadata": {"name": name, "uid": name, "namespace": "n", "creationTimestamp": noon(-60),
            "finalizers": ["batch.kubernetes.io/job-tracking"]},
        "status": {"phase": phase}});
    if matches!(phase, "Succeeded" | "Failed") {
        let code = i32::from(phase == "Failed");
        let terminated = json!({"exitCode": code, "finishedAt": noon(0)});
        pod["status"]["containerStatuses"] = json!([{"name": "main", "state": {"terminated": terminated}}]);
    }
    crate::patch::merge::apply(&mut pod, &more).unwrap();
    pod
}

fn indexed(name: &str, phase: &str, index: &str, failures: &str) -> Value {
    let annotations = json!({"batch.kubernetes.io/job-completion-index": index,
        "batch.kubernetes.io/job-index-failure-count": failures});
    pod(name, phase, json!({"metadata": {"annotations": annotations}}))
}

/// What is decided so many seconds after noon, as text.
fn decide(spec: Value, status: Value, pods: &[Value], seconds: i64) -> String {
    let job = Object::from_value(json!({"metadata": {"name": "job"}, "spec": spec, "status": status})).unwrap();
    look(&job, pods, noon(seconds).parse().unwrap())
}

fn look(job: &Object, pods: &[Value], now: Timestamp) -> String {
    let (spec, progress) = (Spec::read(job), Progress::read(job));
    let objects = pods.iter().filter_map(|pod| Object::from_value(pod.clone()).ok());
    let pods: Vec<Pod> = objects.map(|pod| Pod(Arc::new(pod))).collect();
    let view = View {
        spec: &spec,
        progress: &progress,
        pods: &pods,
        is_being_deleted: job.is_being_deleted(),
        backoff: Backoff::default(),
        now,
    };
    let tally = view.tally();
    let step = view.decide(&tally);
    let verdict = match &step {
        Step::Finish(verdict) => Some(verdict.clone()),
        _ => view.is_complete(&tally, 0).then(Verdict::completed),
    };
    let mut after = progress.clone();
    let tracked = view.track(&tally, verdict.as_ref(), &mut after);
    if let Some(verdict) = &verdict {
        view.conclude(&tracked, verdict, &mut after);
    }
    let mut written = Object::default();
    after.write(&mut written);
    assert_eq!(Progress::read(&written), after, "a status is read as it was written");
    match step {
        Step::Finish(Verdict { reason, .. }) => reason,
        Step::Remove(pods) => {
            let names: Vec<&str> = pods.iter().map(|pod| pod.0.name()).collect();
            format!("remove {}", names.join(" "))
        }
        Step::Create(indexes) => {
            for index in &indexes {
                template::pod(job, &spec, &tally, *index);
            }
            let shown: Vec<String> =
                indexes.iter().map(|index| index.map_or("-".to_owned(), |i| i.to_string())).collect();
            format!("create {}", shown.join(" "))
        }
        Step::Wait(wait) => format!("wait {}", wait.as_secs()),
        Step::Nothing => "nothing".to_owned(),
    }
}

#[test]
fn pods_are_made_up_to_what_is_wanted_and_no_further() {
    let spec = json!({"parallelism": 3, "completions": 5, "backoffLimit": 6});
    let running = |name: &str| pod(name, "Running", json!({}));
    assert_eq!(decide(spec.clone(), json!({}), &[], 0), "create - - -");
    assert_eq!(decide(spec.clone(), json!({}), &[running("a")], 0), "create - -");
    assert_eq!(decide(spec.clone(), json!({"succeeded": 4}), &[], 0), "create -");
    assert_eq!(decide(spec.clone(), json!({"succeeded": 4}), &[running("a"), running("b")], 0), "remove a");
    assert_eq!(decide(spec, json!({"succeeded": 3}), &[pod("a", "Succeeded", json!({}))], 0), "create -");
    let queue = json!({"parallelism": 2, "backoffLimit": 6});
    assert_eq!(decide(queue.clone(), json!({}), &[], 0), "create - -");
    assert_eq!(decide(queue.clone(), json!({"succeeded": 1}), &[running("a")], 0), "nothing");
    assert_eq!(decide(queue, json!({}), &[running("a"), running("b"), running("c")], 0), "remove a");
    let suspended = json!({"parallelism": 2, "completions": 2, "backoffLimit": 6, "suspend": true});
    assert_eq!(decide(suspended.clone(), json!({}), &[], 0), "nothing");
    assert_eq!(decide(suspended, json!({}), &[running("a")], 0), "remove a");
}

#[test]
fn failed_pods_are_waited_for_and_counted() {
    let spec = json!({"parallelism": 1, "completions": 1, "backoffLimit": 1});
    let failed = |name: &str| pod(name, "Failed", json!({}));
    assert_eq!(decide(spec.clone(), json!({}), &[failed("a")], 3), "wait 7");
    assert_eq!(decide(spec.clone(), json!({}), &[failed("a")], 10), "create -");
    assert_eq!(decide(spec.clone(), json!({"failed": 1}), &[failed("a")], 3), "BackoffLimitExceeded");
    let uncounted = json!({"failed": 0, "uncountedTerminatedPods": {"failed": ["a"]}});
    assert_eq!(decide(spec.clone(), uncounted, &[failed("a")], 30), "create -", "counted once");
    let deleted =
        pod("a", "Running", json!({"metadata": {"deletionTimestamp": noon(2), "deletionGracePeriodSeconds": 2}}));
    assert_eq!(decide(spec.clone(), json!({}), std::slice::from_ref(&deleted), 3), "wait 7");
    let patient = json!({"parallelism": 1, "completions": 1, "backoffLimit": 1, "podReplacementPolicy": "Failed"});
    assert_eq!(decide(patient, json!({}), &[deleted], 3), "nothing");
}

#[test]
fn limits_and_rules_end_a_job() {
    let spec = json!({"parallelism": 1, "completions": 1, "backoffLimit": 6, "activeDeadlineSeconds": 60});
    assert_eq!(decide(spec.clone(), json!({"startTime": noon(0)}), &[], 59), "create -");
    assert_eq!(decide(spec, json!({"startTime": noon(0)}), &[], 60), "DeadlineExceeded");
    let restarting = json!({"parallelism": 1, "completions": 1, "backoffLimit": 2,
        "template": {"spec": {"restartPolicy": "OnFailure"}}});
    let restarted =
        |count: i64| pod("a", "Running", json!({"status": {"containerStatuses": [{"restartCount": count}]}}));
    assert_eq!(decide(restarting.clone(), json!({}), &[restarted(1)], 0), "nothing");
    assert_eq!(decide(restarting, json!({}), &[restarted(2)], 0), "BackoffLimitExceeded");
    let told = json!({"conditions": [{"type": "FailureTarget", "status": "True", "reason": "Told", "message": ""}]});
    let spec = json!({"parallelism": 1, "completions": 1, "backoffLimit": 6});
    assert_eq!(decide(spec, told, &[], 0), "Told", "what was said stays said");
}

#[test]
fn indexes_are_filled_in_order_and_wait_each_for_itself() {
    let spec = json!({"parallelism": 3, "completions": 5, "backoffLimit": 6, "completionMode": "Indexed"});
    assert_eq!(decide(spec.clone(), json!({}), &[], 0), "create 0 1 2");
    let running = indexed("b", "Running", "1", "0");
    assert_eq!(decide(spec.clone(), json!({"completedIndexes": "0"}), std::slice::from_ref(&running), 0), "create 2 3");
    let twice = [indexed("a", "Running", "1", "0"), running, indexed("c", "Running", "9", "0")];
    assert_eq!(decide(spec, json!({}), &twice, 0), "remove a c");
    let each = json!({"parallelism": 3, "completions": 3, "backoffLimit": 99, "completionMode": "Indexed",
        "backoffLimitPerIndex": 2});
    let failed = [indexed("a", "Failed", "0", "1"), indexed("b", "Failed", "1", "0")];
    assert_eq!(decide(each.clone(), json!({"completedIndexes": "2"}), &failed, 5), "wait 5");
    assert_eq!(decide(each.clone(), json!({"completedIndexes": "2"}), &failed, 10), "create 1");
    assert_eq!(decide(each.clone(), json!({"completedIndexes": "2"}), &failed, 20), "create 0 1");
    let exhausted = [indexed("a", "Failed", "0", "2")];
    assert_eq!(decide(each, json!({"completedIndexes": "1,2"}), &exhausted, 20), "FailedIndexes");
}

/// Fields that the controller reads, with values that it may not expect.
fn spec() -> impl Strategy<Value = Value> {
    let number =
        prop_oneof![Just(json!(null)), (-3..6_i64).prop_map(|n| json!(n)), any::<i64>().prop_map(|n| json!(n))];
    let numbers = proptest::collection::vec(number, 6);
    let mode = proptest::sample::select(vec!["Indexed", "NonIndexed", ""]);
    (numbers, mode, any::<bool>(), testing::json_object(), testing::json()).prop_map(
        |(numbers, mode, suspend, template, odd)| {
            json!({"parallelism": numbers[0], "completions": numbers[1], "backoffLimit": numbers[2],
                "backoffLimitPerIndex": numbers[3], "maxFailedIndexes": numbers[4], "activeDeadlineSeconds": numbers[5],
                "completionMode": mode, "suspend": suspend, "template": template,
                "podFailurePolicy": odd, "successPolicy": {"rules": [odd, {"succeededCount": numbers[0]}]}})
        },
    )
}

fn any_pod() -> impl Strategy<Value = Value> {
    let phase = proptest::sample::select(vec!["Pending", "Running", "Succeeded", "Failed", "", "Odd"]);
    let index = proptest::sample::select(vec!["0", "1", "2", "-1", "99999999999999999999", "x"]);
    (phase, index, any::<bool>(), testing::json(), testing::json_object()).prop_map(
        |(phase, index, held, odd, status)| {
            let mut pod = json!({"status": status, "metadata": {"name": "p", "uid": index, "deletionTimestamp": odd,
            "annotations": {"batch.kubernetes.io/job-completion-index": index,
                "batch.kubernetes.io/job-index-failure-count": index}}});
            pod["status"]["phase"] = json!(phase);
            pod["metadata"]["finalizers"] = if held { json!(["batch.kubernetes.io/job-tracking"]) } else { odd };
            pod
        },
    )
}

proptest! {
    #[test]
    fn any_job_with_any_pods_is_decided(
        spec in spec(),
        status in testing::json_object(),
        indexes in "[0-9,x-]{0,8}",
        pods in proptest::collection::vec(any_pod(), 0..5),
        second in any::<i32>(),
    ) {
        let mut job = json!({"metadata": {"name": "job"}, "spec": spec, "status": status});
        job["status"]["completedIndexes"] = json!(indexes);
        let job = Object::from_value(job).unwrap();
        look(&job, &pods, Timestamp::from_second(second.into()).unwrap());
    }
}
