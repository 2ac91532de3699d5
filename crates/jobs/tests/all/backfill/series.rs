//! Series for remote write, as a server reads them: no two objects share one.

use super::http_sink::{run, to};
use super::server::{Server, good};
use super::stage::Stage;
use prost::Message as _;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, PartialEq, prost::Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// Every series that a server has taken, as Prometheus writes it, and how often it came.
fn series(server: &Server) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    // Every cluster has a Service of its own.
    let is_ours = |series: &TimeSeries| !series.labels.iter().any(|label| label.value == "kubernetes");
    for body in server.accepted().values() {
        let message = snap::raw::Decoder::new().decompress_vec(body).unwrap();
        for series in WriteRequest::decode(&message[..]).unwrap().timeseries.into_iter().filter(is_ours) {
            let labels = series.labels.iter().map(|label| format!("{}={}", label.name, label.value));
            *all.entry(labels.collect::<Vec<_>>().join(" ")).or_default() += 1;
        }
    }
    all
}

async fn define(stage: &Stage, group: &str, kind: &str) {
    let plural = format!("{}s", kind.to_lowercase());
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({"metadata": {"name": format!("{plural}.{group}")}, "spec": {
        "group": group, "scope": "Namespaced", "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    stage.create("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition).await;
    stage.create(&format!("{group}/v1"), kind, json!({"metadata": {"name": "web"}})).await;
}

#[tokio::test]
async fn kinds_of_the_same_name_in_two_groups_have_series_of_their_own() {
    let stage = Stage::new(1).await;
    let service = json!({"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}});
    stage.create("v1", "Service", service).await;
    for (group, kind) in [("serving.example", "Service"), ("one.example", "Cluster"), ("two.example", "Cluster")] {
        define(&stage, group, kind).await;
    }
    let name = |kind: &str| format!("__name__=cloudzero_{kind}_labels namespace=default");
    let grouped =
        |kind: &str, group: &str| format!("{} resource_group={group} resource_type={kind} workload=web", name(kind));
    let expected = [
        format!("{} resource_type=service workload=web", name("service")),
        grouped("service", "serving.example"),
        grouped("cluster", "one.example"),
        grouped("cluster", "two.example"),
        format!("{} resource_type=widget workload=widget-000", name("widget")),
    ];
    // Which kinds are chosen does not change how one of them is named.
    let all = ["services", "services.serving.example", "clusters.one.example", "clusters.two.example", "widgets"];
    let mut seen = BTreeSet::new();
    for kinds in [all.to_vec(), vec![all[1]], vec![all[2]]] {
        let server = Server::start(|_, _| good()).await;
        let mut task = to(&format!("remote-write:http://127.0.0.1:{}/", server.port));
        task.backfill.kinds = kinds.iter().map(|kind| (*kind).into()).collect();
        assert!(run(&stage, &task).await.unwrap().complete);
        let series = series(&server);
        assert!(series.values().all(|count| *count == 1), "objects share a series: {series:#?}");
        assert_eq!(series.len(), kinds.len());
        seen.extend(series.into_keys());
    }
    assert_eq!(seen, expected.into_iter().collect());
}

#[tokio::test]
async fn custom_objects_of_two_namespaces_have_two_series_whatever_their_kind_is_called() {
    for kind in ["Node", "Pod"] {
        let stage = Stage::new(0).await;
        define(&stage, "storage.example", kind).await;
        stage.create("v1", "Namespace", json!({"metadata": {"name": "other"}})).await;
        let mut object = stage.api("storage.example/v1", kind).get("web").await.unwrap();
        object.metadata = kube::api::ObjectMeta {
            name: Some("web".to_owned()),
            namespace: Some("other".to_owned()),
            ..kube::api::ObjectMeta::default()
        };
        let resource =
            kube::api::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk("storage.example", "v1", kind));
        let api: kube::Api<kube::api::DynamicObject> = kube::Api::namespaced_with(stage.stranger(), "other", &resource);
        api.create(&kube::api::PostParams::default(), &object).await.unwrap();
        let server = Server::start(|_, _| good()).await;
        let mut task = to(&format!("remote-write:http://127.0.0.1:{}/", server.port));
        task.backfill.kinds = vec![format!("{}s.storage.example", kind.to_lowercase()).as_str().into()];
        assert!(run(&stage, &task).await.unwrap().complete);
        let series = series(&server);
        assert!(series.len() == 2 && series.values().all(|count| *count == 1), "objects share a series: {series:#?}");
        for namespace in ["default", "other"] {
            let expected = format!("namespace={namespace} resource_group=storage.example");
            assert!(series.keys().any(|series| series.contains(&expected)), "{series:#?}");
        }
    }
}
