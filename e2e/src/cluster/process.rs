//! The processes of a cluster: those that were started by name, and all that are in its namespace or its cgroup.

use super::cgroup;
use super::place::Place;
use crate::error::Error;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Programs of the system, for what daemons start themselves.
pub(super) const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// This program, whatever its file is called by now.
const OWN: &str = "/proc/self/exe";

/// A process that is going to run on by itself.
#[derive(Debug)]
pub(super) struct Daemon {
    name: String,
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    stdin: Option<OwnedFd>,
}

impl Daemon {
    pub(super) fn new(name: &str, program: &Path) -> Self {
        Self {
            name: name.to_owned(),
            program: program.to_owned(),
            arguments: Vec::new(),
            environment: vec![("PATH".into(), SYSTEM_PATH.into())],
            stdin: None,
        }
    }

    /// A part of this very program, even if its file was replaced by a newer build since it was started.
    pub(super) fn own(name: &str) -> Self {
        Self::new(name, Path::new(OWN))
    }

    pub(super) fn argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Words without spaces, with spaces between.
    pub(super) fn words(mut self, words: &str) -> Self {
        self.arguments.extend(words.split_whitespace().map(OsString::from));
        self
    }

    /// `NAME=PATH`.
    pub(super) fn path(mut self, name: &str, path: &Path) -> Self {
        let mut argument = OsString::from(name);
        argument.push("=");
        argument.push(path);
        self.arguments.push(argument);
        self
    }

    pub(super) fn environment(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.into(), value.as_ref().to_owned()));
        self
    }

    pub(super) fn stdin(mut self, file: OwnedFd) -> Self {
        self.stdin = Some(file);
        self
    }

    /// Starts it, unless it runs.
    pub(super) fn start(self, place: &Place) -> Result<(), Error> {
        if running(place, &self.name).is_some() {
            return Ok(());
        }
        let log = place.log(&self.name);
        let doing = || format!("start {}", self.name);
        let output = File::options().create(true).append(true).open(&log).map_err(Error::io(doing()))?;
        let errors = output.try_clone().map_err(Error::io(doing()))?;
        let child = Command::new(&self.program)
            .arg0(if self.program == Path::new(OWN) { Path::new("cluster") } else { &self.program })
            .args(&self.arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(place.directory())
            .stdin(self.stdin.map_or_else(Stdio::null, Stdio::from))
            .stdout(output)
            .stderr(errors)
            // What is typed at the terminal that started it is not meant for it.
            .process_group(0)
            .spawn()
            .map_err(Error::io(format!("start {} (`{}`)", self.name, self.program.display())))?;
        let file = place.processes().join(&self.name);
        std::fs::write(&file, child.id().to_string()).map_err(Error::io(format!("write `{}`", file.display())))
    }
}

/// The number of a process that was started by name, if it runs. A number that was given to another process since is
/// told by its namespace.
pub(super) fn running(place: &Place, name: &str) -> Option<i32> {
    let number = std::fs::read_to_string(place.processes().join(name)).ok()?.trim().parse().ok()?;
    let namespace = identity(&place.network_namespace())?;
    (namespace_of(number)? == namespace).then_some(number)
}

/// Forgets what has ended.
pub(super) fn forget_ended(place: &Place) {
    for name in started(place) {
        if running(place, &name).is_none() {
            let _ = std::fs::remove_file(place.processes().join(name));
        }
    }
}

/// Names of everything that was started.
pub(super) fn started(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.processes()).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Every process of the cluster, whoever started it.
pub(super) fn all(place: &Place) -> BTreeSet<i32> {
    let mut found: BTreeSet<i32> = cgroup::processes(place).into_iter().collect();
    if let Some(namespace) = identity(&place.network_namespace()) {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        found.extend(numbers.filter(|number| namespace_of(*number) == Some(namespace)));
    }
    // A process of another PID namespace shows as 0.
    found.remove(&0);
    found
}

/// Kills processes; one that ended meanwhile is no matter.
pub(super) fn kill(numbers: &BTreeSet<i32>) {
    for process in numbers.iter().filter_map(|number| rustix::process::Pid::from_raw(*number)) {
        let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
    }
}

/// Whether nothing of a process goes on; somebody may still have to ask how it ended.
pub(super) fn has_ended(number: i32) -> bool {
    let directory = PathBuf::from(format!("/proc/{number}"));
    let Ok(status) = std::fs::read_to_string(directory.join("stat")) else { return true };
    // The state follows the name, which may hold anything.
    let state = status.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
    let threads = std::fs::read_dir(directory.join("task")).map_or(0, Iterator::count);
    matches!(state, Some(Some('Z' | 'X'))) && threads <= 1
}

fn namespace_of(number: i32) -> Option<(u64, u64)> {
    identity(Path::new(&format!("/proc/{number}/ns/net")))
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_nobody_asked_for_has_ended_all_the_same() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let number = i32::try_from(child.id()).unwrap();
        assert!(!has_ended(number));
        child.kill().unwrap();
        while !has_ended(number) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(has_ended(number));
    }
}
