//! Reads and writes marks and memories until nothing is left to do.

use super::{Mark, MarkError, Memory, Next, Tracked, key, next};
use jiff::Timestamp;
use jobwright_engine::{Answer, Clock, Error, Outage, Refusal, Retry, bounded, classify};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, ApiResource, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use std::collections::BTreeMap;

/// The field manager of marks and memories: never one that applies, so that no deployer conflicts with it.
const FIELD_MANAGER: &str = "jobwright-mark";

/// The object on which a job remembers what it has marked. It outlives the release.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keeper<'a> {
    /// A Secret, which the job creates when it acts.
    Secret(&'a str),
    /// A ConfigMap, which is created with this label if it does not exist.
    ConfigMap(&'a str, (&'a str, &'a str)),
}

impl Keeper<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Secret(name) | Self::ConfigMap(name, _) => name,
        }
    }

    fn kind(&self) -> (&'static str, ApiResource) {
        match self {
            Self::Secret(_) => ("Secret", ApiResource::erase::<Secret>(&())),
            Self::ConfigMap(..) => ("ConfigMap", ApiResource::erase::<ConfigMap>(&())),
        }
    }
}

/// The cluster, its time, and how failing calls are retried and reported.
pub(crate) struct Cluster<'a> {
    pub(crate) client: &'a Client,
    pub(crate) clock: &'a Clock,
    pub(crate) retry: Retry,
}

/// What a job marks, and where it remembers that.
pub(crate) struct Marking<'a> {
    client: Client,
    clock: &'a Clock,
    retry: Retry,
    namespace: &'a str,
    mark: &'a Mark,
    keeper: Keeper<'a>,
    /// The annotation on both.
    key: String,
}

/// What was noticed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Noticed {
    /// When the last forced deploy was noticed: the job acts once for each.
    pub(crate) forced: Option<Timestamp>,
    /// An annotation for the object that remembers, which does not exist yet.
    pub(crate) unsaved: Option<(String, String)>,
    /// Whether the ConfigMap exists.
    pub(crate) is_tracked: bool,
}

/// What a step came to.
enum Step {
    Again,
    Done(Noticed),
}

/// Something that went wrong in a step.
enum Mishap {
    Fatal(MarkError),
    Call { doing: String, error: kube::Error },
}

