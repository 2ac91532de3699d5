//! A program that is measured: built once, run as often as needed.

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use jobwright_e2e::cargo::cargo;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How often a time is taken; the shortest counts, since nothing makes a program faster than it is.
const TIMES: usize = 3;

/// A built program.
pub(super) struct Program {
    path: PathBuf,
}

/// What a measurement took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    /// On a processor.
    pub(super) nanoseconds: f64,
    /// By how much the process grew.
    pub(super) bytes: f64,
}

/// The peer, or why there is none.
pub(super) enum Peer {
    There(Program),
    Missing(String),
}

impl Program {
    /// Builds a program in release mode.
    pub(super) fn build(root: &Path, arguments: &[&str], path: &str) -> Result<Self> {
        let mut command = cargo();
        command.args(["build", "--release", "--quiet"]).args(arguments);
        let status = command.status().context("cannot run cargo")?;
        ensure!(status.success(), "cargo build {} failed", arguments.join(" "));
        Ok(Self { path: root.join(path) })
    }

    /// Runs a measurement some times. The shortest time counts, and the memory of that run.
    pub(super) fn measure(&self, arguments: &[&str]) -> Result<Usage> {
        let runs = (0..TIMES).map(|_| self.run(arguments)).collect::<Result<Vec<_>>>()?;
        runs.into_iter().min_by(|one, other| one.nanoseconds.total_cmp(&other.nanoseconds)).context("there was no run")
    }

    /// Runs a measurement once.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<Usage> {
        self.run_with(arguments, Stdio::inherit())
    }

    /// Runs a measurement that may well fail.
    pub(super) fn run_quietly(&self, arguments: &[&str]) -> Result<Usage> {
        self.run_with(arguments, Stdio::null())
    }

    fn run_with(&self, arguments: &[&str], errors: Stdio) -> Result<Usage> {
        let output = Command::new(&self.path).args(arguments).stderr(errors).output();
        let output = output.with_context(|| format!("cannot run {}", arguments.join(" ")))?;
        ensure!(output.status.success(), "{} failed", arguments.join(" "));
        let usage: Value = serde_json::from_slice(&output.stdout).context("the measurement says something else")?;
        let number = |name: &str| usage[name].as_f64().unwrap_or_default();
        Ok(Usage { nanoseconds: number("nanoseconds"), bytes: number("bytes") })
    }

    /// How many instructions a run takes; none where nothing counts them.
    pub(super) fn instructions(&self, arguments: &[&str]) -> Result<Option<f64>> {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(&self.path).args(arguments);
        let output = match command.output() {
            Ok(output) => output,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => bail!("cannot run valgrind: {error}"),
        };
        let text = String::from_utf8_lossy(&output.stderr);
        let count = text.lines().find_map(|line| line.split_once("Collected :")).map(|(_, count)| count.trim());
        let count = count.and_then(|count| count.parse().ok());
        Ok(Some(count.with_context(|| format!("valgrind counted nothing:\n{text}"))?))
    }

    /// How many more instructions one run takes than another. Both run at once, since that changes no count.
    pub(super) fn more_instructions(&self, more: &[&str], less: &[&str]) -> Result<Option<f64>> {
        let (more, less) = std::thread::scope(|scope| {
            let more = scope.spawn(|| self.instructions(more));
            let less = self.instructions(less);
            (more.join(), less)
        });
        let more = more.map_err(|_| anyhow!("the thread that ran valgrind has panicked"))?;
        Ok(more?.zip(less?).map(|(more, less)| more - less))
    }
}

impl Peer {
    pub(super) fn build(root: &Path) -> Self {
        let manifest = ["--manifest-path", "bench/peer/Cargo.toml"];
        match Program::build(root, &manifest, "bench/peer/target/release/jobwright-bench-peer") {
            Ok(program) => Self::There(program),
            Err(error) => Self::Missing(error.to_string()),
        }
    }

    pub(super) fn program(&self) -> Option<&Program> {
        match self {
            Self::There(program) => Some(program),
            Self::Missing(_) => None,
        }
    }
}
