//! The tools of one cluster, by name.

use super::deployer::Deployer;
use super::record::{Skipped, Tier};
use crate::error::Error;
use crate::install::{Tell, Tool, catalogue, debian};
use std::path::{Path, PathBuf};

/// Installs what a cluster needs; answers with the deployers that cannot be had, and why.
pub(super) fn install(
    tools: &Path,
    tier: Tier,
    kubernetes: &str,
    deployers: &[Deployer],
    tell: Tell<'_>,
) -> Result<Vec<Skipped>, Error> {
    let work = tools.join(format!("packages.{}.partial", std::process::id()));
    debian::install(debian::NETWORK, &work, tell)?;
    if tier == Tier::Full {
        debian::install(debian::NODE, &work, tell)?;
    }
    for tool in needed(tier, kubernetes) {
        tool.install(tools, tell)?;
    }
    let mut skipped = Vec::new();
    for deployer in deployers {
        let installed = debian::install(deployer.programs(), &work, tell)
            .and_then(|()| deployer.tools().iter().try_for_each(|tool| tool.install(tools, tell).map(|_| ())));
        if let Err(error) = installed {
            skipped.push(Skipped { deployer: *deployer, reason: error.explain() });
        }
    }
    let _ = std::fs::remove_dir_all(&work);
    Ok(skipped)
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
