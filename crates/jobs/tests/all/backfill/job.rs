//! A backfill as a job of a release, and two at once.

use super::http_sink::to;
use super::stage::read_lines;
use crate::support::{Lab, place};
use jobwright_engine::JobOutcome;
use jobwright_jobs::backfill::{BackfillJob, CheckpointPlace, Setting, Surroundings, Task};
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[tokio::test(start_paused = true)]
async fn a_job_sends_what_is_there_and_says_what_became_of_it() {
    let lab = Lab::new();
    lab.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "b"}})).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let mut task = to(&format!("file:{}", path.display()));
    task.backfill.kinds = vec!["ConfigMap".into()];
    let (report, lines) = lab.run(BackfillJob { place: place("snapshot"), task: task.clone() }).await;
    assert_eq!(report.outcome, JobOutcome::Succeeded, "{}", report.reason);
    assert!(read_lines(&std::fs::read_to_string(&path).unwrap()).contains_key("ConfigMap/default/one"));
    let last = lines.last().unwrap();
    assert!(last.ends_with(&format!("objects sent to file:{}", path.display())), "{last}");

    task.backfill.kinds = vec!["ConfigMapp".into()];
    let (report, _) = lab.run(BackfillJob { place: place("snapshot"), task }).await;
    assert_eq!(report.outcome, JobOutcome::Failed);
    assert!(report.reason.contains("did you mean `configmaps`?"), "{}", report.reason);
}

/// Carries a task out as one of several.
async fn carry_out(lab: &Lab, task: &Task, holder: &str) -> Result<jobwright_jobs::backfill::Summary, String> {
    let drydock = lab.drydock.clone();
    let clock = jobwright_engine::Clock::new(move || drydock.now());
    let setting = Setting {
        surroundings: Surroundings::new(lab.client(), clock),
        namespace: "default".to_owned(),
        holder: holder.to_owned(),
        stdout: Box::new(std::io::sink()),
        cancellation: CancellationToken::new(),
    };
    task.run(setting).await.map_err(|error| error.to_string())
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time_holds_the_lock_and_the_other_waits_or_gives_up() {
    let lab = Lab::new();
    let directory = tempfile::tempdir().unwrap();
    let mut task = to(&format!("file:{}", directory.path().join("out").display()));
    task.backfill.kinds = vec!["ConfigMap".into()];
    task.checkpoint = Some(CheckpointPlace::ConfigMap("progress".to_owned()));
    // Somebody waits for something that comes after a minute, with the lock in hand only afterwards.
    let (one, two) = tokio::join!(carry_out(&lab, &task, "one"), carry_out(&lab, &task, "two"));
    assert!(one.unwrap().complete && two.unwrap().complete);

    let drydock = lab.drydock.clone();
    let clock = jobwright_engine::Clock::new(move || drydock.now());
    let events = jobwright_engine::Events::nowhere();
    let retry = jobwright_engine::Retry::new(clock.clone(), CancellationToken::new(), events.clone());
    let name = task.needs(&lab.client(), "default", &retry).await.unwrap().lock.unwrap();
    let claim = jobwright_engine::Claim {
        namespace: "default".to_owned(),
        name,
        holder: "a CronJob".to_owned(),
        labels: std::collections::BTreeMap::new(),
        patience: Duration::ZERO,
    };
    let lease = jobwright_engine::Lease::take(&lab.client(), claim, &clock, &events).await.unwrap();
    let impatient = Task { lock_wait: Duration::from_secs(30), ..task.clone() };
    let error = carry_out(&lab, &impatient, "three").await.unwrap_err();
    assert!(error.starts_with("`a CronJob` holds the lock `jobwright-progress-"), "{error}");
    assert!(error.ends_with("and has not let it go within 30 s"), "{error}");
    lease.release().await;
    assert!(carry_out(&lab, &impatient, "three").await.unwrap().complete);
}
