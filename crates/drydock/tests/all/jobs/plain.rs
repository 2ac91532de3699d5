//! Jobs that complete or fail.

use crate::jobs::lab::Lab;
use serde_json::json;

const COMPLETED: [&str; 2] = [
    "SuccessCriteriaMet=True CompletionsReached: Reached expected number of succeeded pods",
    "Complete=True CompletionsReached: Reached expected number of succeeded pods",
];

#[tokio::test(start_paused = true)]
async fn a_job_completes() {
    let lab = Lab::new();
    lab.job("ok", "echo hi", json!({"backoffLimit": 0})).await;
    lab.wait(20).await;
    let log = [
        "0.00 job ok ADDED",
        "0.00 job ok active=1 ready=0 terminating=0 uncountedTerminatedPods=0+0",
        "0.00 pod ok ADDED",
        "0.77 pod ok phase=Running",
        "1.00 job ok ready=1",
        "2.00 job ok ready=0",
        "2.87 pod ok phase=Succeeded",
        "3.00 job ok -active conditions=SuccessCriteriaMet uncountedTerminatedPods=1+0",
        "3.00 job ok conditions=SuccessCriteriaMet,Complete succeeded=1 uncountedTerminatedPods=0+0",
        "3.00 pod ok -held",
    ];
    assert_eq!(lab.log(), log);
    assert_eq!(lab.conditions("ok").await, COMPLETED);
    assert_eq!(lab.events().await, ["SuccessfulCreate: Created pod: ok", "Completed: Job completed"]);
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "lastProbeTime": "2026-01-01T00:00:03Z",
            "lastTransitionTime": "2026-01-01T00:00:03Z", "reason": "CompletionsReached",
            "message": "Reached expected number of succeeded pods"})
    };
    let status = json!({"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:03Z",
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
        "ready": 0, "terminating": 0, "succeeded": 1, "uncountedTerminatedPods": {}});
    assert_eq!(lab.status("ok").await, status);
    assert_eq!(exits(&lab), [Some(0)]);
}

