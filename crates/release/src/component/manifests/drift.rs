//! Finds objects that other clients have deleted or changed since they were applied.
//!
//! A change is seen in the object's managed fields: another client that writes a field becomes its manager, so what
//! Jobwright owns is no longer what it owned after it applied the object. Fields that the manifests do not declare
//! belong to others anyway.

use super::apply::{MANAGER, owned};
use super::identity::Identity;
use super::labels::Owner;
use crate::component::caller::Caller;
use crate::component::kinds::{Kinds, group_of};
use crate::record::{Deployed, ObjectKey};
use jobwright_engine::{DeployContext, Failure};
use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams};
use kube::core::PartialObjectMeta;
use std::collections::BTreeMap;
use std::fmt;

/// An object that is not as it was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Drift {
    Deleted(ObjectKey),
    Changed {
        key: ObjectKey,
        /// The client that changed it, if its managed fields tell.
        by: Option<String>,
    },
}

impl fmt::Display for Drift {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deleted(key) => write!(formatter, "{key} was deleted"),
            Self::Changed { key, by: Some(by) } => write!(formatter, "{key} was changed by `{by}`"),
            Self::Changed { key, by: None } => write!(formatter, "{key} was changed by another client"),
        }
    }
}

/// How many objects are named in a reason.
const MOST_NAMED: usize = 3;

/// What has drifted, as a reason.
pub(super) fn describe(drift: &[Drift]) -> String {
    let named: Vec<String> = drift.iter().take(MOST_NAMED).map(ToString::to_string).collect();
    let more = drift.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("drift: {}{more}", named.join(", "))
}

/// The objects that are not as they were applied, among those that are still declared.
pub(super) async fn find(
    context: &DeployContext,
    kinds: &Kinds,
    component: &str,
    deployed: &Deployed,
    declared: &[&ObjectKey],
) -> Result<Vec<Drift>, Failure> {
    let finder = Finder { caller: Caller::of(context), owner: Owner::new(context, component), kinds, deployed };
    let mut groups: BTreeMap<(&str, &str, Option<&str>), Vec<&ObjectKey>> = BTreeMap::new();
    for key in declared.iter().filter(|key| !ends_by_itself(key)) {
        groups.entry((&key.api_version, &key.kind, key.namespace.as_deref())).or_default().push(key);
    }
    let mut drift = Vec::new();
    for ((api_version, kind, namespace), keys) in groups {
        drift.extend(finder.of_kind(api_version, kind, namespace, &keys).await?);
    }
    Ok(drift)
}

/// Whether objects of a kind are deleted when they have done their work: to apply them again would do it again.
fn ends_by_itself(key: &ObjectKey) -> bool {
    matches!((group_of(&key.api_version), key.kind.as_str()), ("batch", "Job") | ("", "Pod" | "Event"))
}

struct Finder<'a> {
    caller: Caller,
    owner: Owner,
    kinds: &'a Kinds,
    deployed: &'a Deployed,
}

impl Finder<'_> {
    /// One list for all objects of a kind; what has lost its labels is asked for by name.
    async fn of_kind(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        keys: &[&ObjectKey],
    ) -> Result<Vec<Drift>, Failure> {
        let Some(resource) = self.kinds.find_any(&self.caller, api_version, kind).await? else {
            return Ok(keys.iter().map(|key| Drift::Deleted((*key).clone())).collect());
        };
        let api = resource.api(&self.caller, namespace);
        let selector: Vec<String> = self.owner.labels().iter().map(|(key, value)| format!("{key}={value}")).collect();
        let parameters = ListParams::default().labels(&selector.join(","));
        let listed = self.caller.call(&format!("list the {kind} objects"), || api.list_metadata(&parameters)).await?;
        let listed: BTreeMap<String, PartialObjectMeta<DynamicObject>> =
            listed.items.into_iter().map(|object| (object.name_any(), object)).collect();
        let mut drift = Vec::new();
        for key in keys {
            let found = match listed.get(&key.name) {
                Some(object) => Some(object.clone()),
                None => self.caller.call(&format!("read {key}"), || api.get_metadata_opt(&key.name)).await?,
            };
            drift.extend(self.judge(key, found.as_ref()));
        }
        Ok(drift)
    }

    fn judge(&self, key: &ObjectKey, object: Option<&impl ResourceExt>) -> Option<Drift> {
        let Some(object) = object.filter(|object| object.meta().deletion_timestamp.is_none()) else {
            return Some(Drift::Deleted(key.clone()));
        };
        // Only what was recorded can be compared.
        let before = self.deployed.owned.get(&Identity::from(key).to_string())?;
        let is_same = self.owner.owns(object) && owned(object).as_ref() == Some(before);
        (!is_same).then(|| Drift::Changed { key: key.clone(), by: last_manager(object) })
    }
}

/// The other client that wrote last, leaving out what writes only the status.
fn last_manager(object: &impl ResourceExt) -> Option<String> {
    let others = object
        .managed_fields()
        .iter()
        .filter(|entry| entry.manager.as_deref() != Some(MANAGER) && entry.subresource.as_deref() != Some("status"));
    others.max_by_key(|entry| entry.time.clone()).and_then(|entry| entry.manager.clone())
}
