//! Pods: the one kind whose status column is an art (kubernetes v1.34 `pkg/printers/internalversion`).

use super::super::table::age;
use super::{AGE, Column, NAME, column, text_or};
use crate::object::Object;
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) static COLUMNS: &[Column] = &[
    NAME,
    column("Ready", |pod, _| json!(ready(pod))),
    column("Status", |pod, _| json!(status(pod))),
    column("Restarts", |pod, now| json!(restarts(pod, now))),
    AGE,
    column("IP", |pod, _| text_or(pod, &["status", "podIP"], "<none>")).wide(),
    column("Node", |pod, _| text_or(pod, &["spec", "nodeName"], "<none>")).wide(),
    column("Nominated Node", |pod, _| text_or(pod, &["status", "nominatedNodeName"], "<none>")).wide(),
    column("Readiness Gates", |pod, _| json!(readiness_gates(pod))).wide(),
];

fn field<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn flag(value: &Value, path: &str) -> bool {
    value.pointer(path).and_then(Value::as_bool).unwrap_or_default()
}

fn integer(value: &Value, path: &str) -> i64 {
    value.pointer(path).and_then(Value::as_i64).unwrap_or_default()
}

/// Whether an init container goes on beside the others.
fn is_sidecar(pod: &Object, name: &str) -> bool {
    pod.list(&["spec", "initContainers"])
        .iter()
        .any(|container| field(container, "/name") == name && field(container, "/restartPolicy") == "Always")
}

fn ready(pod: &Object) -> String {
    let sidecars =
        pod.list(&["status", "initContainerStatuses"]).iter().filter(|status| is_sidecar(pod, field(status, "/name")));
    let wanted = pod.list(&["spec", "containers"]).len()
        + pod
            .list(&["spec", "initContainers"])
            .iter()
            .filter(|container| field(container, "/restartPolicy") == "Always")
            .count();
    let containers = pod.list(&["status", "containerStatuses"]).iter();
    let ready = containers
        .chain(sidecars)
        .filter(|status| flag(status, "/ready") && status.pointer("/state/running").is_some());
    let ready = if matches!(pod.text(&["status", "phase"]), "Succeeded" | "Failed") { 0 } else { ready.count() };
    format!("{ready}/{wanted}")
}

/// What a container that is not running says of itself.
fn word(status: &Value, prefix: &str) -> Option<String> {
    let waiting = field(status, "/state/waiting/reason");
    if let Some(terminated) = status.pointer("/state/terminated") {
        let reason = field(terminated, "/reason");
        return Some(match (reason, integer(terminated, "/signal")) {
            ("", 0) => format!("{prefix}ExitCode:{}", integer(terminated, "/exitCode")),
            ("", signal) => format!("{prefix}Signal:{signal}"),
            (reason, _) => format!("{prefix}{reason}"),
        });
    }
    (!waiting.is_empty()).then(|| format!("{prefix}{waiting}"))
}

fn status(pod: &Object) -> String {
    let mut reason = match pod.text(&["status", "reason"]) {
        "" => pod.text(&["status", "phase"]).to_owned(),
        reason => reason.to_owned(),
    };
    let gated = pod.list(&["status", "conditions"]).iter().any(|condition| {
        field(condition, "/type") == "PodScheduled" && field(condition, "/reason") == "SchedulingGated"
    });
    if gated {
        "SchedulingGated".clone_into(&mut reason);
    }
    match initialising(pod) {
        Some(initialising) => reason = initialising,
        None => containers(pod, &mut reason),
    }
    if pod.is_being_deleted() {
        if pod.text(&["status", "reason"]) == "NodeLost" {
            return "Unknown".to_owned();
        }
        if !matches!(pod.text(&["status", "phase"]), "Succeeded" | "Failed") {
            return "Terminating".to_owned();
        }
    }
    reason
}

