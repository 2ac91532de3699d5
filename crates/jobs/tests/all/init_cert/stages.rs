//! The stage before a release meets a cluster that does not fit the release yet. It says so, and goes on.

use super::model::NAMESPACE;
use super::targets::{definition, names, wanted};
use super::world::{World, deployment, options, webhooks};
use jobwright_jobs::init_cert::{Action, Error, Options, Stage, Targets, check};
use serde_json::json;
use std::time::Duration;

const VALIDATING: &str = "ValidatingWebhookConfiguration";

fn before(options: Options) -> Options {
    Options { stage: Stage::Secret, ..options }
}

fn after(options: Options) -> Options {
    Options { stage: Stage::Inject, ..options }
}

/// The same for a Service that the release renames.
fn renamed() -> Options {
    Options { services: vec!["gate".to_owned()], ..options() }
}

async fn san(world: &World) -> Vec<String> {
    let text = world.secret_text("hook-tls", "tls.crt").await;
    let (_, pem) = x509_parser::pem::parse_x509_pem(text.as_bytes()).unwrap();
    let certificate = pem.parse_x509().unwrap();
    let names = certificate.subject_alternative_name().unwrap().unwrap().value.general_names.iter();
    names.map(|name| name.to_string().replace("DNSName(", "").replace(')', "")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_service_is_renamed_without_a_gap() {
    for force in [false, true] {
        let world = World::empty().await;
        world.deploy(webhooks(VALIDATING, "shop", &[("one.shop.example", "hook")])).await.unwrap();
        world.apply(deployment()).await;
        world.run(&options()).await.unwrap();
        world.pass(Duration::from_hours(1)).await;
        world.begin().await;
        let report = world.run(&before(Options { force, ..renamed() })).await.unwrap();
        assert_eq!(report.action, Action::Renewed, "{report:?}");
        let names = san(&world).await;
        for name in ["hook.shop.svc", "gate.shop.svc"] {
            assert!(names.iter().any(|found| found == name), "{name} is not in {names:?}");
        }
        world.expect_no_gap().await;
        rename_service(&world).await;
        world.deploy(webhooks(VALIDATING, "shop", &[("one.shop.example", "gate")])).await.unwrap();
        let report = world.run(&after(renamed())).await.unwrap();
        assert!(report.targets[0].injected, "{report:?}");
        assert_eq!(world.trusted().await.len(), 1);
        world.expect_no_gap().await;
        assert_eq!(world.run(&renamed()).await.unwrap().action, Action::Kept);
        assert_eq!(world.run(&Options { force: true, ..renamed() }).await.unwrap().action, Action::Renewed);
        assert!(!san(&world).await.iter().any(|name| name.starts_with("hook")), "forced after the release: one alone");
    }
}

async fn rename_service(world: &World) {
    world
        .apply(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "gate"}, "spec": {
            "selector": {"app": "hook"}, "ports": [{"port": 443, "targetPort": 8443}]}}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_definition_gets_its_conversion_with_the_upgrade() {
    let world = World::new().await;
    let mut plain = definition();
    plain["spec"]["conversion"] = json!({"strategy": "None"});
    world.deploy(plain).await.unwrap();
    let wanted = wanted(Targets { definitions: names(&["orders.shop.example"]), ..Targets::default() });
    let report = world.run(&before(wanted.clone())).await.unwrap();
    assert_eq!(report.action, Action::Created);
    assert!(report.whole_reason().contains("CustomResourceDefinition `orders.shop.example`"), "{report:?}");
    assert!(!report.targets[0].injected, "{report:?}");
    let error = world.run(&Options { timeout: Duration::from_mins(1), ..after(wanted.clone()) }).await.unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "after the release it is strict: {error}");
    world.deploy(definition()).await.unwrap();
    let report = world.run(&after(wanted)).await.unwrap();
    assert!(report.targets[0].injected, "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn an_annotation_of_cert_manager_goes_with_the_upgrade() {
    let world = World::empty().await;
    world.apply(deployment()).await;
    let mut injected = webhooks(VALIDATING, "shop", &[("one.shop.example", "hook")]);
    injected["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": "shop/hook"});
    world.deploy(injected).await.unwrap();
    let seen = check(&world.surroundings(None), &before(options())).await.unwrap();
    assert_eq!(seen.action, Action::Created);
    let report = world.run(&before(options())).await.unwrap();
    assert_eq!(report.action, Action::Created);
    assert!(report.whole_reason().contains("from cert-manager"), "{report:?}");
    assert!(world.trusted().await.is_empty(), "two do not fight over it");
    let error = world.run(&after(options())).await.unwrap_err();
    assert!(error.to_string().contains("from cert-manager"), "after the release it is strict: {error}");
    world.deploy(webhooks(VALIDATING, "shop", &[("one.shop.example", "hook")])).await.unwrap();
    assert!(world.run(&after(options())).await.unwrap().targets[0].injected);
}

#[tokio::test(start_paused = true)]
async fn a_ca_is_not_replaced_while_a_bundle_that_needs_it_is_not_ours_to_fill() {
    let world = World::running().await;
    world
        .apply_as(
            "somebody",
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": VALIDATING, "metadata": {"name": "shop",
                "annotations": {"cert-manager.io/inject-ca-from-secret": format!("{NAMESPACE}/hook-tls")}}}),
        )
        .await;
    let error = world.run(&before(Options { force: true, ..options() })).await.unwrap_err();
    assert!(error.to_string().contains("from cert-manager"), "{error}");
    world.expect_no_gap().await;
}
