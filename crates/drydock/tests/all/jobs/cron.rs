//! Jobs that are made by the clock.

use crate::jobs::lab::Lab;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use serde_json::{Value, json};

// The clock starts at midnight on a Thursday: minute 29453760 since 1970.

async fn status(lab: &Lab) -> Value {
    let cron = lab.api::<CronJob>().get("cron").await.unwrap();
    serde_json::to_value(cron.status.unwrap_or_default()).unwrap()
}

fn names(jobs: &[Value]) -> Vec<&str> {
    jobs.iter().map(|job| job["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_job_is_made_at_each_time_and_old_ones_go() {
    let lab = Lab::new();
    let more = json!({"successfulJobsHistoryLimit": 1, "jobTemplate": {"metadata": {"labels": {"app": "shop"}}}});
    lab.cron("cron", "* * * * *", "echo hi", more).await;
    lab.wait(61).await;
    let jobs = lab.list::<Job>().await;
    assert_eq!(names(&jobs), ["cron-29453761"]);
    let metadata = &jobs[0]["metadata"];
    assert_eq!(metadata["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"], "2026-01-01T00:01:00Z");
    assert_eq!(metadata["labels"]["app"], "shop");
    let owner = &metadata["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["name"], &owner["controller"]),
        (&json!("CronJob"), &json!("cron"), &json!(true))
    );
    let active = status(&lab).await;
    assert_eq!(
        (&active["active"][0]["name"], &active["active"][0]["uid"]),
        (&json!("cron-29453761"), &metadata["uid"])
    );
    assert_eq!(active["lastScheduleTime"], "2026-01-01T00:01:00Z");
    lab.wait(70).await;
    assert_eq!(names(&lab.list::<Job>().await), ["cron-29453762"]);
    let after = json!({"lastScheduleTime": "2026-01-01T00:02:00Z", "lastSuccessfulTime": "2026-01-01T00:02:03Z"});
    assert_eq!(status(&lab).await, after);
    let events = lab.events().await;
    let cron: Vec<&String> = events.iter().filter(|event| event.contains("job ") || event.contains("job:")).collect();
    let expected = [
        "SuccessfulCreate: Created job cron-29453761",
        "SawCompletedJob: Saw completed job: cron-29453761, condition: Complete",
        "SuccessfulCreate: Created job cron-29453762",
        "SawCompletedJob: Saw completed job: cron-29453762, condition: Complete",
        "SuccessfulDelete: Deleted job cron-29453761",
    ];
    let mut sorted = (cron, expected.to_vec());
    sorted.0.sort();
    sorted.1.sort_unstable();
    assert_eq!(sorted.0, sorted.1);
    assert_eq!(lab.drydock.witness().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_running_job_forbids_the_next_or_is_replaced_or_is_joined() {
    let play = async |policy: &str| {
        let lab = Lab::new();
        lab.cron("cron", "* * * * *", "sleep 80", json!({"concurrencyPolicy": policy})).await;
        lab.wait(190).await;
        lab
    };
    let forbid = play("Forbid").await;
    assert_eq!(names(&forbid.list::<Job>().await), ["cron-29453761", "cron-29453762"]);
    let message =
        "JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid";
    assert!(forbid.events().await.iter().any(|event| event.starts_with(message)));
    // The time that was missed is made up for when the first Job has ended.
    assert_eq!(status(&forbid).await["lastScheduleTime"], "2026-01-01T00:02:00Z");

    let replace = play("Replace").await;
    assert_eq!(names(&replace.list::<Job>().await), ["cron-29453763"]);
    assert_eq!(status(&replace).await["active"].as_array().unwrap().len(), 1);
    assert!(replace.events().await.contains(&"SuccessfulDelete: Deleted job cron-29453762".to_owned()));

    let allow = play("Allow").await;
    assert_eq!(allow.list::<Job>().await.len(), 3);
    assert_eq!(status(&allow).await["active"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_suspended_cron_job_makes_up_for_the_last_time_unless_it_is_too_late() {
    let play = async |deadline: Value| {
        let lab = Lab::new();
        let more = json!({"suspend": true, "startingDeadlineSeconds": deadline});
        lab.cron("cron", "@hourly", "echo hi", more).await;
        lab.wait(3 * 3600 + 600).await;
        assert_eq!(lab.list::<Job>().await.len(), 0);
        lab.patch::<CronJob>("cron", json!({"spec": {"suspend": false}})).await;
        lab.wait(10).await;
        names(&lab.list::<Job>().await).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(play(Value::Null).await, ["cron-29453940"]);
    assert_eq!(play(json!(3600)).await, ["cron-29453940"]);
    assert_eq!(play(json!(60)).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn time_zones_and_changes_of_the_schedule_count() {
    let lab = Lab::new();
    lab.cron("cron", "30 9 * * *", "echo hi", json!({"timeZone": "Asia/Kolkata"})).await;
    lab.wait(3 * 3600 + 3590).await;
    assert_eq!(lab.list::<Job>().await.len(), 0);
    lab.wait(20).await;
    let jobs = lab.list::<Job>().await;
    let annotation = &jobs[0]["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"];
    assert_eq!(annotation, "2026-01-01T09:30:00+05:30");
    lab.patch::<CronJob>("cron", json!({"spec": {"schedule": "*/5 * * * *"}})).await;
    lab.wait(301).await;
    assert_eq!(lab.list::<Job>().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn jobs_go_with_their_cron_job() {
    let lab = Lab::new();
    lab.cron("cron", "* * * * *", "sleep 600", json!({})).await;
    lab.wait(130).await;
    assert_eq!(lab.list::<Job>().await.len(), 2);
    lab.delete::<CronJob>("cron", kube::api::DeleteParams::background()).await;
    lab.wait(60).await;
    assert_eq!(lab.list::<Job>().await.len(), 0);
    assert_eq!(lab.list::<k8s_openapi::api::core::v1::Pod>().await.len(), 0);
}
