//! Objects that a Helm release adopts.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::support::{Instead, Lab, place, status};
use jobwright_engine::JobOutcome;
use jobwright_jobs::{Adopt, ObjectReference};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

fn adopt(release: &str, kinds: &[(&str, &str, &str)]) -> Adopt {
    let object = |(version, kind, name): &(&str, &str, &str)| ObjectReference {
        api_version: (*version).to_owned(),
        kind: (*kind).to_owned(),
        name: (*name).to_owned(),
        namespace: None,
    };
    let objects = kinds.iter().map(object).collect();
    Adopt { place: place("adopt"), objects, release: release.to_owned(), namespace: None, force: false }
}

const MAP: (&str, &str, &str) = ("v1", "ConfigMap", "settings");

fn settings(metadata: Value) -> Value {
    let mut map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}});
    map["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    map
}

#[tokio::test(start_paused = true)]
async fn a_fresh_cluster_has_nothing_to_adopt() {
    let lab = Lab::new();
    let (report, _) = lab.run(adopt("api", &[MAP, ("networking.istio.io/v1", "Gateway", "gateway")])).await;
    assert_eq!(
        (report.outcome, report.reason.as_str()),
        (JobOutcome::Skipped, "not needed: there is nothing to adopt")
    );
    assert!(lab.api("v1", "ConfigMap").get_opt("settings").await.unwrap().is_none(), "nothing was made");
}

#[tokio::test(start_paused = true)]
async fn what_is_there_gets_an_owner_and_keeps_everything_else() {
    let lab = Lab::new();
    lab.apply(settings(json!({"labels": {"app": "shop"}}))).await;
    let role =
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"}});
    lab.apply(role).await;
    let job =
        || adopt("api", &[MAP, ("rbac.authorization.k8s.io/v1", "ClusterRole", "reader"), ("v1", "Secret", "none")]);
    let (report, lines) = lab.run(job()).await;
    assert_eq!(report.outcome, JobOutcome::Succeeded, "{}", report.reason);
    assert_eq!(
        lines,
        ["ConfigMap `settings` belongs to release api now", "ClusterRole `reader` belongs to release api now"]
    );
    let map = lab.get("v1", "ConfigMap", "settings").await;
    assert_eq!(map["metadata"]["labels"], json!({"app": "shop", "app.kubernetes.io/managed-by": "Helm"}));
    let owner = json!({"meta.helm.sh/release-name": "api", "meta.helm.sh/release-namespace": "default"});
    assert_eq!((&map["metadata"]["annotations"], &map["data"]["a"]), (&owner, &json!("1")));
    let (again, _) = lab.run(job()).await;
    assert_eq!(again.reason, "not needed: all of it belongs to release api");
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_another_release_is_only_taken_by_force() {
    let lab = Lab::new();
    let annotations = json!({"meta.helm.sh/release-name": "old", "meta.helm.sh/release-namespace": "default"});
    let labels = json!({"app.kubernetes.io/managed-by": "Helm"});
    lab.apply(settings(json!({"annotations": annotations, "labels": labels}))).await;
    let (report, _) = lab.run(adopt("api", &[MAP])).await;
    assert_eq!(report.reason, "ConfigMap `settings` belongs to release default/old; `force: true` takes it away");
    let (report, _) = lab.run(Adopt { force: true, ..adopt("api", &[MAP]) }).await;
    assert_eq!(report.outcome, JobOutcome::Succeeded, "{}", report.reason);
    let map = lab.get("v1", "ConfigMap", "settings").await;
    assert_eq!(map["metadata"]["annotations"]["meta.helm.sh/release-name"], "api");
}

#[tokio::test(start_paused = true)]
async fn another_manager_of_the_label_is_heard() {
    let lab = Lab::new();
    lab.apply(settings(json!({"labels": {"app.kubernetes.io/managed-by": "hand"}}))).await;
    let (report, _) = lab.run(adopt("api", &[MAP])).await;
    assert!(report.reason.contains("has another manager") && report.reason.contains("\"test\""), "{}", report.reason);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_judged_by_its_cause_and_not_by_its_message() {
    let lab = Lab::new();
    lab.apply(settings(json!({}))).await;
    let patches = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&patches);
    lab.interceptor.set(move |method, path| {
        if method != "PATCH" || !path.ends_with("/configmaps/settings") {
            return None;
        }
        let message = "Operation cannot be fulfilled: conflict with a concurrent write";
        let is_first = counted.fetch_add(1, Ordering::Relaxed) == 0;
        is_first.then(|| Instead::Answer(409, status(409, "Conflict", message)))
    });
    let (report, _) = lab.run(adopt("api", &[MAP])).await;
    assert_eq!((report.outcome, report.attempts), (JobOutcome::Succeeded, 1), "{}", report.reason);
    assert_eq!(patches.load(Ordering::Relaxed), 2);
}
