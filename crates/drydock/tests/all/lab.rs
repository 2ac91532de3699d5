//! A cluster with a client, and ways to say what is in it.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses a part, and none is a library")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "clippy takes only what is marked as a test for one")]

use jobwright_drydock::{Builder, Drydock};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::time::Duration;

pub struct Lab {
    pub drydock: Drydock,
    pub client: Client,
}

/// Kinds by their short names.
fn resource(kind: &str) -> ApiResource {
    let (group, version, kind, plural) = match kind {
        "deploy" => ("apps", "v1", "Deployment", "deployments"),
        "rs" => ("apps", "v1", "ReplicaSet", "replicasets"),
        "sts" => ("apps", "v1", "StatefulSet", "statefulsets"),
        "ds" => ("apps", "v1", "DaemonSet", "daemonsets"),
        "revision" => ("apps", "v1", "ControllerRevision", "controllerrevisions"),
        "pdb" => ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
        "slice" => ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
        "pod" => ("", "v1", "Pod", "pods"),
        "rc" => ("", "v1", "ReplicationController", "replicationcontrollers"),
        "svc" => ("", "v1", "Service", "services"),
        "endpoints" => ("", "v1", "Endpoints", "endpoints"),
        "event" => ("", "v1", "Event", "events"),
        "claim" => ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
        "account" => ("", "v1", "ServiceAccount", "serviceaccounts"),
        "node" => ("", "v1", "Node", "nodes"),
        other => panic!("no kind {other}"),
    };
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    ApiResource { group: group.into(), version: version.into(), api_version, kind: kind.into(), plural: plural.into() }
}

impl Lab {
    pub fn new() -> Self {
        Self::of(Drydock::builder())
    }

    pub fn of(builder: Builder) -> Self {
        let drydock = builder.build();
        let client = Client::new(drydock.clone(), "default");
        Self { drydock, client }
    }

    pub fn api(&self, kind: &str) -> Api<DynamicObject> {
        match kind {
            "node" => Api::all_with(self.client.clone(), &resource(kind)),
            _ => Api::default_namespaced_with(self.client.clone(), &resource(kind)),
        }
    }

    pub async fn create(&self, kind: &str, mut object: Value) -> Value {
        let resource = resource(kind);
        object["apiVersion"] = json!(resource.api_version);
        object["kind"] = json!(resource.kind);
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let made = self.api(kind).create(&PostParams::default(), &object).await.unwrap();
        serde_json::to_value(made).unwrap()
    }

    pub async fn get(&self, kind: &str, name: &str) -> Value {
        serde_json::to_value(self.api(kind).get(name).await.unwrap()).unwrap()
    }

    pub async fn find(&self, kind: &str, name: &str) -> Option<Value> {
        self.api(kind).get_opt(name).await.unwrap().map(|object| serde_json::to_value(object).unwrap())
    }

    /// All objects of a kind, oldest first.
    pub async fn list(&self, kind: &str) -> Vec<Value> {
        let mut items = self.api(kind).list(&ListParams::default()).await.unwrap().items;
        items.sort_by_key(|item| item.creation_timestamp().map(|time| time.0));
        items.into_iter().map(|item| serde_json::to_value(item).unwrap()).collect()
    }

    pub async fn names(&self, kind: &str) -> Vec<String> {
        let items = self.api(kind).list(&ListParams::default()).await.unwrap().items;
        items.iter().map(ResourceExt::name_any).collect()
    }

    pub async fn patch(&self, kind: &str, name: &str, patch: Value) {
        self.api(kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub async fn delete(&self, kind: &str, name: &str) {
        self.api(kind).delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// The events about an object, in the order in which they were told first.
    pub async fn events(&self, kind: &str, name: &str) -> Vec<String> {
        let kind = resource(kind).kind;
        let mut items = self.api("event").list(&ListParams::default()).await.unwrap().items;
        items.retain(|event| {
            event.data["involvedObject"]["kind"] == kind.as_str() && event.data["involvedObject"]["name"] == name
        });
        items.sort_by_key(|event| event.resource_version().and_then(|revision| revision.parse::<u64>().ok()));
        let text = |event: &DynamicObject, field: &str| event.data[field].as_str().unwrap_or_default().to_owned();
        items.iter().map(|event| format!("{} {}", text(event, "reason"), text(event, "message"))).collect()
    }

    /// The conditions of an object: `Type=Status Reason: message`, by type.
    pub async fn conditions(&self, kind: &str, name: &str) -> Vec<String> {
        let object = self.get(kind, name).await;
        let list = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        let mut list: Vec<String> = list
            .iter()
            .map(|condition| {
                let [kind, status, reason, message] =
                    ["type", "status", "reason", "message"].map(|field| text(condition, field));
                format!("{kind}={status} {reason}: {message}")
            })
            .collect();
        list.sort();
        list
    }
}

pub async fn sleep(seconds: f64) {
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
}

/// A pod template with one container that serves.
pub fn template(app: &str, version: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}}, "spec": {"terminationGracePeriodSeconds": 1, "containers": [
        {"name": "main", "image": format!("shop/{app}:{version}"), "ports": [{"name": "http", "containerPort": 80}]}]}})
}

/// A workload with a selector for its template.
pub fn workload(name: &str, replicas: i64) -> Value {
    json!({"metadata": {"name": name}, "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template(name, "1")}})
}

pub fn image(app: &str, version: &str) -> Value {
    json!({"spec": {"template": template(app, version)}})
}
