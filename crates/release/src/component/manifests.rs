//! A component that is plain YAML: applied by the server, waited for, and pruned.

mod apply;
mod drift;
mod identity;
mod labels;
mod load;
mod prune;
mod wait;

pub(crate) use identity::Identity;
pub(crate) use labels::Owner;
pub(crate) use load::{Manifest, load};
pub(crate) use prune::{Declared, Pruner};

use super::caller::Caller;
use super::kinds::{Kinds, Resource};
use super::{Common, files, with_left};
use crate::plan::{self, OnDrift};
use crate::record::{Deployed, ObjectKey, Record};
use apply::Applier;
use identity::{union, without};
use jobwright_engine::{Component, Decision, DeployContext, Failure, Occasion, async_trait};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use wait::{wait_for, wait_for_all};

/// A component that is plain YAML.
pub(crate) struct ManifestsComponent {
    /// What every component has.
    pub common: Common,
    /// The file or directory.
    pub path: PathBuf,
    /// How it is deployed.
    pub options: plan::Manifests,
    /// The kinds of the cluster.
    pub kinds: Kinds,
    /// What the other components declare.
    pub declared: Declared,
}

/// An object that is going to be applied.
struct Target {
    manifest: Manifest,
    key: ObjectKey,
    /// None if its kind is defined by the component itself, and not yet served.
    resource: Option<Resource>,
}

impl ManifestsComponent {
    /// The manifests, and no answer of the API server repeats what is secret in them.
    fn manifests(&self, context: &DeployContext) -> Result<Vec<Manifest>, Failure> {
        let manifests = load(&self.path)?;
        manifests.iter().flat_map(Manifest::secret_values).for_each(|value| context.mask().hide(&value));
        Ok(manifests)
    }

    /// What is going to be applied. Every kind has to be known before anything is.
    async fn targets(&self, context: &DeployContext) -> Result<Vec<Target>, Failure> {
        let manifests = self.manifests(context)?;
        let defined: Vec<Resource> = manifests.iter().flat_map(Manifest::defines).collect();
        let caller = Caller::of(context);
        let mut targets: Vec<Target> = Vec::new();
        for manifest in manifests {
            let Manifest { api_version, kind, place, .. } = &manifest;
            let mut resource = self.kinds.find(&caller, api_version, kind).await?;
            let own = defined.iter().find(|one| one.api.api_version == *api_version && one.api.kind == *kind);
            if resource.is_none() && own.is_none() {
                let found = self.kinds.wait_for(context, api_version, kind).await;
                resource = Some(found.map_err(|failure| Failure::new(place.clone()).because(failure).for_good())?);
            }
            let is_namespaced = resource.as_ref().or(own).is_some_and(|resource| resource.is_namespaced);
            let key = manifest.key(&context.release().namespace, is_namespaced);
            if let Some(first) = targets.iter().find(|other| Identity::from(&other.key) == Identity::from(&key)) {
                let problem = format!("{place}: {key} is a duplicate of {}", first.manifest.place);
                return Err(Failure::new(problem).for_good());
            }
            targets.push(Target { manifest, key, resource });
        }
        Ok(targets)
    }

    /// Fails if the cluster does not have a kind and nothing in the plan may define it.
    async fn check_kinds(&self, context: &DeployContext, manifests: &[Manifest]) -> Result<(), Failure> {
        let caller = Caller::of(context);
        for Manifest { api_version, kind, place, .. } in manifests {
            let is_served = self.kinds.find(&caller, api_version, kind).await?.is_some();
            if !is_served && !self.declared.may_define(api_version, kind) {
                let found = self.kinds.wait_for(context, api_version, kind).await;
                found.map_err(|failure| Failure::new(place.clone()).because(failure).for_good())?;
            }
        }
        Ok(())
    }

    /// Records what is going to be applied, before anything is. A deploy that fails half-way is never unchanged, and
    /// the next that succeeds prunes what it has left.
    async fn announce(&self, objects: Vec<ObjectKey>) -> Result<(), Failure> {
        let name = self.common.name.clone();
        let announce = move |record: &mut Record| {
            let deployed = record.components.entry(name.clone()).or_default();
            deployed.objects.clone_from(&objects);
            deployed.begin();
            deployed.owned.clear();
        };
        self.common.records.change(announce).await.map(drop)
    }

    fn pruner<'a>(&'a self, context: &'a DeployContext) -> Pruner<'a> {
        Pruner { context, component: &self.common.name, kinds: &self.kinds, declared: &self.declared }
    }

