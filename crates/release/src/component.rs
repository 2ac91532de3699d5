//! How components are deployed, and how it is told that they need not be.

mod chart;
mod files;
mod helm;
mod manifests;

pub(crate) use chart::{ChartComponent, Source};
pub(crate) use files::hash_of;
pub(crate) use helm::HelmReleases;
pub use helm::{Driver, Helm, HelmError};
pub(crate) use manifests::ManifestsComponent;

use crate::record::{Deployed, Record, Records};
use jobwright_engine::{Decision, Failure, Version};
use std::collections::BTreeMap;

/// What every component has.
#[derive(Clone)]
pub(crate) struct Common {
    /// Its name.
    pub name: String,
    /// Components that have to be deployed before it.
    pub depends_on: Vec<String>,
    /// The version of the release.
    pub version: Option<Version>,
    /// What was deployed before.
    pub records: Records,
    /// It is deployed even if nothing has changed.
    pub redeploy: bool,
}

impl Common {
    /// Writes down that it is deployed and its jobs are through.
    async fn complete(&self) -> Result<(), Failure> {
        let name = self.name.clone();
        let done = move |record: &mut Record| {
            if let Some(deployed) = record.components.get_mut(&name) {
                deployed.complete = true;
            }
        };
        self.records.change(done).await.map(drop)
    }

    /// What has changed since it was deployed last; none if nothing has.
    fn changes(&self, deployed: Option<&Deployed>, parts: &BTreeMap<String, String>) -> Option<Decision> {
        let Some(deployed) = deployed else {
            return Some(Decision::Install("it has not been deployed yet".to_owned()));
        };
        let changed: Vec<&str> = parts
            .iter()
            .filter(|(name, hash)| deployed.parts.get(*name) != Some(hash))
            .map(|(name, _)| name.as_str())
            .collect();
        let version = |version: &Option<Version>| version.as_ref().map_or("none".to_owned(), ToString::to_string);
        if !deployed.complete {
            Some(Decision::Upgrade("its last deploy did not come to an end".to_owned()))
        } else if deployed.version != self.version {
            Some(Decision::Upgrade(format!("version {} → {}", version(&deployed.version), version(&self.version))))
        } else if !changed.is_empty() {
            let verb = if changed.len() == 1 && !changed[0].ends_with('s') { "has" } else { "have" };
            Some(Decision::Upgrade(format!("its {} {verb} changed", changed.join(" and "))))
        } else if self.redeploy {
            Some(Decision::Upgrade("it is asked to be deployed again".to_owned()))
        } else {
            None
        }
    }
}
