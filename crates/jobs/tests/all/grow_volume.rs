//! Volumes that grow, after it is certain that they can.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::support::{Instead, Lab, deployment, place, status};
use jobwright_engine::JobOutcome;
use jobwright_jobs::{GrowVolume, Workload};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

fn grow(to: &str) -> GrowVolume {
    let to = to.parse().unwrap();
    GrowVolume { place: place("grow"), claim: "data".to_owned(), to, detach: None, patience: GrowVolume::PATIENCE }
}

async fn cluster(expansion: bool, size: &str) -> Lab {
    let lab = Lab::new();
    lab.apply(json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"},
        "provisioner": "test/fast", "allowVolumeExpansion": expansion}))
        .await;
    lab.apply(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {
        "storageClassName": "fast", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}}))
        .await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    lab
}

async fn requested(lab: &Lab) -> Value {
    lab.get("v1", "PersistentVolumeClaim", "data").await["spec"]["resources"]["requests"]["storage"].clone()
}

/// Somebody who expands volumes: notices, takes a while, and is done when nobody uses it or somebody mounts it.
pub(crate) fn expander(lab: &Lab) -> tokio::task::JoinHandle<()> {
    let claims = Api::<PersistentVolumeClaim>::default_namespaced(lab.client());
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(7)).await;
            let claim = serde_json::to_value(claims.get("data").await.unwrap()).unwrap();
            let wanted = &claim["spec"]["resources"]["requests"]["storage"];
            if claim["status"]["capacity"]["storage"] != *wanted {
                let patch = json!({"status": {"capacity": {"storage": wanted}}});
                claims.patch_status("data", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_volume_grows_and_is_waited_for() {
    let lab = cluster(true, "10Gi").await;
    let expander = expander(&lab);
    let (report, lines) = lab.run(grow("30Gi")).await;
    expander.abort();
    assert_eq!(report.outcome, JobOutcome::Succeeded, "{}", report.reason);
    assert_eq!(lines, ["asked for 30Gi instead of 10Gi", "it is being expanded", "it has 30Gi"]);
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_is_missing_or_large_enough_is_left_alone() {
    let lab = Lab::new();
    let (report, _) = lab.run(grow("30Gi")).await;
    assert_eq!(report.reason, "not needed: claim `data` is not there yet");
    let lab = cluster(true, "50Gi").await;
    let (report, _) = lab.run(grow("30Gi")).await;
    assert_eq!(report.reason, "not needed: claim `data` has 50Gi", "volumes never shrink");
    assert_eq!(requested(&lab).await, "50Gi");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_changed_where_it_cannot_work() {
    let lab = cluster(false, "10Gi").await;
    let (report, _) = lab.run(grow("30Gi")).await;
    assert_eq!(report.outcome, JobOutcome::Failed);
    assert!(
        report.reason.contains("storage class `fast` of claim `data` does not allow volumes to grow"),
        "{}",
        report.reason
    );
    assert!(report.reason.contains("kubectl patch storageclass fast"), "{}", report.reason);
    assert_eq!(requested(&lab).await, "10Gi");

    let lab = cluster(true, "10Gi").await;
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}, "spec": {"hard": {"requests.storage": "20Gi"}}});
    lab.apply(quota).await;
    let quotas = lab.api("v1", "ResourceQuota");
    let used = json!({"status": {"hard": {"requests.storage": "20Gi"}, "used": {"requests.storage": "10Gi"}}});
    quotas.patch_status("small", &PatchParams::default(), &Patch::Merge(used)).await.unwrap();
    let (report, _) = lab.run(grow("30Gi")).await;
    assert_eq!(
        report.reason,
        "quota `small` has no room: requests.storage allows 20Gi, 10Gi are used, and claim `data` would go from 10Gi to 30Gi"
    );
    assert_eq!(requested(&lab).await, "10Gi");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_an_expander_is_told_after_a_while() {
    let lab = cluster(true, "10Gi").await;
    let (report, _) = lab.run(grow("30Gi")).await;
    assert_eq!(report.outcome, JobOutcome::Failed);
    assert!(
        report.reason.starts_with("no expander on this cluster: nobody has begun to expand claim `data` within 120s"),
        "{}",
        report.reason
    );
    assert!(report.reason.contains("by hand:"), "{}", report.reason);
    assert!(report.took < Duration::from_mins(3));
}

fn detaching() -> GrowVolume {
    let workload = Workload { kind: "Deployment".to_owned(), name: "db".to_owned() };
    GrowVolume { detach: Some(workload), ..grow("30Gi") }
}

async fn with_database(lab: &Lab) {
    lab.apply(deployment("db")).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
}

async fn replicas(lab: &Lab) -> (Value, bool) {
    let database = lab.get("apps/v1", "Deployment", "db").await;
    let marked = database["metadata"]["annotations"].get("jobwright.io/replicas-before").is_some();
    (database["spec"]["replicas"].clone(), marked)
}

#[tokio::test(start_paused = true)]
async fn a_workload_lets_go_meanwhile_and_comes_back() {
    let lab = cluster(true, "10Gi").await;
    with_database(&lab).await;
    let expander = expander(&lab);
    let (report, lines) = lab.run(detaching()).await;
    expander.abort();
    assert_eq!(report.outcome, JobOutcome::Succeeded, "{}", report.reason);
    assert_eq!(
        lines,
        [
            "Deployment `db` is scaled down from 2, so that nobody uses the volume",
            "asked for 30Gi instead of 10Gi",
            "it is being expanded",
            "Deployment `db` is back at 2",
            "it has 30Gi",
        ]
    );
    assert_eq!(replicas(&lab).await, (json!(2), false));
}

#[tokio::test(start_paused = true)]
async fn a_workload_comes_back_when_the_volume_cannot_grow_or_the_deploy_is_cancelled() {
    let lab = cluster(true, "10Gi").await;
    with_database(&lab).await;
    let (report, _) = lab.run(detaching()).await;
    assert!(report.reason.starts_with("no expander"), "{}", report.reason);
    assert_eq!(replicas(&lab).await, (json!(2), false));

    let lab = cluster(true, "10Gi").await;
    with_database(&lab).await;
    let token = lab.cancellation.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_mins(1)).await;
        token.cancel();
    });
    let (report, _) = lab.run(detaching()).await;
    assert_eq!(report.outcome, JobOutcome::Failed);
    assert_eq!(replicas(&lab).await, (json!(2), false));
}

