//! What becomes of a pair, and of those who trust it.

use super::model::SECRET;
use super::world::{World, deployment, options, webhooks};
use jobwright_jobs::init_cert::{Action, Dialling, Error, Options, RenewBefore, Stage, check};
use serde_json::json;
use std::time::Duration;

const DAY: Duration = Duration::from_hours(24);

fn forced() -> Options {
    Options { force: true, ..options() }
}

#[tokio::test(start_paused = true)]
async fn a_new_webhook_gets_a_pair_that_everybody_trusts() {
    let world = World::running().await;
    assert_eq!(world.trusted().await.len(), 1);
    let secret = world.secret(SECRET).await.unwrap();
    assert_eq!(secret.type_.as_deref(), Some("kubernetes.io/tls"));
    let starts = world.starts();
    let report = world.run(&options()).await.unwrap();
    assert_eq!(report.action, Action::Kept, "{report:?}");
    assert!(report.reason.starts_with("valid until "), "{report:?}");
    assert_eq!(world.starts(), starts, "what is kept restarts nobody");
    world.expect_no_gap().await;
}

#[tokio::test(start_paused = true)]
async fn a_forced_rotation_leaves_no_gap() {
    let world = World::running().await;
    let before = world.trusted().await;
    let report = world.run(&forced()).await.unwrap();
    assert_eq!((report.action, report.restarted), (Action::Renewed, vec!["hook".to_owned()]));
    let after = world.trusted().await;
    assert_eq!(after.len(), 1);
    assert_ne!(before, after);
    let pods = world.deployment().await.spec.unwrap().template.metadata.unwrap().annotations.unwrap();
    assert!(pods.contains_key("kubectl.kubernetes.io/restartedAt"), "{pods:?}");
    world.expect_no_gap().await;
}

#[tokio::test(start_paused = true)]
async fn the_witness_sees_the_gap_of_a_naive_rotation() {
    let world = World::running().await;
    // What many do: the Secret, a restart, and then the bundle.
    let other = World::running().await;
    let [certificate, key] = [other.secret_text(SECRET, "tls.crt").await, other.secret_text(SECRET, "tls.key").await];
    world.fill("kubernetes.io/tls", &[("tls.crt", &certificate), ("tls.key", &key)]).await;
    let mut restarted = deployment();
    restarted["spec"]["template"]["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/restartedAt": "now"});
    world.apply(restarted).await;
    world.pass(Duration::from_mins(1)).await;
    world.model.look().await;
    let (gaps, _) = world.model.verdict();
    assert!(!gaps.is_empty(), "a model that sees no gap here proves nothing");
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_renewed_at_a_third_of_its_life_and_keeps_its_ca() {
    let world = World::running().await;
    let (before, trusted) = (world.secret_text(SECRET, "tls.crt").await, world.trusted().await);
    world.pass(DAY * 243).await;
    assert_eq!(world.run(&options()).await.unwrap().action, Action::Kept);
    world.pass(DAY).await;
    let report = world.run(&options()).await.unwrap();
    assert_eq!(report.action, Action::Renewed);
    assert!(report.reason.contains("less than 1/3 of its life is left"), "{report:?}");
    assert_ne!(world.secret_text(SECRET, "tls.crt").await, before);
    assert_eq!(world.trusted().await, trusted, "the CA stays");
    assert_eq!(report.days_left(), Some(364));
    world.expect_no_gap().await;
}

#[tokio::test(start_paused = true)]
async fn a_ca_that_would_end_first_is_renewed_with_the_certificate() {
    let short = Options { authority_validity: DAY * 400, ..options() };
    let world = World::running_with(&short).await;
    let trusted = world.trusted().await;
    world.pass(DAY * 300).await;
    assert_eq!(world.run(&short).await.unwrap().action, Action::Renewed);
    assert_ne!(world.trusted().await, trusted);
    world.expect_no_gap().await;
}