/// What holds up the init containers, if anything does.
fn initialising(pod: &Object) -> Option<String> {
    let total = pod.list(&["spec", "initContainers"]).len();
    for (index, status) in pod.list(&["status", "initContainerStatuses"]).iter().enumerate() {
        let sidecar = is_sidecar(pod, field(status, "/name"));
        let done = status.pointer("/state/terminated").is_some_and(|terminated| integer(terminated, "/exitCode") == 0);
        if done || (sidecar && flag(status, "/started")) {
            continue;
        }
        let waiting = field(status, "/state/waiting/reason");
        if status.pointer("/state/terminated").is_some() || (!waiting.is_empty() && waiting != "PodInitializing") {
            return word(status, "Init:");
        }
        return Some(format!("Init:{index}/{total}"));
    }
    None
}

fn containers(pod: &Object, reason: &mut String) {
    let mut running = false;
    for status in pod.list(&["status", "containerStatuses"]).iter().rev() {
        match word(status, "") {
            Some(word) => *reason = word,
            None => running |= flag(status, "/ready") && status.pointer("/state/running").is_some(),
        }
    }
    if running && reason == "Completed" {
        let ready = pod
            .list(&["status", "conditions"])
            .iter()
            .any(|condition| field(condition, "/type") == "Ready" && field(condition, "/status") == "True");
        if ready { "Running" } else { "NotReady" }.clone_into(reason);
    }
}

fn restarts(pod: &Object, now: Timestamp) -> String {
    let statuses = || {
        let sidecars = pod.list(&["status", "initContainerStatuses"]).iter();
        pod.list(&["status", "containerStatuses"])
            .iter()
            .chain(sidecars.filter(|status| is_sidecar(pod, field(status, "/name"))))
    };
    let count: i64 = statuses().map(|status| integer(status, "/restartCount")).sum();
    let last = statuses().map(|status| field(status, "/lastState/terminated/finishedAt")).max().unwrap_or_default();
    if count > 0 && !last.is_empty() { format!("{count} ({} ago)", age(last, now)) } else { count.to_string() }
}

fn readiness_gates(pod: &Object) -> String {
    let gates = pod.list(&["spec", "readinessGates"]);
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let passed = gates.iter().filter(|gate| {
        pod.list(&["status", "conditions"]).iter().any(|condition| {
            field(condition, "/type") == field(gate, "/conditionType") && field(condition, "/status") == "True"
        })
    });
    format!("{}/{}", passed.count(), gates.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: Value) -> (String, String) {
        let pod = Object::from_value(value).unwrap();
        (ready(&pod), status(&pod))
    }

    #[test]
    fn the_status_says_what_matters_most() {
        let spec = json!({"containers": [{"name": "a"}, {"name": "b"}]});
        for (pod, expected) in [
            (json!({"spec": spec, "status": {"phase": "Pending"}}), ("0/2", "Pending")),
            (
                json!({"spec": spec, "status": {"phase": "Running", "containerStatuses": [
                    {"name": "a", "ready": true, "state": {"running": {}}},
                    {"name": "b", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}}),
                ("1/2", "CrashLoopBackOff"),
            ),
            (
                json!({"spec": spec, "status": {"phase": "Failed", "containerStatuses": [
                    {"name": "a", "state": {"terminated": {"exitCode": 3}}}]}}),
                ("0/2", "ExitCode:3"),
            ),
            (
                json!({"metadata": {"deletionTimestamp": "x"}, "spec": spec, "status": {"phase": "Running"}}),
                ("0/2", "Terminating"),
            ),
            (
                json!({"spec": {"containers": [{"name": "a"}], "initContainers": [{"name": "i"}]},
                    "status": {"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}}),
                ("0/1", "Init:0/1"),
            ),
            (
                json!({"spec": {"containers": [{"name": "a"}]}, "status": {"phase": "Succeeded", "containerStatuses": [
                    {"name": "a", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]}}),
                ("0/1", "Completed"),
            ),
        ] {
            let (ready, status) = shown(pod.clone());
            assert_eq!((ready.as_str(), status.as_str()), expected, "{pod}");
        }
    }
}
