//! A component that is plain YAML: applied by the server, waited for, and pruned.

use super::{Common, files};
use crate::failure;
use crate::patience::{PAUSE, is_passing, patiently};
use crate::plan;
use crate::record::{Deployed, ObjectKey, Record};
use futures::future::join_all;
use jobwright_engine::{Component, Decision, DeployContext, Failure, Occasion, async_trait};
use jobwright_jobs::readiness::{Readiness, judge};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::GroupVersionKind;
use kube::core::discovery::Scope;
use kube::discovery::Discovery;
use kube::runtime::wait::{self, await_condition};
use kube::runtime::watcher;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// A component that is plain YAML.
pub(crate) struct ManifestsComponent {
    /// What every component has.
    pub common: Common,
    /// The file or directory.
    pub path: PathBuf,
    /// How it is waited for.
    pub options: plan::Manifests,
}

/// Kinds that others need come first; what is not named comes after them.
const FIRST: [&str; 13] = [
    "Namespace",
    "PriorityClass",
    "ResourceQuota",
    "LimitRange",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
];
const COMPONENT: &str = "jobwright.io/component";
const RELEASE: &str = "jobwright.io/release";
/// How long a kind that has just been defined may take to be served.
const SETTLING: Duration = Duration::from_secs(30);

impl ManifestsComponent {
    /// The objects of its files, in the order in which they are applied.
    fn objects(&self) -> Result<Vec<Value>, Failure> {
        let mut objects = Vec::new();
        for file in files::list(&self.path)? {
            let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            if !matches!(extension, "yaml" | "yml" | "json") {
                continue;
            }
            let wrong = |message: String| Failure::new(format!("`{}`: {message}", file.display())).for_good();
            let text = std::fs::read_to_string(&file).map_err(|error| wrong(error.to_string()))?;
            let documents = jobwright_yaml::parse(&text).map_err(|error| {
                let place = jobwright_yaml::position(&text, error.offset);
                wrong(format!("line {}, column {}: {error}", place.line, place.column))
            })?;
            for document in documents {
                let object = document.root.to_json();
                match (&object["kind"], &object["items"]) {
                    _ if object.is_null() => {}
                    (Value::String(kind), Value::Array(items)) if kind.ends_with("List") => {
                        objects.extend(items.clone());
                    }
                    _ => objects.push(object),
                }
            }
            for object in &objects {
                let name = object["metadata"]["name"].as_str();
                if name.is_none() || object["kind"].as_str().is_none() || object["apiVersion"].as_str().is_none() {
                    return Err(wrong("an object has no `apiVersion`, `kind` or `metadata.name`".to_owned()));
                }
            }
        }
        if objects.is_empty() {
            return Err(Failure::new(format!("`{}` holds no manifests", self.path.display())).for_good());
        }
        objects.sort_by_key(|object| FIRST.iter().position(|kind| object["kind"] == *kind).unwrap_or(FIRST.len()));
        Ok(objects)
    }

    async fn apply(
        &self,
        cluster: &mut Cluster,
        context: &DeployContext,
        mut object: Value,
    ) -> Result<ObjectKey, Failure> {
        let key = cluster.key(&object, &context.release().namespace).await?;
        let labels = &mut object["metadata"]["labels"];
        if !labels.is_object() {
            *labels = json!({});
        }
        labels[RELEASE] = json!(context.release().name);
        labels[COMPONENT] = json!(self.common.name);
        if let Some(namespace) = &key.namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        let parameters = PatchParams::apply("jobwright").force();
        let api = cluster.api(&key).await?;
        let patch = Patch::Apply(&object);
        let applied = patiently(|| api.patch(&key.name, &parameters, &patch)).await;
        applied.map_err(|error| failure(format!("cannot apply {key}"), error))?;
        Ok(key)
    }

    /// Waits until everything is as it should be.
    async fn wait(&self, cluster: &mut Cluster, keys: &[ObjectKey]) -> Result<(), Failure> {
        let mut waits = Vec::new();
        for key in keys {
            let api = cluster.api(key).await?;
            waits.push(self.wait_for(key, api));
        }
        join_all(waits).await.into_iter().collect::<Result<(), Failure>>()
    }

