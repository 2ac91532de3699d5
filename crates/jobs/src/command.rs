//! `command`: runs a program of the machine that deploys.
//!
//! It runs at least once: nobody can tell whether a program did its work if the machine dies meanwhile, so the next
//! deploy runs it again.

use crate::place::{Place, placed};
use crate::process::end;
use jobwright_engine::{Context, Failure, Job, async_trait};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::Child;

/// Runs a program of the machine that deploys.
#[derive(Clone, Debug)]
pub struct Command {
    /// What every job has.
    pub place: Place,
    /// The program, by path or by name on the search path.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// What it finds in its environment, besides what we do.
    pub environment: BTreeMap<String, String>,
    /// Where it runs.
    pub directory: Option<PathBuf>,
}

/// How long a program that is told to end may take.
const GRACE: Duration = Duration::from_secs(8);
/// Longer lines are cut: nobody reads them, and memory is bounded.
const LONGEST_LINE: usize = 8 * 1024;

impl Command {
    fn spawn(&self, context: &Context) -> Result<Child, Failure> {
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(&self.arguments)
            .envs(&self.environment)
            .env("JOBWRIGHT_RELEASE", &context.release().name)
            .env("JOBWRIGHT_NAMESPACE", context.namespace())
            .env("JOBWRIGHT_ATTEMPT", context.attempt().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(version) = &context.release().version {
            command.env("JOBWRIGHT_VERSION", version.as_str());
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command.spawn().map_err(|error| {
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

    async fn run(&self, context: &Context) -> Result<(), Failure> {
        let mut child = self.spawn(context)?;
        let output = child.stdout.take().map(|stream| tell(stream, context));
        let errors = child.stderr.take().map(|stream| tell(stream, context));
        let told = async { tokio::join!(option(output), option(errors)) };
        let ended = async {
            tokio::select! {
                status = child.wait() => (status, false),
                () = context.cancellation().cancelled() => (end(&mut child, GRACE).await, true),
            }
        };
        let (_, (status, cancelled)) = tokio::join!(told, ended);
        let status =
            status.map_err(|error| Failure::new(format!("lost sight of `{}`", self.program)).because(error))?;
        match (status.success(), cancelled) {
            (true, false) => Ok(()),
            (_, true) => Err(Failure::new(format!("`{}` was told to end: {status}", self.program))),
            (false, false) => Err(Failure::new(format!("`{}` ended with {status}", self.program))),
        }
    }
}

async fn option<F: Future<Output = ()>>(future: Option<F>) {
    if let Some(future) = future {
        future.await;
    }
}

/// Tells what a program says, line by line.
async fn tell(stream: impl AsyncRead + Unpin, context: &Context) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                line.truncate(LONGEST_LINE);
                context.log(String::from_utf8_lossy(&line).trim_end());
            }
        }
    }
}
