//! Deployers that apply: they add, drop and rename what a bundle is in, and never meet anything of ours in their way.

use super::targets::{api_service, definition, names, wanted};
use super::world::{World, deployment, options, webhooks};
use base64::Engine as _;
use jobwright_drydock::{Call, Fault, Faults};
use jobwright_jobs::init_cert::{Action, Options, Stage, Targets};
use serde_json::{Value, json};
use std::time::Duration;

const REGISTRATION: &str = "admissionregistration.k8s.io/v1";
const VALIDATING: &str = "ValidatingWebhookConfiguration";
const MUTATING: &str = "MutatingWebhookConfiguration";
const MANAGER: &str = "jobwright-init-cert";

/// What is targeted here: both kinds of configurations and a definition.
fn all() -> Options {
    wanted(Targets {
        validating_webhooks: names(&["shop"]),
        mutating_webhooks: names(&["shop"]),
        definitions: names(&["orders.shop.example"]),
        api_services: names(&["v1.stock.example"]),
        webhook_selector: None,
    })
}

/// A release of these entries, with or without a conversion webhook.
async fn release(world: &World, entries: &[&str], converts: bool) {
    let entries: Vec<(&str, &str)> = entries.iter().map(|entry| (*entry, "hook")).collect();
    for kind in [VALIDATING, MUTATING] {
        world.deploy(webhooks(kind, "shop", &entries)).await.unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
    let mut definition = definition();
    if !converts {
        definition["spec"]["conversion"] = json!({"strategy": "None"});
    }
    world.deploy(definition).await.unwrap_or_else(|error| panic!("the definition: {error}"));
    world.deploy(api_service(json!({}))).await.unwrap_or_else(|error| panic!("the APIService: {error}"));
}

/// What is applied by a version that made itself an owner of entries.
async fn own_entries(world: &World, entries: &[&str]) {
    let bundle = base64::engine::general_purpose::STANDARD.encode(world.secret_text("hook-tls", "ca.crt").await);
    let webhook = |name: &&str| json!({"name": name, "clientConfig": {"caBundle": bundle}});
    let webhooks: Vec<Value> = entries.iter().map(webhook).collect();
    for kind in [VALIDATING, MUTATING] {
        let object = json!({"apiVersion": REGISTRATION, "kind": kind, "metadata": {"name": "shop"},
            "webhooks": webhooks});
        world.apply_as(MANAGER, object).await;
    }
    world
        .apply_as(
            MANAGER,
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "orders.shop.example"},
                "spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}}),
        )
        .await;
}

async fn entries(world: &World, kind: &str) -> Vec<(String, bool)> {
    let object = world.get(REGISTRATION, kind, "shop").await;
    let webhooks = object["webhooks"].as_array().unwrap().iter();
    webhooks
        .map(|webhook| {
            (webhook["name"].as_str().unwrap().to_owned(), webhook["clientConfig"].get("caBundle").is_some())
        })
        .collect()
}

/// What we own of an object, by the operation.
async fn owned(world: &World, version: &str, kind: &str, name: &str) -> Vec<(String, Value)> {
    let object = world.get(version, kind, name).await;
    let managers = object["metadata"]["managedFields"].as_array().unwrap().iter();
    let ours = managers.filter(|manager| manager["manager"] == MANAGER);
    ours.map(|manager| (manager["operation"].as_str().unwrap().to_owned(), manager["fieldsV1"].clone())).collect()
}