    async fn wait_for(&self, key: &ObjectKey, api: Api<DynamicObject>) -> Result<(), Failure> {
        let said = std::sync::Mutex::new(Readiness::Waiting("it was not seen".to_owned()));
        let note = |readiness: Readiness| {
            let is_over = !matches!(readiness, Readiness::Waiting(_));
            *said.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = readiness;
            is_over
        };
        let condition = |object: Option<&DynamicObject>| {
            let json = object.and_then(|object| serde_json::to_value(object).ok());
            note(json.map_or_else(|| Readiness::Waiting("it is gone".to_owned()), |json| judge(&key.kind, &json)))
        };
        let limit = self.options.timeout.duration();
        let watch = async {
            loop {
                match await_condition(api.clone(), &key.name, &condition).await {
                    Err(error) if is_interrupted(&error) => tokio::time::sleep(PAUSE).await,
                    watched => return watched,
                }
            }
        };
        let waited = tokio::time::timeout(limit, watch).await;
        let last = said.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        match (waited, last) {
            (Ok(Err(error)), _) => Err(Failure::new(format!("cannot watch {key}")).because(error)),
            (_, Readiness::Ready) => Ok(()),
            (_, Readiness::Failed(why)) => Err(Failure::new(format!("{key}: {why}"))),
            (_, Readiness::Waiting(why)) => Err(Failure::new(format!("{key} is not ready after {limit:?}: {why}"))),
        }
    }

    /// Deletes what was applied before and is no longer wanted.
    async fn prune(
        &self,
        cluster: &mut Cluster,
        context: &DeployContext,
        before: &[ObjectKey],
        now: &[ObjectKey],
    ) -> Result<(), Failure> {
        let now: BTreeSet<&ObjectKey> = now.iter().collect();
        for key in before.iter().filter(|key| !now.contains(key)) {
            let Ok(api) = cluster.api(key).await else { continue };
            let found = patiently(|| api.get_opt(&key.name)).await;
            let found = found.map_err(|error| failure(format!("cannot read {key}"), error))?;
            // Whoever took it over keeps it.
            let Some(object) = found.filter(|object| object.labels().get(COMPONENT) == Some(&self.common.name)) else {
                continue;
            };
            let parameters = DeleteParams {
                preconditions: Some(Preconditions { uid: object.uid(), resource_version: None }),
                ..DeleteParams::background()
            };
            context.progress(format!("deleting {key}, which is no longer part of it"));
            let delete = || async {
                match api.delete(&key.name, &parameters).await {
                    // It is gone, or another one has come.
                    Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
                    answered => answered.map(drop),
                }
            };
            patiently(delete).await.map_err(|error| failure(format!("cannot delete {key}"), error))?;
        }
        Ok(())
    }
}

#[async_trait]
impl Component for ManifestsComponent {
    fn name(&self) -> &str {
        &self.common.name
    }

    fn depends_on(&self) -> Vec<String> {
        self.common.depends_on.clone()
    }

    async fn decide(&self, _: &DeployContext) -> Result<Decision, Failure> {
        let record = self.common.records.get().await;
        let deployed = record.components.get(&self.common.name);
        let same = || Decision::Unchanged("the same manifests and version".to_owned());
        Ok(self.common.changes(deployed, &parts(&self.objects()?)).unwrap_or_else(same))
    }