impl<'a> Marking<'a> {
    /// Marks for a certificate, remembered on the Secret of its CA, which no server mounts.
    pub(crate) fn of_certificate(
        cluster: Cluster<'a>,
        namespace: &'a str,
        mark: &'a Mark,
        (secret, authority): (&str, &'a str),
    ) -> Self {
        Self::new(cluster, namespace, mark, Keeper::Secret(authority), key("init-cert", secret))
    }

    /// Marks for a backfill, remembered on the ConfigMap of its checkpoint.
    pub(crate) fn of_backfill(
        cluster: Cluster<'a>,
        namespace: &'a str,
        mark: &'a Mark,
        checkpoint: (&'a str, (&'a str, &'a str)),
    ) -> Self {
        let (name, label) = checkpoint;
        Self::new(cluster, namespace, mark, Keeper::ConfigMap(name, label), key("backfill", name))
    }

    fn new(cluster: Cluster<'a>, namespace: &'a str, mark: &'a Mark, keeper: Keeper<'a>, key: String) -> Self {
        let Cluster { client, clock, retry } = cluster;
        // A call that is given up may still be carried out, which its preconditions make harmless.
        Self { client: bounded(client), clock, retry, namespace, mark, keeper, key }
    }

    /// Marks the ConfigMap, remembers that, and says whether a deploy was forced. Without the ConfigMap nothing is done.
    pub(crate) async fn notice(&self) -> Result<Noticed, MarkError> {
        self.until_done(true).await
    }

    /// What [`notice`](Self::notice) would say, without a write.
    pub(crate) async fn foresee(&self) -> Result<Noticed, MarkError> {
        self.until_done(false).await
    }

    /// An annotation of a Secret; none if there is no such Secret.
    pub(crate) async fn annotation_of_secret(
        &self,
        name: &str,
        key: &str,
    ) -> Result<Option<Option<String>>, MarkError> {
        let secrets = Api::<Secret>::namespaced(self.client.clone(), self.namespace);
        let doing = format!("read Secret `{name}`");
        let found = self.retry.call(&doing, || secrets.get_metadata_opt(name)).await.map_err(MarkError::Cluster)?;
        Ok(found.map(|found| found.annotations().get(key).cloned()))
    }

    async fn until_done(&self, may_write: bool) -> Result<Noticed, MarkError> {
        let mut outage = Outage::default();
        loop {
            match self.step(may_write).await {
                Ok(Step::Done(noticed)) => return Ok(noticed),
                Ok(Step::Again) => outage = Outage::default(),
                Err(Mishap::Fatal(error)) => return Err(error),
                // Another process may have been quicker: everything is read again.
                Err(Mishap::Call { doing, error }) => match classify(&error) {
                    Answer::Refused | Answer::LostLease => {
                        return Err(MarkError::Cluster(Error::refused(doing, Refusal::from(error))));
                    }
                    _ => self.retry.pause(&mut outage, &doing, error).await.map_err(MarkError::Cluster)?,
                },
            }
        }
    }

    async fn step(&self, may_write: bool) -> Result<Step, Mishap> {
        let maps = Api::<ConfigMap>::namespaced(self.client.clone(), self.namespace);
        let (kind, resource) = self.keeper.kind();
        let keepers = Api::<DynamicObject>::namespaced_with(self.client.clone(), self.namespace, &resource);
        let (name, keeper_name) = (&self.mark.config_map, self.keeper.name());
        let reading = || calling(|| format!("read {kind} `{keeper_name}`"));
        // In this order: a mark that was remembered before the ConfigMap was read has been there before.
        let keeper = keepers.get_opt(keeper_name).await.map_err(reading())?;
        let found = maps.get_opt(name).await.map_err(calling(|| format!("read ConfigMap `{name}`")))?;
        let memory = keeper.as_ref().and_then(|keeper| Memory::of(&keeper.metadata, &self.key));
        let forced = |memory: Option<&Memory>| memory.and_then(|memory| memory.forced);
        let Some(found) = found else {
            return Ok(Step::Done(Noticed { forced: forced(memory.as_ref()), ..Noticed::default() }));
        };
        let tracked = Tracked::read(&found, &self.key).map_err(Mishap::Fatal)?;
        let done = |memory: Option<&Memory>| Noticed { forced: forced(memory), unsaved: None, is_tracked: true };
        match next(&tracked, memory.as_ref(), self.clock.now()) {
            Next::Settled => return Ok(Step::Done(done(memory.as_ref()))),
            Next::Mark if !may_write => return Ok(Step::Done(done(memory.as_ref()))),
            Next::Remember(memory) if !may_write => return Ok(Step::Done(done(Some(&memory)))),
            Next::Mark => {
                // What another process has remembered since may be that this very mark was removed.
                let now = keepers.get_metadata_opt(keeper_name).await.map_err(reading())?;
                let version = |meta: Option<&ObjectMeta>| meta.and_then(|meta| meta.resource_version.clone());
                let (before, now) =
                    (keeper.as_ref().map(|found| &found.metadata), now.as_ref().map(|now| &now.metadata));
                if version(before) != version(now) {
                    return Ok(Step::Again);
                }
                let patched = maps.patch(name, &parameters(), &self.patch(&tracked)).await;
                patched.map_err(calling(|| format!("mark ConfigMap `{name}`")))?;
            }
            Next::Remember(memory) => {
                let saving = calling(|| format!("write {kind} `{keeper_name}`"));
                match (keeper, self.keeper) {
                    (Some(mut keeper), _) => {
                        keeper.annotations_mut().insert(self.key.clone(), memory.write());
                        keepers.replace(keeper_name, &writing(), &keeper).await.map_err(saving)?;
                    }
                    (None, Keeper::ConfigMap(_, label)) => {
                        let object = self.new_keeper(&resource, label, &memory);
                        keepers.create(&writing(), &object).await.map_err(saving)?;
                    }
                    (None, Keeper::Secret(_)) => {
                        let unsaved = Some((self.key.clone(), memory.write()));
                        return Ok(Step::Done(Noticed { unsaved, ..done(Some(&memory)) }));
                    }
                }
            }
        }
        Ok(Step::Again)
    }

    /// Marks the very ConfigMap that was read, and creates none.
    fn patch(&self, tracked: &Tracked) -> Patch<serde_json::Value> {
        let Tracked { uid, version, identity, .. } = tracked;
        let annotations = json!({self.key.as_str(): identity});
        Patch::Merge(json!({"metadata": {"uid": uid, "resourceVersion": version, "annotations": annotations}}))
    }

    fn new_keeper(&self, resource: &ApiResource, label: (&str, &str), memory: &Memory) -> DynamicObject {
        let text = |(key, value): (&str, &str)| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        DynamicObject {
            metadata: ObjectMeta {
                name: Some(self.keeper.name().to_owned()),
                labels: Some(text(label)),
                annotations: Some(text((&self.key, &memory.write()))),
                ..ObjectMeta::default()
            },
            ..DynamicObject::new(self.keeper.name(), resource)
        }
    }
}

fn parameters() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

fn writing() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

fn calling(doing: impl FnOnce() -> String) -> impl FnOnce(kube::Error) -> Mishap {
    |error| Mishap::Call { doing: doing(), error }
}
