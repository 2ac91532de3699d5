//! `command`: runs a program of the machine that deploys.
//!
//! At least once: if that machine dies, it is unknown whether the program did its work, so the next deploy runs it again.
//! Attempts do not overlap: an attempt ends when nothing is left of the program's process group. If this process is killed,
//! that needs a [watchdog](jobwright_engine::Settings::watchdog): without one the program runs on.

use crate::place::{Place, placed};
use crate::process::Group;
use jobwright_engine::{Context, Failure, Job, async_trait};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

/// Runs a program of the machine that deploys.
#[derive(Clone, Debug)]
pub struct Command {
    /// What every job has.
    pub place: Place,
    /// The program: a path, or a name that is looked up in `PATH`.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables added to the environment of `jobwright` itself.
    pub environment: BTreeMap<String, String>,
    /// Its working directory.
    pub directory: Option<PathBuf>,
}

/// How long a program that is told to end may take: less than the engine gives a cancelled job.
const GRACE: Duration = Duration::from_secs(8);

impl Command {
    fn spawn(&self, context: &Context) -> Result<Group, Failure> {
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(&self.arguments)
            .envs(&self.environment)
            .env("JOBWRIGHT_RELEASE", &context.release().name)
            .env("JOBWRIGHT_NAMESPACE", context.namespace())
            .env("JOBWRIGHT_ATTEMPT", context.attempt().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(version) = &context.release().version {
            command.env("JOBWRIGHT_VERSION", version.as_str());
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        Group::spawn_watched(&mut command, context.watchdog()).map_err(|error| {
            let hint = "a `command` runs where you deploy from";
            Failure::new(format!("cannot start `{}` ({hint})", self.program)).because(error).for_good()
        })
    }
}

#[async_trait]
impl Job for Command {
    placed!();

    fn inputs(&self) -> Value {
        json!({"program": self.program, "arguments": self.arguments, "environment": self.environment})
    }

    async fn foresee(&self, _: &Context) -> Result<(), Failure> {
        // A name is looked up in `PATH`, which is not ours to read.
        let path = self.directory.clone().unwrap_or_default().join(&self.program);
        if self.program.contains('/') && !path.exists() {
            return Err(Failure::new(format!("there is no program `{}`", self.program)).for_good());
        }
        Ok(())
    }

    async fn run(&self, context: &Context) -> Result<(), Failure> {
        let mut group = self.spawn(context)?;
        let hear = |_, line| context.log(line);
        let ended = group.attend(context.cancellation(), GRACE, context.mask(), hear).await;
        let ended = ended.map_err(|error| Failure::new(format!("lost track of `{}`", self.program)).because(error))?;
        match (ended.status.success(), ended.was_cancelled) {
            (true, false) => Ok(()),
            (_, true) => Err(Failure::new(format!("`{}` was told to end: {}", self.program, ended.status))),
            (false, false) => Err(Failure::new(format!("`{}` ended with {}", self.program, ended.status))),
        }
    }
}
