//! What is measured on drydock and on its peer alike. Each has a `kube` of its own version, so both compile this file.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, Error};
use serde_json::json;

/// How the objects are called.
pub(crate) fn name(number: usize) -> String {
    format!("settings-{number:05}")
}

/// An object such as charts have many of: half a kilobyte, with labels.
pub(crate) fn object(number: usize) -> Result<ConfigMap, Error> {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name(number), "namespace": "default", "labels": {
            "app.kubernetes.io/name": "shop", "app.kubernetes.io/instance": format!("shop-{}", number % 100),
            "app.kubernetes.io/managed-by": "Helm"}},
        "data": {"settings.yaml": "replicas: 2\nlogLevel: info\ndatabase:\n  host: db\n  port: 5432\n", "number": number.to_string()},
    });
    serde_json::from_value(object).map_err(Error::SerdeError)
}

/// Creates objects.
pub(crate) async fn create(client: &Client, count: usize) -> Result<(), Error> {
    let api = Api::<ConfigMap>::default_namespaced(client.clone());
    for number in 0..count {
        api.create(&PostParams::default(), &object(number)?).await?;
    }
    Ok(())
}

/// Lists all objects, some times.
pub(crate) async fn list(client: &Client, count: usize, times: usize) -> Result<(), Error> {
    let api = Api::<ConfigMap>::default_namespaced(client.clone());
    for _ in 0..times {
        // Clusters have a ConfigMap of their own in every namespace.
        let listed = api.list(&ListParams::default().labels("app.kubernetes.io/name=shop")).await?.items.len();
        assert_eq!(listed, count, "every object is listed");
    }
    Ok(())
}