async fn expect_all_trust(world: &World, expected: &[&str]) {
    for kind in [VALIDATING, MUTATING] {
        let wanted: Vec<(String, bool)> = expected.iter().map(|name| ((*name).to_owned(), true)).collect();
        assert_eq!(entries(world, kind).await, wanted, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deployer_that_applies_adds_drops_and_renames_entries_and_goes_back() {
    let world = World::empty().await;
    world.apply(deployment()).await;
    release(&world, &["a.shop.example", "b.shop.example"], true).await;
    world.run(&all()).await.unwrap();
    let upgrades: [&[&str]; 5] = [
        &["a.shop.example", "b.shop.example", "c.shop.example"],
        &["c.shop.example"],
        &["d.shop.example"],
        &["a.shop.example", "b.shop.example"],
        &["b.shop.example", "a.shop.example"],
    ];
    for (number, entries) in upgrades.into_iter().enumerate() {
        let stage = |stage| Options { stage, ..all() };
        world.run(&stage(Stage::Secret)).await.unwrap();
        release(&world, entries, true).await;
        world.run(&stage(Stage::Inject)).await.unwrap();
        expect_all_trust(&world, entries).await;
        let report = world.run(&Options { force: number % 2 == 0, ..all() }).await.unwrap();
        assert!(report.targets.iter().all(|target| target.injected), "{report:?}");
        release(&world, entries, true).await;
        let report = world.run(&all()).await.unwrap();
        assert!(report.targets.iter().all(|target| !target.changed), "the deployer took something away: {report:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_goes_back_to_no_conversion_and_forth_again() {
    let world = World::empty().await;
    world.apply(deployment()).await;
    let wanted = wanted(Targets { definitions: names(&["orders.shop.example"]), ..Targets::default() });
    release(&world, &["a.shop.example"], true).await;
    world.run(&wanted).await.unwrap();
    let conversion = async || {
        let found = world.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "orders.shop.example").await;
        found["spec"]["conversion"].clone()
    };
    assert!(conversion().await["webhook"]["clientConfig"].get("caBundle").is_some());
    release(&world, &["a.shop.example"], false).await;
    assert_eq!(conversion().await, json!({"strategy": "None"}));
    release(&world, &["a.shop.example"], true).await;
    let report = world.run(&wanted).await.unwrap();
    assert!(report.action == Action::Kept && report.targets[0].changed, "{report:?}");
    assert!(conversion().await["webhook"]["clientConfig"].get("caBundle").is_some());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_owned_but_the_value() {
    let world = World::empty().await;
    world.apply(deployment()).await;
    release(&world, &["a.shop.example"], true).await;
    world.run(&all()).await.unwrap();
    let leaf = json!({"f:webhooks": {"k:{\"name\":\"a.shop.example\"}": {"f:clientConfig": {"f:caBundle": {}}}}});
    for kind in [VALIDATING, MUTATING] {
        assert_eq!(owned(&world, REGISTRATION, kind, "shop").await, [("Update".to_owned(), leaf.clone())], "{kind}");
    }
    let leaf = json!({"f:spec": {"f:caBundle": {}}});
    let found = owned(&world, "apiregistration.k8s.io/v1", "APIService", "v1.stock.example").await;
    assert_eq!(found, [("Update".to_owned(), leaf)]);
    let found = owned(&world, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "orders.shop.example").await;
    assert_eq!(found, [], "structures around a value that is owned are kept as well");
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_version_owned_is_given_up_before_the_upgrade() {
    for stage in [Stage::Secret, Stage::All] {
        let world = World::empty().await;
        world.apply(deployment()).await;
        release(&world, &["a.shop.example", "b.shop.example"], true).await;
        world.run(&all()).await.unwrap();
        own_entries(&world, &["a.shop.example", "b.shop.example"]).await;
        let before = world.bundle(VALIDATING, "shop", 0).await;
        let report = world.run(&Options { stage, ..all() }).await.unwrap();
        assert_eq!(report.action, Action::Kept);
        assert_eq!(world.bundle(VALIDATING, "shop", 0).await, before, "the bundle stays");
        release(&world, &["b.shop.example"], false).await;
        for kind in [VALIDATING, MUTATING] {
            assert_eq!(entries(&world, kind).await, [("b.shop.example".to_owned(), true)]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_changed_again_and_again_is_named() {
    let mut world = World::running().await;
    world.write_bundle("").await;
    world.faults = Faults::new(0);
    let is_patch = |call: &Call| call.verb == "patch" && call.resource == "validatingwebhookconfigurations";
    world.faults.on(is_patch).fail(Fault::Slow(Duration::from_secs(1)));
    let wanted = Options { timeout: Duration::from_secs(15), ..options() };
    let changing = async {
        for number in 0_u64.. {
            let mut object = webhooks(VALIDATING, "shop", &[("one.shop.example", "hook")]);
            object["metadata"]["labels"]["number"] = json!(number.to_string());
            world.apply(object).await;
            world.pass(Duration::from_millis(300)).await;
        }
    };
    let error = tokio::select! {
        ended = world.run(&wanted) => ended.unwrap_err(),
        () = changing => panic!("there are no more numbers"),
    };
    let part = "ValidatingWebhookConfiguration `shop` is changed by others again and again (waited for 15s)";
    assert!(error.to_string().contains(part), "{error}");
}
