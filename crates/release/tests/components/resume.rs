//! Which deploy a success belongs to, and which version a release has: after an interruption, a half-failed deploy, and
//! the loss of the record.

use crate::stage::{Stage, Wish, component, map};
use jobwright_engine::Error;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use std::time::Duration;

/// A job that runs with every deploy, and a component.
fn plan() -> String {
    let pod =
        json!({"template": {"spec": {"containers": [{"name": "main", "image": "busybox", "command": ["true"]}]}}});
    let jobs = json!([{"id": "release", "phase": "pre", "retires": {"never": "test"}, "pod": pod}]);
    format!("components:\n{}jobs: {jobs}", component("api", "api.yaml"))
}

/// A Deployment that never gets ready, because a Secret is missing.
fn stuck() -> Value {
    let missing = json!([{"secretRef": {"name": "missing"}}]);
    let template = json!({"metadata": {"labels": {"app": "api"}},
        "spec": {"containers": [{"name": "main", "image": "busybox", "envFrom": missing}]}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api"},
        "spec": {"selector": {"matchLabels": {"app": "api"}}, "template": template}})
}

/// A Service that the API server refuses.
fn refused() -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "refused"}, "spec": {"ports": [{"port": -1}]}})
}

/// Starts a deploy, kills it while it waits for its component, and counts how often the job has run so far.
async fn interrupt(stage: &Stage) -> usize {
    let (wish, plan) = (Wish::default(), plan());
    let killed = tokio::time::timeout(Duration::from_mins(2), stage.try_deploy(&wish, &plan)).await;
    assert!(killed.is_err(), "{killed:?}");
    runs(stage)
}

fn runs(stage: &Stage) -> usize {
    stage.drydock.witness().iter().filter(|started| started.command == ["true"]).count()
}

#[tokio::test(start_paused = true)]
async fn a_success_of_an_interrupted_deploy_counts_for_the_same_files_only() {
    let stage = Stage::new().await;
    stage.manifests("api.yaml", &[stuck()]);
    assert_eq!(interrupt(&stage).await, 1);
    assert_eq!(interrupt(&stage).await, 1, "the same deploy resumes");
    stage.manifests("api.yaml", &[map("settings", "1")]);
    stage.succeed(&Wish::default(), &plan()).await;
    assert_eq!(runs(&stage), 2, "another deploy");
}

#[tokio::test(start_paused = true)]
async fn a_success_does_not_count_for_a_later_deploy_when_the_record_is_lost() {
    let stage = Stage::new().await;
    stage.manifests("api.yaml", &[stuck()]);
    assert_eq!(interrupt(&stage).await, 1);
    let maps = Api::<ConfigMap>::namespaced(stage.client(), "shop");
    let records = maps.list(&ListParams::default().labels("jobwright.io/record")).await.unwrap();
    assert_eq!(records.items.len(), 1);
    maps.delete(&records.items[0].name_any(), &DeleteParams::default()).await.unwrap();
    stage.manifests("api.yaml", &[map("settings", "1")]);
    stage.succeed(&Wish::default(), &plan()).await;
    assert_eq!(runs(&stage), 2);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_was_deployed_half_way_cannot_be_followed_by_any_other() {
    let stage = Stage::new().await;
    stage.manifests("api.yaml", &[map("settings", "1"), refused()]);
    stage.fail(&Wish::default(), &plan()).await;
    let skipping = Wish { version: "7.3.0", ..Wish::default() };
    let error = stage.try_deploy(&skipping, &plan()).await.unwrap_err();
    assert!(matches!(error, Error::Violations(_)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deploy_without_a_version_keeps_the_version_that_is_recorded() {
    let stage = Stage::new().await;
    stage.manifests("api.yaml", &[map("settings", "1")]);
    stage.succeed(&Wish { version: "1.4.0", ..Wish::default() }, &plan()).await;
    stage.succeed(&Wish { version: "", ..Wish::default() }, &plan()).await;
    assert_eq!(stage.record(&Wish::default()).await.version.unwrap().as_str(), "1.4.0");
    let skipping = Wish { version: "7.3.0", ..Wish::default() };
    let error = stage.try_deploy(&skipping, &plan()).await.unwrap_err();
    assert!(matches!(error, Error::Violations(_)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_emptied_or_newer_is_refused_and_kept() {
    let stage = Stage::new().await;
    stage.manifests("api.yaml", &[map("settings", "1")]);
    stage.succeed(&Wish::default(), &plan()).await;
    let maps = Api::<ConfigMap>::namespaced(stage.client(), "shop");
    let stored = maps.list(&ListParams::default().labels("jobwright.io/record")).await.unwrap().items.remove(0);
    for (text, cause) in [("{}", "it was emptied"), ("[]", "it was emptied"), (r#"{"format": 99}"#, "format 99")] {
        let patch = json!({"data": {"record": text}});
        maps.patch(&stored.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
        let error = stage.try_deploy(&Wish::default(), &plan()).await.unwrap_err().whole_message();
        assert!(error.contains(cause) && error.contains(&stored.name_any()), "{text}: {error}");
        let kept = maps.get(&stored.name_any()).await.unwrap().data.unwrap();
        assert_eq!(kept["record"], text);
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_runs_with_every_deploy_runs_although_its_ledger_is_lost() {
    let stage = Stage::new().await;
    stage.manifests("api.yaml", &[map("settings", "1")]);
    stage.succeed(&Wish::default(), &plan()).await;
    let maps = Api::<ConfigMap>::namespaced(stage.client(), "shop");
    let ledgers = maps.list(&ListParams::default().labels("jobwright.io/ledger")).await.unwrap();
    maps.delete(&ledgers.items[0].name_any(), &DeleteParams::default()).await.unwrap();
    stage.manifests("api.yaml", &[map("settings", "2")]);
    stage.succeed(&Wish::default(), &plan()).await;
    assert_eq!(runs(&stage), 2);
}

#[tokio::test(start_paused = true)]
async fn the_record_of_a_release_never_has_the_name_of_a_ledger() {
    for release in ["shop", "a-release-with-a-name-that-is-as-long-as-helm-accepts"] {
        let stage = Stage::new().await;
        stage.manifests("api.yaml", &[map("settings", "1")]);
        let wish = Wish { release, ..Wish::default() };
        stage.succeed(&wish, &plan()).await;
        let maps = Api::<ConfigMap>::namespaced(stage.client(), "shop");
        let names = |label: &'static str| {
            let maps = maps.clone();
            async move { maps.list(&ListParams::default().labels(label)).await.unwrap().items }
        };
        let (records, ledgers) = (names("jobwright.io/record").await, names("jobwright.io/ledger").await);
        assert_eq!((records.len(), ledgers.len()), (1, 1), "{release}");
        assert_ne!(records[0].name_any(), ledgers[0].name_any());
    }
}
