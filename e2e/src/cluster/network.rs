//! The network namespace of a cluster: loopback, a bridge with the address of the node, and no route out.

use super::address;
use super::place::Place;
use crate::command::{Command, Ended};
use crate::error::Error;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::Path;

const BRIDGE: &str = "br0";

/// Routes for what the node itself sends are in a table of their own.
const TABLE: &str = "100";

/// Makes the namespace if it is not there.
pub(super) fn make(place: &Place) -> Result<(), Error> {
    let path = place.network_namespace();
    if path.exists() && !is_mounted(&path) {
        // Left by a command that was killed between making the file and mounting the namespace there.
        std::fs::remove_file(&path).map_err(Error::io(format!("remove `{}`", path.display())))?;
    }
    if !path.exists() {
        ip(&["netns", "add", &place.owned_name()])?;
    }
    Ok(())
}

/// Whether the namespace is there.
pub(super) fn exists(place: &Place) -> bool {
    let path = place.network_namespace();
    path.exists() && is_mounted(&path)
}

/// Moves this thread into the namespace, and with it what it starts from now on.
///
/// Not `ip netns exec`: that makes a mount namespace too, which hides the mounts of the kubelet from containerd.
pub(super) fn enter(place: &Place) -> Result<(), Error> {
    let path = place.network_namespace();
    let doing = || format!("enter the network namespace `{}`", path.display());
    let file = File::open(&path).map_err(Error::io(doing()))?;
    let network = Some(rustix::thread::LinkNameSpaceType::Network);
    rustix::thread::move_into_link_name_space(file.as_fd(), network)
        .map_err(|error| Error::io(doing())(std::io::Error::from(error)))
}

/// Sets up the namespace that this thread is in.
pub(super) fn set_up() -> Result<(), Error> {
    ip(&["link", "set", "lo", "up"])?;
    if ip(&["link", "show", BRIDGE]).is_err() {
        ip(&["link", "add", BRIDGE, "type", "bridge"])?;
    }
    ip(&["address", "replace", address::NODE_RANGE, "dev", BRIDGE])?;
    ip(&["link", "set", BRIDGE, "up"])?;
    // What the node itself sends to a Service (the API server to a webhook) is rewritten after it was routed, so it
    // needs a route; what pods send is rewritten before.
    ip(&["route", "replace", address::SERVICES, "dev", BRIDGE, "table", TABLE])?;
    if !ip(&["rule", "list"])?.contains(&format!("lookup {TABLE}")) {
        ip(&["rule", "add", "iif", "lo", "lookup", TABLE])?;
    }
    set("net/ipv4/ip_forward", "1")?;
    // "Unreachable" is said at once and every time, so that nothing waits for an answer that cannot come.
    set("net/ipv4/icmp_ratelimit", "0")
}

/// Deletes the namespace, and with it interfaces, routes and tables.
pub(super) fn delete(place: &Place) -> Result<(), Error> {
    let path = place.network_namespace();
    if exists(place) {
        ip(&["netns", "delete", &place.owned_name()])?;
    } else if path.exists() {
        std::fs::remove_file(&path).map_err(Error::io(format!("remove `{}`", path.display())))?;
    }
    Ok(())
}

fn is_mounted(path: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').nth(1).is_some_and(|mount| Path::new(mount) == path))
}

fn set(name: &str, value: &str) -> Result<(), Error> {
    let path = Path::new("/proc/sys").join(name);
    std::fs::write(&path, value).map_err(Error::io(format!("write `{}`", path.display())))
}

fn ip(words: &[&str]) -> Result<String, Error> {
    Command::system("ip").arguments(words).run().and_then(Ended::successful)
}
