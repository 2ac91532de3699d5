//! Jobs and pods that somebody changes while they run.

use crate::jobs::lab::Lab;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_suspended_job_has_no_pods_until_it_is_resumed() {
    let lab = Lab::new();
    lab.job("suspend", "sleep 12", json!({"suspend": true})).await;
    lab.wait(3).await;
    assert_eq!(lab.conditions("suspend").await, ["Suspended=True JobSuspended: Job suspended"]);
    assert_eq!(lab.status("suspend").await["startTime"], json!(null));
    lab.patch::<Job>("suspend", json!({"spec": {"suspend": false}})).await;
    lab.wait(5).await;
    assert_eq!(lab.conditions("suspend").await, ["Suspended=False JobResumed: Job resumed"]);
    assert_eq!(lab.status("suspend").await["startTime"], json!("2026-01-01T00:00:03Z"));
    lab.patch::<Job>("suspend", json!({"spec": {"suspend": true}})).await;
    lab.wait(6).await;
    let status = lab.status("suspend").await;
    assert_eq!((&status["active"], &status["terminating"], &status["failed"]), (&json!(null), &json!(0), &json!(null)));
    assert_eq!(lab.list::<Pod>().await.len(), 0);
    lab.patch::<Job>("suspend", json!({"spec": {"suspend": false}})).await;
    lab.wait(30).await;
    let events = [
        "SuccessfulCreate: Created pod: suspend",
        "SuccessfulDelete: Deleted pod: suspend",
        "Suspended: Job suspended ×2",
        "SuccessfulCreate: Created pod: suspend",
        "Resumed: Job resumed ×2",
        "Completed: Job completed",
    ];
    assert_eq!(lab.events().await, events);
    let kinds: Vec<String> =
        lab.conditions("suspend").await.iter().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect();
    assert_eq!(kinds, ["Suspended=False", "SuccessCriteriaMet=True", "Complete=True"]);
    assert_eq!(lab.status("suspend").await["startTime"], json!("2026-01-01T00:00:14Z"));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_counts_from_the_first_start_even_while_suspended() {
    let lab = Lab::new();
    lab.job("dead", "sleep 100", json!({"activeDeadlineSeconds": 8})).await;
    lab.wait(3).await;
    lab.patch::<Job>("dead", json!({"spec": {"suspend": true}})).await;
    lab.wait(8).await;
    assert_eq!(lab.conditions("dead").await, ["Suspended=True JobSuspended: Job suspended"]);
    lab.patch::<Job>("dead", json!({"spec": {"suspend": false}})).await;
    lab.wait(1).await;
    let kinds: Vec<String> =
        lab.conditions("dead").await.iter().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect();
    assert_eq!(kinds, ["Suspended=True", "FailureTarget=True", "Failed=True"]);
}

#[tokio::test(start_paused = true)]
async fn parallelism_can_change_at_any_time() {
    let lab = Lab::new();
    lab.job("scale", "sleep 6", json!({"parallelism": 3, "completions": 6})).await;
    lab.wait(3).await;
    lab.patch::<Job>("scale", json!({"spec": {"parallelism": 1}})).await;
    let status = lab.status("scale").await;
    assert_eq!((&status["active"], &status["ready"], &status["terminating"]), (&json!(1), &json!(1), &json!(2)));
    lab.wait(4).await;
    lab.patch::<Job>("scale", json!({"spec": {"parallelism": 2}})).await;
    assert_eq!(lab.status("scale").await["active"], json!(2));
    lab.wait(3).await;
    lab.patch::<Job>("scale", json!({"spec": {"parallelism": 0}})).await;
    lab.wait(30).await;
    let status = lab.status("scale").await;
    assert_eq!((&status["active"], &status["succeeded"], &status["failed"]), (&json!(null), &json!(1), &json!(null)));
    assert_eq!(lab.events().await.iter().filter(|event| event.starts_with("SuccessfulDelete")).count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_no_longer_fits_is_let_go_and_one_that_fits_is_taken_in() {
    let lab = Lab::new();
    lab.job("own", "sleep 100", json!({"parallelism": 1})).await;
    lab.wait(3).await;
    let pod = lab.list::<Pod>().await[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let uid = lab.api::<Job>().get("own").await.unwrap().metadata.uid.unwrap();
    let label = "batch.kubernetes.io/controller-uid";
    lab.patch::<Pod>(&pod, json!({"metadata": {"labels": {label: "other"}}})).await;
    lab.wait(2).await;
    let freed = lab.api::<Pod>().get(&pod).await.unwrap();
    assert_eq!((freed.metadata.owner_references, freed.metadata.finalizers), (None, None));
    assert_eq!(lab.list::<Pod>().await.len(), 2, "another pod takes its place");

    lab.patch::<Job>("own", json!({"spec": {"parallelism": 2}})).await;
    lab.wait(3).await;
    lab.patch::<Pod>(&pod, json!({"metadata": {"labels": {label: uid}}})).await;
    lab.wait(3).await;
    let adopted = lab.api::<Pod>().get(&pod).await.unwrap().metadata;
    assert_eq!(adopted.owner_references.unwrap()[0].uid, uid);
    assert_eq!(adopted.finalizers.unwrap(), ["batch.kubernetes.io/job-tracking"]);
    let deleted = lab.events().await.iter().filter(|event| event.starts_with("SuccessfulDelete")).count();
    assert_eq!(deleted, 1, "three pods are one too many");
}

#[tokio::test(start_paused = true)]
async fn a_job_of_another_controller_is_left_alone() {
    let lab = Lab::new();
    lab.job("elsewhere", "echo hi", json!({"managedBy": "example.com/jobs"})).await;
    lab.wait(60).await;
    assert_eq!(lab.log(), ["0.00 job elsewhere ADDED"]);
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_never_gets_a_new_pod() {
    let lab = Lab::new();
    lab.job("done", "echo hi", json!({})).await;
    lab.wait(10).await;
    let pod = lab.list::<Pod>().await[0]["metadata"]["name"].as_str().unwrap().to_owned();
    lab.delete::<Pod>(&pod, kube::api::DeleteParams::default()).await;
    lab.patch::<Job>("done", json!({"spec": {"parallelism": 5}})).await;
    lab.wait(60).await;
    assert_eq!(lab.list::<Pod>().await.len(), 0);
    assert_eq!(lab.drydock.witness().len(), 1);
}
