//! What is pruned, and what never is.

use crate::stage::{Stage, Wish, component, map};
use jobwright_drydock::{Fault, Faults, When};
use serde_json::{Value, json};

/// The definition of Widgets.
fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.shop.example"}, "spec": {"group": "shop.example", "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
}

fn widget(name: &str) -> Value {
    json!({"apiVersion": "shop.example/v1", "kind": "Widget", "metadata": {"name": name}})
}

#[tokio::test(start_paused = true)]
async fn a_changed_api_version_keeps_the_object() {
    let stage = Stage::new().await;
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"});
    let autoscaler = |version: &str| {
        json!({"apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler", "metadata": {"name": "api"},
            "spec": {"maxReplicas": 3, "scaleTargetRef": target}})
    };
    let plan = format!("components:\n{}", component("api", "api.yaml"));
    stage.manifests("api.yaml", &[autoscaler("v1")]);
    stage.succeed(&Wish::default(), &plan).await;
    stage.manifests("api.yaml", &[autoscaler("v2")]);
    stage.succeed(&Wish { version: "1.1.0", ..Wish::default() }, &plan).await;
    assert!(stage.get("autoscaling/v2", "HorizontalPodAutoscaler", "api").await.is_some());
    let record = stage.record(&Wish::default()).await;
    assert_eq!(record.components["api"].objects.len(), 1, "{record:?}");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_another_release_applied_is_kept() {
    let stage = Stage::new().await;
    let plan = format!("components:\n{}", component("api", "api"));
    let (ours, theirs) = (Wish::default(), Wish { release: "store", ..Wish::default() });
    stage.manifests("api/a.yaml", &[map("own", "1"), map("shared", "1")]);
    stage.succeed(&ours, &plan).await;
    stage.succeed(&theirs, &plan).await;
    stage.manifests("api/a.yaml", &[map("own", "1")]);
    stage.succeed(&ours, &plan).await;
    assert_eq!(stage.maps().await, ["own", "shared"]);
    // It goes with the release that applied it last.
    stage.succeed(&theirs, &plan).await;
    assert_eq!(stage.maps().await, ["own"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_kind_cannot_be_discovered_is_not_forgotten() {
    let mut stage = Stage::new().await;
    let plan = format!(
        "components:\n{}{}",
        component("kinds", "kinds.yaml"),
        "- {name: api, dependsOn: [kinds], manifests: {path: api.yaml}}\n"
    );
    stage.manifests("kinds.yaml", &[definition()]);
    stage.manifests("api.yaml", &[map("api", "1"), widget("left")]);
    stage.succeed(&Wish::default(), &plan).await;
    stage.manifests("api.yaml", &[map("api", "1")]);
    // The API of the group does not answer, as when an aggregated API server is down.
    stage.outage = Some("shop.example");
    let reason = stage.fail(&Wish::default(), &plan).await;
    assert!(reason.contains("shop.example"), "{reason}");
    assert_eq!(stage.record(&Wish::default()).await.components["api"].objects.len(), 2);
    stage.outage = None;
    stage.succeed(&Wish::default(), &plan).await;
    assert!(stage.get("shop.example/v1", "Widget", "left").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_moves_to_another_component_is_kept() {
    let stage = Stage::new().await;
    let plan = "parallel: 1\ncomponents:\n- {name: a, manifests: {path: a.yaml}}\n- {name: b, dependsOn: [a], manifests: {path: b.yaml}}\n";
    stage.manifests("a.yaml", &[map("a", "1"), map("moved", "1")]);
    stage.manifests("b.yaml", &[map("b", "1")]);
    stage.succeed(&Wish::default(), plan).await;
    let uid = stage.get("v1", "ConfigMap", "moved").await.unwrap().metadata.uid;
    stage.manifests("a.yaml", &[map("a", "1")]);
    stage.manifests("b.yaml", &[map("b", "1"), map("moved", "1")]);
    stage.succeed(&Wish::default(), plan).await;
    assert_eq!(stage.get("v1", "ConfigMap", "moved").await.unwrap().metadata.uid, uid);
    // It belongs to the other one now, and goes with it.
    stage.manifests("a.yaml", &[map("a", "2")]);
    stage.succeed(&Wish::default(), plan).await;
    let record = stage.record(&Wish::default()).await;
    assert_eq!(record.components["a"].objects.len(), 1, "{record:?}");
    stage.manifests("b.yaml", &[map("b", "1")]);
    stage.succeed(&Wish::default(), plan).await;
    assert_eq!(stage.maps().await, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_scoped_object_of_a_namesake_in_another_namespace_is_kept() {
    let stage = Stage::new().await;
    let plan = format!("components:\n{}", component("api", "api.yaml"));
    let role = |name: &str| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": []});
    let (ours, theirs) = (Wish::default(), Wish { namespace: "other", ..Wish::default() });
    stage.manifests("api.yaml", &[role("own"), role("shared")]);
    stage.succeed(&ours, &plan).await;
    stage.succeed(&theirs, &plan).await;
    stage.manifests("api.yaml", &[role("own")]);
    stage.succeed(&ours, &plan).await;
    let roles = kube::Api::<k8s_openapi::api::rbac::v1::ClusterRole>::all(stage.client());
    assert!(roles.get_opt("shared").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_kind_that_is_gone_are_forgotten() {
    let stage = Stage::new().await;
    let plan = "components:\n- {name: kinds, manifests: {path: kinds.yaml}}\n- {name: api, dependsOn: [kinds], manifests: {path: api.yaml}}\n";
    stage.manifests("kinds.yaml", &[definition(), map("kinds", "1")]);
    stage.manifests("api.yaml", &[map("api", "1"), widget("left")]);
    stage.succeed(&Wish::default(), plan).await;
    stage.manifests("kinds.yaml", &[map("kinds", "1")]);
    stage.manifests("api.yaml", &[map("api", "1")]);
    stage.succeed(&Wish::default(), plan).await;
    assert_eq!(stage.record(&Wish::default()).await.components["api"].objects.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pruned_object_is_deleted_whatever_the_server_answers_first() {
    for fault in [
        Fault::Conflict,
        Fault::Internal,
        Fault::Unavailable,
        Fault::TooManyRequests { retry_after: 1 },
        Fault::TimeOut(When::After),
        Fault::Disconnect(When::Before),
    ] {
        let stage = Stage::new().await;
        let plan = format!("components:\n{}", component("api", "api.yaml"));
        stage.manifests("api.yaml", &[map("kept", "1"), map("dropped", "1")]);
        stage.succeed(&Wish::default(), &plan).await;
        stage.manifests("api.yaml", &[map("kept", "1")]);
        stage.faults.on(|call| call.verb == "delete" && call.name == "dropped").times(2).fail(fault.clone());
        stage.succeed(&Wish::default(), &plan).await;
        assert_eq!(stage.maps().await, ["kept"], "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_pruned_stays_in_the_record_until_it_can() {
    let mut stage = Stage::new().await;
    let plan = format!("components:\n{}", component("api", "api.yaml"));
    stage.manifests("api.yaml", &[map("kept", "1"), map("dropped", "1")]);
    stage.succeed(&Wish::default(), &plan).await;
    stage.manifests("api.yaml", &[map("kept", "1")]);
    stage.faults.on(|call| call.verb == "delete").fail(Fault::Unavailable);
    let reason = stage.fail(&Wish::default(), &plan).await;
    assert!(reason.contains("cannot delete ConfigMap `dropped`"), "{reason}");
    assert_eq!(stage.record(&Wish::default()).await.components["api"].objects.len(), 2);
    stage.faults = Faults::new(0);
    stage.succeed(&Wish::default(), &plan).await;
    assert_eq!(stage.maps().await, ["kept"]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_or_definition_that_is_still_used_is_kept() {
    let stage = Stage::new().await;
    let plan = format!("components:\n{}", component("api", "api.yaml"));
    let space = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let mut inside = map("inside", "1");
    inside["metadata"]["namespace"] = json!("extra");
    let all = [space("shop"), space("extra"), space("unused"), definition(), widget("left"), inside.clone()];
    stage.manifests("api.yaml", &all);
    stage.succeed(&Wish::default(), &plan).await;
    stage.manifests("api.yaml", &[widget("left"), inside]);
    stage.succeed(&Wish::default(), &plan).await;
    let namespaces = kube::Api::<k8s_openapi::api::core::v1::Namespace>::all(stage.client());
    let is_deleted = async |name: &str| {
        let found = namespaces.get_opt(name).await.unwrap();
        found.is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_some())
    };
    assert!(!is_deleted("shop").await && !is_deleted("extra").await && is_deleted("unused").await);
    assert!(stage.get("shop.example/v1", "Widget", "left").await.is_some());
    // They stay in the record, and go when nothing needs them.
    stage.manifests("api.yaml", &[map("api", "1")]);
    stage.succeed(&Wish::default(), &plan).await;
    stage.succeed(&Wish { redeploy: true, ..Wish::default() }, &plan).await;
    assert!(!is_deleted("shop").await && is_deleted("extra").await);
    let record = stage.record(&Wish::default()).await;
    let names: Vec<&str> = record.components["api"].objects.iter().map(|key| key.name.as_str()).collect();
    assert_eq!(names, ["shop", "api"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_move_failed_is_pruned_by_the_next_deploy_that_lacks_it() {
    let stage = Stage::new().await;
    let plan = format!("components:\n{}{}", component("api", "api"), component("web", "web"));
    stage.manifests("api/a.yaml", &[map("api", "1"), map("moved", "1")]);
    stage.manifests("web/a.yaml", &[map("web", "1")]);
    stage.succeed(&Wish::default(), &plan).await;
    // It moves to a component that is not deployed, because its job fails.
    stage.manifests("api/a.yaml", &[map("api", "1")]);
    stage.manifests("web/a.yaml", &[map("web", "1"), map("moved", "1")]);
    let job = "jobs:\n- {id: refuse, component: web, phase: pre, retires: {never: test}, adopt: {release: other, objects: [{apiVersion: v1, kind: ConfigMap, name: theirs}]}}\n";
    let mut theirs = map("theirs", "1");
    theirs["metadata"]["annotations"] = json!({"meta.helm.sh/release-name": "theirs"});
    let theirs = serde_json::from_value(theirs).unwrap();
    stage.api("v1", "ConfigMap").create(&kube::api::PostParams::default(), &theirs).await.unwrap();
    stage.fail(&Wish::default(), &format!("{plan}{job}")).await;
    assert_eq!(stage.maps().await, ["api", "moved", "theirs", "web"]);
    // No component has it any more.
    stage.manifests("web/a.yaml", &[map("web", "1")]);
    stage.succeed(&Wish::default(), &plan).await;
    assert_eq!(stage.maps().await, ["api", "theirs", "web"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_moved_away_and_was_pruned_there_is_no_drift() {
    let stage = Stage::new().await;
    let plan = format!(
        "components:\n{}{}",
        component("api", "api"),
        "- {name: web, dependsOn: [api], manifests: {path: web}}\n"
    );
    stage.manifests("api/a.yaml", &[map("api", "1"), map("moved", "1")]);
    stage.manifests("web/a.yaml", &[map("web", "1")]);
    stage.succeed(&Wish::default(), &plan).await;
    stage.manifests("api/a.yaml", &[map("api", "1")]);
    stage.manifests("web/a.yaml", &[map("web", "1"), map("moved", "1")]);
    stage.succeed(&Wish::default(), &plan).await;
    stage.manifests("web/a.yaml", &[map("web", "1")]);
    stage.succeed(&Wish::default(), &plan).await;
    assert_eq!(stage.maps().await, ["api", "web"]);
    let actions: Vec<_> =
        stage.succeed(&Wish::default(), &plan).await.into_iter().map(|(_, action, reason)| (action, reason)).collect();
    let same = (jobwright_engine::Action::Unchanged, "same manifests and version".to_owned());
    assert_eq!(actions, [same.clone(), same]);
}
