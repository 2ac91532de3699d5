//! What there is on a machine that a cluster could leave behind.

use super::cluster::{FULL, LIGHT};
use anyhow::{Context as _, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Directories whose entries come and go with clusters.
const DIRECTORIES: [&str; 9] = [
    "/run/netns",
    "/sys/class/net",
    "/run/containerd/s",
    "/var/lib/cni/results",
    "/var/lib/cni/networks",
    "/var/lib/jobwright/clusters",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
];

const CGROUPS: &str = "/sys/fs/cgroup";

/// Everything, by a line each.
pub(crate) struct Survey(BTreeSet<String>);

impl Survey {
    pub(crate) fn take() -> Result<Self> {
        let mut found = BTreeSet::new();
        let mounts = std::fs::read_to_string("/proc/self/mounts").context("cannot list what is mounted")?;
        let mounts = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        // The directory of all network namespaces is mounted once for the whole machine, by whoever makes the first.
        found.extend(mounts.filter(|path| *path != "/run/netns").map(|path| format!("mount {path}")));
        for directory in DIRECTORIES {
            found.extend(entries(Path::new(directory)).iter().map(|path| format!("entry {}", path.display())));
        }
        found.extend(cgroups(Path::new(CGROUPS), 3).iter().map(|path| format!("cgroup {}", path.display())));
        found.extend(processes());
        Ok(Self(found))
    }

    /// What is there that was not there before.
    pub(crate) fn since(&self, before: &Self) -> Vec<String> {
        self.0.difference(&before.0).cloned().collect()
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Ours in every hierarchy; what others make comes and goes as it likes.
fn cgroups(directory: &Path, depth: usize) -> Vec<PathBuf> {
    if depth == 0 {
        return Vec::new();
    }
    let children: Vec<PathBuf> = entries(directory).into_iter().filter(|path| path.is_dir()).collect();
    let ours =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("jobwright-harness"));
    let below = children.iter().flat_map(|child| cgroups(child, depth - 1));
    below.chain(children.iter().filter(|path| ours(path)).cloned()).collect()
}

/// Processes that have to do with our clusters: by their words, their cgroup, or what is mounted where they are.
fn processes() -> Vec<String> {
    let numbers = entries(Path::new("/proc")).into_iter().filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().chars().all(|letter| letter.is_ascii_digit()))
    });
    let ours = |path: &PathBuf| {
        // One that has ended waits for its parent to ask, which may take it a while.
        let state = std::fs::read_to_string(path.join("stat")).unwrap_or_default();
        !state.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'))
            && ["cmdline", "cgroup", "mountinfo"].iter().any(|file| {
                let text = std::fs::read(path.join(file)).unwrap_or_default();
                let text = String::from_utf8_lossy(&text);
                [FULL.name, LIGHT.name].iter().any(|name| {
                    text.contains(&format!("/clusters/{name}")) || text.contains(&format!("jobwright-{name}"))
                })
            })
    };
    let line = |path: PathBuf| {
        let words = std::fs::read(path.join("cmdline")).unwrap_or_default();
        format!("process {}: {}", path.display(), String::from_utf8_lossy(&words).replace('\0', " "))
    };
    numbers.filter(ours).map(line).collect()
}
