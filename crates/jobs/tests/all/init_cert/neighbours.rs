//! Who else is behind the Service or has its labels: pods of other Deployments, our own pod, and other Services.

use super::model::{NAMESPACE, SECRET};
use super::world::{World, deployment, options, webhooks};
use jobwright_jobs::init_cert::{Action, Dialling, Error, Options, Stage};
use serde_json::{Value, json};
use std::time::Duration;

/// The pod of a Job that has the labels of the Deployment's pods, as a chart gives them to everything.
fn job() -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "init-cert", "namespace": NAMESPACE}, "spec": {
        "template": {"metadata": {"labels": {"app": "hook"}}, "spec": {"restartPolicy": "Never",
            "containers": [{"name": "c", "image": "busybox:1", "command": ["sh", "-c", "sleep 86400"]}]}}}})
}

/// A second Deployment behind the same Service.
fn other() -> Value {
    let mut other = deployment();
    other["metadata"]["name"] = json!("other");
    other["spec"]["selector"]["matchLabels"]["part"] = json!("other");
    other["spec"]["template"]["metadata"]["labels"]["part"] = json!("other");
    other
}

#[tokio::test(start_paused = true)]
async fn the_pod_of_the_job_itself_is_not_waited_for() {
    for dials in [true, false] {
        let world = World::running().await;
        let dialling = if dials { world.dialling.clone() } else { Dialling::Not("told not to".to_owned()) };
        let world = World { dialling, ..world };
        world.apply(job()).await;
        world.pass(Duration::from_secs(30)).await;
        let report = world.run(&Options { force: true, ..options() }).await.unwrap();
        assert_eq!((report.action, report.restarted), (Action::Renewed, vec!["hook".to_owned()]));
        assert_eq!(world.trusted().await.len(), 1, "it keeps no CA in the bundle, either");
    }
}

#[tokio::test(start_paused = true)]
async fn the_old_ca_stays_while_pods_of_another_deployment_may_show_its_certificates() {
    let world = World::new().await;
    world.apply(other()).await;
    world.run(&options()).await.unwrap();
    world.pass(Duration::from_hours(1)).await;
    assert_eq!(world.servers().await.len(), 4);
    world.model.look().await;
    world.model.judge();
    let world = World { dialling: Dialling::Not("told not to".to_owned()), ..world };
    let report = world.run(&Options { force: true, ..options() }).await.unwrap();
    assert!(report.whole_reason().contains("bundles still trust"), "{report:?}");
    world.expect_no_gap().await;
    assert_eq!(world.trusted().await.len(), 2);
    world.pass(Duration::from_mins(1)).await;
    let mut restarted = other();
    restarted["spec"]["template"]["metadata"]["annotations"] = json!({"restarted": "by hand"});
    world.apply(restarted).await;
    world.pass(Duration::from_mins(2)).await;
    world.run(&options()).await.unwrap();
    assert_eq!(world.trusted().await.len(), 1);
    world.expect_no_gap().await;
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_is_no_pod_proves_nothing() {
    let world = World::running().await;
    world
        .apply(json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "by-hand",
            "namespace": NAMESPACE, "labels": {"kubernetes.io/service-name": "hook"}}, "addressType": "IPv4",
            "ports": [{"name": "", "port": 8443}], "endpoints": [{"addresses": ["192.0.2.7"]}]}))
        .await;
    let world = World { dialling: Dialling::Not("told not to".to_owned()), ..world };
    let report = world.run(&Options { force: true, ..options() }).await.unwrap();
    assert!(report.whole_reason().contains("bundles still trust"), "{report:?}");
    world.expect_no_gap().await;
}

/// A second Service in front of the same servers.
async fn second(world: &World) {
    world
        .apply(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "stock"}, "spec": {
            "selector": {"app": "hook"}, "ports": [{"port": 443, "targetPort": 8443}]}}))
        .await;
    world
        .apply(webhooks(
            "ValidatingWebhookConfiguration",
            "shop",
            &[("one.shop.example", "hook"), ("two.shop.example", "stock")],
        ))
        .await;
}

fn of(services: &[&str]) -> Options {
    Options { services: services.iter().map(|service| (*service).to_owned()).collect(), ..options() }
}

#[tokio::test(start_paused = true)]
async fn several_services_share_a_certificate() {
    let world = World::running().await;
    second(&world).await;
    let report = world.run(&of(&["hook", "stock"])).await.unwrap();
    assert_eq!(report.action, Action::Renewed);
    assert!(report.reason.contains("SAN stock missing"), "{report:?}");
    for index in [0, 1] {
        assert_eq!(world.bundle("ValidatingWebhookConfiguration", "shop", index).await.len(), 1);
    }
    let pair = world.secret_text(SECRET, "tls.crt").await;
    for services in [&["hook", "stock"][..], &["stock", "hook"], &["hook"], &["stock"]] {
        assert_eq!(world.run(&of(services)).await.unwrap().action, Action::Kept, "{services:?}");
    }
    assert_eq!(world.secret_text(SECRET, "tls.crt").await, pair);
    // One that knows of one Service alone renews it for both.
    world.pass(Duration::from_hours(24 * 300)).await;
    assert_eq!(world.run(&of(&["hook"])).await.unwrap().action, Action::Renewed);
    assert_eq!(world.run(&of(&["hook", "stock"])).await.unwrap().action, Action::Kept);
    world.expect_no_gap().await;
}

#[tokio::test(start_paused = true)]
async fn two_runs_do_not_take_each_others_names_away() {
    let world = World::running().await;
    second(&world).await;
    let pair = world.secret_text(SECRET, "tls.crt").await;
    let error = world.run(&of(&["stock"])).await.unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error}");
    for part in ["Secret `hook-tls` is for Service `hook` and not for Service `stock`", "--service hook", "--force"] {
        assert!(error.to_string().contains(part), "{part} is not in {error}");
    }
    assert_eq!(world.secret_text(SECRET, "tls.crt").await, pair);
    // Before a release, names are only added.
    world.run(&Options { stage: Stage::Secret, ..of(&["stock"]) }).await.unwrap();
    for service in ["hook", "stock"] {
        assert_eq!(world.run(&of(&[service])).await.unwrap().action, Action::Kept, "{service}");
    }
}
