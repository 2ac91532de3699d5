//! Programs out of Go modules, built in a module of our own that requires theirs.
//!
//! `go install MODULE@VERSION` refuses modules that replace others; a module of our own may replace what it likes.
//! Checksums stay on.

use super::Effort;
use super::module::GoMod;
use super::work::{self, Log};
use crate::error::Error;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How the programs of a module are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recipe {
    /// The module.
    pub(super) module: &'static str,
    /// Programs by file name and package.
    pub(super) programs: &'static [(&'static str, &'static str)],
    /// What the linker sets; `{version}` and `{minor}` stand for numbers.
    pub(super) variables: &'static [&'static str],
    /// `MODULE => MODULE VERSION` for what is not published, or only by a path inside the repository.
    pub(super) replace: &'static [&'static str],
    /// Files of the module that are kept beside the programs.
    pub(super) files: &'static [Files],
    /// Whether what the module replaces by its own directories is published as 0.MINOR.PATCH.
    pub(super) staged: bool,
}

/// Files of one directory of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Files {
    pub(super) from: &'static str,
    /// How their names end.
    pub(super) only: &'static str,
    pub(super) to: &'static str,
}

impl Recipe {
    /// Nothing special.
    pub(super) const PLAIN: Self =
        Self { module: "", programs: &[], variables: &[], replace: &[], files: &[], staged: false };

    /// Builds every program into a directory.
    pub(super) fn build(
        &self,
        name: &str,
        version: &str,
        work: &Path,
        whole: &Path,
        effort: Effort<'_>,
    ) -> Result<(), Error> {
        let log = Log::new(work, effort);
        let tagged = format!("v{version}");
        let proxy = proxy(work)?;
        let downloaded = download(work, &proxy, &format!("{}@{tagged}", self.module), &log, name)?;
        let upstream = read(&downloaded.go_mod)?;
        let go_mod = GoMod::parse(&upstream);
        let own = go_mod.requiring(self.module, version, self.replace, self.staged);
        write(&work.join("go.mod"), &own.text)?;
        for stub in own.stubs {
            let directory = work.join(&stub.directory);
            std::fs::create_dir_all(&directory).map_err(Error::io(format!("create `{}`", directory.display())))?;
            write(&directory.join("go.mod"), &stub.text)?;
        }
        let linker = self.linker_flags(version);
        for (index, (program, package)) in self.programs.iter().enumerate() {
            let part = format!("{name}: building {program} ({} of {})", index + 1, self.programs.len());
            let build = ["build", "-trimpath", "-ldflags", &linker, "-o"];
            log.call(&part, go(work, &proxy).args(build).arg(whole.join(program)).arg(package))?;
        }
        for files in self.files {
            files.copy(&downloaded.dir, whole)?;
        }
        Ok(())
    }

    fn linker_flags(&self, version: &str) -> String {
        let minor = version.split('.').nth(1).unwrap_or_default();
        let mut flags = "-s -w".to_owned();
        for variable in self.variables {
            flags.push_str(" -X ");
            flags.push_str(&variable.replace("{version}", version).replace("{minor}", minor));
        }
        flags
    }
}

impl Files {
    fn copy(&self, module: &Path, whole: &Path) -> Result<(), Error> {
        let from = module.join(self.from);
        let to = whole.join(self.to);
        std::fs::create_dir_all(&to).map_err(Error::io(format!("create `{}`", to.display())))?;
        let entries = std::fs::read_dir(&from).map_err(Error::io(format!("list `{}`", from.display())))?;
        for entry in entries {
            let entry = entry.map_err(Error::io(format!("list `{}`", from.display())))?;
            let file = entry.file_name();
            if !file.to_string_lossy().ends_with(self.only) {
                continue;
            }
            // Written anew, because what the module cache holds may not be changed, and a copy would not be either.
            let bytes = std::fs::read(entry.path()).map_err(Error::io(format!("read `{}`", entry.path().display())))?;
            write(&to.join(file), bytes)?;
        }
        Ok(())
    }
}

/// What `go mod download -json` says.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Downloaded {
    dir: PathBuf,
    go_mod: PathBuf,
}

fn download(work: &Path, proxy: &str, module: &str, log: &Log<'_>, name: &str) -> Result<Downloaded, Error> {
    let mut command = go(work, proxy);
    command.args(["mod", "download", "-json", module]).env("GOFLAGS", "");
    let said = log.output(&format!("{name}: downloading {module}"), &mut command)?;
    serde_json::from_str(&said).map_err(Error::json(format!("what Go says about {module}")))
}

/// The first registry that Go is told to ask. Without those after it a version that is not published is called so,
/// and not looked for elsewhere.
fn proxy(work: &Path) -> Result<String, Error> {
    let mut command = Command::new("go");
    command.current_dir(work).args(["env", "GOPROXY"]);
    let said = work::output(&mut command).map_err(|error| Error::Tool {
        tool: "go".to_owned(),
        reason: format!("{}; install Go 1.26 or newer and put it on the PATH", error.explain()),
    })?;
    Ok(said.trim().split([',', '|']).next().unwrap_or_default().to_owned())
}

fn go(work: &Path, proxy: &str) -> Command {
    let mut command = Command::new("go");
    command
        .current_dir(work)
        .env("CGO_ENABLED", "0")
        .env("GOFLAGS", "-buildvcs=false -mod=mod")
        .env("GOWORK", "off")
        .env("GOPROXY", proxy);
    command
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(Error::io(format!("read `{}`", path.display())))
}

fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), Error> {
    std::fs::write(path, contents).map_err(Error::io(format!("write `{}`", path.display())))
}
