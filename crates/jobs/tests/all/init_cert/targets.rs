//! Who trusts the certificate: every entry of every kind, by name or by label, and nobody else.

use super::model::NAMESPACE;
use super::world::{World, options, webhooks};
use jobwright_jobs::init_cert::{Action, Error, Options, Targets};
use serde_json::{Value, json};

const VALIDATING: &str = "ValidatingWebhookConfiguration";
const MUTATING: &str = "MutatingWebhookConfiguration";
const REGISTRATION: &str = "admissionregistration.k8s.io/v1";

pub(super) fn wanted(targets: Targets) -> Options {
    Options { targets, ..options() }
}

pub(super) fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

pub(super) fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "orders.shop.example"}, "spec": {"group": "shop.example", "scope": "Namespaced",
        "names": {"kind": "Order", "plural": "orders"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": "hook", "namespace": NAMESPACE}}}}}})
}

pub(super) fn api_service(more: Value) -> Value {
    let mut object = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.stock.example"}, "spec": {"group": "stock.example", "version": "v1",
        "groupPriorityMinimum": 1000, "versionPriority": 10, "service": {"name": "hook", "namespace": NAMESPACE}}});
    object["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}

#[tokio::test(start_paused = true)]
async fn targets_of_all_kinds_trust_it_through_a_rotation() {
    let world = World::new().await;
    world.apply(webhooks(MUTATING, "shop", &[("a.shop.example", "hook"), ("b.shop.example", "hook")])).await;
    world.apply(definition()).await;
    world.apply(api_service(json!({}))).await;
    let wanted = wanted(Targets {
        validating_webhooks: names(&["shop"]),
        mutating_webhooks: names(&["shop"]),
        definitions: names(&["orders.shop.example"]),
        api_services: names(&["v1.stock.example"]),
        webhook_selector: None,
    });
    world.model.look_at_all_kinds();
    world.run(&wanted).await.unwrap();
    world.pass(std::time::Duration::from_mins(5)).await;
    world.begin().await;
    let report = world.run(&Options { force: true, ..wanted }).await.unwrap();
    let told: Vec<String> =
        report.targets.iter().map(|target| format!("{} {} {}", target.kind, target.name, target.injected)).collect();
    assert_eq!(
        told,
        [
            "ValidatingWebhookConfiguration shop true",
            "MutatingWebhookConfiguration shop true",
            "CustomResourceDefinition orders.shop.example true",
            "APIService v1.stock.example true"
        ]
    );
    let trusted = world.trusted().await;
    assert_eq!(trusted.len(), 1);
    for index in [0, 1] {
        assert_eq!(world.bundle(MUTATING, "shop", index).await, trusted);
    }
    world.expect_no_gap().await;
}

#[tokio::test(start_paused = true)]
async fn targets_are_found_by_their_labels() {
    let world = World::new().await;
    world.apply(webhooks(MUTATING, "other", &[("a.shop.example", "hook")])).await;
    world.apply(webhooks(VALIDATING, "elsewhere", &[("a.shop.example", "somebody")])).await;
    let wanted = wanted(Targets { webhook_selector: Some("app=shop".to_owned()), ..Targets::default() });
    let report = world.run(&wanted).await.unwrap();
    let mut found: Vec<&str> = report.targets.iter().map(|target| target.name.as_str()).collect();
    found.sort_unstable();
    assert_eq!(found, ["other", "shop"]);
    assert!(world.bundle(VALIDATING, "elsewhere", 0).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_leads_elsewhere_is_left_alone_and_said() {
    let world = World::empty().await;
    world.apply(super::world::deployment()).await;
    world.apply(webhooks(VALIDATING, "shop", &[("a.shop.example", "hook"), ("b.shop.example", "somebody")])).await;
    world.run(&options()).await.unwrap();
    assert_eq!(world.bundle(VALIDATING, "shop", 0).await.len(), 1);
    assert!(world.bundle(VALIDATING, "shop", 1).await.is_empty());
    let told = world.told.lock().unwrap().join("\n");
    assert!(told.contains("webhook `b.shop.example` leads elsewhere and is left alone"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_ours_to_fill_is_refused_by_name_before_anything_is_made() {
    let cases = [
        (json!({"annotations": {"cert-manager.io/inject-ca-from": "shop/hook"}}), "hook", "from cert-manager"),
        (json!({}), "somebody", "no entry of ValidatingWebhookConfiguration `shop` leads to Service `hook`"),
    ];
    for (metadata, service, part) in cases {
        let world = World::empty().await;
        let mut object = webhooks(VALIDATING, "shop", &[("a.shop.example", service)]);
        object["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
        world.apply(object).await;
        let error = world.run(&options()).await.unwrap_err();
        assert!(matches!(&error, Error::Refused(message) if message.contains(part)), "{error}");
        assert!(world.secret("hook-tls").await.is_none() && world.secret("hook-tls-ca").await.is_none());
    }
    let world = World::empty().await;
    world.apply(api_service(json!({"insecureSkipTLSVerify": true}))).await;
    let wanted = wanted(Targets { api_services: names(&["v1.stock.example"]), ..Targets::default() });
    let error = world.run(&wanted).await.unwrap_err();
    assert!(error.to_string().contains("insecureSkipTLSVerify"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_cert_manager_is_kept_while_it_is_good_and_never_written() {
    let (maker, world) = (World::running().await, World::new().await);
    let secret = maker.secret("hook-tls").await.unwrap();
    let text = |key: &str| String::from_utf8(secret.data.as_ref().unwrap()[key].0.clone()).unwrap();
    world
        .apply(json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {"name": "hook-tls", "annotations": {"cert-manager.io/certificate-name": "hook"}},
            "stringData": {"tls.crt": text("tls.crt"), "tls.key": text("tls.key"), "ca.crt": text("ca.crt")}}))
        .await;
    world.model.look().await;
    world.pass(std::time::Duration::from_mins(5)).await;
    assert_eq!(world.run(&options()).await.unwrap().action, Action::Kept);
    let error = world.run(&Options { force: true, ..options() }).await.unwrap_err();
    assert!(error.to_string().contains("is filled by cert-manager (Certificate `hook`)"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_deployer_that_applies_the_same_object_again_does_not_take_the_bundle_away() {
    let world = World::running().await;
    let trusted = world.trusted().await;
    world.apply(webhooks(VALIDATING, "shop", &[("one.shop.example", "hook")])).await;
    assert_eq!(world.trusted().await, trusted);
    let object = world.get(REGISTRATION, VALIDATING, "shop").await;
    let managers: Vec<&str> = object["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["manager"].as_str())
        .collect();
    assert!(managers.contains(&"jobwright-init-cert"), "{managers:?}");
}

#[tokio::test(start_paused = true)]
async fn who_applies_a_bundle_of_their_own_is_named() {
    let world = World::running().await;
    let mut object = webhooks(VALIDATING, "shop", &[("one.shop.example", "hook")]);
    object["webhooks"][0]["clientConfig"]["caBundle"] = json!("aGVsbG8=");
    world.apply_as("somebody", object).await;
    let error = world.run(&options()).await.unwrap_err();
    assert!(error.to_string().contains("is applied by `somebody`, which would put it back"), "{error}");
}
