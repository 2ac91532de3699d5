//! Programs of the distribution that a cluster needs, by the packages that have them.

use super::Effort;
use super::work::Log;
use crate::error::Error;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Where programs of the system are.
const DIRECTORIES: [&str; 7] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/lib/cni"];

/// A program, and the Debian package that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// The name of its file.
    pub name: &'static str,
    /// The package.
    pub package: &'static str,
}

const fn program(name: &'static str, package: &'static str) -> Program {
    Program { name, package }
}

/// What every cluster needs.
pub const NETWORK: &[Program] = &[program("ip", "iproute2"), program("git", "git")];

/// What a node with containers needs besides.
pub const NODE: &[Program] = &[
    program("containerd", "containerd"),
    program("ctr", "containerd"),
    program("runc", "runc"),
    program("busybox", "busybox-static"),
    program("host-local", "containernetworking-plugins"),
    program("nft", "nftables"),
    program("iptables", "iptables"),
    program("conntrack", "conntrack"),
    program("mount", "mount"),
    program("socat", "socat"),
];

/// What Argo CD needs besides.
pub const ARGO_CD: &[Program] = &[program("redis-server", "redis-server")];

/// What building programs without dynamic libraries needs.
pub const MUSL: &[Program] = &[program("musl-gcc", "musl-tools")];

/// Installs the packages of programs that are missing. Nothing here uses their services.
pub fn install(programs: &[Program], work: &Path, effort: Effort<'_>) -> Result<(), Error> {
    let missing = missing(programs);
    if missing.is_empty() {
        return Ok(());
    }
    let packages: BTreeSet<&str> = missing.iter().map(|program| program.package).collect();
    let names = packages.iter().copied().collect::<Vec<_>>().join(" ");
    let remedy = |reason: String| Error::Tool {
        tool: missing.iter().map(|program| program.name).collect::<Vec<_>>().join(", "),
        reason: format!("{reason}; install the packages {names}"),
    };
    if find("apt-get").is_none() {
        return Err(remedy("this system has no apt-get".to_owned()));
    }
    if !rustix::process::geteuid().is_root() {
        return Err(remedy("only root may run apt-get".to_owned()));
    }
    std::fs::create_dir_all(work).map_err(Error::io(format!("create `{}`", work.display())))?;
    let log = Log::new(work, effort);
    let mut command = apt();
    command.args(["install", "-y", "--no-install-recommends"]).args(&packages);
    let installed = log.call(&format!("installing {names}"), &mut command).or_else(|_| {
        // The lists of packages may be old or absent.
        log.call("reading the lists of packages", apt().arg("update"))?;
        let mut again = apt();
        again.args(["install", "-y", "--no-install-recommends"]).args(&packages);
        log.call(&format!("installing {names}"), &mut again)
    });
    installed.map_err(|error| remedy(error.explain()))
}

/// Where a program of the system is.
pub fn find(name: &str) -> Option<std::path::PathBuf> {
    DIRECTORIES.iter().map(|directory| Path::new(directory).join(name)).find(|path| path.is_file())
}

fn missing(programs: &[Program]) -> Vec<Program> {
    programs.iter().copied().filter(|program| find(program.name).is_none()).collect()
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    // Another process may be at it.
    command.args(["-q", "-o", "DPkg::Lock::Timeout=300"]).env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_installed() {
        let present = program("sh", "dash");
        assert!(missing(&[present]).is_empty());
        assert_eq!(missing(&[present, program("no-such-program", "nothing")]).len(), 1);
    }
}