/// How the containers ended that have started, by the witness.
fn exits(lab: &Lab) -> Vec<Option<i32>> {
    lab.drydock.witness().iter().map(|started| started.ended.map(|ended| ended.code)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_job_fails_when_its_pods_failed_too_often() {
    let lab = Lab::new();
    lab.job("fail", "exit 1", json!({"backoffLimit": 2})).await;
    lab.wait(100).await;
    assert_eq!(lab.pods_made(), ["0.00", "10.00", "30.00"]);
    let log = lab.log();
    let end = [
        "33.00 job fail -active conditions=FailureTarget uncountedTerminatedPods=0+1",
        "33.00 job fail conditions=FailureTarget,Failed failed=3 uncountedTerminatedPods=0+0",
        "33.00 pod fail -held",
    ];
    assert_eq!(log[log.len() - 3..], end);
    let conditions = [
        "FailureTarget=True BackoffLimitExceeded: Job has reached the specified backoff limit",
        "Failed=True BackoffLimitExceeded: Job has reached the specified backoff limit",
    ];
    assert_eq!(lab.conditions("fail").await, conditions);
    let created = "SuccessfulCreate: Created pod: fail";
    let failed = "BackoffLimitExceeded: Job has reached the specified backoff limit";
    assert_eq!(lab.events().await, [created, created, created, failed]);
    assert_eq!(exits(&lab), [Some(1); 3]);
}

#[tokio::test(start_paused = true)]
async fn waits_between_failures_double_up_to_ten_minutes() {
    let lab = Lab::new();
    lab.job("fail", "exit 1", json!({"backoffLimit": 8})).await;
    lab.wait(3600).await;
    assert_eq!(
        lab.pods_made(),
        ["0.00", "10.00", "30.00", "70.00", "150.00", "310.00", "630.00", "1230.00", "1830.00"]
    );
}

#[tokio::test(start_paused = true)]
async fn restarts_of_containers_count_against_the_limit() {
    let lab = Lab::new();
    let more = json!({"backoffLimit": 2, "template": {"spec": {"restartPolicy": "OnFailure"}}});
    lab.job("onf", "exit 1", more).await;
    lab.wait(60).await;
    assert_eq!(lab.pods_made(), ["0.00"]);
    assert_eq!(lab.drydock.witness().len(), 3);
    let status = lab.status("onf").await;
    assert_eq!((&status["failed"], &status["active"]), (&json!(1), &json!(null)));
    let events = [
        "SuccessfulCreate: Created pod: onf",
        "SuccessfulDelete: Deleted pod: onf",
        "BackoffLimitExceeded: Job has reached the specified backoff limit",
    ];
    assert_eq!(lab.events().await, events);
}

#[tokio::test(start_paused = true)]
async fn a_job_fails_at_its_deadline() {
    let lab = Lab::new();
    lab.job("deadline", "sleep 100", json!({"activeDeadlineSeconds": 5})).await;
    lab.wait(4).await;
    assert_eq!(exits(&lab), [None]);
    lab.wait(26).await;
    let log: Vec<String> =
        lab.log().into_iter().filter(|line| line.contains(" job ") && !line.starts_with("0.")).collect();
    let expected = [
        "1.00 job deadline ready=1",
        "5.00 job deadline -active conditions=FailureTarget ready=0 terminating=1 uncountedTerminatedPods=0+1",
        "5.00 job deadline failed=1 uncountedTerminatedPods=0+0",
    ];
    assert_eq!(log[..3], expected);
    let conditions = [
        "FailureTarget=True DeadlineExceeded: Job was active longer than specified deadline",
        "Failed=True DeadlineExceeded: Job was active longer than specified deadline",
    ];
    assert_eq!(lab.conditions("deadline").await, conditions);
    assert!(log.last().unwrap().ends_with("conditions=FailureTarget,Failed"), "{log:#?}");
    let events = [
        "SuccessfulCreate: Created pod: deadline",
        "SuccessfulDelete: Deleted pod: deadline",
        "DeadlineExceeded: Job was active longer than specified deadline",
    ];
    assert_eq!(lab.events().await, events);
}

#[tokio::test(start_paused = true)]
async fn pods_that_cannot_be_made_are_tried_again_ever_more_rarely() {
    let lab = Lab::new();
    lab.job("account", "echo hi", json!({"template": {"spec": {"serviceAccountName": "missing"}}})).await;
    lab.wait(32).await;
    let message = "FailedCreate: Error creating: pods \"account-\" is forbidden: error looking up service account \
         default/missing: serviceaccount \"missing\" not found ×6";
    assert_eq!(lab.events().await, [message]);
    let status =
        json!({"ready": 0, "terminating": 0, "startTime": "2026-01-01T00:00:00Z", "uncountedTerminatedPods": {}});
    assert_eq!(lab.status("account").await, status);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_wants_nothing_is_complete_and_one_that_may_do_nothing_waits() {
    let lab = Lab::new();
    lab.job("zero", "sleep 2", json!({"completions": 0, "parallelism": 1})).await;
    lab.job("zeropar", "sleep 2", json!({"completions": 1, "parallelism": 0})).await;
    lab.wait(10).await;
    assert_eq!(lab.conditions("zero").await, COMPLETED);
    assert_eq!(lab.status("zero").await["succeeded"], json!(null));
    assert_eq!(lab.conditions("zeropar").await, [""; 0]);
    assert_eq!(lab.events().await, ["Completed: Job completed"]);
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_work_queue_are_not_replaced_once_one_has_succeeded() {
    let lab = Lab::new();
    lab.job("queue", "sleep 2", json!({"parallelism": 2})).await;
    lab.wait(20).await;
    assert_eq!(lab.pods_made(), ["0.00", "0.00"]);
    assert_eq!(lab.status("queue").await["succeeded"], json!(2));
    assert_eq!(lab.conditions("queue").await, COMPLETED);
}

#[tokio::test(start_paused = true)]
async fn as_many_pods_run_as_may_until_enough_have_succeeded() {
    let lab = Lab::new();
    lab.job("par", "sleep 2", json!({"parallelism": 3, "completions": 5})).await;
    lab.wait(30).await;
    let made = lab.pods_made();
    assert_eq!((made.len(), &made[..3]), (5, &["0.00".to_owned(), "0.00".to_owned(), "0.00".to_owned()][..]));
    assert_eq!(lab.status("par").await["succeeded"], json!(5));
}
