//! What failed pods do to a Job, and when they are replaced.

use crate::jobs::lab::Lab;
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use serde_json::{Value, json};

fn on_exit(action: &str, code: i32) -> Value {
    json!({"action": action, "onExitCodes": {"operator": "In", "values": [code]}})
}

#[tokio::test(start_paused = true)]
async fn a_rule_fails_the_job_at_once() {
    let lab = Lab::new();
    let more = json!({"podFailurePolicy": {"rules": [on_exit("FailJob", 42)]}});
    lab.job("failjob", "sleep 3; exit 42", more).await;
    lab.wait(30).await;
    assert_eq!(lab.pods_made(), ["0.00"]);
    let name = lab.list::<Pod>().await[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let message =
        format!("Container main for pod default/{name} failed with exit code 42 matching FailJob rule at index 0");
    let conditions = ["FailureTarget", "Failed"].map(|kind| format!("{kind}=True PodFailurePolicy: {message}"));
    assert_eq!(lab.conditions("failjob").await, conditions);
    assert_eq!(lab.events().await[1], format!("PodFailurePolicy: {message}"));
    assert_eq!(lab.status("failjob").await["failed"], json!(1));
}

#[tokio::test(start_paused = true)]
async fn failures_that_are_ignored_do_not_count_but_wait() {
    let lab = Lab::new();
    let rules = [on_exit("Ignore", 43), on_exit("Count", 44)];
    lab.job("ignore", "exit 43", json!({"backoffLimit": 0, "podFailurePolicy": {"rules": rules}})).await;
    lab.wait(60).await;
    assert_eq!(lab.pods_made(), ["0.00", "10.00", "30.00"]);
    assert_eq!(lab.status("ignore").await["failed"], json!(null));
    assert_eq!(lab.conditions("ignore").await, [""; 0]);
}

const LINE: &str = "trap 'sleep 1; exit 3' TERM; sleep 20 & wait";

async fn lose_a_pod(lab: &Lab, more: Value, again: &str) -> Vec<String> {
    lab.job("replace", LINE, more).await;
    lab.wait(4).await;
    let pod = lab.list::<Pod>().await[0]["metadata"]["name"].as_str().unwrap().to_owned();
    lab.delete::<Pod>(&pod, DeleteParams::default()).await;
    lab.wait(60).await;
    assert_eq!(lab.pods_made(), ["0.00", again]);
    assert_eq!(lab.status("replace").await["failed"], json!(1));
    assert!(lab.conditions("replace").await[1].starts_with("Complete=True"));
    let job = lab.log().into_iter().filter(|line| line.contains(" job ") && !line.starts_with("0."));
    job.collect()
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_being_deleted_counts_as_failed() {
    let log = lose_a_pod(&Lab::new(), json!({}), "14.00").await;
    let expected = [
        "1.00 job replace ready=1",
        "5.00 job replace -active ready=0 terminating=1 uncountedTerminatedPods=0+1",
        "5.00 job replace failed=1 uncountedTerminatedPods=0+0",
    ];
    assert_eq!(log[..3], expected);
    assert!(log[3].ends_with("job replace terminating=0"), "{log:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_only_replaced_when_it_has_failed_if_so_asked() {
    let log = lose_a_pod(&Lab::new(), json!({"podReplacementPolicy": "Failed"}), "15.00").await;
    assert_eq!(log[..2], ["1.00 job replace ready=1", "5.00 job replace -active ready=0 terminating=1"]);
    assert!(log[2].ends_with("job replace terminating=0 uncountedTerminatedPods=0+1"), "{log:#?}");
    assert!(log[3].ends_with("job replace failed=1 uncountedTerminatedPods=0+0"), "{log:#?}");
}
