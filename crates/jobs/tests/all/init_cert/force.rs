//! A forced deploy is seen by the missing mark: one new certificate for it, without a gap, and none otherwise.

use super::model::{NAMESPACE, SECRET};
use super::world::{World, options};
use crate::release::{Deploy, NAME, Tracked};
use jobwright_drydock::Faults;
use jobwright_jobs::Mark;
use jobwright_jobs::init_cert::{Action, Options, Report, Stage, check};
use std::time::Duration;

pub(crate) fn tracked(world: &World) -> Tracked {
    Tracked::new(world.client(), NAMESPACE)
}

/// What the chart passes after the release.
pub(crate) fn marking(stage: Stage) -> Options {
    Options { stage, mark: Some(Mark { config_map: NAME.to_owned() }), ..options() }
}

/// The pair and its CA.
pub(crate) async fn certificates(world: &World) -> (String, String) {
    (world.secret_text(SECRET, "tls.crt").await, world.secret_text("hook-tls-ca", "tls.crt").await)
}

async fn run(world: &World, options: &Options) -> Report {
    let report = world.run(options).await.unwrap();
    // A second run has nothing to do, whatever the first one did.
    let again = world.run(options).await.unwrap();
    assert_eq!(again.action, Action::Kept, "{again:?}");
    report
}

/// Deploys, runs, and says whether there is a new CA and a new certificate.
async fn renews(world: &World, how: Deploy, identity: &str) -> bool {
    let before = certificates(world).await;
    tracked(world).deploy(how, identity).await;
    let report = run(world, &marking(Stage::Inject)).await;
    let after = certificates(world).await;
    let is_new = report.action == Action::Renewed;
    assert_eq!((before.0 != after.0, before.1 != after.1), (is_new, is_new), "{report:?}");
    assert!(!is_new || report.reason.starts_with("a deploy was forced"), "{report:?}");
    assert_eq!(tracked(world).marks().await, 1);
    world.expect_no_gap().await;
    is_new
}

/// A release that was installed and has run, with its certificate made by a stage before it.
async fn installed() -> World {
    let world = World::running().await;
    tracked(&world).deploy(Deploy::Patch, "1.a").await;
    let report = run(&world, &marking(Stage::Inject)).await;
    assert_eq!(report.action, Action::Kept, "a first run is not forced: {report:?}");
    world
}

#[tokio::test(start_paused = true)]
async fn helm_force_issues_one_certificate_and_ordinary_upgrades_none() {
    let world = installed().await;
    assert!(!renews(&world, Deploy::Patch, "2.a").await);
    assert!(renews(&world, Deploy::Replace, "3.a").await, "forced, nothing changed");
    assert!(!renews(&world, Deploy::Patch, "4.b").await);
    assert!(!renews(&world, Deploy::Patch, "5.b").await);
    assert!(renews(&world, Deploy::Replace, "6.b").await);
    assert!(renews(&world, Deploy::Replace, "7.c").await, "forced again");
}

#[tokio::test(start_paused = true)]
async fn server_side_apply_neither_conflicts_with_the_mark_nor_removes_it() {
    let world = World::running().await;
    tracked(&world).deploy(Deploy::Apply, "1.a").await;
    assert_eq!(run(&world, &marking(Stage::Inject)).await.action, Action::Kept);
    for identity in ["2.a", "3.b"] {
        assert!(!renews(&world, Deploy::Apply, identity).await);
    }
    let managers = tracked(&world).managers().await;
    let expected = [("helm", "Apply"), ("jobwright-mark", "Update")].map(|(name, how)| (name.into(), how.into()));
    assert_eq!(managers, expected);
    assert!(renews(&world, Deploy::Replace, "4.b").await);
}

