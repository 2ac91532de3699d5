//! Watches that fail while objects are awaited.

use crate::stage::{Stage, Wish};
use jobwright_drydock::Fault;
use jobwright_engine::{DeployOutcome, Event, Events, Report};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// A Deployment for whose pods there is a node, or none.
fn deployment(has_node: bool) -> Value {
    let selector = if has_node { json!({}) } else { json!({"disk": "none"}) };
    let template = json!({"metadata": {"labels": {"app": "api"}},
        "spec": {"containers": [{"name": "c", "image": "shop/api:1"}], "nodeSelector": selector}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api"},
        "spec": {"selector": {"matchLabels": {"app": "api"}}, "template": template}})
}

/// Deploys a component whose object cannot be watched, waiting for it this long. Gives the report, how long the deploy took,
/// and how often the outage was reported.
async fn deploy_unwatched(timeout: &str, has_node: bool) -> (Report, Duration, usize) {
    let stage = Stage::new().await;
    stage.manifests("api.yaml", &[deployment(has_node)]);
    let is_waiting = |verb: &str| matches!(verb, "list" | "watch");
    stage.faults.on(move |call| call.resource == "deployments" && is_waiting(call.verb)).fail(Fault::Unavailable);
    let plan = format!("components:\n- {{name: api, manifests: {{path: api.yaml, timeout: {timeout}}}}}\n");
    let wish = Wish::default();
    let file = stage.parse(&wish, &plan);
    let (events, mut heard) = Events::channel();
    let begun = Instant::now();
    let report = stage.deployment(&file, &wish).deploy(stage.cancellation.clone(), events).await.unwrap();
    let mut reports = 0;
    while let Ok(event) = heard.try_recv() {
        let is_report = |doing: &str, error: &str| doing == "watch Deployment `api`" && error.contains("unable");
        reports += usize::from(matches!(event, Event::Retrying { doing, error } if is_report(&doing, &error)));
    }
    (report, begun.elapsed(), reports)
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_keeps_failing_is_reported_and_ends_at_the_retry_limit() {
    let (report, took, reports) = deploy_unwatched("1h", true).await;
    let reason = &report.components[0].reason;
    assert_eq!(report.outcome, DeployOutcome::Failed);
    assert!(reason.starts_with("cannot watch Deployment `api`, retried for 5m: "), "{reason}");
    assert!(took < Duration::from_mins(6), "{took:?}");
    assert!((4..=6).contains(&reports), "{reports}");
}

#[tokio::test(start_paused = true)]
async fn the_reason_of_a_timeout_names_the_watch_that_fails() {
    let (report, _, reports) = deploy_unwatched("1m", false).await;
    let reason = &report.components[0].reason;
    assert!(reason.starts_with("Deployment `api` is not ready after 60s: "), "{reason}");
    assert!(reason.contains("; its watch fails: "), "{reason}");
    assert!(reason.contains("unable to handle the request"), "{reason}");
    assert_eq!((report.outcome, reports), (DeployOutcome::Failed, 1));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_ready_is_found_ready_although_its_watch_fails() {
    let (report, _, _) = deploy_unwatched("1m", true).await;
    assert_eq!(report.outcome, DeployOutcome::Succeeded, "{}", report.components[0].reason);
}
