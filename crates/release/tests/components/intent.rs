//! Deploys of manifests that fail half-way: nothing of them is forgotten, and none counts as unchanged.

use crate::stage::{Stage, Wish, component, map};
use jobwright_engine::Action;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_half_failed_deploy_is_not_unchanged_and_what_it_added_is_pruned() {
    let stage = Stage::new().await;
    let plan = format!("components:\n{}", component("api", "api.yaml"));
    let old = [map("kept", "1")];
    stage.manifests("api.yaml", &old);
    stage.succeed(&Wish::default(), &plan).await;

    let refused = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "refused"}, "spec": {"ports": [{"port": -1}]}});
    stage.manifests("api.yaml", &[map("kept", "2"), map("added", "1"), refused]);
    let reason = stage.fail(&Wish { version: "1.1.0", ..Wish::default() }, &plan).await;
    assert!(reason.contains("Service `refused`"), "{reason}");
    assert_eq!(stage.maps().await, ["added", "kept"]);

    stage.manifests("api.yaml", &old);
    let results = stage.succeed(&Wish::default(), &plan).await;
    assert_eq!(results[0].1, Action::Upgraded, "{results:?}");
    assert_eq!(stage.maps().await, ["kept"]);
    let kept = stage.get("v1", "ConfigMap", "kept").await.unwrap();
    assert_eq!(kept.data["data"]["value"], "1");
    let results = stage.succeed(&Wish::default(), &plan).await;
    assert_eq!(results[0].1, Action::Unchanged, "{results:?}");
}

#[tokio::test(start_paused = true)]
async fn a_first_deploy_that_fails_is_still_an_install() {
    let stage = Stage::new().await;
    let plan = format!("components:\n{}", component("api", "api.yaml"));
    let refused = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "refused"}, "spec": {"ports": [{"port": -1}]}});
    stage.manifests("api.yaml", &[map("kept", "1"), refused.clone()]);
    stage.fail(&Wish::default(), &plan).await;
    stage.manifests("api.yaml", &[map("kept", "1")]);
    assert_eq!(stage.succeed(&Wish::default(), &plan).await[0].1, Action::Installed);
    stage.manifests("api.yaml", &[map("kept", "2"), refused]);
    stage.fail(&Wish { version: "1.1.0", ..Wish::default() }, &plan).await;
    stage.manifests("api.yaml", &[map("kept", "2")]);
    let results = stage.succeed(&Wish { version: "1.1.0", ..Wish::default() }, &plan).await;
    assert_eq!(results[0].1, Action::Upgraded, "{results:?}");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_the_cluster_does_not_have_is_an_error_before_anything_is_applied() {
    let stage = Stage::new().await;
    let plan = format!("components:\n{}", component("api", "api.yaml"));
    let unknown = json!({"apiVersion": "shop.example/v1", "kind": "Widget", "metadata": {"name": "w"}});
    stage.manifests("api.yaml", &[map("first", "1"), unknown]);
    let preview = stage.preview(&Wish::default(), &plan).await;
    let failure = preview.components[0].1.as_ref().unwrap_err();
    assert!(failure.contains("no kind `Widget` in `shop.example/v1`"), "{failure}");
    let reason = stage.fail(&Wish::default(), &plan).await;
    assert!(
        reason.contains("no kind `Widget` in `shop.example/v1`") && reason.contains("api.yaml`, line 3"),
        "{reason}"
    );
    assert_eq!(stage.maps().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_kind_that_the_component_defines_itself_are_applied_after_it() {
    let stage = Stage::new().await;
    let plan = format!("components:\n{}", component("api", "api.yaml"));
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.shop.example"}, "spec": {"group": "shop.example", "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let widget = json!({"apiVersion": "shop.example/v1", "kind": "Widget", "metadata": {"name": "w"}});
    stage.manifests("api.yaml", &[widget, definition]);
    stage.succeed(&Wish::default(), &plan).await;
    assert!(stage.get("shop.example/v1", "Widget", "w").await.is_some());
    let record = stage.record(&Wish::default()).await;
    let widget = record.components["api"].objects.iter().find(|key| key.kind == "Widget").unwrap();
    assert_eq!(widget.namespace.as_deref(), Some("shop"));
}

#[tokio::test(start_paused = true)]
async fn the_same_object_twice_is_an_error_before_anything_is_applied() {
    let stage = Stage::new().await;
    let plan = format!("components:\n{}", component("api", "api"));
    let mut second = map("same", "2");
    second["metadata"]["namespace"] = json!("shop");
    stage.manifests("api/a.yaml", &[map("first", "1"), map("same", "1")]);
    stage.manifests("api/b.yaml", &[second]);
    let reason = stage.fail(&Wish::default(), &plan).await;
    assert!(reason.contains("b.yaml`, line 1: ConfigMap `same` is a duplicate of"), "{reason}");
    assert_eq!(stage.maps().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_being_deleted_is_applied_again_when_it_is_gone() {
    let stage = Stage::new().await;
    let plan = format!("components:\n{}", component("api", "api.yaml"));
    let mut old = map("slow", "1");
    old["metadata"]["finalizers"] = json!(["shop.example/slow"]);
    let maps = stage.api("v1", "ConfigMap");
    maps.create(&PostParams::default(), &serde_json::from_value(old).unwrap()).await.unwrap();
    maps.delete("slow", &DeleteParams::default()).await.unwrap();
    stage.manifests("api.yaml", &[map("slow", "2")]);
    let finish = async {
        tokio::time::sleep(Duration::from_secs(30)).await;
        let patch = json!({"metadata": {"finalizers": null}});
        maps.patch("slow", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    };
    let wish = Wish::default();
    tokio::join!(stage.succeed(&wish, &plan), finish);
    let slow = stage.get("v1", "ConfigMap", "slow").await.unwrap();
    assert_eq!((slow.metadata.deletion_timestamp, &slow.data["data"]["value"]), (None, &json!("2")));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_never_gone_is_an_error() {
    let stage = Stage::new().await;
    let plan = "components:\n- {name: api, manifests: {path: api.yaml, timeout: 1m}}\n";
    let mut old = map("stuck", "1");
    old["metadata"]["finalizers"] = json!(["shop.example/stuck"]);
    let maps = stage.api("v1", "ConfigMap");
    maps.create(&PostParams::default(), &serde_json::from_value(old).unwrap()).await.unwrap();
    maps.delete("stuck", &DeleteParams::default()).await.unwrap();
    stage.manifests("api.yaml", &[map("stuck", "2")]);
    let reason = stage.fail(&Wish::default(), plan).await;
    assert!(reason.contains("the old ConfigMap `stuck` is still being deleted"), "{reason}");
}
