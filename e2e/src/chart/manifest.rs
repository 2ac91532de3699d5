//! The manifests of objects, with their fields in the usual order.

use super::notation::{Kind, Object, Pod};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A manifest; the order of the fields is the order in which they are written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<Spec<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a BTreeMap<String, String>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generate_name: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    annotations: &'a Map<String, Value>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Spec<'a> {
    Job(JobSpec<'a>),
    Pod(PodSpec<'a>),
    Deployment(Value),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct JobSpec<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff_limit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_seconds_after_finished: Option<u32>,
    #[serde(flatten)]
    more: &'a Map<String, Value>,
    template: PodTemplate<'a>,
}

#[derive(Debug, Serialize)]
struct PodTemplate<'a> {
    spec: PodSpec<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec<'a> {
    restart_policy: &'static str,
    termination_grace_period_seconds: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_account_name: Option<&'a str>,
    containers: [Container<'a>; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Container<'a> {
    name: &'static str,
    image: &'static str,
    image_pull_policy: &'static str,
    command: [&'a str; 3],
}

/// The manifest of an object.
pub(super) fn manifest(object: &Object) -> Manifest<'_> {
    let (api_version, kind, spec, data) = match &object.kind {
        Kind::Job { pod, ttl, spec } => ("batch/v1", "Job", Some(Spec::Job(job_spec(pod, *ttl, spec))), None),
        Kind::Pod(pod) => ("v1", "Pod", Some(Spec::Pod(pod_spec(pod))), None),
        Kind::Deployment { v, ready } => {
            ("apps/v1", "Deployment", Some(Spec::Deployment(deployment_spec(&object.name, v, *ready))), None)
        }
        Kind::ConfigMap { data } => ("v1", "ConfigMap", None, Some(data)),
        Kind::ServiceAccount => ("v1", "ServiceAccount", None, None),
    };
    let generate_name = object.name.strip_suffix('*');
    let metadata = Metadata {
        name: generate_name.is_none().then_some(object.name.as_str()),
        generate_name,
        labels: &object.labels,
        annotations: &object.annotations,
    };
    Manifest { api_version, kind, metadata, spec, data }
}

fn job_spec<'a>(pod: &'a Pod, ttl: Option<u32>, more: &'a Map<String, Value>) -> JobSpec<'a> {
    JobSpec {
        backoff_limit: (!more.contains_key("backoffLimit")).then_some(0),
        ttl_seconds_after_finished: ttl,
        more,
        template: PodTemplate { spec: pod_spec(pod) },
    }
}

fn pod_spec(pod: &Pod) -> PodSpec<'_> {
    PodSpec {
        restart_policy: "Never",
        termination_grace_period_seconds: pod.grace,
        service_account_name: pod.account.as_deref(),
        containers: [Container {
            name: "c",
            image: "$IMG",
            image_pull_policy: "IfNotPresent",
            command: ["sh", "-c", &pod.command],
        }],
    }
}

/// One replica that shows `V` in its environment and is ready after some seconds.
fn deployment_spec(name: &str, v: &str, ready: Option<u32>) -> Value {
    let mut container = json!({
        "name": "c", "image": "$IMG", "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", "sleep 3600"],
        "env": [{"name": "V", "value": v}],
    });
    if let (Some(seconds), Some(fields)) = (ready, container.as_object_mut()) {
        let probe = json!({"exec": {"command": ["true"]}, "initialDelaySeconds": seconds, "periodSeconds": 1});
        fields.insert("readinessProbe".to_owned(), probe);
    }
    json!({
        "replicas": 1,
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
        },
    })
}
