//! Starting a cluster.

use super::deployer::Deployer;
use super::down::clear;
use super::process::Daemon;
use super::record::{Record, Skipped, Tier};
use super::site::{Site, answers};
use super::{Place, address, argocd, authority, cgroup, control, flux, light, network, node, process, toolbox};
use crate::error::Error;
use crate::install::{Tell, catalogue};
use crate::lock::Lock;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a cluster is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// How much of a node.
    pub tier: Tier,
    /// The version of Kubernetes.
    pub kubernetes: String,
    /// The deployers that are to be there.
    pub deployers: Vec<Deployer>,
    /// The directory of the tools.
    pub tools: PathBuf,
    /// How long making one of them may take.
    pub patience: Duration,
    /// How long making all of them may take.
    pub within: Duration,
}

/// Starts a cluster, or what is missing of it. This thread is inside its network namespace afterwards.
pub fn up(place: &Place, wanted: &Wanted, tell: Tell<'_>) -> Result<Record, Error> {
    let refused = |problem: String| Error::Cluster { name: place.name().to_string(), problem };
    if !rustix::process::geteuid().is_root() {
        return Err(refused("only root can make its network namespace and mounts: run this as root".to_owned()));
    }
    let lock = lock(place, tell)?;
    let before = Record::read(place)?.filter(|_| network::exists(place));
    if let Some(before) = &before
        && (before.tier, &before.kubernetes) != (wanted.tier, &wanted.kubernetes)
    {
        let is = format!("it runs as {} with Kubernetes {}", before.tier, before.kubernetes);
        return Err(refused(format!("{is}: end it with `down`, or use another --name")));
    }
    let there = before.iter().flat_map(|before| &before.deployers);
    let all: Vec<&Deployer> = there.chain(&wanted.deployers).collect();
    if all.contains(&&Deployer::Argocd) && all.contains(&&Deployer::Argocd2) {
        return Err(refused("argocd and argocd2 use the same kinds: start two clusters".to_owned()));
    }
    let mut skipped = toolbox::install(wanted, tell)?;
    if before.is_none() {
        // What a start that was cut short has left is not worth mending.
        clear(place)?;
    }
    let record = start(place, wanted, before, &mut skipped, tell)?;
    drop(lock);
    Ok(record)
}

/// Takes the lock of a cluster.
pub(super) fn lock(place: &Place, tell: Tell<'_>) -> Result<Lock, Error> {
    let path = place.lock();
    let parent = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(parent).map_err(Error::io(format!("create `{}`", parent.display())))?;
    Lock::take(&path, || tell(&format!("another command is at work on cluster {}, waiting", place.name())))
}

fn start(
    place: &Place,
    wanted: &Wanted,
    before: Option<Record>,
    skipped: &mut Vec<Skipped>,
    tell: Tell<'_>,
) -> Result<Record, Error> {
    let site = Site::new(place, catalogue::kubernetes(&wanted.kubernetes), &wanted.tools, tell);
    for directory in ["process", "log", "configuration", "git", "files", "registry"] {
        site.directory(directory)?;
    }
    process::forget_ended(place);
    network::make(place)?;
    let listener = control::listen(place)?;
    if wanted.tier == Tier::Full {
        cgroup::make(place)?;
    }
    network::enter(place)?;
    network::set_up()?;
    authority::make(place)?;
    control::start_forwarding(&site, listener)?;
    control::start(&site)?;
    start_servers(&site)?;
    if wanted.tier == Tier::Full {
        node::start_containerd(&site)?;
    }
    control::finish(&site)?;
    match wanted.tier {
        Tier::Full => node::start(&site)?,
        Tier::Light => light::start(&site)?,
    }
    control::wait_for_accounts(&site)?;
    site.check()?;
    let (mut deployers, mut parts) = before.map(|record| (record.deployers, record.parts)).unwrap_or_default();
    let mut asked = [&deployers[..], &wanted.deployers[..]].concat();
    asked.sort_unstable();
    asked.dedup();
    for deployer in &asked {
        if skipped.iter().any(|skipped| skipped.deployer == *deployer) {
            continue;
        }
        let started = match deployer {
            Deployer::Helm3 | Deployer::Helm4 => Ok(()),
            Deployer::Flux => flux::start(&site),
            Deployer::Argocd => argocd::start(&site, &catalogue::ARGO_CD_3),
            Deployer::Argocd2 => argocd::start(&site, &catalogue::ARGO_CD_2),
        };
        match started {
            Ok(()) => deployers.push(*deployer),
            Err(error) => skipped.push(Skipped { deployer: *deployer, reason: error.explain() }),
        }
    }
    deployers.sort_unstable();
    deployers.dedup();
    // What ran already has not been started again.
    let new = site.parts().into_iter().filter(|(part, _)| !parts.iter().any(|(known, _)| known == part));
    parts.extend(new.collect::<Vec<_>>());
    let record =
        Record { tier: wanted.tier, kubernetes: wanted.kubernetes.clone(), deployers, skipped: skipped.clone(), parts };
    record.write(place)?;
    Ok(record)
}

/// The git and chart server, and the registry.
fn start_servers(site: &Site<'_>) -> Result<(), Error> {
    let files = format!("{}:{}", address::NODE, address::FILES_PORT);
    Daemon::own("files")
        .words(&format!("serve {files}"))
        .argument(site.place.git())
        .argument(site.place.files())
        .start(site.place)?;
    let registry = format!("{}:{}", address::NODE, address::REGISTRY_PORT);
    Daemon::new("registry", &site.program(&catalogue::CRANE, "crane"))
        .words(&format!("registry serve --address {registry} --disk"))
        .argument(site.place.directory().join("registry"))
        .start(site.place)?;
    site.until("registry", "git, chart and image servers", Duration::from_secs(30), || answers(&registry, "/v2/"))
}