    async fn deploy(&self, context: &DeployContext, _: Occasion) -> Result<(), Failure> {
        let objects = self.objects()?;
        let parts = parts(&objects);
        let mut cluster = Cluster::new(context.client().clone());
        let before = self.common.records.get().await.components.get(&self.common.name).cloned().unwrap_or_default();
        let name = self.common.name.clone();
        let mut keys = Vec::new();
        context.progress(format!("applying {} objects", objects.len()));
        for object in objects {
            if context.cancellation().is_cancelled() {
                return Err(Failure::new("cancelled while it was applied"));
            }
            let is_definition = object["kind"] == "CustomResourceDefinition";
            let key = self.apply(&mut cluster, context, object).await?;
            if is_definition {
                let api = cluster.api(&key).await?;
                self.wait_for(&key, api).await?;
                cluster.forget();
            }
            keys.push(key);
        }
        // What was applied is written down before anything is taken away, so that nothing is lost sight of.
        let all: BTreeSet<ObjectKey> = before.objects.iter().chain(&keys).cloned().collect();
        let objects: Vec<ObjectKey> = all.into_iter().collect();
        let applied = {
            let name = name.clone();
            move |record: &mut Record| {
                let deployed = record.components.entry(name.clone()).or_default();
                deployed.objects.clone_from(&objects);
                deployed.complete = false;
            }
        };
        self.common.records.change(applied).await?;
        if self.options.wait {
            context.progress("waiting until it is ready");
            tokio::select! {
                waited = self.wait(&mut cluster, &keys) => waited?,
                () = context.cancellation().cancelled() => return Err(Failure::new("cancelled before it was ready")),
            }
        }
        self.prune(&mut cluster, context, &before.objects, &keys).await?;
        let deployed = Deployed { parts, version: self.common.version.clone(), objects: keys, ..Deployed::default() };
        self.common
            .records
            .change(move |record| drop(record.components.insert(name.clone(), deployed.clone())))
            .await?;
        Ok(())
    }

    async fn complete(&self, _: &DeployContext) -> Result<(), Failure> {
        self.common.complete().await
    }
}

/// Whether a watch has only to be started again.
fn is_interrupted(error: &wait::Error) -> bool {
    let wait::Error::ProbeFailed(error) = error;
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => is_passing(error),
        watcher::Error::WatchError(_) => true,
        watcher::Error::NoResourceVersion => false,
    }
}

/// What objects are recognised by.
fn parts(objects: &[Value]) -> BTreeMap<String, String> {
    let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    BTreeMap::from([("manifests".to_owned(), files::hash_of(&texts))])
}

/// The kinds of a cluster, asked for when one is needed.
struct Cluster {
    client: kube::Client,
    discovery: Option<Discovery>,
}

impl Cluster {
    fn new(client: kube::Client) -> Self {
        Self { client, discovery: None }
    }

    /// Kinds have come or gone.
    fn forget(&mut self) {
        self.discovery = None;
    }

    async fn find(
        &mut self,
        version: &str,
        kind: &str,
    ) -> Result<(kube::core::discovery::ApiResource, Scope), Failure> {
        let (group, number) = version.split_once('/').unwrap_or(("", version));
        let wanted = GroupVersionKind::gvk(group, number, kind);
        let started = tokio::time::Instant::now();
        loop {
            if self.discovery.is_none() {
                let asked = patiently(|| Discovery::new(self.client.clone()).run_aggregated()).await;
                self.discovery = Some(asked.map_err(|error| failure("cannot ask which kinds the cluster has", error))?);
            }
            let found = self.discovery.as_ref().and_then(|discovery| discovery.resolve_gvk(&wanted));
            if let Some((resource, capabilities)) = found {
                return Ok((resource, capabilities.scope));
            }
            if started.elapsed() > SETTLING {
                return Err(Failure::new(format!("the cluster has no kind `{kind}` in `{version}`")).for_good());
            }
            // A kind that was defined a moment ago is served a moment later.
            tokio::time::sleep(Duration::from_millis(500)).await;
            self.discovery = None;
        }
    }

    async fn key(&mut self, object: &Value, namespace: &str) -> Result<ObjectKey, Failure> {
        let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (part(&object["apiVersion"]), part(&object["kind"]));
        let (_, scope) = self.find(&api_version, &kind).await?;
        let own = object["metadata"]["namespace"].as_str().map(str::to_owned);
        let namespace = (scope == Scope::Namespaced).then(|| own.unwrap_or_else(|| namespace.to_owned()));
        Ok(ObjectKey { api_version, kind, namespace, name: part(&object["metadata"]["name"]) })
    }

    async fn api(&mut self, key: &ObjectKey) -> Result<Api<DynamicObject>, Failure> {
        let (resource, _) = self.find(&key.api_version, &key.kind).await?;
        Ok(match &key.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        })
    }
}
