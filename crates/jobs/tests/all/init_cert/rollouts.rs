//! Rollouts that do not get on, and certificates whose time is not now.

use super::model::NAMESPACE;
use super::world::{World, deployment, options};
use jobwright_jobs::init_cert::{Action, Error, Options, check};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, PostParams};
use serde_json::json;
use std::time::Duration;

fn forced() -> Options {
    Options { force: true, ..options() }
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_never_completes_keeps_both_cas_until_it_is_mended() {
    let world = World::running().await;
    let mut stuck = deployment();
    stuck["spec"]["progressDeadlineSeconds"] = json!(30);
    stuck["spec"]["template"]["spec"]["nodeSelector"] = json!({"no": "such-node"});
    stuck["spec"]["paused"] = json!(true);
    world.apply(stuck.clone()).await;
    stuck["spec"]["paused"] = json!(false);
    let before = world.trusted().await;
    let forced = forced();
    let run = world.run(&forced);
    let resumed = async {
        world.pass(Duration::from_secs(2)).await;
        world.apply(stuck).await;
    };
    let (ended, ()) = tokio::join!(run, resumed);
    let error = ended.unwrap_err();
    assert!(matches!(&error, Error::Rollout { deployment, .. } if deployment == "hook"), "{error}");
    assert!(error.to_string().contains("bundles still trust the old one, too"), "{error}");
    let trusted = world.trusted().await;
    assert!(trusted.len() == 2 && trusted.contains(&before[0]), "{}", trusted.len());
    let seen = check(&world.surroundings(None), &options()).await.unwrap();
    assert!(!seen.is_good() && seen.whole_reason().contains("Deployment `hook`"), "{seen:?}");
    world.expect_no_gap().await;
    let mut mended = deployment();
    mended["spec"]["progressDeadlineSeconds"] = json!(30);
    mended["spec"]["paused"] = json!(false);
    world.apply(mended).await;
    world.run(&options()).await.unwrap();
    assert_eq!(world.trusted().await.len(), 1);
    world.expect_no_gap().await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_deployment_is_named_with_what_resumes_it() {
    let world = World::running().await;
    let mut paused = deployment();
    paused["spec"]["paused"] = json!(true);
    world.apply(paused).await;
    let error = world.run(&forced()).await.unwrap_err();
    assert!(error.to_string().contains("kubectl rollout resume"), "{error}");
    assert_eq!(world.trusted().await.len(), 2);
    world.expect_no_gap().await;
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_allows_no_disruption_does_not_hold_a_rotation_up() {
    let world = World::running().await;
    let budget = json!({"metadata": {"name": "hook"}, "spec": {"maxUnavailable": 0,
        "selector": {"matchLabels": {"app": "hook"}}}});
    let budgets = Api::<PodDisruptionBudget>::namespaced(world.client(), NAMESPACE);
    budgets.create(&PostParams::default(), &serde_json::from_value(budget).unwrap()).await.unwrap();
    let report = world.run(&forced()).await.unwrap();
    assert_eq!((report.action, report.restarted), (Action::Renewed, vec!["hook".to_owned()]));
    assert_eq!(world.trusted().await.len(), 1);
    world.expect_no_gap().await;
}

#[tokio::test(start_paused = true)]
async fn a_ca_that_has_expired_is_replaced_and_leaves_the_bundles() {
    let world = World::running().await;
    let before = world.trusted().await;
    world.pass(Duration::from_hours(24 * 3660)).await;
    let seen = check(&world.surroundings(None), &options()).await.unwrap();
    assert!(seen.action == Action::Renewed && seen.reason.contains("expired on"), "{seen:?}");
    let report = world.run(&options()).await.unwrap();
    assert_eq!(report.action, Action::Renewed);
    let after = world.trusted().await;
    assert!(after.len() == 1 && after != before);
    assert!(check(&world.surroundings(None), &options()).await.unwrap().is_good());
}
