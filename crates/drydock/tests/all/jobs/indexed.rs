//! Jobs whose pods have indexes.

use crate::jobs::lab::Lab;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn each_index_gets_a_pod() {
    let lab = Lab::new();
    let more = json!({"parallelism": 2, "completions": 4, "completionMode": "Indexed"});
    lab.job("indexed", "echo $JOB_COMPLETION_INDEX; sleep 1", more).await;
    lab.wait(30).await;
    let status = lab.status("indexed").await;
    assert_eq!((&status["completedIndexes"], &status["succeeded"]), (&json!("0-3"), &json!(4)));
    assert_eq!(status["failedIndexes"], json!(null));
    let pods = lab.list::<Pod>().await;
    let names: Vec<&str> = pods.iter().filter_map(|pod| pod["metadata"]["generateName"].as_str()).collect();
    assert_eq!(names, ["indexed-0-", "indexed-1-", "indexed-2-", "indexed-3-"]);
    let index = "batch.kubernetes.io/job-completion-index";
    assert_eq!(pods[2]["metadata"]["annotations"], json!({index: "2"}));
    assert_eq!(pods[2]["metadata"]["labels"][index], json!("2"));
    assert_eq!(pods[2]["spec"]["hostname"], json!("indexed-2"));
    let from = json!({"fieldRef": {"apiVersion": "v1", "fieldPath": format!("metadata.labels['{index}']")}});
    assert_eq!(pods[2]["spec"]["containers"][0]["env"], json!([{"name": "JOB_COMPLETION_INDEX", "valueFrom": from}]));
    let name = pods[2]["metadata"]["name"].as_str().unwrap();
    let logs = lab.api::<Pod>().logs(name, &kube::api::LogParams::default()).await.unwrap();
    assert_eq!(logs, "2\n");
}

#[tokio::test(start_paused = true)]
async fn indexes_fail_each_on_their_own() {
    let lab = Lab::new();
    let more = json!({"parallelism": 3, "completions": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1});
    lab.job("perindex", "exit $JOB_COMPLETION_INDEX", more).await;
    lab.wait(60).await;
    assert_eq!(lab.pods_made(), ["0.00", "0.00", "0.00", "10.00", "10.00"]);
    let status = lab.status("perindex").await;
    assert_eq!((&status["completedIndexes"], &status["failedIndexes"]), (&json!("0"), &json!("1,2")));
    assert_eq!((&status["succeeded"], &status["failed"]), (&json!(1), &json!(4)));
    let conditions = [
        "FailureTarget=True FailedIndexes: Job has failed indexes",
        "Failed=True FailedIndexes: Job has failed indexes",
    ];
    assert_eq!(lab.conditions("perindex").await, conditions);
    let log: Vec<String> = lab.log().into_iter().filter(|line| line.contains("job ")).collect();
    // A failed pod is held until its replacement knows of it.
    let held = ["10.00 job perindex active=2", "11.00 job perindex ready=2 uncountedTerminatedPods=0+2"];
    let place = log.iter().position(|line| line == held[0]).unwrap();
    assert_eq!(log[place..place + 2], held);
    let pods = lab.list::<Pod>().await;
    let failures = |pod: &serde_json::Value| {
        pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"].as_str().unwrap().to_owned()
    };
    let mut counts: Vec<String> = pods.iter().map(failures).collect();
    counts.sort();
    assert_eq!(counts, ["0", "0", "0", "1", "1"]);
}

#[tokio::test(start_paused = true)]
async fn too_many_failed_indexes_fail_the_job() {
    let lab = Lab::new();
    let more = json!({"parallelism": 3, "completions": 5, "completionMode": "Indexed",
        "backoffLimitPerIndex": 0, "maxFailedIndexes": 1});
    lab.job("max", "sleep $JOB_COMPLETION_INDEX; [ $JOB_COMPLETION_INDEX = 0 ]", more).await;
    lab.wait(60).await;
    let status = lab.status("max").await;
    assert_eq!((&status["completedIndexes"], &status["failedIndexes"]), (&json!("0"), &json!("1,2")));
    let message = "Job has exceeded the specified maximal number of failed indexes";
    let conditions = ["FailureTarget", "Failed"].map(|kind| format!("{kind}=True MaxFailedIndexesExceeded: {message}"));
    assert_eq!(lab.conditions("max").await, conditions);
    assert!(lab.events().await.contains(&format!("MaxFailedIndexesExceeded: {message}")));
    assert_eq!(status["active"], json!(null));
}

#[tokio::test(start_paused = true)]
async fn a_rule_fails_an_index_for_good() {
    let lab = Lab::new();
    let rules = json!([{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}]);
    let more = json!({"parallelism": 2, "completions": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 3,
        "podFailurePolicy": {"rules": rules}});
    lab.job("failindex", "[ $JOB_COMPLETION_INDEX = 1 ] && exit 42; sleep 2", more).await;
    lab.wait(60).await;
    let status = lab.status("failindex").await;
    assert_eq!((&status["completedIndexes"], &status["failedIndexes"]), (&json!("0,2"), &json!("1")));
    assert_eq!((&status["succeeded"], &status["failed"]), (&json!(2), &json!(1)));
    assert_eq!(lab.pods_made().len(), 3);
    assert_eq!(lab.conditions("failindex").await[1], "Failed=True FailedIndexes: Job has failed indexes");
}

#[tokio::test(start_paused = true)]
async fn a_success_policy_ends_the_job_early() {
    let lab = Lab::new();
    let rules = json!([{"succeededIndexes": "0", "succeededCount": 1}]);
    let more =
        json!({"parallelism": 3, "completions": 3, "completionMode": "Indexed", "successPolicy": {"rules": rules}});
    lab.job("success", "[ $JOB_COMPLETION_INDEX = 0 ] && exit 0; sleep 100", more).await;
    lab.wait(60).await;
    let conditions = [
        "SuccessCriteriaMet=True SuccessPolicy: Matched rules at index 0",
        "Complete=True SuccessPolicy: Matched rules at index 0",
    ];
    assert_eq!(lab.conditions("success").await, conditions);
    let status = lab.status("success").await;
    assert_eq!((&status["succeeded"], &status["failed"]), (&json!(1), &json!(null)));
    assert_eq!(lab.list::<Pod>().await.len(), 1);
    let log = lab.log();
    let early = log.iter().find(|line| line.contains("conditions=SuccessCriteriaMet")).unwrap();
    assert!(early.contains("terminating=2") && early.contains("-active"), "{early}");
}
