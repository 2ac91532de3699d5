//! Namespaces, nodes, configuration, events.

use super::super::table::age;
use super::{AGE, CREATED, Column, NAME, column, length, number, text, text_or};
use crate::object::Object;
use jiff::Timestamp;
use serde_json::{Value, json};

static NAMESPACE: &[Column] = &[NAME, column("Status", |object, _| text(object, &["status", "phase"])), AGE];

static CONFIG_MAP: &[Column] = &[
    NAME,
    column("Data", |object, _| json!((length(object, &["data"]) + length(object, &["binaryData"])).to_string())),
    AGE,
];

static SECRET: &[Column] = &[
    NAME,
    column("Type", |object, _| text(object, &["type"])),
    column("Data", |object, _| json!(length(object, &["data"]).to_string())),
    AGE,
];

static SERVICE_ACCOUNT: &[Column] =
    &[NAME, column("Secrets", |object, _| json!(length(object, &["secrets"]).to_string())), AGE];

static NODE: &[Column] = &[
    NAME,
    column("Status", |node, _| json!(node_status(node))),
    column("Roles", |node, _| json!(node_roles(node))),
    AGE,
    column("Version", |node, _| text(node, &["status", "nodeInfo", "kubeletVersion"])),
    column("Internal-IP", |node, _| json!(node_address(node, "InternalIP"))).wide(),
    column("External-IP", |node, _| json!(node_address(node, "ExternalIP"))).wide(),
    column("OS-Image", |node, _| text_or(node, &["status", "nodeInfo", "osImage"], "<unknown>")).wide(),
    column("Kernel-Version", |node, _| text_or(node, &["status", "nodeInfo", "kernelVersion"], "<unknown>")).wide(),
    column("Container-Runtime", |node, _| {
        text_or(node, &["status", "nodeInfo", "containerRuntimeVersion"], "<unknown>")
    })
    .wide(),
];

static EVENT: &[Column] = &[
    column("Last Seen", |event, now| json!(event_age(event, "lastTimestamp", now))),
    column("Type", |event, _| text(event, &["type"])),
    column("Reason", |event, _| text(event, &["reason"])),
    column("Object", |event, _| {
        let object = |field| event_field(event, "involvedObject", "regarding", field);
        json!(match object("name") {
            "" => object("kind").to_lowercase(),
            name => format!("{}/{name}", object("kind").to_lowercase()),
        })
    }),
    column("Subobject", |event, _| json!(event_field(event, "involvedObject", "regarding", "fieldPath"))).wide(),
    column("Source", |event, _| json!(event_source(event))).wide(),
    column("Message", |event, _| json!(either(event, "message", "note").trim())),
    column("First Seen", |event, now| json!(event_age(event, "firstTimestamp", now))).wide(),
    column("Count", |event, _| json!(number(event, &["count"]).max(1).to_string())).wide(),
    column("Name", |event, _| json!(event.name())).wide(),
];

static RESOURCE_QUOTA: &[Column] = &[
    NAME,
    column("Request", |quota, _| json!(quota_line(quota, false))),
    column("Limit", |quota, _| json!(quota_line(quota, true))),
    AGE,
];

static CREATED_ONLY: &[Column] = &[NAME, CREATED];

pub(super) fn of(plural: &str) -> Option<&'static [Column]> {
    Some(match plural {
        "namespaces" => NAMESPACE,
        "configmaps" => CONFIG_MAP,
        "secrets" => SECRET,
        "serviceaccounts" => SERVICE_ACCOUNT,
        "nodes" => NODE,
        "events" => EVENT,
        "resourcequotas" => RESOURCE_QUOTA,
        "limitranges" | "customresourcedefinitions" => CREATED_ONLY,
        _ => return None,
    })
}

fn node_status(node: &Object) -> String {
    let ready = node.list(&["status", "conditions"]).iter().find(|condition| condition["type"] == "Ready");
    let mut status = match ready.and_then(|condition| condition["status"].as_str()) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if node.at(&["spec", "unschedulable"]) == Some(&json!(true)) {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn node_roles(node: &Object) -> String {
    let roles: Vec<&str> = node
        .labels()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) if !role.is_empty() => Some(role),
            _ => (key == "kubernetes.io/role" && !value.is_empty()).then_some(value),
        })
        .collect();
    if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }
}

fn node_address<'a>(node: &'a Object, kind: &str) -> &'a str {
    let addresses = node.list(&["status", "addresses"]);
    let address = addresses.iter().find(|address| address["type"] == kind);
    address.and_then(|address| address["address"].as_str()).unwrap_or("<none>")
}

/// A field that the two event groups call differently.
fn either<'a>(event: &'a Object, core: &str, other: &str) -> &'a str {
    match event.text(&[core]) {
        "" => event.text(&[other]),
        text => text,
    }
}

fn event_field<'a>(event: &'a Object, core: &str, other: &str, field: &str) -> &'a str {
    match event.text(&[core, field]) {
        "" => event.text(&[other, field]),
        text => text,
    }
}

fn event_age(event: &Object, field: &str, now: Timestamp) -> String {
    let deprecated = format!("deprecated{}{}", field[..1].to_uppercase(), &field[1..]);
    match either(event, field, &deprecated) {
        "" => age(event.text(&["eventTime"]), now),
        time => age(time, now),
    }
}

fn event_source(event: &Object) -> String {
    let component = event_field(event, "source", "deprecatedSource", "component");
    let host = event_field(event, "source", "deprecatedSource", "host");
    match (component, host) {
        ("", _) => either(event, "reportingComponent", "reportingController").to_owned(),
        (component, "") => component.to_owned(),
        (component, host) => format!("{component}, {host}"),
    }
}

fn quota_line(quota: &Object, limits: bool) -> String {
    let hard = quota.at(&["status", "hard"]).or_else(|| quota.at(&["spec", "hard"]));
    let used = |name: &str| quota.at(&["status", "used", name]).and_then(Value::as_str).unwrap_or("0").to_owned();
    let parts: Vec<String> = crate::object::strings(hard)
        .filter(|(name, _)| name.starts_with("limits.") == limits)
        .map(|(name, hard)| format!("{name}: {}/{hard}", used(name)))
        .collect();
    parts.join(", ")
}