#[tokio::test(start_paused = true)]
async fn the_same_text_forces_once() {
    let world = World::running().await;
    let wanted = Options { again: Some("7".to_owned()), ..options() };
    assert_eq!(world.run(&wanted).await.unwrap().action, Action::Renewed);
    let pair = world.secret_text(SECRET, "tls.crt").await;
    assert_eq!(world.run(&wanted).await.unwrap().action, Action::Kept);
    assert_eq!(world.run(&options()).await.unwrap().action, Action::Kept);
    assert_eq!(world.secret_text(SECRET, "tls.crt").await, pair);
    let next = Options { again: Some("8".to_owned()), ..options() };
    assert_eq!(world.run(&next).await.unwrap().action, Action::Renewed);
    world.expect_no_gap().await;
}

#[tokio::test(start_paused = true)]
async fn a_wiped_bundle_is_filled_again_and_nothing_else_happens() {
    let world = World::running().await;
    let (pair, starts) = (world.secret_text(SECRET, "tls.crt").await, world.starts());
    // A forced PUT writes the whole object over, and knows of no bundle.
    let mut object = world.get("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "shop").await;
    object["webhooks"][0]["clientConfig"].as_object_mut().unwrap().remove("caBundle");
    object["metadata"].as_object_mut().unwrap().remove("managedFields");
    world.replace(object).await;
    assert!(world.trusted().await.is_empty());
    let seen = check(&world.surroundings(None), &options()).await.unwrap();
    assert!(seen.action == Action::Kept && !seen.is_good(), "{seen:?}");
    assert!(seen.whole_reason().contains("ValidatingWebhookConfiguration `shop` does not trust it"), "{seen:?}");
    let report = world.run(&options()).await.unwrap();
    assert_eq!((report.action, report.targets[0].changed), (Action::Kept, true));
    assert_eq!(world.trusted().await.len(), 1);
    assert_eq!((world.secret_text(SECRET, "tls.crt").await, world.starts()), (pair, starts));
    assert!(check(&world.surroundings(None), &options()).await.unwrap().is_good());
}

#[tokio::test(start_paused = true)]
async fn an_opaque_secret_that_a_chart_has_left_empty_is_used_as_it_is() {
    let world = World::new().await;
    world.fill("Opaque", &[("note", "ours")]).await;
    let report = world.run(&options()).await.unwrap();
    assert_eq!((report.action, report.reason.as_str()), (Action::Created, "Secret `hook-tls` is empty"));
    let secret = world.secret(SECRET).await.unwrap();
    assert_eq!(secret.type_.as_deref(), Some("Opaque"));
    assert_eq!(world.secret_text(SECRET, "note").await, "ours");
    assert_eq!(world.trusted().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_good_pair_of_somebody_else_is_kept_and_its_successor_is_ours() {
    let (maker, world) = (World::running().await, World::new().await);
    let fields = ["tls.crt", "tls.key", "ca.crt"];
    let mut texts = Vec::new();
    for field in fields {
        texts.push(maker.secret_text(SECRET, field).await);
    }
    let pairs: Vec<(&str, &str)> = fields.into_iter().zip(texts.iter().map(String::as_str)).collect();
    world.fill("kubernetes.io/tls", &pairs).await;
    world.pass(Duration::from_mins(5)).await;
    let report = world.run(&options()).await.unwrap();
    assert_eq!(report.action, Action::Kept, "{report:?}");
    assert_eq!(world.trusted().await, maker.trusted().await, "its own CA is what is trusted");
    assert!(world.secret("hook-tls-ca").await.is_none(), "no CA is made before it is needed");
    world.begin().await;
    world.pass(DAY * 300).await;
    assert_eq!(world.run(&options()).await.unwrap().action, Action::Renewed);
    assert_ne!(world.trusted().await, maker.trusted().await);
    world.expect_no_gap().await;
}

#[tokio::test(start_paused = true)]
async fn the_key_of_the_ca_is_in_no_secret_that_is_mounted() {
    let world = World::running().await;
    let key = world.secret_text("hook-tls-ca", "tls.key").await;
    assert!(key.starts_with("-----BEGIN PRIVATE KEY-----"), "PKCS#8");
    let data = world.secret(SECRET).await.unwrap().data.unwrap();
    assert_eq!(data.keys().collect::<Vec<_>>(), ["ca.crt", "tls.crt", "tls.key"]);
    assert_ne!(world.secret_text(SECRET, "tls.key").await, key);
    let told = world.told.lock().unwrap().join("\n");
    assert!(!told.contains("PRIVATE KEY"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn the_secret_stage_waits_for_nobody_and_the_inject_stage_does() {
    let world = World::empty().await;
    let first = Options { stage: Stage::Secret, ..options() };
    let report = world.run(&first).await.unwrap();
    assert_eq!(report.action, Action::Created);
    assert!(!report.targets[0].injected, "{report:?}");
    let second = Options { stage: Stage::Inject, ..options() };
    let around = world.surroundings(Some("inject"));
    let inject = jobwright_jobs::init_cert::init_cert(&around, &second);
    let later = async {
        world.pass(Duration::from_secs(30)).await;
        world.apply(deployment()).await;
        world.pass(Duration::from_secs(30)).await;
        world.apply(webhooks("ValidatingWebhookConfiguration", "shop", &[("one.shop.example", "hook")])).await;
    };
    let (report, ()) = tokio::join!(inject, later);
    let report = report.unwrap();
    assert!(report.targets[0].injected, "{report:?}");
    assert_eq!(report.restarted, Vec::<String>::new(), "who starts with the pair is not restarted");
    let told = world.told.lock().unwrap().join("\n");
    assert!(told.contains("there is no ValidatingWebhookConfiguration `shop`"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn the_inject_stage_does_not_wait_for_ever() {
    let world = World::empty().await;
    let wanted = Options { stage: Stage::Inject, timeout: Duration::from_secs(30), ..options() };
    let error = world.run(&wanted).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    assert!(error.to_string().contains("the secret stage comes first"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_check_changes_nothing_and_says_what_would_be_done() {
    let world = World::new().await;
    let seen = check(&world.surroundings(None), &options()).await.unwrap();
    assert_eq!((seen.action, seen.not_after), (Action::Created, None));
    assert!(world.secret(SECRET).await.is_none() && world.secret("hook-tls-ca").await.is_none());
    world.run(&options()).await.unwrap();
    assert!(check(&world.surroundings(None), &options()).await.unwrap().is_good());
    let sooner = Options { renew_before: RenewBefore::Left(DAY * 364 + DAY / 2), validity: DAY * 366, ..options() };
    world.pass(DAY).await;
    let seen = check(&world.surroundings(None), &sooner).await.unwrap();
    assert_eq!((seen.action, seen.days_left()), (Action::Renewed, Some(363)));
}

#[tokio::test(start_paused = true)]
async fn servers_that_nobody_can_ask_are_trusted_by_what_is_known_of_their_pods() {
    let world = World::running().await;
    let blind = World { dialling: Dialling::Not("told not to".to_owned()), ..world };
    let report = blind.run(&forced()).await.unwrap();
    assert!(report.whole_reason().contains("not seen by a handshake: told not to"), "{report:?}");
    assert_eq!(blind.trusted().await.len(), 1, "all pods were restarted, so the old CA could go");
    // Without a Deployment nothing is known, and the old CA stays.
    let unknown = Options { deployments: Vec::new(), ..forced() };
    let report = blind.run(&unknown).await.unwrap();
    assert!(report.whole_reason().contains("bundles still trust what they have trusted before"), "{report:?}");
    assert_eq!(blind.trusted().await.len(), 2);
    blind.expect_no_gap().await;
}

#[tokio::test(start_paused = true)]
async fn one_after_the_other_by_the_lease() {
    let world = World::running().await;
    let (one, two) = (world.surroundings(Some("job")), world.surroundings(Some("cron")));
    let wanted = Options { again: Some("once".to_owned()), ..options() };
    let (one, two) = tokio::join!(
        jobwright_jobs::init_cert::init_cert(&one, &wanted),
        jobwright_jobs::init_cert::init_cert(&two, &wanted)
    );
    let mut actions = [one.unwrap().action.to_string(), two.unwrap().action.to_string()];
    actions.sort();
    assert_eq!(actions, ["kept", "renewed"]);
    world.expect_no_gap().await;
}
