//! StatefulSets: order, updates, claims, and where they get stuck.

mod lab;

use lab::{Lab, image, sleep, workload};
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
