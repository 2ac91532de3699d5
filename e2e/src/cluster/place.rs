//! Where everything of a cluster is.

use super::name::Name;
use std::path::{Path, PathBuf};

/// The directories of all clusters of this machine.
const CLUSTERS: &str = "/var/lib/jobwright/clusters";

/// The places of one cluster, all known from its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    name: Name,
    directory: PathBuf,
}

impl Place {
    /// The places of a cluster, whether it is there or not.
    pub fn of(name: &Name) -> Self {
        Self { name: name.clone(), directory: Path::new(CLUSTERS).join(name.as_str()) }
    }

    /// Every cluster that has a directory.
    pub fn all() -> Vec<Self> {
        let entries = std::fs::read_dir(CLUSTERS).into_iter().flatten().flatten();
        let names = entries.filter(|entry| entry.path().is_dir());
        let mut names: Vec<Name> = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        names.sort();
        names.iter().map(Self::of).collect()
    }

    /// The name of the cluster.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The kubeconfig for processes of the host.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    /// The repositories of the git server, which has them at `/git/NAME.git`.
    pub fn git(&self) -> PathBuf {
        self.directory.join("git")
    }

    /// The files that are served at `/files/`.
    pub fn files(&self) -> PathBuf {
        self.directory.join("files")
    }

    /// What a process wrote.
    pub fn log(&self, process: &str) -> PathBuf {
        self.directory.join("log").join(format!("{process}.log"))
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.directory.with_extension("lock")
    }

    /// What names of the host that belong to the cluster are.
    pub(super) fn owned_name(&self) -> String {
        format!("jobwright-{}", self.name)
    }

    pub(super) fn network_namespace(&self) -> PathBuf {
        Path::new("/run/netns").join(self.owned_name())
    }

    pub(super) fn node(&self) -> String {
        format!("{}-node", self.name)
    }

    pub(super) fn record(&self) -> PathBuf {
        self.directory.join("record.json")
    }

    pub(super) fn processes(&self) -> PathBuf {
        self.directory.join("process")
    }

    pub(super) fn certificates(&self) -> PathBuf {
        self.directory.join("certificates")
    }

    /// The kubeconfig of a user, for processes inside the namespace.
    pub(super) fn kubeconfig_of(&self, user: &str) -> PathBuf {
        self.certificates().join(format!("{user}.kubeconfig"))
    }

    pub(super) fn configuration(&self, file: &str) -> PathBuf {
        self.directory.join("configuration").join(file)
    }

    pub(super) fn containerd_socket(&self) -> PathBuf {
        self.directory.join("containerd/containerd.sock")
    }
}
