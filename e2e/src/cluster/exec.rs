//! Running a command inside a cluster.

use super::place::Place;
use super::process::SYSTEM_PATH;
use super::record::Record;
use super::{network, toolbox};
use crate::error::Error;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// Variables that point to proxies, which cannot be reached from inside.
const PROXIES: [&str; 6] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

/// Becomes a command in the network namespace of a cluster, with its kubeconfig and its tools. Returns only if it cannot.
pub fn exec(place: &Place, tools: &Path, words: &[OsString]) -> Result<(), Error> {
    let refused = |problem: &str| Error::Cluster { name: place.name().to_string(), problem: problem.to_owned() };
    let record = Record::read(place)?.ok_or_else(|| refused("it does not run: start it with `up`"))?;
    let (program, arguments) = words.split_first().ok_or_else(|| refused("no command was given"))?;
    network::enter(place)?;
    let mut path = OsString::new();
    for directory in toolbox::directories(tools, &record.kubernetes) {
        path.push(directory);
        path.push(":");
    }
    path.push(SYSTEM_PATH);
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", path).env("KUBECONFIG", place.kubeconfig_of("admin"));
    for proxy in PROXIES {
        command.env_remove(proxy);
    }
    Err(Error::io(format!("run `{}`", program.to_string_lossy()))(command.exec()))
}
