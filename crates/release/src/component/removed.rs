//! Components that were deployed and that the plan no longer has: reported with what they own, or pruned.

use super::caller::Caller;
use super::helm::HelmReleases;
use super::kinds::Kinds;
use super::manifests::{Declared, Owner, Pruner};
use super::name_some;
use crate::plan::{OnRemovedComponent, Plan};
use crate::record::{Deployed, ObjectKey, Record, Records};
use jobwright_engine::{Component, Decision, DeployContext, Failure, Occasion, async_trait};

/// A component that was deployed and that the plan no longer has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Its name.
    pub name: String,
    /// The objects that were applied.
    pub objects: Vec<ObjectKey>,
    /// Its Helm release.
    pub helm_release: Option<String>,
}

/// The components of a record that a plan no longer has.
pub fn removed_components(plan: &Plan, record: &Record) -> Vec<Removed> {
    let is_removed = |name: &String| !plan.components.iter().any(|component| component.name == *name);
    let removed = record.components.iter().filter(|(name, _)| is_removed(name));
    removed
        .map(|(name, deployed)| Removed {
            name: name.clone(),
            objects: deployed.objects.clone(),
            // Records of older versions do not name it.
            helm_release: deployed.helm_release.clone().or_else(|| {
                let is_chart = deployed.helm_revision.is_some() || deployed.helm.is_some();
                is_chart.then(|| name.clone())
            }),
        })
        .collect()
}

/// A removed component in a deploy: after all others, it is reported or pruned.
pub(crate) struct RemovedComponent {
    pub removed: Removed,
    /// All components of the plan.
    pub others: Vec<String>,
    pub policy: OnRemovedComponent,
    pub records: Records,
    pub releases: HelmReleases,
    pub kinds: Kinds,
    pub declared: Declared,
}

/// What a removed component still owns.
struct Owned {
    objects: Vec<ObjectKey>,
    helm_release: Option<String>,
}

impl RemovedComponent {
    async fn owned(&self, context: &DeployContext) -> Result<Owned, Failure> {
        let caller = Caller::of(context);
        let owner = Owner::new(context, &self.removed.name);
        let mut objects = Vec::new();
        for key in &self.removed.objects {
            let Some(resource) = self.kinds.find_any(&caller, &key.api_version, &key.kind).await? else { continue };
            let api = resource.api(&caller, key.namespace.as_deref());
            let found = caller.call(&format!("read {key}"), || api.get_metadata_opt(&key.name)).await?;
            if found.is_some_and(|object| owner.owns(&object)) {
                objects.push(key.clone());
            }
        }
        let helm_release = match &self.removed.helm_release {
            Some(release) => self.releases.last(&caller, release).await?.map(|_| release.clone()),
            None => None,
        };
        Ok(Owned { objects, helm_release })
    }

    async fn change(&self, change: impl Fn(&mut Deployed) + Send + Sync) -> Result<(), Failure> {
        let change = |record: &mut Record| {
            if let Some(deployed) = record.components.get_mut(&self.removed.name) {
                change(deployed);
            }
        };
        self.records.change(change).await.map(drop)
    }
}

impl Owned {
    /// What is owned, and how to get rid of it; none if nothing is.
    fn describe(&self, namespace: &str, policy: OnRemovedComponent) -> Option<String> {
        let mut parts = Vec::new();
        if !self.objects.is_empty() {
            let hint = match policy {
                OnRemovedComponent::Report => " (`onRemovedComponent: Prune` deletes them)",
                OnRemovedComponent::Prune => "",
            };
            parts.push(format!("{}{hint}", name_some(&self.objects)));
        }
        if let Some(release) = &self.helm_release {
            parts.push(format!(
                "Helm release `{release}` (`helm uninstall {release} --namespace {namespace}` deletes it)"
            ));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

#[async_trait]
impl Component for RemovedComponent {
    fn name(&self) -> &str {
        &self.removed.name
    }

    fn depends_on(&self) -> Vec<String> {
        self.others.clone()
    }

    async fn decide(&self, context: &DeployContext) -> Result<Decision, Failure> {
        let owned = match (self.owned(context).await, self.policy) {
            (Ok(owned), _) => owned,
            (Err(failure), OnRemovedComponent::Prune) => return Err(failure),
            // What is only reported does not stop a deploy.
            (Err(failure), OnRemovedComponent::Report) => {
                let reason = format!("removed from the plan; what it still owns is unknown: {failure}");
                return Ok(Decision::Unchanged(reason));
            }
        };
        let has_to_prune = self.policy == OnRemovedComponent::Prune && !owned.objects.is_empty();
        Ok(match owned.describe(&context.release().namespace, self.policy) {
            None => Decision::Remove("removed from the plan, and nothing of it is left".to_owned()),
            Some(what) if has_to_prune => Decision::Remove(format!("removed from the plan: pruning {what}")),
            Some(what) => Decision::Unchanged(format!("removed from the plan, and still owns {what}")),
        })
    }

    async fn deploy(&self, context: &DeployContext, _: Occasion) -> Result<(), Failure> {
        let name = &self.removed.name;
        let pruner = Pruner { context, component: name, kinds: &self.kinds, declared: &self.declared };
        let owned = self.owned(context).await?;
        let kept = match self.policy {
            OnRemovedComponent::Prune => {
                // A plan that has the component again has to deploy it, however much of it is pruned by then.
                self.change(Deployed::begin).await?;
                pruner.prune(&owned.objects, &[]).await?
            }
            OnRemovedComponent::Report => owned.objects,
        };
        if kept.is_empty() && owned.helm_release.is_none() {
            return self.records.change(|record| drop(record.components.remove(name))).await.map(drop);
        }
        self.change(|deployed| {
            deployed.objects.clone_from(&kept);
            deployed.owned.clear();
        })
        .await
    }
}
