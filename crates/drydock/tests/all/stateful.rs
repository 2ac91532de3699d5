//! StatefulSets: order, updates, claims, and where they get stuck.

use crate::lab::{Lab, image, sleep, workload};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn pods_come_in_order_and_are_updated_from_the_last_one() {
    let lab = Lab::new();
    lab.create("sts", workload("db", 3)).await;
    sleep(10.0).await;
    assert_eq!(lab.names("pod").await, ["db-0", "db-1", "db-2"]);
    let set = lab.get("sts", "db").await;
    let first = set["status"]["currentRevision"].clone();
    assert_eq!(
        set["status"],
        json!({"observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "currentReplicas": 3,
            "updatedReplicas": 3, "currentRevision": first, "updateRevision": first, "collisionCount": 0})
    );
    let pod = lab.get("pod", "db-1").await;
    assert_eq!(
        pod["metadata"]["labels"],
        json!({"app": "db", "apps.kubernetes.io/pod-index": "1", "controller-revision-hash": first,
            "statefulset.kubernetes.io/pod-name": "db-1"})
    );
    assert_eq!(pod["spec"]["hostname"], "db-1");

    lab.patch("sts", "db", image("db", "2")).await;
    sleep(30.0).await;
    let told = |verb: &str, pod: u32| {
        let title = if verb == "create" { "Create" } else { "Delete" };
        format!("Successful{title} {verb} Pod db-{pod} in StatefulSet db successful")
    };
    let set = lab.get("sts", "db").await;
    assert_ne!(set["status"]["currentRevision"], first);
    assert_eq!(set["status"]["currentRevision"], set["status"]["updateRevision"]);
    // Those that repeat are counted, and come last.
    let mut events = lab.events("sts", "db").await;
    events.retain(|event| event.starts_with("SuccessfulDelete"));
    assert_eq!(events, [told("delete", 2), told("delete", 1), told("delete", 0)]);
    assert_eq!(lab.names("revision").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_update_does_not_heal_a_pod_that_never_got_ready() {
    let lab = Lab::new();
    let mut set = workload("db", 2);
    // No node is like that: the pod waits for ever.
    set["spec"]["template"]["spec"]["nodeSelector"] = json!({"disk": "fast"});
    lab.create("sts", set).await;
    sleep(5.0).await;
    lab.patch("sts", "db", json!({"spec": {"template": {"spec": {"nodeSelector": null}}}})).await;
    sleep(600.0).await;
    let (set, pod) = (lab.get("sts", "db").await, lab.get("pod", "db-0").await);
    assert_ne!(set["status"]["updateRevision"], set["status"]["currentRevision"]);
    assert_eq!(pod["metadata"]["labels"]["controller-revision-hash"], set["status"]["currentRevision"]);
    assert_eq!(lab.names("pod").await, ["db-0"]);
    // Whoever deletes it by hand gets the update.
    lab.delete("pod", "db-0").await;
    sleep(60.0).await;
    assert_eq!(lab.names("pod").await, ["db-0", "db-1"]);
    let set = lab.get("sts", "db").await;
    assert_eq!(set["status"]["updatedReplicas"], 2);
    assert_eq!(set["status"]["updateRevision"], set["status"]["currentRevision"]);
}

#[tokio::test(start_paused = true)]
async fn claims_outlive_their_pods_unless_told_otherwise() {
    for (policy, scaled, deleted) in [
        (json!({}), vec!["data-db-0", "data-db-1"], vec!["data-db-0", "data-db-1"]),
        (json!({"whenScaled": "Delete"}), vec!["data-db-0"], vec!["data-db-0"]),
        (json!({"whenDeleted": "Delete"}), vec!["data-db-0", "data-db-1"], vec![]),
        (json!({"whenScaled": "Delete", "whenDeleted": "Delete"}), vec!["data-db-0"], vec![]),
    ] {
        let lab = Lab::new();
        let mut set = workload("db", 2);
        set["spec"]["persistentVolumeClaimRetentionPolicy"] = policy.clone();
        set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
        lab.create("sts", set).await;
        sleep(10.0).await;
        assert_eq!(lab.names("claim").await, ["data-db-0", "data-db-1"]);
        assert_eq!(lab.get("sts", "db").await["status"]["readyReplicas"], 2);
        assert_eq!(
            lab.events("sts", "db").await[..2],
            [
                "SuccessfulCreate create Claim data-db-0 Pod db-0 in StatefulSet db success",
                "SuccessfulCreate create Pod db-0 in StatefulSet db successful"
            ]
        );
        lab.patch("sts", "db", json!({"spec": {"replicas": 1}})).await;
        sleep(10.0).await;
        assert_eq!(lab.names("claim").await, scaled, "{policy}");
        lab.delete("sts", "db").await;
        sleep(10.0).await;
        assert_eq!(lab.names("pod").await, [""; 0]);
        assert_eq!(lab.names("claim").await, deleted, "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn parallel_sets_start_where_they_are_told_all_at_once() {
    let lab = Lab::new();
    let mut set = workload("db", 3);
    set["spec"]["podManagementPolicy"] = json!("Parallel");
    set["spec"]["ordinals"] = json!({"start": 5});
    lab.create("sts", set).await;
    sleep(0.2).await;
    assert_eq!(lab.names("pod").await, ["db-5", "db-6", "db-7"]);
    sleep(5.0).await;
    // A partition keeps the first ones as they are.
    let mut update = image("db", "2");
    update["spec"]["updateStrategy"] = json!({"rollingUpdate": {"partition": 2}});
    lab.patch("sts", "db", update).await;
    sleep(30.0).await;
    let set = lab.get("sts", "db").await;
    assert_eq!((&set["status"]["currentReplicas"], &set["status"]["updatedReplicas"]), (&json!(2), &json!(1)));
    let pod = lab.get("pod", "db-7").await;
    assert_eq!(pod["metadata"]["labels"]["controller-revision-hash"], set["status"]["updateRevision"]);
}
