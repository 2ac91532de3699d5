//! What the kubelet reports of a pod.

use super::container::{Container, Role, State};
use super::pod::Run;
use crate::kinds::Storage;
use crate::life::client::Client;
use crate::object::Object;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Writes the status of a pod, if there is anything new in it.
pub(super) fn report(run: &Run, client: &mut Client<'_>, pod: &Object, now: Timestamp) {
    let Value::Object(status) = status(run, pod, &host(client, pod), now) else { return };
    if status.iter().all(|(field, value)| pod.at(&["status", field]) == Some(value)) {
        return;
    }
    // A pod that is gone needs no report.
    let _ = client.change_status(&Storage::core("pods"), &run.key, |pod| {
        pod.map_at(&["status"]).extend(status);
    });
}

/// The address of the pod's node.
fn host(client: &Client<'_>, pod: &Object) -> String {
    let known = pod.text(&["status", "hostIP"]);
    if !known.is_empty() {
        return known.to_owned();
    }
    let node = client.cluster.find("", "nodes", "", pod.text(&["spec", "nodeName"]));
    let addresses = node.map_or(&[][..], |node| node.list(&["status", "addresses"]));
    let internal = addresses.iter().find(|address| address["type"] == "InternalIP");
    internal.and_then(|address| address["address"].as_str()).unwrap_or("10.88.0.1").to_owned()
}

fn status(run: &Run, pod: &Object, host: &str, now: Timestamp) -> Value {
    let final_phase = run.final_phase(now);
    let reported = |container: &Container| match &container.state {
        State::Running(running) => running.is_reported(now),
        State::Ended(_) => true,
        State::Waiting { .. } => container.last.is_some(),
    };
    let earlier = pod.text(&["status", "phase"]);
    let phase = final_phase.unwrap_or(match earlier {
        "Succeeded" | "Failed" => earlier,
        _ if run.containers.iter().any(|container| container.role == Role::Main && reported(container)) => "Running",
        "Running" => "Running",
        _ => "Pending",
    });
    let sandboxed = run.containers.iter().any(|container| {
        reported(container) || matches!(&container.state, State::Waiting { reason, .. } if !matches!(*reason, "ContainerCreating" | "PodInitializing"))
    });
    let mut status = json!({
        "phase": phase,
        "conditions": conditions(run, pod, now, final_phase, sandboxed),
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "startTime": run.accepted.map(crate::clock::time),
        "observedGeneration": pod.generation(),
    });
    if sandboxed {
        status["podIP"] = json!(run.address);
        status["podIPs"] = json!([{"ip": run.address}]);
    }
    let statuses = |main: bool| -> Vec<Value> {
        run.containers
            .iter()
            .filter(|container| (container.role == Role::Main) == main)
            .map(|container| container.status(now))
            .collect()
    };
    status["containerStatuses"] = json!(statuses(true));
    let init = statuses(false);
    if !init.is_empty() {
        status["initContainerStatuses"] = json!(init);
    }
    if let Some(ended) = &run.ended {
        status["reason"] = json!(ended.reason);
        status["message"] = json!(ended.message);
    }
    status
}

fn conditions(run: &Run, pod: &Object, now: Timestamp, final_phase: Option<&str>, sandboxed: bool) -> Vec<Value> {
    let names = |containers: Vec<&Container>| {
        containers.iter().map(|container| container.name.clone()).collect::<Vec<_>>().join(" ")
    };
    let uninitialised: Vec<&Container> = run
        .containers
        .iter()
        .filter(|container| match container.role {
            Role::Init => container.ended().is_none_or(|exit| exit.code != 0),
            Role::Sidecar => !container.has_started(now),
            Role::Main => false,
        })
        .collect();
    let unready: Vec<&Container> =
        run.containers.iter().filter(|container| container.role != Role::Init && !container.is_ready(now)).collect();
    let (ready, unready_reason, unready_message) = match final_phase {
        Some("Succeeded") => (false, "PodCompleted", String::new()),
        Some(_) => (false, "PodFailed", String::new()),
        None if unready.is_empty() => (true, "", String::new()),
        None => (false, "ContainersNotReady", format!("containers with unready status: [{}]", names(unready))),
    };
    let gates_pass = pod.list(&["spec", "readinessGates"]).iter().all(|gate| {
        pod.list(&["status", "conditions"])
            .iter()
            .any(|condition| condition["type"] == gate["conditionType"] && condition["status"] == "True")
    });
    let initialised = match final_phase {
        Some("Succeeded") => condition("Initialized", true, "PodCompleted", ""),
        _ if uninitialised.is_empty() => condition("Initialized", true, "", ""),
        _ => {
            let message = format!("containers with incomplete status: [{}]", names(uninitialised));
            condition("Initialized", false, "ContainersNotInitialized", &message)
        }
    };
    let pod_ready = if ready && !gates_pass {
        condition("Ready", false, "ReadinessGatesNotReady", "the status of pod readiness gate is not \"True\"")
    } else {
        condition("Ready", ready, unready_reason, &unready_message)
    };
    let wanted = [
        condition("PodReadyToStartContainers", sandboxed && final_phase.is_none(), "", ""),
        initialised,
        pod_ready,
        condition("ContainersReady", ready, unready_reason, &unready_message),
    ];
    let old = pod.list(&["status", "conditions"]);
    let mut conditions: Vec<Value> =
        wanted.into_iter().map(|condition| stamped(condition, old, pod.generation(), now)).collect();
    let known: Vec<Value> = conditions.iter().map(|condition| condition["type"].clone()).collect();
    let others = old.iter().filter(|condition| !known.contains(&condition["type"])).cloned();
    let (scheduled, others): (Vec<Value>, Vec<Value>) =
        others.partition(|condition| condition["type"] == "PodScheduled");
    conditions.extend(scheduled);
    conditions.extend(others);
    conditions
}

fn condition(kind: &str, status: bool, reason: &str, message: &str) -> Value {
    let mut condition = json!({"type": kind, "status": if status { "True" } else { "False" }, "lastProbeTime": null});
    if !reason.is_empty() {
        condition["reason"] = json!(reason);
    }
    if !message.is_empty() {
        condition["message"] = json!(message);
    }
    condition
}

/// A condition with the time of its last change.
fn stamped(mut condition: Value, old: &[Value], generation: i64, now: Timestamp) -> Value {
    let known = old.iter().find(|known| known["type"] == condition["type"] && known["status"] == condition["status"]);
    condition["lastTransitionTime"] = match known.and_then(|known| known.get("lastTransitionTime")) {
        Some(time) => time.clone(),
        None => json!(crate::clock::time(now)),
    };
    condition["observedGeneration"] = json!(generation);
    condition
}
