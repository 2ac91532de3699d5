//! Components that a plan no longer has.

use crate::helm;
use crate::stage::{Stage, Wish, component, map, results};
use jobwright_engine::{Action, DeployOutcome};

#[tokio::test(start_paused = true)]
async fn a_removed_component_is_reported_with_what_it_owns() {
    let stage = Stage::new().await;
    stage.manifests("api.yaml", &[map("api", "1")]);
    stage.manifests("old.yaml", &[map("old", "1")]);
    stage
        .succeed(
            &Wish::default(),
            &format!("components:\n{}{}", component("api", "api.yaml"), component("old", "old.yaml")),
        )
        .await;
    let plan = format!("components:\n{}", component("api", "api.yaml"));
    let report = stage.deploy(&Wish::default(), &plan).await;
    assert_eq!(report.outcome, DeployOutcome::Succeeded);
    let rows = results(&report);
    let (_, action, reason) = rows.iter().find(|(name, ..)| name == "old").unwrap_or_else(|| panic!("{rows:?}"));
    assert_eq!(*action, Action::Unchanged);
    assert!(reason.contains("ConfigMap `old`"), "{reason}");
    assert_eq!(stage.maps().await, ["api", "old"]);
}

#[tokio::test(start_paused = true)]
async fn a_removed_component_is_pruned_on_request_and_then_forgotten() {
    let stage = Stage::new().await;
    stage.manifests("api.yaml", &[map("api", "1")]);
    stage.manifests("old.yaml", &[map("old", "1"), map("moved", "1")]);
    let both = format!("components:\n{}{}", component("api", "api.yaml"), component("old", "old.yaml"));
    stage.succeed(&Wish::default(), &both).await;
    let uid = stage.get("v1", "ConfigMap", "moved").await.unwrap().metadata.uid;
    stage.manifests("api.yaml", &[map("api", "1"), map("moved", "1")]);
    let plan = format!("onRemovedComponent: Prune\ncomponents:\n{}", component("api", "api.yaml"));
    let preview = stage.preview(&Wish::default(), &plan).await;
    assert!(preview.components.iter().any(|(name, _)| name == "old"), "{preview:?}");
    let rows = stage.succeed(&Wish::default(), &plan).await;
    assert_eq!(rows[1].1, Action::Removed, "{rows:?}");
    assert_eq!(stage.maps().await, ["api", "moved"]);
    assert_eq!(stage.get("v1", "ConfigMap", "moved").await.unwrap().metadata.uid, uid);
    assert!(!stage.record(&Wish::default()).await.components.contains_key("old"));
    assert_eq!(stage.succeed(&Wish::default(), &plan).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_removed_component_whose_objects_are_gone_is_forgotten() {
    let stage = Stage::new().await;
    stage.manifests("api.yaml", &[map("api", "1")]);
    stage.manifests("old.yaml", &[map("old", "1")]);
    let both = format!("components:\n{}{}", component("api", "api.yaml"), component("old", "old.yaml"));
    stage.succeed(&Wish::default(), &both).await;
    stage.api("v1", "ConfigMap").delete("old", &kube::api::DeleteParams::default()).await.unwrap();
    let plan = format!("components:\n{}", component("api", "api.yaml"));
    stage.succeed(&Wish::default(), &plan).await;
    assert!(!stage.record(&Wish::default()).await.components.contains_key("old"));
}

#[tokio::test]
async fn a_removed_chart_is_reported_until_it_is_uninstalled() {
    let mut stage = Stage::new().await;
    crate::helm::play(&mut stage, || "1.0.0");
    stage.write("chart/Chart.yaml", "apiVersion: v2\nname: api\nversion: 1.0.0\n");
    stage.manifests("api.yaml", &[map("api", "1")]);
    let chart = "- {name: old, chart: {path: chart}, helm: {release: former}}\n";
    let both = format!("components:\n{}{chart}", component("api", "api.yaml"));
    stage.succeed(&Wish::default(), &both).await;
    let plan = format!("onRemovedComponent: Prune\ncomponents:\n{}", component("api", "api.yaml"));
    let rows = stage.succeed(&Wish::default(), &plan).await;
    let expected = "removed from the plan, and still owns Helm release `former` (`helm uninstall former --namespace shop` deletes it)";
    assert_eq!(rows[1], ("old".to_owned(), Action::Unchanged, expected.to_owned()));
    crate::helm::delete_revision(&stage.client(), "former", 1).await;
    stage.succeed(&Wish::default(), &plan).await;
    assert_eq!(stage.succeed(&Wish::default(), &plan).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_removed_component_that_cannot_be_inspected_does_not_stop_a_deploy() {
    let stage = Stage::new().await;
    let account = serde_json::json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "old"}});
    stage.manifests("api.yaml", &[map("api", "1")]);
    stage.manifests("old.yaml", &[account]);
    let both = format!("components:\n{}{}", component("api", "api.yaml"), component("old", "old.yaml"));
    stage.succeed(&Wish::default(), &both).await;
    stage.faults.on(|call| call.resource == "serviceaccounts").fail(jobwright_drydock::Fault::Unavailable);
    let plan = format!("components:\n{}", component("api", "api.yaml"));
    let rows = stage.succeed(&Wish::default(), &plan).await;
    assert!(rows[1].2.contains("what it still owns is unknown"), "{rows:?}");
    stage.manifests("api.yaml", &[map("api", "2")]);
    let prune = format!("onRemovedComponent: Prune\n{plan}");
    let reason = stage.fail(&Wish::default(), &prune).await;
    assert!(reason.contains("cannot read ServiceAccount `old`"), "{reason}");
}

#[tokio::test]
async fn what_a_component_was_before_is_reported_when_it_changes_its_source() {
    let mut stage = Stage::new().await;
    stage.write("chart/Chart.yaml", "apiVersion: v2\nname: api\nversion: 1.0.0\n");
    stage.manifests("api.yaml", &[map("api", "1")]);
    helm::play(&mut stage, || "1.0.0");
    let manifests = format!("components:\n{}", component("api", "api.yaml"));
    let chart = "components:\n- {name: api, chart: {path: chart}}\n";
    let renamed = "components:\n- {name: api, chart: {path: chart}, helm: {release: other}}\n";
    stage.succeed(&Wish::default(), &manifests).await;
    let reason = |rows: Vec<(String, Action, String)>| rows[0].2.clone();
    let now_chart = reason(stage.succeed(&Wish::default(), chart).await);
    assert!(now_chart.contains("it was manifests before, and ConfigMap `api`"), "{now_chart}");
    let now_renamed = reason(stage.succeed(&Wish::default(), renamed).await);
    assert!(now_renamed.contains("it was Helm release `api` before, which stays"), "{now_renamed}");
    let now_manifests = reason(stage.succeed(&Wish::default(), &manifests).await);
    assert!(now_manifests.contains("`helm uninstall other --namespace shop`"), "{now_manifests}");
}

#[tokio::test(start_paused = true)]
async fn a_component_that_was_pruned_in_part_is_deployed_whole_when_it_comes_back() {
    let stage = Stage::new().await;
    stage.manifests("api.yaml", &[map("api", "1")]);
    stage.manifests("old.yaml", &[map("old", "1"), map("moved", "1")]);
    let both = format!("components:\n{}{}", component("api", "api.yaml"), component("old", "old.yaml"));
    stage.succeed(&Wish::default(), &both).await;
    // `moved` is now declared by `api`, which this deploy leaves alone, so only `old` is pruned.
    stage.manifests("api.yaml", &[map("api", "1"), map("moved", "1")]);
    let plan = format!("onRemovedComponent: Prune\ncomponents:\n{}", component("api", "api.yaml"));
    let only_old = Wish { only: Some("old"), ..Wish::default() };
    stage.succeed(&only_old, &plan).await;
    assert_eq!(stage.maps().await, ["api", "moved"]);
    stage.manifests("api.yaml", &[map("api", "1")]);
    stage.succeed(&Wish::default(), &both).await;
    assert_eq!(stage.maps().await, ["api", "moved", "old"]);
}
