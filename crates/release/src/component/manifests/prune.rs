//! Deletes what a component applied before and no longer declares.

use super::identity::Identity;
use super::labels::Owner;
use super::load::{self, rank};
use crate::component::caller::{Caller, existing};
use crate::component::kinds::{Kinds, Resource};
use crate::record::ObjectKey;
use jobwright_engine::{DeployContext, Failure};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Preconditions};
use std::path::PathBuf;
use std::sync::Arc;

/// What all components of a plan declare, as far as that can be read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declared {
    /// Components by name, with the paths of their manifests.
    manifests: Arc<Vec<(String, PathBuf)>>,
    /// Whether charts or jobs may define kinds, too.
    defines_more: bool,
}

impl Declared {
    pub(crate) fn new(manifests: impl Iterator<Item = (String, PathBuf)>, defines_more: bool) -> Self {
        Self { manifests: Arc::new(manifests.collect()), defines_more }
    }

    /// Whether anything in the plan may define a kind.
    pub(super) fn may_define(&self, api_version: &str, kind: &str) -> bool {
        let defines = |manifest: &load::Manifest| {
            manifest.defines().iter().any(|one| one.api.api_version == api_version && one.api.kind == kind)
        };
        // What cannot be read is reported by its own component.
        let is_defined = |path: &PathBuf| load::load(path).is_ok_and(|manifests| manifests.iter().any(defines));
        self.defines_more || self.manifests.iter().any(|(_, path)| is_defined(path))
    }

    /// What components other than this one declare. What cannot be read fails: an object may have moved there.
    fn elsewhere(&self, component: &str) -> Result<Vec<Identity>, Failure> {
        let mut found = Vec::new();
        for (other, path) in self.manifests.iter().filter(|(name, _)| name != component) {
            let loaded = load::load(path).map_err(|failure| {
                let problem = format!("cannot prune component `{component}` while component `{other}` cannot be read");
                Failure::new(problem).because(failure).for_good()
            })?;
            found.extend(loaded.iter().map(load::Manifest::identity));
        }
        Ok(found)
    }
}

/// What is pruned, and by which right.
pub(crate) struct Pruner<'a> {
    pub(crate) context: &'a DeployContext,
    pub(crate) component: &'a str,
    pub(crate) kinds: &'a Kinds,
    pub(crate) declared: &'a Declared,
}

/// What became of an object.
enum Fate {
    /// It does not exist any more, or belongs to another owner.
    Gone,
    Deleted,
}

/// What is declared, and must not be deleted.
struct Wanted<'a> {
    /// By the other components of the plan.
    elsewhere: Vec<Identity>,
    /// By the component itself.
    now: Vec<Identity>,
    namespace: &'a str,
}

impl Wanted<'_> {
    /// Whether another component declares it: there it is taken over.
    fn moves(&self, identity: &Identity) -> bool {
        self.elsewhere.iter().any(|other| other.may_be(identity))
    }

    /// Whether what is still declared would be deleted with it.
    fn contains(&self, identity: &Identity) -> bool {
        let mut all = self.now.iter().chain(&self.elsewhere);
        identity.is_namespace(self.namespace) || all.any(|other| identity.contains(other, self.namespace))
    }
}

impl Pruner<'_> {
    fn wanted<'k>(&self, now: impl Iterator<Item = &'k ObjectKey>) -> Result<Wanted<'_>, Failure> {
        Ok(Wanted {
            elsewhere: self.declared.elsewhere(self.component)?,
            now: now.map(Identity::from).collect(),
            namespace: &self.context.release().namespace,
        })
    }

    /// Deletes objects that still belong to the component, which has `now` instead. Gives those back that have to stay,
    /// in the record, too: what another component of the plan declares and has not taken over yet, and namespaces and
    /// definitions whose deletion would delete what is still declared.
    pub(crate) async fn prune(&self, objects: &[ObjectKey], now: &[ObjectKey]) -> Result<Vec<ObjectKey>, Failure> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let wanted = self.wanted(now.iter())?;
        let mut objects = objects.to_vec();
        // What others need was applied first, and goes last.
        objects.sort_by_key(|key| std::cmp::Reverse(rank(&key.kind)));
        let mut kept = Vec::new();
        for key in objects {
            if self.context.cancellation().is_cancelled() {
                return Err(Failure::new(format!("cancelled before {key} was pruned")));
            }
            let Some((resource, owner)) = self.find(&key).await? else { continue };
            let identity = Identity::from(&key);
            if wanted.moves(&identity) {
                kept.push(key);
            } else if wanted.contains(&identity) {
                self.context.progress(format!("kept {key}: objects that are still declared would be deleted with it"));
                kept.push(key);
            } else if let Fate::Deleted = self.delete(&key, &resource, &owner).await? {
                self.context.progress(format!("deleted {key}, which component `{}` no longer has", self.component));
            }
        }
        Ok(kept)
    }

    /// The first of these objects that a prune would delete: an earlier one had to keep it.
    pub(super) async fn first_to_delete<'k>(
        &self,
        objects: &[&'k ObjectKey],
        now: &[&ObjectKey],
    ) -> Result<Option<&'k ObjectKey>, Failure> {
        if objects.is_empty() {
            return Ok(None);
        }
        let wanted = self.wanted(now.iter().copied())?;
        for key in objects {
            let identity = Identity::from(*key);
            let stays = wanted.moves(&identity) || wanted.contains(&identity);
            if !stays && self.find(key).await?.is_some() {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// The kind of an object that exists and belongs to the component.
    async fn find(&self, key: &ObjectKey) -> Result<Option<(Resource, Owner)>, Failure> {
        let caller = Caller::of(self.context);
        // With its kind, its objects are gone; a kind that cannot be discovered is an error.
        let Some(resource) = self.kinds.find_any(&caller, &key.api_version, &key.kind).await? else {
            return Ok(None);
        };
        let owner = Owner::new(self.context, self.component);
        let api = resource.api(&caller, key.namespace.as_deref());
        let found = caller.call(&format!("read {key}"), || api.get_metadata_opt(&key.name)).await?;
        Ok(found.filter(|object| owner.owns(object)).map(|_| (resource, owner)))
    }

    /// Deletes the object that was judged and no other: if it changes in between, it is judged again.
    async fn delete(&self, key: &ObjectKey, resource: &Resource, owner: &Owner) -> Result<Fate, Failure> {
        let caller = Caller::of(self.context);
        let api = resource.api(&caller, key.namespace.as_deref());
        let delete = || async {
            let Some(object) = api.get_metadata_opt(&key.name).await?.filter(|object| owner.owns(object)) else {
                return Ok(Fate::Gone);
            };
            let preconditions = Preconditions { uid: object.uid(), resource_version: object.resource_version() };
            let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
            let deleted = existing(api.delete(&key.name, &parameters).await)?;
            Ok(if deleted.is_some() { Fate::Deleted } else { Fate::Gone })
        };
        caller.call(&format!("delete {key}"), delete).await
    }
}