#[tokio::test(start_paused = true)]
async fn a_workload_that_a_dead_deploy_left_scaled_down_is_put_back() {
    let lab = cluster(true, "50Gi").await;
    let mut database = deployment("db");
    database["metadata"]["annotations"] = json!({"jobwright.io/replicas-before": "3"});
    database["spec"]["replicas"] = json!(0);
    lab.apply(database).await;
    let (report, _) = lab.run(detaching()).await;
    assert_eq!(report.outcome, JobOutcome::Succeeded, "{}", report.reason);
    assert_eq!(replicas(&lab).await, (json!(3), false));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_unavailable_for_a_moment_has_not_refused() {
    let lab = cluster(true, "10Gi").await;
    let expander = expander(&lab);
    let patches = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&patches);
    lab.interceptor.set(move |method, path| {
        if method != "PATCH" || !path.ends_with("/persistentvolumeclaims/data") {
            return None;
        }
        let is_first = counted.fetch_add(1, Ordering::Relaxed) == 0;
        is_first.then(|| Instead::Answer(503, status(503, "ServiceUnavailable", "one moment")))
    });
    let (report, _) = lab.run(grow("30Gi")).await;
    expander.abort();
    assert_eq!((report.outcome, report.attempts), (JobOutcome::Succeeded, 1), "{}", report.reason);
    // The failed one, its repetition, and the change itself.
    assert_eq!(patches.load(Ordering::Relaxed), 3);
}
