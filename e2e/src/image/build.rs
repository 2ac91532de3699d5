//! Our own programs without dynamic libraries, which is what an image of one file needs.

use crate::cargo::{cargo, workspace};
use crate::error::Error;
use crate::install::{Effort, debian};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program of this workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// What `cluster load` calls it.
    pub name: &'static str,
    /// The package.
    pub package: &'static str,
    /// The program of it.
    pub program: &'static str,
    /// What an image of it is called.
    pub image: &'static str,
}

/// What is released.
pub const JOBWRIGHT: Own =
    Own { name: "jobwright", package: "jobwright", program: "jobwright", image: "jobwright.local/jobwright:e2e" };

/// The admission server of the example.
pub const AGENT: Own =
    Own { name: "agent", package: "jobwright-agent", program: "agent", image: "jobwright.local/agent:e2e" };

/// How much work the compiler puts into a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quality {
    /// What is released.
    Released,
    /// The same sources, libraries and packing in a fraction of the time: tests ask what a program does in a cluster,
    /// not how fast it is.
    Tested,
}

impl Quality {
    /// The profile of Cargo, which is also the name of its directory.
    fn profile(self) -> &'static str {
        match self {
            Self::Released => "release",
            Self::Tested => "image",
        }
    }
}

impl Own {
    /// What the same image is called, too, for tests of what another image brings about.
    pub fn next(self) -> String {
        format!("{}-next", self.image)
    }

    /// Builds it for musl, and says where it is.
    pub fn build(self, work: &Path, quality: Quality, effort: Effort<'_>) -> Result<PathBuf, Error> {
        let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
        debian::install(debian::MUSL, work, effort)?;
        if !has_target(&target) {
            (effort.tell)(&format!("adding the Rust target {target}"));
            run(Command::new("rustup").args(["target", "add", &target]).current_dir(workspace())).map_err(|error| {
                let reason = format!("{}; run `rustup target add {target}`", error.explain());
                Error::Tool { tool: format!("the Rust target {target}"), reason }
            })?;
        }
        (effort.tell)(&format!("building {} for {target}", self.program));
        let build = ["build", "--quiet", "--locked", "--profile", quality.profile(), "--target", &target];
        let what = ["--package", self.package, "--bin", self.program];
        run(cargo().args(build).args(what))?;
        Ok(target_directory()?.join(target).join(quality.profile()).join(self.program))
    }
}

fn has_target(target: &str) -> bool {
    let installed = run(Command::new("rustup").args(["target", "list", "--installed"]).current_dir(workspace()));
    installed.is_ok_and(|list| list.lines().any(|line| line == target))
}

/// Where Cargo puts what it builds.
fn target_directory() -> Result<PathBuf, Error> {
    #[derive(serde::Deserialize)]
    struct Metadata {
        target_directory: PathBuf,
    }
    let said = run(cargo().args(["metadata", "--format-version", "1", "--no-deps", "--offline"]))?;
    let metadata: Metadata = serde_json::from_str(&said).map_err(Error::json("what Cargo says about the workspace"))?;
    Ok(metadata.target_directory)
}

fn run(command: &mut Command) -> Result<String, Error> {
    let line = format!("{command:?}");
    let ended = command.stdin(Stdio::null()).output().map_err(Error::io(format!("start {line}")))?;
    if ended.status.success() {
        Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
    } else {
        let reason = format!("{}\n{}", ended.status, String::from_utf8_lossy(&ended.stderr).trim());
        Err(Error::Command { command: line, reason })
    }
}
