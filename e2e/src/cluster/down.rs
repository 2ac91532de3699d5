//! Ending a cluster, whatever state it is in.

use super::place::Place;
use super::up::lock;
use super::{cgroup, network, process};
use crate::error::Error;
use crate::install::Tell;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often is looked whether processes have gone, and how long between.
const ATTEMPTS: usize = 100;
const PAUSE: Duration = Duration::from_millis(50);

/// Where the plugins of the pods' network keep what they did last.
const NETWORK_RESULTS: &str = "/var/lib/cni/results";

/// Where the kubelet links the logs of containers.
const LOG_LINKS: &str = "/var/log/containers";

/// Where every kubelet of the machine makes a socket for plugins, whatever its own directory.
const PLUGIN_SOCKET: &str = "/var/lib/kubelet/device-plugins/kubelet.sock";

/// Ends a cluster and leaves nothing of it. Says whether there was one.
pub fn down(place: &Place, tell: Tell<'_>) -> Result<bool, Error> {
    let there = place.directory().exists() || place.network_namespace().exists();
    if there && !rustix::process::geteuid().is_root() {
        let problem = "only root can end it: run this as root".to_owned();
        return Err(Error::Cluster { name: place.name().to_string(), problem });
    }
    if !there && !place.lock().exists() {
        return Ok(false);
    }
    let lock = lock(place, tell)?;
    clear(place)?;
    lock.remove();
    Ok(there)
}

/// Removes everything that can be found by the name of the cluster; the caller holds its lock.
pub(super) fn clear(place: &Place) -> Result<(), Error> {
    let refused = |problem: String| Error::Cluster { name: place.name().to_string(), problem };
    let mut left = process::all(place);
    for _ in 0..ATTEMPTS {
        if left.is_empty() {
            break;
        }
        process::kill(&left);
        std::thread::sleep(PAUSE);
        // A process leaves its namespace before it closes what it has open.
        left.retain(|number| !process::has_ended(*number));
        left.extend(process::all(place));
    }
    if !left.is_empty() {
        return Err(refused(format!("the processes {left:?} cannot be killed")));
    }
    remove_shim_sockets(place);
    remove_network_results(place);
    remove_log_links(place);
    remove_plugin_socket();
    unmount(place)?;
    if !(0..ATTEMPTS).any(|_| {
        cgroup::remove(place) || {
            std::thread::sleep(PAUSE);
            false
        }
    }) {
        return Err(refused("its cgroup cannot be removed".to_owned()));
    }
    network::delete(place)?;
    if place.directory().exists() {
        let doing = format!("remove `{}`", place.directory().display());
        std::fs::remove_dir_all(place.directory()).map_err(Error::io(doing))?;
    }
    Ok(())
}

/// Each container has a process that containerd talks to by a socket elsewhere, written down in its state.
fn remove_shim_sockets(place: &Place) {
    let tasks = place.directory().join("containerd/state/io.containerd.runtime.v2.task");
    for container in children(&tasks).iter().flat_map(|namespace| children(namespace)) {
        if let Ok(address) = std::fs::read_to_string(container.join("address")) {
            // One that is gone is what is wanted.
            let _ = std::fs::remove_file(address.trim().trim_start_matches("unix://"));
        }
    }
}

fn remove_network_results(place: &Place) {
    let prefix = format!("{}-", place.owned_name());
    for file in children(Path::new(NETWORK_RESULTS)) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix(&prefix) else { continue };
        let container = rest.rsplit_once('-').map_or(rest, |(container, _)| container);
        let loopback = file.with_file_name(format!("cni-loopback-{container}-lo"));
        let _ = std::fs::remove_file(loopback);
        let _ = std::fs::remove_file(file);
    }
}

fn remove_log_links(place: &Place) {
    for link in children(Path::new(LOG_LINKS)) {
        if std::fs::read_link(&link).is_ok_and(|to| to.starts_with(place.directory())) {
            let _ = std::fs::remove_file(link);
        }
    }
}

/// Clusters share one socket, so it goes with the last: when nobody answers there any more.
fn remove_plugin_socket() {
    let socket = Path::new(PLUGIN_SOCKET);
    if socket.exists() && UnixStream::connect(socket).is_err() {
        let _ = std::fs::remove_file(socket);
        // Only if they are empty.
        let _ = socket.ancestors().skip(1).take(2).try_for_each(std::fs::remove_dir);
    }
}

/// Unmounts all below the directory, so that removing it removes nothing that is elsewhere.
fn unmount(place: &Place) -> Result<(), Error> {
    for _ in 0..ATTEMPTS {
        let mounts = mounts(place)?;
        if mounts.is_empty() {
            return Ok(());
        }
        for mount in mounts.iter().rev() {
            let detached = rustix::mount::unmount(mount, rustix::mount::UnmountFlags::DETACH);
            detached.map_err(|error| Error::io(format!("unmount `{}`", mount.display()))(error.into()))?;
        }
    }
    let problem = "something keeps mounting below its directory".to_owned();
    Err(Error::Cluster { name: place.name().to_string(), problem })
}

fn mounts(place: &Place) -> Result<Vec<PathBuf>, Error> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").map_err(Error::io("list what is mounted"))?;
    let paths = mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(PathBuf::from);
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.starts_with(place.directory())).collect();
    paths.sort();
    Ok(paths)
}

fn children(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
