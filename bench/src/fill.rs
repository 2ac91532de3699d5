//! Fills a cluster with objects such as clusters have: ConfigMaps, pods that wait for a node, and a custom resource.

use anyhow::{Context as _, Result};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use serde_json::{Value, json};
use std::time::Duration;

/// How many objects are created at once.
const AT_ONCE: usize = 24;

/// Creates the objects with these numbers: of five, two are ConfigMaps, two are pods and one is a custom resource.
pub(crate) async fn fill(client: &Client, from: usize, to: usize) -> Result<()> {
    let widgets = define(client).await?;
    let results = futures::stream::iter(from..to).map(|number| create(client, &widgets, number));
    let mut results = results.buffer_unordered(AT_ONCE);
    while let Some(created) = results.next().await {
        created.context("cannot create an object")?;
    }
    Ok(())
}

async fn create(client: &Client, widgets: &Api<DynamicObject>, number: usize) -> Result<()> {
    let parameters = PostParams { field_manager: Some("bench".to_owned()), ..PostParams::default() };
    match number % 5 {
        0 | 1 => {
            let map: ConfigMap = serde_json::from_value(map(number))?;
            Api::default_namespaced(client.clone()).create(&parameters, &map).await?;
        }
        2 | 3 => {
            let pod: Pod = serde_json::from_value(pod(number))?;
            Api::default_namespaced(client.clone()).create(&parameters, &pod).await?;
        }
        _ => drop(widgets.create(&parameters, &serde_json::from_value(widget(number))?).await?),
    }
    Ok(())
}

/// The custom resource, once it is served.
async fn define(client: &Client) -> Result<Api<DynamicObject>> {
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": "widgets.bench.example"},
        "spec": {"group": "bench.example", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}
    }))?;
    match Api::all(client.clone()).create(&PostParams::default(), &definition).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        created => drop(created?),
    }
    let resource = ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk("bench.example", "v1", "Widget"));
    let widgets = Api::default_namespaced_with(client.clone(), &resource);
    for _ in 0..200 {
        if widgets.list_metadata(&kube::api::ListParams::default().limit(1)).await.is_ok() {
            return Ok(widgets);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    anyhow::bail!("the custom resource is not served")
}

fn metadata(kind: &str, number: usize) -> Value {
    json!({
        "name": format!("{kind}-{number:06}"),
        "labels": {"app.kubernetes.io/name": "shop", "app.kubernetes.io/instance": format!("shop-{}", number % 100),
            "app.kubernetes.io/managed-by": "Helm", "pod-template-hash": format!("{:08x}", number * 2_654_435_761 % 0xffff_ffff)},
        "annotations": {"checksum/config": format!("{number:064x}"), "prometheus.io/scrape": "true"},
    })
}

fn map(number: usize) -> Value {
    let settings = "replicas: 2\nlogLevel: info\ndatabase:\n  host: db\n  port: 5432\n".repeat(4);
    json!({"metadata": metadata("map", number), "data": {"settings.yaml": settings, "number": number.to_string()}})
}

fn pod(number: usize) -> Value {
    let variables: Vec<Value> = (0..8)
        .map(|index| json!({"name": format!("SETTING_{index}"), "value": format!("value {index} of {number}")}))
        .chain([json!({"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}})])
        .collect();
    let resources = json!({"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}});
    json!({"metadata": metadata("pod", number), "spec": {"containers": [{
        "name": "api", "image": "registry.example/shop/api:1.4.0", "args": ["--listen=:8080", "--log-level=info"],
        "env": variables, "ports": [{"containerPort": 8080, "name": "http"}], "resources": resources,
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}},
        "volumeMounts": [{"name": "settings", "mountPath": "/etc/shop"}]}],
        "volumes": [{"name": "settings", "configMap": {"name": "settings"}}]}})
}

fn widget(number: usize) -> Value {
    json!({"apiVersion": "bench.example/v1", "kind": "Widget", "metadata": metadata("widget", number),
        "spec": {"size": number % 7, "colours": ["red", "green", "blue"], "owner": {"team": "shop", "level": 3}}})
}
