//! Applies objects: server-side, as one field manager, with the labels of their component.

use super::labels::Owner;
use super::load::Manifest;
use crate::component::caller::Caller;
use crate::component::kinds::Resource;
use crate::record::ObjectKey;
use jobwright_engine::{Answer, DeployContext, Failure, Refusal, classify};
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) const MANAGER: &str = "jobwright";
const PAUSE: Duration = Duration::from_secs(1);

/// What an object is applied with.
pub(super) struct Applier<'a> {
    pub(super) context: &'a DeployContext,
    pub(super) owner: &'a Owner,
    /// How long an older object of the same name may take to be deleted.
    pub(super) limit: Duration,
}

impl Applier<'_> {
    /// Applies an object. An older one that is being deleted is waited for: what is applied to it goes with it.
    pub(super) async fn apply(
        &self,
        manifest: &Manifest,
        key: &ObjectKey,
        resource: &Resource,
    ) -> Result<DynamicObject, Failure> {
        let caller = Caller::of(self.context);
        let api = resource.api(&caller, key.namespace.as_deref());
        let object = self.body(manifest, key);
        let parameters = PatchParams::apply(MANAGER).force();
        let doing = format!("apply {key}");
        // Bound to what is stored now: a request that the server carries out late, after another deploy, is refused.
        let apply_once = || async {
            let mut object = object.clone();
            if let Some(stored) = api.get_metadata_opt(&key.name).await? {
                object["metadata"]["resourceVersion"] = json!(stored.metadata.resource_version);
            }
            api.patch(&key.name, &parameters, &Patch::Apply(&object)).await
        };
        let apply = || caller.call(&doing, apply_once);
        let apply = async {
            let mut deleted_since: Option<tokio::time::Instant> = None;
            loop {
                let applied = apply().await?;
                if applied.metadata.deletion_timestamp.is_none() {
                    return Ok(applied);
                }
                if deleted_since.is_none() {
                    self.context.progress(format!("waiting until the old {key} is deleted"));
                }
                if deleted_since.get_or_insert_with(tokio::time::Instant::now).elapsed() > self.limit {
                    let problem = format!("the old {key} is still being deleted after {:?}", self.limit);
                    return Err(Failure::new(format!("{problem}: check its finalizers")));
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::select! {
            applied = apply => applied,
            () = self.context.cancellation().cancelled() => {
                Err(Failure::new(format!("cancelled while {key} was applied")))
            }
        }
    }

    /// Fails where the API server would refuse an object. What it waits for may come with the deploy.
    pub(super) async fn try_out(
        &self,
        manifest: &Manifest,
        key: &ObjectKey,
        resource: &Resource,
    ) -> Result<(), Failure> {
        let api = resource.api(&Caller::of(self.context), key.namespace.as_deref());
        let patch = Patch::Apply(self.body(manifest, key));
        let parameters = PatchParams { dry_run: true, ..PatchParams::apply(MANAGER).force() };
        let doing = format!("apply {key}");
        let tried = self.context.retry().answer(&doing, || api.patch(&key.name, &parameters, &patch)).await?;
        match tried {
            Err(error) if classify(&error) == Answer::Refused => {
                Err(Failure::new(format!("the API server would refuse {key}")).because(Refusal::from(error)).for_good())
            }
            _ => Ok(()),
        }
    }

    fn body(&self, manifest: &Manifest, key: &ObjectKey) -> Value {
        let mut object = Value::Object(manifest.object.clone());
        // The loader has seen that metadata is a map, and its labels, too, if there are any.
        let metadata = &mut object["metadata"];
        if !metadata["labels"].is_object() {
            metadata["labels"] = json!({});
        }
        for (label, value) in self.owner.labels() {
            metadata["labels"][label] = json!(value);
        }
        if let Some(namespace) = &key.namespace {
            metadata["namespace"] = json!(namespace);
        }
        object
    }
}

/// What Jobwright owns of an object, as a hash: another client that changes a field takes it away.
pub(super) fn owned(object: &impl kube::ResourceExt) -> Option<String> {
    let entry = object.managed_fields().iter().find(|entry| {
        let (manager, operation) = (entry.manager.as_deref(), entry.operation.as_deref());
        manager == Some(MANAGER) && operation == Some("Apply") && entry.subresource.as_deref().unwrap_or("").is_empty()
    });
    let fields = entry?.fields_v1.as_ref()?;
    Some(crate::component::files::hash_of(&[&fields.0.to_string()]))
}
