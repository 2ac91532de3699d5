//! Bundles stay small however often a rotation is forced, and never lack the CA of a certificate that is served.

use super::model::SECRET;
use super::world::{World, deployment, options};
use jobwright_jobs::init_cert::{Action, Dialling, Error, Options};
use serde_json::json;
use std::time::Duration;

/// The CA in use and the one before it.
const MOST: usize = 2;

/// A forced rotation of a webhook whose servers are not named.
fn forced() -> Options {
    Options { force: true, ..unnamed() }
}

fn unnamed() -> Options {
    Options { deployments: Vec::new(), ..options() }
}

/// A world that cannot be asked what servers present.
fn blind(world: World) -> World {
    World { dialling: Dialling::Not("told not to".to_owned()), ..world }
}

/// Restarts the servers as a person does.
async fn restart(world: &World, text: &str) {
    let mut restarted = deployment();
    restarted["spec"]["template"]["metadata"]["annotations"] = json!({"restarted": text});
    world.apply(restarted).await;
    world.pass(Duration::from_mins(2)).await;
}

async fn expect_bounded(world: &World, context: &str) {
    let trusted = world.trusted().await.len();
    assert!(trusted <= MOST, "{context}: {trusted} CAs are trusted");
    let kept = world.secret_text("hook-tls-ca", "previous.crt").await.matches("BEGIN").count();
    assert!(kept < MOST, "{context}: {kept} earlier CAs are kept");
    world.expect_no_gap().await;
}

#[tokio::test(start_paused = true)]
async fn ten_forced_rotations_without_a_handshake_leave_two_cas_at_most() {
    for restarts in [&[][..], &[5], &[1, 2, 3, 8]] {
        for reloads in [None, Some(Duration::from_secs(15))] {
            let world = blind(World::running().await);
            if let Some(after) = reloads {
                world.model.reload_after(after);
            }
            for number in 1..=10 {
                let pair = world.secret_text(SECRET, "tls.crt").await;
                let report = world.run(&forced()).await.unwrap();
                assert_eq!(report.action, Action::Renewed);
                assert_ne!(world.secret_text(SECRET, "tls.crt").await, pair, "the certificate is a new one");
                expect_bounded(&world, &format!("rotation {number}, restarts {restarts:?}, reload {reloads:?}")).await;
                if restarts.contains(&number) {
                    restart(&world, &number.to_string()).await;
                }
                world.pass(Duration::from_mins(5)).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn once_every_server_has_restarted_the_earlier_ca_goes_without_a_handshake() {
    let world = blind(World::running().await);
    let before = world.trusted().await;
    for _ in 0..3 {
        world.run(&forced()).await.unwrap();
        world.pass(Duration::from_mins(1)).await;
    }
    let report = world.run(&unnamed()).await.unwrap();
    assert!(report.whole_reason().contains("bundles still trust"), "{report:?}");
    assert_eq!(world.trusted().await.len(), 2);
    restart(&world, "by hand").await;
    let report = world.run(&unnamed()).await.unwrap();
    assert_eq!(report.action, Action::Kept);
    assert!(!report.whole_reason().contains("bundles still trust"), "{report:?}");
    let after = world.trusted().await;
    assert!(after.len() == 1 && after != before);
    assert_eq!(world.secret_text("hook-tls-ca", "previous.crt").await, "");
    world.expect_no_gap().await;
}

#[tokio::test(start_paused = true)]
async fn a_forced_rotation_that_can_finish_the_one_before_it_issues_a_new_ca() {
    let world = World::running().await;
    let dialling = world.dialling.clone();
    let world = blind(world);
    world.run(&forced()).await.unwrap();
    let unfinished = world.trusted().await;
    assert_eq!(unfinished.len(), 2);
    restart(&world, "by hand").await;
    let world = World { dialling, ..world };
    world.run(&Options { force: true, ..options() }).await.unwrap();
    let after = world.trusted().await;
    assert_eq!(after.len(), 1);
    assert!(!unfinished.contains(&after[0]), "the CA is a new one");
    world.expect_no_gap().await;
}

#[tokio::test(start_paused = true)]
async fn forced_rotations_that_fail_again_and_again_add_one_ca_in_all() {
    let world = World::running().await;
    let mut paused = deployment();
    paused["spec"]["paused"] = json!(true);
    world.apply(paused).await;
    for number in 1..=5 {
        let error = world.run(&Options { force: true, ..options() }).await.unwrap_err();
        assert!(matches!(error, Error::Rollout { .. }), "{error}");
        expect_bounded(&world, &format!("failure {number}")).await;
        world.pass(Duration::from_mins(5)).await;
    }
    world.apply(deployment()).await;
    let mut resumed = deployment();
    resumed["spec"]["paused"] = json!(false);
    world.apply(resumed).await;
    world.run(&options()).await.unwrap();
    assert_eq!(world.trusted().await.len(), 1);
    world.expect_no_gap().await;
}

#[tokio::test(start_paused = true)]
async fn a_certificate_of_a_bundle_that_has_expired_goes_with_the_next_change() {
    let day = Duration::from_hours(24);
    let short = Options { authority_validity: day * 100, validity: day * 90, ..unnamed() };
    let world = blind(World::running_with(&Options { deployments: vec!["hook".to_owned()], ..short.clone() }).await);
    for _ in 0..8 {
        world.run(&short).await.unwrap();
        world.pass(day * 60).await;
    }
    let trusted = world.trusted().await.len();
    assert!(trusted <= MOST, "{trusted}");
}
