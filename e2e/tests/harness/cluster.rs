//! A cluster of the tests, by the command that contributors type.

use anyhow::{Context as _, Result, ensure};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A cluster by its name and tier.
#[derive(Clone, Copy)]
pub(crate) struct Cluster {
    pub(crate) name: &'static str,
    tier: &'static str,
}

pub(crate) const FULL: Cluster = Cluster { name: "harness1", tier: "full" };
pub(crate) const LIGHT: Cluster = Cluster { name: "harness2", tier: "light" };

const LIMIT: Duration = Duration::from_mins(1);

impl Cluster {
    fn command(self, verb: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cluster"));
        command.args([verb, "--name", self.name]).stdin(Stdio::null());
        command
    }

    pub(crate) fn up(self) -> Result<()> {
        succeed(self.command("up").args(["--tier", self.tier])).map(|_| ())
    }

    /// Starts `up` and does not wait for it.
    pub(crate) fn start_up(self) -> Result<Child> {
        let mut command = self.command("up");
        command.args(["--tier", self.tier]).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().context("cannot start `cluster up`")
    }

    pub(crate) fn down(self) -> Result<()> {
        succeed(&mut self.command("down")).map(|_| ())
    }

    pub(crate) fn status(self) -> Result<String> {
        succeed(&mut self.command("status"))
    }

    pub(crate) fn kubectl(self, words: &[&str]) -> Result<String> {
        succeed(self.command("exec").args(["--", "kubectl"]).args(words))
    }

    /// Runs a pod with a container, so that there is more to clean up.
    pub(crate) fn run_pod(self) -> Result<()> {
        let words = ["run", "p", "--image=busybox:1", "--restart=Never", "--", "sleep", "3600"];
        self.kubectl(&words)?;
        let start = Instant::now();
        while self.kubectl(&["get", "pod", "p", "--output=jsonpath={.status.phase}"])? != "Running" {
            ensure!(start.elapsed() < LIMIT, "the pod does not run after {LIMIT:?}");
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    /// Kills a process of the cluster by the name of its part, and waits until it has gone.
    pub(crate) fn kill(self, part: &str) -> Result<()> {
        let file = format!("/var/lib/jobwright/clusters/{}/process/{part}", self.name);
        let number = std::fs::read_to_string(&file).with_context(|| format!("cannot read `{file}`"))?;
        succeed(Command::new("kill").args(["-9", number.trim()]))?;
        let start = Instant::now();
        while std::path::Path::new(&format!("/proc/{}/exe", number.trim())).exists() {
            ensure!(start.elapsed() < LIMIT, "{part} does not end");
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

fn succeed(command: &mut Command) -> Result<String> {
    let Output { status, stdout, stderr } = command.output().with_context(|| format!("cannot start {command:?}"))?;
    let (said, complained) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    ensure!(status.success(), "{command:?} ended with {status}:\n{said}{complained}");
    Ok(said.into_owned())
}
