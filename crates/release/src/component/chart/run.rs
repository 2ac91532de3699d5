//! Runs `helm upgrade`, and ends it: with the deploy, at its time limit, when the lease is lost, or when this process is
//! killed or stopped.

use super::ChartComponent;
use crate::component::helm::{self, Helm, last_words};
use crate::plan::Chart;
use jobwright_engine::{DeployContext, Failure};
use jobwright_jobs::process::{Group, Output};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

/// How helm has ended.
pub(super) enum Ended {
    Well,
    /// By itself: it has recorded that the release has failed, or has not changed anything.
    Badly(Failure),
    /// By a signal: it may have left the release pending.
    Killed(Failure),
}

/// How long a helm that is asked to end may take: it records that the release has failed.
pub(super) const GRACE: Duration = Duration::from_secs(30);
/// How many lines of its errors are kept.
const LINES: usize = 20;

impl ChartComponent {
    /// Runs helm to its end.
    pub(super) async fn run(
        &self,
        helm: &Helm,
        chart: &Chart,
        mark: Option<&str>,
        context: &DeployContext,
    ) -> Result<Ended, Failure> {
        let set = if self.set.is_empty() { None } else { Some(write_values(&self.set)?) };
        let mut command = self.command(helm, chart, context, set.as_ref().map(tempfile::NamedTempFile::path));
        if let Some(mark) = mark {
            command.args(["--labels", &format!("{}={mark}", helm::MARK)]);
        }
        let mut errors: VecDeque<String> = VecDeque::new();
        let hear = |from: Output, line: String| {
            if line.trim().is_empty() {
                return;
            }
            context.progress(line.clone());
            if from == Output::Error {
                errors.push_back(line);
                if errors.len() > LINES {
                    errors.pop_front();
                }
            }
        };
        let spawned = Group::spawn_watched(&mut command, context.watchdog());
        let mut group = spawned.map_err(|error| Failure::new("cannot start helm").because(error).for_good())?;
        let stop = context.cancellation().child_token();
        let mut is_overdue = false;
        let ended = {
            let mut attending = pin!(group.attend(&stop, GRACE, context.mask(), hear));
            let mut limit = pin!(tokio::time::sleep(self.limit()));
            loop {
                tokio::select! {
                    ended = &mut attending => break ended,
                    () = &mut limit, if !is_overdue => {
                        is_overdue = true;
                        stop.cancel();
                    }
                    // The group is killed when it is dropped.
                    () = context.lost() => return Ok(Ended::Killed(Failure::new("helm was killed: the lease is lost"))),
                }
            }
        };
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return Ok(Ended::Killed(Failure::new("lost track of helm").because(error))),
        };
        if ended.status.success() {
            return Ok(Ended::Well);
        }
        let words = last_words(&Vec::from(errors), ended.status);
        let failure = Failure::new(if is_overdue {
            format!("helm has not ended within {:?} and was ended: {words}", self.limit())
        } else if ended.was_cancelled {
            format!("helm was ended by the cancellation: {words}")
        } else {
            format!("helm: {words}")
        });
        Ok(if ended.status.code().is_some() { Ended::Badly(failure) } else { Ended::Killed(failure) })
    }

    fn command(
        &self,
        helm: &Helm,
        chart: &Chart,
        context: &DeployContext,
        set: Option<&Path>,
    ) -> tokio::process::Command {
        let mut command = helm::command(&helm.program);
        command.args(["upgrade", "--install", &self.release]);
        match chart {
            Chart::Path(path) => {
                command.arg(path);
            }
            Chart::Reference { reference, version, repository } => {
                command.arg(reference);
                for (flag, value) in [("--version", version), ("--repo", repository)] {
                    command.args(value.iter().flat_map(|value| [flag, value.as_str()]));
                }
            }
        }
        command.args(["--namespace", &context.release().namespace]);
        command.args(["--timeout", &format!("{}s", self.options.timeout.duration().as_secs().max(1))]);
        if self.options.wait {
            command.arg("--wait");
        }
        for file in self.values.iter().map(PathBuf::as_path).chain(set) {
            command.arg("--values").arg(file);
        }
        command.args(&helm.arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// A label value that no other helm has.
pub(super) fn new_mark() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

fn write_values(values: &BTreeMap<String, Value>) -> Result<tempfile::NamedTempFile, Failure> {
    let written = tempfile::Builder::new().prefix("jobwright-").suffix(".yaml").tempfile().and_then(|file| {
        std::fs::write(file.path(), json!(values).to_string())?;
        Ok(file)
    });
    written.map_err(|error| Failure::new("cannot write a temporary values file").because(error))
}