    /// Applies everything, in order. Gives what was applied, with what is owned of it.
    async fn apply(
        &self,
        context: &DeployContext,
        targets: Vec<Target>,
    ) -> Result<(Vec<(ObjectKey, Resource)>, BTreeMap<String, String>), Failure> {
        let owner = Owner::new(context, &self.common.name);
        let limit = self.options.timeout.duration();
        let applier = Applier { context, owner: &owner, limit };
        let mut applied = Vec::new();
        let mut owned = BTreeMap::new();
        for Target { manifest, key, resource } in targets {
            if context.cancellation().is_cancelled() {
                return Err(Failure::new(format!("cancelled before {key} was applied")));
            }
            let resource = match resource {
                Some(resource) => resource,
                None => self.kinds.wait_for(context, &key.api_version, &key.kind).await?,
            };
            let object = applier.apply(&manifest, &key, &resource).await?;
            if manifest.is_definition() {
                wait_for(context, &key, &resource, limit).await?;
                self.kinds.forget_all();
            }
            owned.extend(apply::owned(&object).map(|hash| (Identity::from(&key).to_string(), hash)));
            applied.push((key, resource));
        }
        Ok((applied, owned))
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

    async fn decide(&self, context: &DeployContext) -> Result<Decision, Failure> {
        let record = self.common.records.get().await;
        let deployed = record.components.get(&self.common.name);
        let manifests = load(&self.path)?;
        let parts = parts(&manifests);
        let (None, Some(deployed)) = (self.common.changes(deployed, &parts), deployed) else {
            let same = || Decision::Unchanged("same manifests and version".to_owned());
            self.check_kinds(context, &manifests).await?;
            let left = deployed.and_then(|deployed| deployed.left_release(None, &context.release().namespace));
            return Ok(with_left(self.common.changes(deployed, &parts).unwrap_or_else(same), left));
        };
        let declares =
            |key: &&ObjectKey| manifests.iter().any(|manifest| manifest.identity().may_be(&Identity::from(*key)));
        let (declared, left): (Vec<&ObjectKey>, Vec<&ObjectKey>) = deployed.objects.iter().partition(declares);
        if let Some(key) = self.pruner(context).first_to_delete(&left, &declared).await? {
            return Ok(Decision::Upgrade(format!("{key} is left to be pruned")));
        }
        let drift = drift::find(context, &self.kinds, &self.common.name, deployed, &declared).await?;
        Ok(match (drift.as_slice(), self.options.on_drift) {
            ([], _) => Decision::Unchanged("same manifests and version".to_owned()),
            (drift, OnDrift::Redeploy) => Decision::Upgrade(drift::describe(drift)),
            (drift, OnDrift::Report) => {
                Decision::Unchanged(format!("{}; `--redeploy` applies it again", drift::describe(drift)))
            }
        })
    }

    async fn foresee(&self, context: &DeployContext) -> Result<(), Failure> {
        let (owner, caller) = (Owner::new(context, &self.common.name), Caller::of(context));
        let applier = Applier { context, owner: &owner, limit: self.options.timeout.duration() };
        for manifest in self.manifests(context)? {
            // A kind that is not served yet may be defined by the deploy.
            let found = self.kinds.find(&caller, &manifest.api_version, &manifest.kind).await?;
            if let Some(resource) = found {
                let key = manifest.key(&context.release().namespace, resource.is_namespaced);
                let tried = applier.try_out(&manifest, &key, &resource).await;
                tried.map_err(|failure| Failure::new(manifest.place.clone()).because(failure))?;
            }
        }
        Ok(())
    }

    async fn deploy(&self, context: &DeployContext, _: Occasion) -> Result<(), Failure> {
        let targets = self.targets(context).await?;
        let parts = parts_of(targets.iter().map(|target| &target.manifest));
        let keys: Vec<ObjectKey> = targets.iter().map(|target| target.key.clone()).collect();
        let before = self.common.records.get().await.components.get(&self.common.name).cloned().unwrap_or_default();
        self.announce(union(&before.objects, &keys)).await?;
        context.progress(format!("applying {} objects", targets.len()));
        let (applied, owned) = self.apply(context, targets).await?;
        if self.options.wait {
            context.progress("waiting until it is ready");
            wait_for_all(context, &applied, self.options.timeout.duration()).await?;
        }
        let kept = self.pruner(context).prune(&without(&before.objects, &keys), &keys).await?;
        let deployed = Deployed {
            parts,
            owned,
            version: self.common.version.clone(),
            objects: union(&kept, &keys),
            // A Helm release of the same component stays until it is uninstalled.
            helm_release: before.helm_release,
            installed: before.installed || before.complete,
            ..Deployed::default()
        };
        let name = self.common.name.clone();
        let done = move |record: &mut Record| drop(record.components.insert(name.clone(), deployed.clone()));
        self.common.records.change(done).await.map(drop)
    }

    async fn complete(&self, context: &DeployContext) -> Result<(), Failure> {
        self.common.complete(context).await
    }
}

/// What manifests are recognised by.
fn parts(manifests: &[Manifest]) -> BTreeMap<String, String> {
    parts_of(manifests.iter())
}

fn parts_of<'a>(manifests: impl Iterator<Item = &'a Manifest>) -> BTreeMap<String, String> {
    let texts: Vec<String> = manifests.map(|manifest| Value::Object(manifest.object.clone()).to_string()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    BTreeMap::from([("manifests".to_owned(), files::hash_of(&texts))])
}
