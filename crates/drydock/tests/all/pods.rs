//! Pods that wait, prepare, fail and are held. The texts are those of a real cluster, Kubernetes 1.34.10.

use crate::lab::{Lab, sleep};
use jobwright_drydock::{Behaviour, Drydock, Match, Script};
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};
use std::time::Duration;

fn container(name: &str, line: &str) -> Value {
    json!({"name": name, "image": "busybox:1", "command": ["sh", "-c", line]})
}

fn pod(spec: Value) -> Value {
    json!({"metadata": {"name": "pod"}, "spec": spec})
}

/// What a container does, by its status: `waiting PodInitializing`.
fn state(pod: &Value, list: &str, index: usize) -> String {
    let states = pod["status"][list][index]["state"].as_object().into_iter().flatten();
    let named = states.map(|(state, detail)| format!("{state} {}", detail["reason"].as_str().unwrap_or_default()));
    named.collect::<Vec<_>>().join(", ").trim_end().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_gate_holds_a_pod_until_it_is_taken_away() {
    let lab = Lab::new();
    let gated = json!({"schedulingGates": [{"name": "example.com/wait"}], "restartPolicy": "Never",
        "containers": [container("main", "echo x")]});
    lab.create("pod", pod(gated)).await;
    sleep(600.0).await;
    assert_eq!(
        lab.conditions("pod", "pod").await,
        ["PodScheduled=False SchedulingGated: Scheduling is blocked due to non-empty scheduling gates"]
    );
    assert_eq!(lab.events("pod", "pod").await, Vec::<String>::new());
    lab.patch("pod", "pod", json!({"spec": {"schedulingGates": null}})).await;
    sleep(10.0).await;
    assert_eq!(lab.get("pod", "pod").await["status"]["phase"], "Succeeded");
}

#[tokio::test(start_paused = true)]
async fn a_sidecar_starts_first_and_is_stopped_last() {
    let lab = Lab::new();
    let mut sidecar = container("proxy", "trap 'exit 0' TERM; while true; do sleep 1; done");
    sidecar["restartPolicy"] = json!("Always");
    let spec = json!({"restartPolicy": "Never", "initContainers": [sidecar, container("prepare", "echo prepared")],
        "containers": [container("main", "sleep 2; echo done")]});
    lab.create("pod", pod(spec)).await;
    sleep(60.0).await;
    let pod = lab.get("pod", "pod").await;
    assert_eq!(pod["status"]["phase"], "Succeeded");
    for (list, index) in [("initContainerStatuses", 0), ("initContainerStatuses", 1), ("containerStatuses", 0)] {
        assert_eq!(state(&pod, list, index), "terminated Completed");
    }
    let mut events = lab.events("pod", "pod").await;
    events.retain(|event| event.starts_with("Started") || event.starts_with("Killing"));
    assert_eq!(
        events,
        [
            "Started Started container proxy",
            "Started Started container prepare",
            "Started Started container main",
            "Killing Stopping container proxy"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_init_container_that_fails_lets_nothing_else_start() {
    let lab = Lab::new();
    let spec = json!({"restartPolicy": "Never", "initContainers": [container("prepare", "exit 4")],
        "containers": [container("main", "echo x")]});
    lab.create("pod", pod(spec)).await;
    sleep(60.0).await;
    let pod = lab.get("pod", "pod").await;
    assert_eq!(pod["status"]["phase"], "Failed");
    assert_eq!(pod["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"], 4);
    assert_eq!(state(&pod, "containerStatuses", 0), "waiting PodInitializing");
    let conditions = lab.conditions("pod", "pod").await;
    let incomplete =
        "Initialized=False ContainersNotInitialized: containers with incomplete status: [prepare]".to_owned();
    assert!(conditions.contains(&incomplete), "{conditions:?}");
    assert_eq!(lab.drydock.witness().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_crashes_is_restarted_ever_more_rarely() {
    let lab = Lab::new();
    lab.create("pod", pod(json!({"containers": [container("main", "exit 3")]}))).await;
    sleep(47.0).await;
    let pod = lab.get("pod", "pod").await;
    let main = &pod["status"]["containerStatuses"][0];
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    assert_eq!(
        (&main["restartCount"], state(&pod, "containerStatuses", 0).as_str()),
        (&json!(3), "waiting CrashLoopBackOff")
    );
    let message = format!("back-off 40s restarting failed container=main pod=pod_default({uid})");
    assert_eq!(main["state"]["waiting"]["message"], message);
    let events = lab.events("pod", "pod").await;
    assert!(events.contains(&format!("BackOff Back-off restarting failed container main in pod pod_default({uid})")));
    assert_eq!(lab.drydock.witness().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_missing_or_unbound_holds_a_pod() {
    let lab = Lab::new();
    let spec = json!({"restartPolicy": "Never", "containers": [container("main", "echo x")],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]});
    lab.create("pod", pod(spec)).await;
    sleep(5.0).await;
    let held = |why: &str| [format!("PodScheduled=False Unschedulable: 0/1 nodes are available: {why}. not found")];
    assert_eq!(lab.conditions("pod", "pod").await, held("persistentvolumeclaim \"data\" not found"));
    let claim = json!({"metadata": {"name": "data"}, "spec": {"storageClassName": "", "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    lab.create("claim", claim).await;
    sleep(5.0).await;
    assert_eq!(lab.conditions("pod", "pod").await, held("pod has unbound immediate PersistentVolumeClaims"));
}

#[tokio::test(start_paused = true)]
async fn a_priority_class_that_is_missing_refuses_a_pod() {
    let lab = Lab::new();
    let mut object = pod(json!({"priorityClassName": "nope", "containers": [container("main", "echo x")]}));
    object["apiVersion"] = json!("v1");
    object["kind"] = json!("Pod");
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let refused = lab.api("pod").create(&PostParams::default(), &object).await.unwrap_err();
    let kube::Error::Api(status) = refused else { panic!("{refused}") };
    assert_eq!(status.message, "pods \"pod\" is forbidden: no PriorityClass with name nope was found");
    assert_eq!(status.code, 403);
}

#[tokio::test(start_paused = true)]
async fn an_image_that_never_comes_is_waited_for() {
    let script = Script::new().on(Match::any().image("shop/*"), Behaviour::never_pulled());
    let lab = Lab::of(Drydock::builder().script(script));
    lab.create("pod", pod(json!({"containers": [{"name": "main", "image": "shop/api:1"}]}))).await;
    let mut states = Vec::new();
    for _ in 0..60 {
        sleep(1.0).await;
        states.push(state(&lab.get("pod", "pod").await, "containerStatuses", 0));
    }
    states.dedup();
    let (failed, waits) = ("waiting ErrImagePull", "waiting ImagePullBackOff");
    assert_eq!(states[..4], [failed, waits, failed, waits]);
    assert_eq!(lab.drydock.witness().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_script_says_when_a_container_gets_ready() {
    let behaviour = Behaviour::serves().ready_after(Duration::from_secs(30));
    let lab = Lab::of(Drydock::builder().script(Script::new().on(Match::any().image("shop/*"), behaviour)));
    let probed =
        json!({"name": "main", "image": "shop/api:1", "readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 5}});
    lab.create("pod", pod(json!({"containers": [probed]}))).await;
    let is_ready = async || lab.get("pod", "pod").await["status"]["containerStatuses"][0]["ready"] == true;
    sleep(25.0).await;
    assert!(!is_ready().await);
    sleep(20.0).await;
    assert!(is_ready().await);
}
