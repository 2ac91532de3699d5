//! Deployments and ReplicaSets: what a rollout does, tells and reports, as a real cluster was seen to do it.

mod lab;

use lab::{Lab, image, sleep, workload};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_deployment_becomes_available_and_says_so() {
    let lab = Lab::new();
    lab.create("deploy", workload("web", 3)).await;
    sleep(0.1).await;
    let sets = lab.names("rs").await;
    let name = sets[0].as_str();
    assert_eq!(
        lab.conditions("deploy", "web").await,
        [
            "Available=False MinimumReplicasUnavailable: Deployment does not have minimum availability.".to_owned(),
            format!("Progressing=True ReplicaSetUpdated: ReplicaSet \"{name}\" is progressing."),
        ]
    );
    sleep(5.0).await;
    assert_eq!(
        lab.conditions("deploy", "web").await,
        [
            "Available=True MinimumReplicasAvailable: Deployment has minimum availability.".to_owned(),
            format!("Progressing=True NewReplicaSetAvailable: ReplicaSet \"{name}\" has successfully progressed."),
        ]
    );
    assert_eq!(
        lab.events("deploy", "web").await,
        [format!("ScalingReplicaSet Scaled up replica set {name} from 0 to 3")]
    );
    assert_eq!(lab.events("rs", name).await.len(), 3);
    let deployment = lab.get("deploy", "web").await;
    assert_eq!(deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    let mut status = deployment["status"].clone();
    status.as_object_mut().unwrap().remove("conditions");
    assert_eq!(
        status,
        json!({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3})
    );
    let set = lab.get("rs", name).await;
    assert_eq!(
        set["metadata"]["annotations"],
        json!({"deployment.kubernetes.io/desired-replicas": "3", "deployment.kubernetes.io/max-replicas": "4",
            "deployment.kubernetes.io/revision": "1"})
    );
    assert_eq!(
        set["status"],
        json!({"observedGeneration": 1, "replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 3, "availableReplicas": 3})
    );
}

#[tokio::test(start_paused = true)]
async fn a_rollout_moves_one_by_one_within_its_bounds() {
    let lab = Lab::new();
    lab.create("deploy", workload("web", 3)).await;
    sleep(5.0).await;
    let old = lab.names("rs").await.remove(0);
    lab.patch("deploy", "web", image("web", "2")).await;
    sleep(20.0).await;
    let new = lab.names("rs").await.into_iter().find(|name| *name != old).unwrap();
    // Recorded on a cluster of 1.34.
    let expected = [
        format!("Scaled up replica set {old} from 0 to 3"),
        format!("Scaled up replica set {new} from 0 to 1"),
        format!("Scaled down replica set {old} from 3 to 2"),
        format!("Scaled up replica set {new} from 1 to 2"),
        format!("Scaled down replica set {old} from 2 to 1"),
        format!("Scaled up replica set {new} from 2 to 3"),
        format!("Scaled down replica set {old} from 1 to 0"),
    ]
    .map(|message| format!("ScalingReplicaSet {message}"));
    assert_eq!(lab.events("deploy", "web").await, expected);
    let deployment = lab.get("deploy", "web").await;
    assert_eq!(deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "2");
    assert_eq!(lab.names("pod").await.len(), 3);
}
