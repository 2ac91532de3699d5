//! The cgroup that all pods of a cluster are in: one directory in every hierarchy (version 1), or one (version 2).

use super::place::Place;
use crate::error::Error;
use std::path::{Path, PathBuf};

const ROOT: &str = "/sys/fs/cgroup";

/// What a cgroup of version 2 hands on to those below it.
const CONTROLLERS: &str = "+cpu +cpuset +io +memory +pids";

/// Makes the cgroup: the kubelet wants it to be there.
pub(super) fn make(place: &Place) -> Result<(), Error> {
    let unified = is_hierarchy(Path::new(ROOT));
    for path in paths(place) {
        std::fs::create_dir_all(&path).map_err(Error::io(format!("create the cgroup `{}`", path.display())))?;
        if unified {
            for directory in [Path::new(ROOT), &path] {
                // The kubelet says which controller it lacks.
                let _ = std::fs::write(directory.join("cgroup.subtree_control"), CONTROLLERS);
            }
        }
    }
    Ok(())
}

/// The processes in it.
pub(super) fn processes(place: &Place) -> Vec<i32> {
    let mut found = Vec::new();
    for directory in paths(place).iter().flat_map(|path| below(path)) {
        let listed = std::fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
        found.extend(listed.lines().filter_map(|line| line.parse::<i32>().ok()));
    }
    found
}

/// Removes it, and says whether it is gone.
pub(super) fn remove(place: &Place) -> bool {
    for path in paths(place) {
        // The deepest first; one that is still in use is tried again by the caller.
        for directory in below(&path).iter().rev() {
            let _ = std::fs::remove_dir(directory);
        }
    }
    paths(place).iter().all(|path| !path.exists())
}

fn paths(place: &Place) -> Vec<PathBuf> {
    let hierarchies = if is_hierarchy(Path::new(ROOT)) {
        vec![PathBuf::from(ROOT)]
    } else {
        let entries = std::fs::read_dir(ROOT).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| is_hierarchy(path)).collect()
    };
    hierarchies.iter().map(|hierarchy| hierarchy.join(place.owned_name())).collect()
}

fn is_hierarchy(path: &Path) -> bool {
    path.join("cgroup.procs").is_file()
}

/// A directory and all below it, parents first.
fn below(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return Vec::new();
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let children = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut found = vec![path.to_owned()];
    found.extend(children.flat_map(|child| below(&child.path())));
    found
}
