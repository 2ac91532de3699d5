//! The ConfigMap of a release that jobs mark, written as deployers write it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot continue has failed")]

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

/// The name of the ConfigMap.
pub(crate) const NAME: &str = "agent-release";

/// How a deployer writes an object that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deploy {
    /// `helm upgrade` of Helm 3 and `kubectl apply`: a patch of what the manifest has.
    Patch,
    /// `helm upgrade` of Helm 4, Flux: server-side apply, which fails where another manager applies the same fields.
    Apply,
    /// `helm upgrade --force`, and Argo CD with `Replace=true`: the manifest takes the place of the object.
    Replace,
}

/// The release's ConfigMap in a namespace.
pub(crate) struct Tracked(Api<ConfigMap>);

impl Tracked {
    pub(crate) fn new(client: Client, namespace: &str) -> Self {
        Self(Api::namespaced(client, namespace))
    }

    fn manifest(identity: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "labels": {"app": "agent"}},
            "data": {"identity": identity}})
    }

    /// Deploys the release with an identity.
    pub(crate) async fn deploy(&self, how: Deploy, identity: &str) {
        let manifest = Self::manifest(identity);
        let helm = PatchParams { field_manager: Some("helm".to_owned()), ..PatchParams::default() };
        let post = PostParams { field_manager: Some("helm".to_owned()), ..PostParams::default() };
        let whole = || serde_json::from_value(manifest.clone()).unwrap();
        match how {
            Deploy::Apply => drop(self.0.patch(NAME, &helm, &Patch::Apply(&manifest)).await.unwrap()),
            _ if self.0.get_opt(NAME).await.unwrap().is_none() => drop(self.0.create(&post, &whole()).await.unwrap()),
            Deploy::Patch => drop(self.0.patch(NAME, &helm, &Patch::Strategic(&manifest)).await.unwrap()),
            Deploy::Replace => drop(self.0.replace(NAME, &post, &whole()).await.unwrap()),
        }
    }

    /// Deletes the ConfigMap, as an uninstall does.
    pub(crate) async fn delete(&self) {
        self.0.delete(NAME, &DeleteParams::default()).await.unwrap();
    }

    /// The marks on it.
    pub(crate) async fn marks(&self) -> usize {
        let found = self.0.get(NAME).await.unwrap();
        found.annotations().keys().filter(|key| key.starts_with("jobwright.io/mark-")).count()
    }

    /// The managers of its fields, with their operations.
    pub(crate) async fn managers(&self) -> Vec<(String, String)> {
        let entries = self.0.get(NAME).await.unwrap().metadata.managed_fields.unwrap_or_default();
        let text = |text: Option<String>| text.unwrap_or_default();
        entries.into_iter().map(|entry| (text(entry.manager), text(entry.operation))).collect()
    }
}
