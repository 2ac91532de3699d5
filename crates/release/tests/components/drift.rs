//! Objects that other clients delete or change between two deploys.

use crate::stage::{Stage, Wish, component, map};
use jobwright_engine::Action;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_deleted_object_is_noticed_and_applied_again() {
    let stage = Stage::new().await;
    let plan = format!("components:\n{}", component("api", "api.yaml"));
    stage.manifests("api.yaml", &[map("first", "1"), map("second", "1")]);
    stage.succeed(&Wish::default(), &plan).await;
    let (_, action, reason) = stage.succeed(&Wish::default(), &plan).await[0].clone();
    assert_eq!(action, Action::Unchanged, "{reason}");
    stage.api("v1", "ConfigMap").delete("second", &DeleteParams::default()).await.unwrap();
    let (_, action, reason) = stage.succeed(&Wish::default(), &plan).await[0].clone();
    assert_eq!(action, Action::Upgraded, "{reason}");
    assert!(reason.contains("ConfigMap `second`") && reason.contains("deleted"), "{reason}");
    assert_eq!(stage.maps().await, ["first", "second"]);
}

#[tokio::test(start_paused = true)]
async fn a_field_that_another_client_changed_is_noticed_and_set_again() {
    let stage = Stage::new().await;
    let plan = format!("components:\n{}", component("api", "api.yaml"));
    stage.manifests("api.yaml", &[map("first", "1"), map("second", "1")]);
    stage.succeed(&Wish::default(), &plan).await;
    let edit = |patch| {
        let parameters = PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
        let maps = stage.api("v1", "ConfigMap");
        async move { maps.patch("second", &parameters, &Patch::Merge(patch)).await.unwrap() }
    };
    // What the manifests do not declare is not theirs.
    edit(json!({"data": {"more": "2"}, "metadata": {"labels": {"team": "shop"}}})).await;
    let (_, action, reason) = stage.succeed(&Wish::default(), &plan).await[0].clone();
    assert_eq!(action, Action::Unchanged, "{reason}");
    edit(json!({"data": {"value": "2"}})).await;
    let (_, action, reason) = stage.succeed(&Wish::default(), &plan).await[0].clone();
    assert_eq!(action, Action::Upgraded, "{reason}");
    assert!(reason.contains("ConfigMap `second`") && reason.contains("kubectl-edit"), "{reason}");
    assert_eq!(stage.get("v1", "ConfigMap", "second").await.unwrap().data["data"], json!({"value": "1", "more": "2"}));
    let (_, action, reason) = stage.succeed(&Wish::default(), &plan).await[0].clone();
    assert_eq!(action, Action::Unchanged, "{reason}");
}

#[tokio::test(start_paused = true)]
async fn drift_can_be_reported_only_and_redeploy_repairs_it() {
    let stage = Stage::new().await;
    let plan = "components:\n- {name: api, manifests: {path: api.yaml, onDrift: Report}}\n";
    stage.manifests("api.yaml", &[map("first", "1"), map("second", "1")]);
    stage.succeed(&Wish::default(), plan).await;
    stage.api("v1", "ConfigMap").delete("second", &DeleteParams::default()).await.unwrap();
    let (_, action, reason) = stage.succeed(&Wish::default(), plan).await[0].clone();
    assert_eq!(action, Action::Unchanged);
    assert_eq!(reason, "drift: ConfigMap `second` was deleted; `--redeploy` applies it again");
    assert_eq!(stage.maps().await, ["first"]);
    stage.succeed(&Wish { redeploy: true, ..Wish::default() }, plan).await;
    assert_eq!(stage.maps().await, ["first", "second"]);
}

#[tokio::test(start_paused = true)]
async fn what_ends_by_itself_and_what_controllers_write_is_no_drift() {
    let stage = Stage::new().await;
    let plan = format!("components:\n{}", component("api", "api.yaml"));
    let template = |name: &str| {
        json!({"metadata": {"labels": {"app": name}}, "spec": {"restartPolicy": "Never",
        "containers": [{"name": "c", "image": "busybox:1", "command": ["sh", "-c", "echo done"]}]}})
    };
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"},
        "spec": {"ttlSecondsAfterFinished": 10, "template": template("once")}});
    let mut served = template("web");
    served["spec"]["restartPolicy"] = json!("Always");
    served["spec"]["containers"][0]["command"] = json!(["sh", "-c", "sleep 1000000"]);
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": served}});
    stage.manifests("api.yaml", &[job, deployment]);
    stage.succeed(&Wish::default(), &plan).await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(stage.get("batch/v1", "Job", "once").await.is_none());
    let (_, action, reason) = stage.succeed(&Wish::default(), &plan).await[0].clone();
    assert_eq!(action, Action::Unchanged, "{reason}");
    // Another client scales it.
    let patch = json!({"spec": {"replicas": 3}});
    stage.api("apps/v1", "Deployment").patch("web", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    let (_, action, reason) = stage.succeed(&Wish::default(), &plan).await[0].clone();
    assert_eq!(action, Action::Upgraded, "{reason}");
    assert_eq!(stage.get("apps/v1", "Deployment", "web").await.unwrap().data["spec"]["replicas"], 2);
}

#[tokio::test(start_paused = true)]
async fn drift_that_cannot_be_looked_for_fails_instead_of_being_unchanged() {
    let stage = Stage::new().await;
    let plan = format!("components:\n{}", component("api", "api.yaml"));
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "first"}});
    stage.manifests("api.yaml", &[account]);
    stage.succeed(&Wish::default(), &plan).await;
    stage.faults.on(|call| call.resource == "serviceaccounts").fail(jobwright_drydock::Fault::Unavailable);
    let preview = stage.preview(&Wish::default(), &plan).await;
    let why = preview.components[0].1.clone().unwrap_err();
    assert!(why.contains("cannot list the ServiceAccount objects"), "{why}");
}
