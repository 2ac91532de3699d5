//! The tools of one cluster, by name.

use super::record::{Skipped, Tier};
use super::up::Wanted;
use crate::clock;
use crate::error::Error;
use crate::install::{Effort, Tell, Tool, catalogue, debian};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Installs what a cluster needs; answers with the deployers that cannot be had, and why.
pub fn install(wanted: &Wanted, tell: Tell<'_>) -> Result<Vec<Skipped>, Error> {
    let Wanted { tier, kubernetes, deployers, tools, patience, within } = wanted;
    let start = clock::now();
    let effort = || Effort { tell, patience: time_left(*patience, *within, start.elapsed()) };
    let work = tools.join(format!("packages.{}.partial", std::process::id()));
    debian::install(debian::NETWORK, &work, effort())?;
    if *tier == Tier::Full {
        debian::install(debian::NODE, &work, effort())?;
    }
    for tool in needed(*tier, kubernetes) {
        tool.install(tools, effort())?;
    }
    let mut skipped = Vec::new();
    for deployer in deployers {
        let installed = debian::install(deployer.programs(), &work, effort())
            .and_then(|()| deployer.tools().iter().try_for_each(|tool| tool.install(tools, effort()).map(|_| ())));
        if let Err(error) = installed {
            skipped.push(Skipped { deployer: *deployer, reason: error.explain() });
        }
    }
    let _ = std::fs::remove_dir_all(&work);
    Ok(skipped)
}

/// How long the next tool may take, when those before it took some of the time.
fn time_left(patience: Duration, within: Duration, passed: Duration) -> Duration {
    patience.min(within.saturating_sub(passed))
}

fn needed(tier: Tier, kubernetes: &str) -> Vec<Tool> {
    let mut tools = vec![catalogue::kubernetes(kubernetes), catalogue::ETCD, catalogue::CRANE];
    match tier {
        Tier::Full => tools.push(catalogue::COREDNS),
        Tier::Light => tools.push(catalogue::KWOK),
    }
    tools
}

/// Directories of all tools that are there, for a PATH: those of the cluster first.
pub(super) fn directories(tools: &Path, kubernetes: &str) -> Vec<PathBuf> {
    let own = [catalogue::kubernetes(kubernetes), catalogue::CRANE, catalogue::KUSTOMIZE];
    let helms = [catalogue::HELM_4_3_1, catalogue::HELM_3_22_0, catalogue::HELM_3_17_3];
    own.iter().chain(&helms).filter(|tool| tool.is_there(tools)).map(|tool| tool.place(tools)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_tool_may_take_no_longer_than_is_left_for_all() {
        let left = |passed| time_left(Duration::from_mins(20), Duration::from_mins(30), Duration::from_mins(passed));
        assert_eq!([0, 10, 25, 31].map(left), [20, 20, 5, 0].map(Duration::from_mins));
    }
}