#[tokio::test(start_paused = true)]
async fn argocd_replace_counts_once_per_change_of_the_release() {
    let world = World::running().await;
    // Every sync replaces, and the revision is always 1.
    tracked(&world).deploy(Deploy::Replace, "1.a").await;
    assert_eq!(run(&world, &marking(Stage::Inject)).await.action, Action::Kept);
    for (identity, expected) in
        [("1.a", false), ("1.a", false), ("1.b", true), ("1.b", false), ("1.b", false), ("1.a", true), ("1.a", false)]
    {
        assert_eq!(renews(&world, Deploy::Replace, identity).await, expected, "{identity}");
    }
    // Without the option, a change is an ordinary one.
    assert!(!renews(&world, Deploy::Patch, "1.c").await);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_installed_again_is_not_forced() {
    let world = installed().await;
    assert!(renews(&world, Deploy::Replace, "2.a").await);
    for identity in ["1.a", "2.a"] {
        tracked(&world).delete().await;
        assert!(!renews(&world, Deploy::Patch, identity).await, "another uid");
        assert!(renews(&world, Deploy::Replace, "5.a").await, "but this is");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_without_the_config_map_has_its_certificate_and_hears_why() {
    let world = World::running().await;
    assert_eq!(run(&world, &marking(Stage::Inject)).await.action, Action::Kept);
    let told = world.told.lock().unwrap().join("\n");
    assert!(told.contains("ConfigMap `agent-release` does not exist: a forced deploy will not be noticed"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_first_certificate_is_made_once_and_a_force_right_after_it_counts() {
    let world = World::new().await;
    tracked(&world).deploy(Deploy::Patch, "1.a").await;
    let report = run(&world, &marking(Stage::All)).await;
    assert_eq!(report.action, Action::Created, "{report:?}");
    // Until then API servers may not trust it yet.
    world.pass(Duration::from_mins(1)).await;
    world.begin().await;
    assert!(renews(&world, Deploy::Replace, "2.a").await);
}

#[tokio::test(start_paused = true)]
async fn a_forced_deploy_is_still_owed_after_an_ordinary_one() {
    let world = installed().await;
    let before = certificates(&world).await;
    tracked(&world).deploy(Deploy::Replace, "2.a").await;
    // Its job never ran.
    assert!(renews(&world, Deploy::Patch, "3.a").await);
    assert_ne!(certificates(&world).await, before);
}

#[tokio::test(start_paused = true)]
async fn stages_that_do_not_look_keep_what_a_forced_deploy_was_given() {
    let world = installed().await;
    assert!(renews(&world, Deploy::Replace, "2.a").await);
    let after = certificates(&world).await;
    let again = |again: &str| Options { again: Some(again.to_owned()), stage: Stage::Secret, ..options() };
    for plain in [Options { stage: Stage::Secret, ..options() }, options()] {
        assert_eq!(world.run(&plain).await.unwrap().action, Action::Kept);
    }
    assert_eq!(certificates(&world).await, after);
    assert_eq!(world.run(&again("x")).await.unwrap().action, Action::Renewed);
    let asked = Options { again: Some("x".to_owned()), ..marking(Stage::Inject) };
    assert_eq!(run(&world, &asked).await.action, Action::Kept, "both are remembered");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_only_for_forced_deploys_reads_and_ends_otherwise() {
    let mut world = installed().await;
    tracked(&world).deploy(Deploy::Patch, "2.a").await;
    let only = Options { only_if_forced: true, ..marking(Stage::All) };
    world.faults = Faults::new(0);
    let report = world.run(&only).await.unwrap();
    assert_eq!((report.action, report.reason.as_str()), (Action::Kept, "no deploy was forced"));
    let calls: Vec<String> = world.faults.calls().iter().map(ToString::to_string).collect();
    let secret = |name: &str| format!("get secrets/{NAMESPACE}/{name}");
    let noticing = [secret("hook-tls-ca"), format!("get configmaps/{NAMESPACE}/{NAME}"), secret(SECRET)];
    assert_eq!(calls[..3], noticing);
    assert!(calls[3..].iter().all(|call| call.starts_with("get ")) && calls.len() == 6, "{calls:?}");

    tracked(&world).deploy(Deploy::Replace, "3.a").await;
    assert!(!check(&world.surroundings(None), &only).await.unwrap().is_good());
    assert_eq!(tracked(&world).marks().await, 0, "a check marks nothing");
    assert_eq!(world.run(&only).await.unwrap().action, Action::Renewed);
    assert_eq!(world.run(&only).await.unwrap().reason, "no deploy was forced");
    world.expect_no_gap().await;
}

/// As a forced deploy leaves it that renders no bundle.
async fn wipe(world: &World) {
    let kind = "ValidatingWebhookConfiguration";
    let mut live = world.get("admissionregistration.k8s.io/v1", kind, "shop").await;
    live["webhooks"][0]["clientConfig"].as_object_mut().unwrap().remove("caBundle").unwrap();
    world.replace(live).await;
    assert!(world.trusted().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_forced_deploy_that_asks_for_no_certificate_has_its_bundle_put_back() {
    let world = installed().await;
    let before = certificates(&world).await;
    let trusted = world.trusted().await;
    let marked = Options { only_if_forced: true, ..marking(Stage::All) };
    // With `onForce: Keep` there is no mark. With one, this is what a sync of the same content does.
    for only in [Options { mark: None, ..marked.clone() }, marked] {
        assert_eq!(world.run(&only).await.unwrap().reason, "no deploy was forced");
        wipe(&world).await;
        let checked = check(&world.surroundings(None), &only).await.unwrap();
        assert_eq!(checked.open[0], "ValidatingWebhookConfiguration `shop` does not trust it", "{checked:?}");
        let report = world.run(&only).await.unwrap();
        assert_eq!(report.action, Action::Kept);
        assert!(report.targets[0].changed, "{report:?}");
        assert_eq!(world.trusted().await, trusted);
        assert_eq!(world.run(&only).await.unwrap().reason, "no deploy was forced");
    }
    assert_eq!(certificates(&world).await, before);
}

#[tokio::test(start_paused = true)]
async fn a_first_install_leaves_the_certificate_to_the_other_job() {
    let world = World::new().await;
    let only = Options { only_if_forced: true, ..options() };
    assert_eq!(world.run(&only).await.unwrap().reason, "no deploy was forced");
    assert!(world.secret(SECRET).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_config_map_without_an_identity_is_refused() {
    let world = World::running().await;
    let map = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": NAMESPACE}, "data": {"other": "1"}});
    let maps = kube::Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(world.client(), NAMESPACE);
    maps.create(&kube::api::PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    let error = world.run(&marking(Stage::Inject)).await.unwrap_err().to_string();
    assert!(error.contains("cannot mark ConfigMap `agent-release`: its data has no `identity`"), "{error}");
    assert_eq!(tracked(&world).marks().await, 0);
}

/// An answer that comes too late must not bring back a mark that a forced deploy has just removed.
#[tokio::test(start_paused = true)]
async fn a_mark_that_arrives_late_does_not_hide_a_forced_deploy() {
    let mut world = installed().await;
    let before = certificates(&world).await;
    tracked(&world).deploy(Deploy::Replace, "2.a").await;
    world.faults = Faults::new(0);
    let is_mark = |call: &jobwright_drydock::Call| call.verb == "patch" && call.name == NAME;
    world.faults.on(is_mark).times(1).fail(jobwright_drydock::Fault::Slow(Duration::from_secs(20)));
    let wanted = marking(Stage::Inject);
    let (report, ()) = tokio::join!(world.run(&wanted), async {
        world.pass(Duration::from_secs(10)).await;
        tracked(&world).deploy(Deploy::Replace, "3.a").await;
    });
    assert_eq!(report.unwrap().action, Action::Renewed);
    let first = certificates(&world).await;
    assert_ne!(first, before);
    // The mark came after both, so both were answered by the same certificate, and nothing is owed.
    assert_eq!(run(&world, &wanted).await.action, Action::Kept);
    assert!(!renews(&world, Deploy::Patch, "4.a").await);
    assert!(renews(&world, Deploy::Replace, "5.a").await);
}
