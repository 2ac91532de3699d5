//! Nodes, daemons on them, Services in front of pods, budgets and evictions.

use crate::lab::{Lab, image, sleep, template, workload};
use jobwright_drydock::Drydock;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, EvictParams};
use serde_json::{Value, json};

fn daemons(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": name}}, "template": template(name, "1")}})
}

async fn nodes_of_pods(lab: &Lab) -> Vec<String> {
    let mut nodes: Vec<String> =
        lab.list("pod").await.iter().map(|pod| pod["spec"]["nodeName"].as_str().unwrap_or("-").to_owned()).collect();
    nodes.sort();
    nodes
}

#[tokio::test(start_paused = true)]
async fn daemons_run_on_every_node_that_fits() {
    let lab = Lab::of(Drydock::builder().nodes(3));
    lab.patch("node", "drydock-3", json!({"spec": {"taints": [{"key": "special", "effect": "NoSchedule"}]}})).await;
    lab.create("ds", daemons("agent")).await;
    sleep(5.0).await;
    assert_eq!(nodes_of_pods(&lab).await, ["drydock", "drydock-2"]);
    let set = lab.get("ds", "agent").await;
    assert_eq!(
        set["status"],
        json!({"observedGeneration": 1, "desiredNumberScheduled": 2, "currentNumberScheduled": 2, "numberReady": 2,
            "numberAvailable": 2, "updatedNumberScheduled": 2, "numberMisscheduled": 0})
    );
    lab.patch("node", "drydock-3", json!({"spec": {"taints": null}})).await;
    sleep(5.0).await;
    assert_eq!(nodes_of_pods(&lab).await, ["drydock", "drydock-2", "drydock-3"]);

    lab.patch("ds", "agent", image("agent", "2")).await;
    for _ in 0..200 {
        sleep(0.1).await;
        let unavailable = lab.get("ds", "agent").await["status"]["numberUnavailable"].as_i64();
        assert!(unavailable.unwrap_or_default() <= 1, "one node after the other");
    }
    let set = lab.get("ds", "agent").await;
    assert_eq!(set["status"]["updatedNumberScheduled"], 3);
    let pods = lab.list("pod").await;
    assert!(pods.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "shop/agent:2"));
    assert_eq!(pods[0]["metadata"]["labels"]["pod-template-generation"], "2");
    assert_eq!(lab.names("revision").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn daemons_that_surge_are_never_fewer() {
    let lab = Lab::of(Drydock::builder().nodes(2));
    let mut set = daemons("agent");
    set["spec"]["updateStrategy"] = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    lab.create("ds", set).await;
    sleep(5.0).await;
    lab.patch("ds", "agent", image("agent", "2")).await;
    for _ in 0..100 {
        sleep(0.1).await;
        // The status counts the oldest pod of a node only, which may be on its way out.
        let pods = lab.list("pod").await;
        let ready = |pod: &&Value| {
            let conditions = pod["status"]["conditions"].as_array();
            conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"))
        };
        assert!(pods.iter().filter(ready).count() >= 2, "{pods:#?}");
    }
    assert_eq!(lab.get("ds", "agent").await["status"]["updatedNumberScheduled"], 2);
}

/// The one that is not the API's own.
async fn slice_of_web(lab: &Lab) -> Value {
    let slices = lab.list("slice").await;
    let of_web = |slice: &Value| slice["metadata"]["labels"]["kubernetes.io/service-name"] == "web";
    slices.into_iter().find(of_web).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn services_lead_to_pods_that_are_ready() {
    let lab = Lab::new();
    lab.create(
        "svc",
        json!({"metadata": {"name": "web", "labels": {"x": "z"}}, "spec": {"selector": {"app": "web"},
        "ports": [{"name": "a", "port": 80, "targetPort": "http"}, {"name": "b", "port": 81, "targetPort": 8080}]}}),
    )
    .await;
    sleep(0.1).await;
    assert_eq!(lab.get("endpoints", "web").await["subsets"], Value::Null);
    let slice = slice_of_web(&lab).await;
    assert_eq!((&slice["endpoints"], &slice["ports"]), (&Value::Null, &Value::Null));
    assert_eq!(
        slice["metadata"]["labels"],
        json!({"x": "z", "kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"})
    );

    lab.create("deploy", workload("web", 2)).await;
    sleep(5.0).await;
    let endpoints = lab.get("endpoints", "web").await;
    assert_eq!(
        endpoints["metadata"]["labels"],
        json!({"x": "z", "endpoints.kubernetes.io/managed-by": "endpoint-controller"})
    );
    let subset = &endpoints["subsets"][0];
    assert_eq!(subset["addresses"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        subset["ports"],
        json!([{"name": "a", "port": 80, "protocol": "TCP"}, {"name": "b", "port": 8080, "protocol": "TCP"}])
    );
    let now = slice_of_web(&lab).await;
    assert_eq!(now["metadata"]["name"], slice["metadata"]["name"], "the empty slice is filled");
    assert_eq!(now["endpoints"][0]["conditions"], json!({"ready": true, "serving": true, "terminating": false}));

    let pod = now["endpoints"][0]["targetRef"]["name"].as_str().unwrap().to_owned();
    lab.delete("pod", &pod).await;
    sleep(0.05).await;
    let slice = slice_of_web(&lab).await;
    let endpoint =
        slice["endpoints"].as_array().unwrap().iter().find(|it| it["targetRef"]["name"] == pod.as_str()).unwrap();
    assert_eq!(endpoint["conditions"], json!({"ready": false, "serving": true, "terminating": true}));
    assert_eq!(lab.get("endpoints", "web").await["subsets"][0]["addresses"].as_array().map(Vec::len), Some(1));
    lab.delete("svc", "web").await;
    sleep(0.1).await;
    assert_eq!(lab.names("endpoints").await, ["kubernetes"]);
    assert_eq!(lab.names("slice").await, ["kubernetes"]);
}

#[tokio::test(start_paused = true)]
async fn evictions_keep_to_the_budget() {
    let lab = Lab::new();
    lab.create("deploy", workload("web", 2)).await;
    lab.create(
        "pdb",
        json!({"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}),
    )
    .await;
    sleep(5.0).await;
    let status = lab.get("pdb", "web").await["status"].clone();
    assert_eq!(status["conditions"][0]["reason"], "SufficientPods");
    assert_eq!((&status["currentHealthy"], &status["disruptionsAllowed"]), (&json!(2), &json!(1)));
    let pods: Api<Pod> = Api::default_namespaced(lab.client.clone());
    let names = lab.names("pod").await;
    pods.evict(&names[0], &EvictParams::default()).await.unwrap();
    let gone = lab.get("pod", &names[0]).await;
    let target =
        gone["status"]["conditions"].as_array().unwrap().iter().find(|it| it["type"] == "DisruptionTarget").unwrap();
    assert_eq!(
        (&target["reason"], &target["message"]),
        (&json!("EvictionByEvictionAPI"), &json!("Eviction API: evicting"))
    );
    let Err(kube::Error::Api(refused)) = pods.evict(&names[1], &EvictParams::default()).await else {
        panic!("the budget is spent")
    };
    assert_eq!((refused.code, refused.reason.as_str()), (429, "TooManyRequests"));
    assert_eq!(refused.message, "Cannot evict pod as it would violate the pod's disruption budget.");
    let cause = &refused.details.as_ref().unwrap().causes[0];
    assert_eq!(cause.reason, "DisruptionBudget");
    sleep(0.1).await;
    let Err(kube::Error::Api(refused)) = pods.evict(&names[1], &EvictParams::default()).await else { panic!() };
    let cause = &refused.details.as_ref().unwrap().causes[0];
    assert_eq!(cause.message, "The disruption budget web needs 1 healthy pods and has 1 currently");
    sleep(10.0).await;
    pods.evict(&names[1], &EvictParams::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lost_node_is_missed_tainted_and_emptied_and_comes_back() {
    let lab = Lab::of(Drydock::builder().nodes(2));
    lab.create("deploy", workload("web", 2)).await;
    lab.create("sts", workload("db", 2)).await;
    sleep(10.0).await;
    assert_eq!(nodes_of_pods(&lab).await, ["drydock", "drydock", "drydock-2", "drydock-2"]);
    assert!(lab.drydock.lose_node("drydock-2"));
    assert!(!lab.drydock.lose_node("nowhere"));
    sleep(35.0).await;
    assert_eq!(lab.get("node", "drydock-2").await["spec"]["taints"], Value::Null);
    sleep(16.0).await;
    let node = lab.get("node", "drydock-2").await;
    let taints: Vec<String> =
        node["spec"]["taints"].as_array().unwrap().iter().map(|it| format!("{}:{}", it["key"], it["effect"])).collect();
    assert_eq!(
        taints,
        ["\"node.kubernetes.io/unreachable\":\"NoSchedule\"", "\"node.kubernetes.io/unreachable\":\"NoExecute\""]
    );
    assert!(
        lab.conditions("node", "drydock-2")
            .await
            .contains(&"Ready=Unknown NodeStatusUnknown: Kubelet stopped posting node status.".to_owned())
    );
    assert_eq!(lab.get("deploy", "web").await["status"]["readyReplicas"], 1);

    sleep(290.0).await;
    assert!(lab.list("pod").await.iter().all(|pod| pod["metadata"]["deletionTimestamp"] == Value::Null));
    sleep(15.0).await;
    // Those of the Deployment are replaced elsewhere; the set waits for its own.
    assert_eq!(nodes_of_pods(&lab).await, ["drydock", "drydock", "drydock", "drydock-2", "drydock-2"]);
    sleep(3600.0).await;
    assert_eq!(
        nodes_of_pods(&lab).await,
        ["drydock", "drydock", "drydock", "drydock-2", "drydock-2"],
        "they cannot stop"
    );
    assert_eq!(lab.get("sts", "db").await["status"]["readyReplicas"], 1);

    assert!(lab.drydock.restore_node("drydock-2"));
    sleep(30.0).await;
    let node = lab.get("node", "drydock-2").await;
    assert_eq!(node["spec"]["taints"], Value::Null);
    assert_eq!(lab.get("sts", "db").await["status"]["readyReplicas"], 2);
    assert_eq!(lab.names("pod").await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_cordoned_node_gets_no_more_pods() {
    let lab = Lab::new();
    lab.patch("node", "drydock", json!({"spec": {"unschedulable": true}})).await;
    lab.create("deploy", workload("web", 1)).await;
    sleep(1.0).await;
    let pod = lab.names("pod").await.remove(0);
    assert_eq!(
        lab.events("pod", &pod).await,
        [
            "FailedScheduling 0/1 nodes are available: 1 node(s) were unschedulable. no new claims to deallocate, preemption: \
          0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        ]
    );
    assert_eq!(lab.get("node", "drydock").await["spec"]["taints"][0]["key"], "node.kubernetes.io/unschedulable");
    lab.patch("node", "drydock", json!({"spec": {"unschedulable": null}})).await;
    sleep(5.0).await;
    assert_eq!(lab.get("deploy", "web").await["status"]["readyReplicas"], 1);
    assert_eq!(lab.get("node", "drydock").await["spec"]["taints"], Value::Null);
}
