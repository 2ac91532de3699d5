//! A workload that lets go of its volumes for a while, and gets them back whatever happens.
//!
//! How many pods it had is written onto the workload before it is scaled down, so that whoever comes next knows.

use crate::waiting::until;
use jobwright_engine::{Context, Failure};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{GroupVersionKind, Selector};
use serde_json::json;
use std::fmt;
use std::time::Duration;

/// A Deployment or a StatefulSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// `Deployment` or `StatefulSet`.
    pub kind: String,
    /// Its name, in the namespace of the deploy.
    pub name: String,
}

/// How many pods it had before it was scaled down.
const REPLICAS: &str = "jobwright.io/replicas-before";
/// How long pods may take to go.
const PATIENCE: Duration = Duration::from_mins(5);

impl fmt::Display for Workload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} `{}`", self.kind, self.name)
    }
}

impl Workload {
    fn api(&self, context: &Context) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", &self.kind));
        Api::namespaced_with(context.client().clone(), context.namespace(), &resource)
    }

    /// Whether it was scaled down and not put back.
    pub(super) async fn is_detached(&self, context: &Context) -> Result<bool, Failure> {
        let api = self.api(context);
        let found = context.retry().call(&format!("read {self}"), || api.get_opt(&self.name)).await?;
        Ok(found.is_some_and(|object| object.annotations().contains_key(REPLICAS)))
    }

    /// Scales it down and waits until its pods are gone.
    pub(super) async fn detach(&self, context: &Context) -> Result<(), Failure> {
        let api = self.api(context);
        // A repetition reads again how many pods there are, because the first try may have come through.
        let scale = || async {
            let Some(object) = api.get_opt(&self.name).await? else { return Ok(None) };
            let replicas = object.data["spec"]["replicas"].as_i64().unwrap_or(1);
            let before = object.annotations().get(REPLICAS).cloned().unwrap_or_else(|| replicas.to_string());
            let patch = json!({
                "metadata": {"annotations": {REPLICAS: before}, "resourceVersion": object.resource_version()},
                "spec": {"replicas": 0},
            });
            api.patch(&self.name, &parameters(), &Patch::Merge(patch)).await?;
            Ok(Some((object, before)))
        };
        let Some((object, before)) = context.retry().call(&format!("scale down {self}"), scale).await? else {
            return Ok(());
        };
        context.log(format!("{self} is scaled down from {before}, so that nobody uses the volume"));
        self.wait_until_gone(context, &object).await
    }

    /// Puts it back as it was, if it was scaled down from here.
    pub(super) async fn restore(&self, context: &Context) -> Result<(), Failure> {
        let api = self.api(context);
        let scale = || async {
            let Some(object) = api.get_opt(&self.name).await? else { return Ok(None) };
            let Some(before) = object.annotations().get(REPLICAS) else { return Ok(None) };
            let replicas: i64 = before.parse().unwrap_or(1);
            let metadata = json!({"annotations": {REPLICAS: null}, "resourceVersion": object.resource_version()});
            let patch = json!({"metadata": metadata, "spec": {"replicas": replicas}});
            api.patch(&self.name, &parameters(), &Patch::Merge(patch)).await?;
            Ok(Some(replicas))
        };
        if let Some(replicas) = context.retry().call(&format!("scale {self} back"), scale).await? {
            context.log(format!("{self} is back at {replicas}"));
        }
        Ok(())
    }

    async fn wait_until_gone(&self, context: &Context, object: &DynamicObject) -> Result<(), Failure> {
        let selector = serde_json::from_value::<LabelSelector>(object.data["spec"]["selector"].clone());
        let selector = selector.ok().and_then(|selector| Selector::try_from(selector).ok());
        let selector = selector.map(|selector| selector.to_string()).filter(|selector| !selector.is_empty());
        let Some(selector) = selector else {
            return Err(Failure::new(format!("cannot tell which pods {self} has: its selector is unknown")).for_good());
        };
        let pods = Api::<Pod>::namespaced(context.client().clone(), context.namespace());
        let (pods, parameters) = (&pods, &ListParams::default().labels(&selector));
        let gone = until(context, format!("list the pods of {self}"), || async move {
            Ok(pods.list(parameters).await?.items.is_empty().then_some(()))
        });
        let message = || Failure::new(format!("the pods of {self} have not gone within {PATIENCE:?}"));
        tokio::time::timeout(PATIENCE, gone).await.map_err(|_| message())?
    }
}

fn parameters() -> PatchParams {
    PatchParams { field_manager: Some("jobwright".to_owned()), ..PatchParams::default() }
}
