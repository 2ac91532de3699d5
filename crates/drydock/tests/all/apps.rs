//! Deployments and ReplicaSets: what a rollout does, tells and reports, as a real cluster was seen to do it.

use crate::lab::{Lab, image, sleep, workload};
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

#[tokio::test(start_paused = true)]
async fn going_back_uses_the_set_that_was_there() {
    let lab = Lab::new();
    lab.create("deploy", workload("web", 1)).await;
    sleep(5.0).await;
    let first = lab.names("rs").await.remove(0);
    lab.patch("deploy", "web", image("web", "2")).await;
    sleep(10.0).await;
    // What `kubectl rollout undo` does: the template of the earlier set, without the hash.
    lab.patch("deploy", "web", image("web", "1")).await;
    sleep(10.0).await;
    assert_eq!(lab.names("rs").await.len(), 2);
    let set = lab.get("rs", &first).await;
    assert_eq!(set["status"]["availableReplicas"], 1);
    let annotations = &set["metadata"]["annotations"];
    assert_eq!(annotations["deployment.kubernetes.io/revision"], "3");
    assert_eq!(annotations["deployment.kubernetes.io/revision-history"], "1");
    assert_eq!(lab.get("deploy", "web").await["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "3");
}

#[tokio::test(start_paused = true)]
async fn only_so_many_old_sets_are_kept() {
    let lab = Lab::new();
    let mut deployment = workload("web", 1);
    deployment["spec"]["revisionHistoryLimit"] = json!(1);
    lab.create("deploy", deployment).await;
    for version in 2..5 {
        sleep(10.0).await;
        lab.patch("deploy", "web", image("web", &version.to_string())).await;
    }
    sleep(10.0).await;
    let revisions: Vec<_> = lab
        .list("rs")
        .await
        .iter()
        .map(|set| set["metadata"]["annotations"]["deployment.kubernetes.io/revision"].clone())
        .collect();
    assert_eq!(revisions, ["3", "4"]);
}

#[tokio::test(start_paused = true)]
async fn recreating_waits_until_the_last_old_pod_is_gone() {
    let lab = Lab::new();
    let mut deployment = workload("web", 2);
    deployment["spec"]["strategy"] = json!({"type": "Recreate"});
    deployment["spec"]["template"]["spec"]["containers"][0]["command"] =
        json!(["sh", "-c", "trap '' TERM; sleep 1000"]);
    deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(20);
    lab.create("deploy", deployment).await;
    sleep(5.0).await;
    let old = lab.names("rs").await.remove(0);
    lab.patch("deploy", "web", json!({"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}})).await;
    sleep(10.0).await;
    let told = lab.events("deploy", "web").await;
    assert_eq!(told.last().unwrap(), &format!("ScalingReplicaSet Scaled down replica set {old} from 2 to 0"));
    assert_eq!(lab.names("rs").await.len(), 1, "the new set comes when the old pods are gone");
    sleep(30.0).await;
    let told = lab.events("deploy", "web").await;
    assert!(told.last().unwrap().ends_with("from 0 to 2"), "{told:?}");
    assert_eq!(lab.get("deploy", "web").await["status"]["availableReplicas"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_does_not_get_on_times_out_and_can_still_succeed() {
    let lab = Lab::new();
    let mut deployment = workload("web", 1);
    deployment["spec"]["progressDeadlineSeconds"] = json!(30);
    lab.create("deploy", deployment).await;
    sleep(5.0).await;
    lab.patch("deploy", "web", json!({"spec": {"template": {"spec": {"nodeSelector": {"disk": "fast"}}}}})).await;
    sleep(20.0).await;
    assert!(lab.conditions("deploy", "web").await[1].starts_with("Progressing=True ReplicaSetUpdated"));
    sleep(15.0).await;
    let new = lab.list("rs").await.remove(1)["metadata"]["name"].clone();
    assert_eq!(
        lab.conditions("deploy", "web").await,
        [
            "Available=True MinimumReplicasAvailable: Deployment has minimum availability.".to_owned(),
            format!("Progressing=False ProgressDeadlineExceeded: ReplicaSet {new} has timed out progressing."),
        ]
    );
    lab.patch("node", "drydock", json!({"metadata": {"labels": {"disk": "fast"}}})).await;
    sleep(10.0).await;
    assert!(lab.conditions("deploy", "web").await[1].starts_with("Progressing=True NewReplicaSetAvailable"));
}

#[tokio::test(start_paused = true)]
async fn a_missing_account_is_told_everywhere() {
    let lab = Lab::new();
    let mut deployment = workload("bad", 3);
    deployment["spec"]["template"]["spec"]["serviceAccountName"] = json!("nope");
    lab.create("deploy", deployment).await;
    sleep(2.0).await;
    let set = lab.names("rs").await.remove(0);
    // Recorded on a cluster of 1.34.
    let why = format!(
        "pods \"{set}-\" is forbidden: error looking up service account default/nope: serviceaccount \"nope\" not found"
    );
    assert_eq!(lab.events("rs", &set).await, [format!("FailedCreate Error creating: {why}")]);
    assert_eq!(lab.conditions("rs", &set).await, [format!("ReplicaFailure=True FailedCreate: {why}")]);
    assert_eq!(
        lab.conditions("deploy", "bad").await,
        [
            "Available=False MinimumReplicasUnavailable: Deployment does not have minimum availability.".to_owned(),
            format!("Progressing=True NewReplicaSetCreated: Created new replica set \"{set}\""),
            format!("ReplicaFailure=True FailedCreate: {why}"),
        ]
    );
    assert_eq!(lab.get("deploy", "bad").await["status"]["unavailableReplicas"], 3);
    lab.create("account", json!({"metadata": {"name": "nope"}})).await;
    sleep(20.0).await;
    assert_eq!(lab.get("deploy", "bad").await["status"]["availableReplicas"], 3);
    assert_eq!(lab.conditions("rs", &set).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_paused_deployment_keeps_its_template_but_scales() {
    let lab = Lab::new();
    lab.create("deploy", workload("web", 2)).await;
    sleep(5.0).await;
    let mut change = image("web", "2");
    change["spec"]["paused"] = json!(true);
    change["spec"]["replicas"] = json!(3);
    lab.patch("deploy", "web", change).await;
    sleep(5.0).await;
    assert_eq!(lab.conditions("deploy", "web").await[1], "Progressing=Unknown DeploymentPaused: Deployment is paused");
    assert_eq!(lab.names("rs").await.len(), 1);
    assert_eq!(lab.names("pod").await.len(), 3);
    lab.patch("deploy", "web", json!({"spec": {"paused": null}})).await;
    sleep(15.0).await;
    assert_eq!(lab.names("rs").await.len(), 2);
    assert!(lab.conditions("deploy", "web").await[1].starts_with("Progressing=True NewReplicaSetAvailable"));
}

#[tokio::test(start_paused = true)]
async fn scaling_during_a_rollout_is_shared_out() {
    let lab = Lab::new();
    let mut deployment = workload("web", 10);
    deployment["spec"]["strategy"] = json!({"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}});
    lab.create("deploy", deployment).await;
    sleep(5.0).await;
    lab.patch("deploy", "web", json!({"spec": {"template": {"spec": {"nodeSelector": {"disk": "fast"}}}}})).await;
    sleep(5.0).await;
    let sizes = || async {
        let sets = lab.list("rs").await;
        sets.iter().map(|set| set["spec"]["replicas"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    // The example of the documentation: 8 and 5, and with fifteen wanted 11 and 7.
    assert_eq!(sizes().await, [8, 5]);
    lab.patch("deploy", "web", json!({"spec": {"replicas": 15}})).await;
    sleep(5.0).await;
    assert_eq!(sizes().await, [11, 7]);
}

#[tokio::test(start_paused = true)]
async fn pods_are_adopted_and_let_go_by_their_labels() {
    let lab = Lab::new();
    let pod = json!({"metadata": {"name": "stray", "labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "shop/web:1"}]}});
    lab.create("pod", pod).await;
    lab.create("rs", workload("web", 2)).await;
    sleep(5.0).await;
    assert_eq!(lab.names("pod").await.len(), 2);
    assert_eq!(lab.get("pod", "stray").await["metadata"]["ownerReferences"][0]["name"], "web");
    lab.patch("pod", "stray", json!({"metadata": {"labels": {"app": "quarantine"}}})).await;
    sleep(5.0).await;
    assert_eq!(lab.names("pod").await.len(), 3);
    assert_eq!(lab.get("pod", "stray").await["metadata"].get("ownerReferences"), None);
    // The same for its elder.
    let elder = json!({"metadata": {"name": "elder"}, "spec": {"replicas": 1, "selector": {"app": "quarantine"},
        "template": {"metadata": {"labels": {"app": "quarantine"}}, "spec": {"containers": [{"name": "main", "image": "shop/web:1"}]}}}});
    lab.create("rc", elder).await;
    sleep(5.0).await;
    assert_eq!(lab.get("pod", "stray").await["metadata"]["ownerReferences"][0]["kind"], "ReplicationController");
    assert_eq!(lab.get("rc", "elder").await["status"]["availableReplicas"], 1);
    // Its elder leaves them alone when it goes.
    lab.delete("rc", "elder").await;
    sleep(5.0).await;
    assert_eq!(lab.get("pod", "stray").await["metadata"].get("ownerReferences"), None);
    lab.delete("rs", "web").await;
    sleep(5.0).await;
    assert_eq!(lab.names("pod").await, ["stray"]);
}

#[tokio::test(start_paused = true)]
async fn pods_have_to_be_ready_for_a_while_to_be_available() {
    let lab = Lab::new();
    let mut deployment = workload("web", 1);
    deployment["spec"]["minReadySeconds"] = json!(20);
    lab.create("deploy", deployment).await;
    sleep(10.0).await;
    let status = lab.get("deploy", "web").await["status"].clone();
    assert_eq!((&status["readyReplicas"], &status["availableReplicas"]), (&json!(1), &json!(null)));
    sleep(13.0).await;
    assert_eq!(lab.get("deploy", "web").await["status"]["availableReplicas"], 1);
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_that_its_manager_applies_in_another_version_stays_whole() {
    use k8s_openapi::api::autoscaling::{v1, v2};
    use kube::api::{Api, Patch, PatchParams};
    let lab = Lab::new();
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let body = |version: &str, more: serde_json::Value| {
        let mut spec = json!({"scaleTargetRef": target, "maxReplicas": 3});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web"}, "spec": spec})
    };
    let (first, second) = (
        Api::<v1::HorizontalPodAutoscaler>::default_namespaced(lab.client.clone()),
        Api::<v2::HorizontalPodAutoscaler>::default_namespaced(lab.client.clone()),
    );
    let parameters = PatchParams::apply("manager");
    let before = body("v1", json!({"targetCPUUtilizationPercentage": 50}));
    first.patch("web", &parameters, &Patch::Apply(before)).await.unwrap();
    second.patch("web", &parameters, &Patch::Apply(body("v2", json!({"minReplicas": 2})))).await.unwrap();
    let raw = |path: &str| http::Request::get(path.to_owned()).body(Vec::new()).unwrap();
    for version in ["v1", "v2"] {
        let path = format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers/web");
        let read: serde_json::Value = lab.client.request(raw(&path)).await.unwrap();
        assert_eq!(read["apiVersion"], json!(format!("autoscaling/{version}")));
        assert_eq!((&read["spec"]["minReplicas"], &read["spec"]["maxReplicas"]), (&json!(2), &json!(3)));
    }
}
