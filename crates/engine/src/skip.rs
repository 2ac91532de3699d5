//! Conditions under which a job is not needed: a field of an object has a value.

use crate::job::Needed;
use crate::json_path::JsonPath;
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::GroupVersionKind;
use kube::core::discovery::{ApiCapabilities, ApiResource, Scope};
use kube::discovery::{Discovery, pinned_kind};
use serde_json::Value;

/// A field of an object that has a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// `v1`, `apps/v1`; found by its kind if none.
    pub api_version: Option<String>,
    /// `ConfigMap`.
    pub kind: String,
    /// The name of the object, in the namespace of the release if it has one.
    pub name: String,
    /// The field.
    pub path: JsonPath,
    /// What it has to be.
    pub equals: Value,
}

impl Condition {
    /// Whether it holds, in words if it does.
    async fn holds(&self, client: &Client, namespace: &str) -> kube::Result<Option<String>> {
        let (resource, capabilities) = self.resolve(client).await?;
        let objects: Api<DynamicObject> = match capabilities.scope {
            Scope::Namespaced => Api::namespaced_with(client.clone(), namespace, &resource),
            Scope::Cluster => Api::all_with(client.clone(), &resource),
        };
        let Some(object) = objects.get_opt(&self.name).await? else { return Ok(None) };
        let object = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
        let holds = self.path.find(&object).is_some_and(|found| equal(found, &self.equals));
        let told = format!("{} `{}` has {} = {}", self.kind, self.name, self.path, plain(&self.equals));
        Ok(holds.then_some(told))
    }

    async fn resolve(&self, client: &Client) -> kube::Result<(ApiResource, ApiCapabilities)> {
        let version = match (&self.api_version, self.kind.as_str()) {
            (Some(version), _) => version.as_str(),
            (None, "ConfigMap" | "Secret" | "Service" | "Pod" | "PersistentVolumeClaim" | "ServiceAccount") => {
                let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", &self.kind));
                let capabilities =
                    ApiCapabilities { scope: Scope::Namespaced, subresources: Vec::new(), operations: Vec::new() };
                return Ok((resource, capabilities));
            }
            (None, _) => return self.discover(client).await,
        };
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        pinned_kind(client, &GroupVersionKind::gvk(group, version, &self.kind)).await
    }

    async fn discover(&self, client: &Client) -> kube::Result<(ApiResource, ApiCapabilities)> {
        let discovery = Discovery::new(client.clone()).run_aggregated().await?;
        let all = discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources);
        let found = all.into_iter().find(|(resource, _)| resource.kind == self.kind);
        found.ok_or_else(|| {
            let why = format!("the cluster has no kind `{}`", self.kind);
            kube::Error::Discovery(kube::error::DiscoveryError::MissingKind(why))
        })
    }
}

/// Whether a job is needed, asking for one condition after the other.
pub(crate) async fn ask(conditions: &[Condition], client: &Client, namespace: &str) -> kube::Result<Needed> {
    for condition in conditions {
        if let Some(reason) = condition.holds(client, namespace).await? {
            return Ok(Needed::No(reason));
        }
    }
    Ok(Needed::Yes)
}

/// Whether two values are the same to somebody who writes YAML: `14` and `"14"` are.
fn equal(found: &Value, wanted: &Value) -> bool {
    found == wanted || plain(found) == plain(wanted)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
