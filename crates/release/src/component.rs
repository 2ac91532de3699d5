//! How components are deployed, and how it is decided that they need not be.

mod caller;
mod chart;
pub(crate) mod files;
mod helm;
mod kinds;
mod manifests;
mod removed;

pub(crate) use caller::Caller;
pub(crate) use chart::ChartComponent;
pub(crate) use helm::HelmReleases;
pub use helm::{Driver, Helm, HelmError};
pub(crate) use kinds::{Kinds, Resource};
pub(crate) use manifests::{Declared, Manifest, ManifestsComponent, load};
pub(crate) use removed::RemovedComponent;
pub use removed::{Removed, removed_components};

use crate::record::{Deployed, ObjectKey, Record, Records};
use jobwright_engine::{Decision, DeployContext, Failure, Version};
use std::collections::BTreeMap;

/// What every component has.
#[derive(Clone)]
pub(crate) struct Common {
    /// Its name.
    pub name: String,
    /// Components that are deployed before it.
    pub depends_on: Vec<String>,
    /// The version of the release.
    pub version: Option<Version>,
    /// What was deployed before.
    pub records: Records,
    /// It is deployed even if nothing has changed.
    pub redeploy: bool,
}

impl Common {
    /// Records that it is deployed and its jobs have succeeded or are owed. If the deploy is killed now, nothing else
    /// tells the next one which jobs were skipped.
    async fn complete(&self, context: &DeployContext) -> Result<(), Failure> {
        let (name, owed) = (self.name.clone(), context.owed().clone());
        let done = move |record: &mut Record| {
            record.owed.extend(owed.clone());
            if let Some(deployed) = record.components.get_mut(&name) {
                deployed.complete = true;
                deployed.installed = true;
            }
        };
        self.records.change(done).await.map(drop)
    }

    /// What has changed since it was deployed last; none if nothing has.
    fn changes(&self, deployed: Option<&Deployed>, parts: &BTreeMap<String, String>) -> Option<Decision> {
        let Some(deployed) = deployed else {
            return Some(Decision::Install("first deploy".to_owned()));
        };
        let changed: Vec<&str> = parts
            .iter()
            .filter(|(name, hash)| deployed.parts.get(*name) != Some(hash))
            .map(|(name, _)| name.as_str())
            .collect();
        let version = |version: &Option<Version>| version.as_ref().map_or("none".to_owned(), ToString::to_string);
        if !deployed.complete {
            Some(deployed.decide("its last deploy did not complete".to_owned()))
        } else if deployed.version != self.version {
            Some(Decision::Upgrade(format!("version {} → {}", version(&deployed.version), version(&self.version))))
        } else if !changed.is_empty() {
            Some(Decision::Upgrade(format!("changed {}", changed.join(" and "))))
        } else if self.redeploy {
            Some(Decision::Upgrade("`--redeploy`".to_owned()))
        } else {
            None
        }
    }
}

/// How many objects are named in a reason.
const MOST_NAMED: usize = 3;

/// The first of these objects by name, and how many more there are.
fn name_some(objects: &[ObjectKey]) -> String {
    let named: Vec<String> = objects.iter().take(MOST_NAMED).map(ToString::to_string).collect();
    match objects.len().saturating_sub(MOST_NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// A decision to deploy, with what an earlier form of the component leaves in the cluster.
fn with_left(decision: Decision, left: Option<String>) -> Decision {
    match (decision, left) {
        (Decision::Install(reason), Some(left)) => Decision::Install(format!("{reason}; {left}")),
        (Decision::Upgrade(reason), Some(left)) => Decision::Upgrade(format!("{reason}; {left}")),
        (decision, _) => decision,
    }
}

impl Deployed {
    /// The Helm release that it was deployed as, if it is another one from now on or none: helm does not touch it.
    fn left_release(&self, now: Option<&str>, namespace: &str) -> Option<String> {
        let before = self.helm_release.as_deref().filter(|before| Some(*before) != now)?;
        let hint = format!("`helm uninstall {before} --namespace {namespace}` deletes it");
        Some(format!("it was Helm release `{before}` before, which stays ({hint})"))
    }

    /// A deploy of it for this reason: an install until one has completed, so that jobs of an install are not lost.
    fn decide(&self, reason: String) -> Decision {
        if self.complete || self.installed { Decision::Upgrade(reason) } else { Decision::Install(reason) }
    }

    /// A deploy of it begins. What was recorded of the last one no longer holds.
    fn begin(&mut self) {
        self.installed |= self.complete;
        self.complete = false;
        self.parts.clear();
    }
}
