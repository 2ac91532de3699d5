//! A component that is a chart, deployed by helm.

use super::Common;
use super::files;
use super::helm::{Helm, HelmReleases, Revision};
use crate::plan;
use crate::record::{Deployed, HelmProcess, Record};
use jobwright_engine::{Component, Decision, DeployContext, Failure, Occasion, async_trait};
use jobwright_jobs::process::end;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// A component that is a chart.
pub(crate) struct ChartComponent {
    /// What every component has.
    pub common: Common,
    /// What its Helm release is called.
    pub release: String,
    /// Where the chart is.
    pub chart: Source,
    /// Values files, the last one wins.
    pub values: Vec<PathBuf>,
    /// Values over those of the files.
    pub set: BTreeMap<String, Value>,
    /// How helm deploys it.
    pub options: plan::Helm,
    /// The helm that does.
    pub helm: Helm,
    /// The Helm releases that are there.
    pub releases: HelmReleases,
    /// This machine.
    pub host: String,
    /// A pending release is nobody's any more.
    pub unlock: bool,
}

/// Where a chart is.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A directory or an archive.
    Path(PathBuf),
    /// In a repository or a registry.
    Reference {
        /// `oci://…`, or `repository/name`.
        reference: String,
        /// The version of the chart.
        version: Option<String>,
        /// The URL of its repository.
        repository: Option<String>,
    },
}

/// How long a helm that is told to end may take.
const GRACE: Duration = Duration::from_secs(30);
/// How much longer than its own time limit a helm is believed to be at it.
const SLACK: Duration = Duration::from_mins(1);
/// How much of what helm says is kept.
const LINES: usize = 20;

impl ChartComponent {
    /// What it is made of, as hashes.
    fn parts(&self) -> Result<BTreeMap<String, String>, Failure> {
        let chart = match &self.chart {
            Source::Path(path) => files::hash(path, &files::list(path)?)?,
            Source::Reference { reference, version, repository } => {
                let part = |part: &Option<String>| part.clone().unwrap_or_default();
                files::hash_of(&[reference, &part(version), &part(repository)])
            }
        };
        let mut texts = vec![json!(self.set).to_string()];
        for file in &self.values {
            texts.push(files::hash(file, std::slice::from_ref(file))?);
        }
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        Ok(BTreeMap::from([("chart".to_owned(), chart), ("values".to_owned(), files::hash_of(&texts))]))
    }

    /// Finds out whether a pending release is ours to take up; waits for a helm of ours that still runs.
    async fn judge_pending(
        &self,
        revision: &Revision,
        deployed: Option<&Deployed>,
        context: &DeployContext,
    ) -> Result<Option<Revision>, Failure> {
        let ours = deployed.and_then(|deployed| deployed.helm.as_ref());
        let ours = ours.filter(|process| revision.number == process.revision + 1);
        match ours {
            Some(process) if process.host == self.host && self.is_helm_running(context) => {
                context.progress("waiting for a helm that an earlier deploy left running");
                while self.is_helm_running(context) {
                    tokio::select! {
                        () = tokio::time::sleep(Duration::from_millis(200)) => {}
                        () = context.cancellation().cancelled() => return Err(Failure::new("cancelled")),
                    }
                }
                self.releases.last_now(&self.release).await
            }
            Some(process) if process.host == self.host || process.until <= context.now() => Ok(Some(revision.clone())),
            _ if self.unlock => Ok(Some(revision.clone())),
            Some(process) => Err(Failure::new(format!(
                "Helm release `{}` is {}: a helm on host `{}` is at it, until {:.0} at the latest; wait for it, or, if it is dead, deploy with `--unlock`",
                self.release, revision.status, process.host, process.until
            ))),
            None => Err(Failure::new(format!(
                "Helm release `{}` is {} since revision {}: a helm is at it, or was killed; if none is, deploy with `--unlock`, or run `helm rollback {}`",
                self.release, revision.status, revision.number, self.release
            ))),
        }
    }

    fn command(&self, context: &DeployContext, set: Option<&std::path::Path>) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(&self.helm.program);
        command.args(["upgrade", "--install", &self.release]);
        match &self.chart {
            Source::Path(path) => {
                command.arg(path);
            }
            Source::Reference { reference, version, repository } => {
                command.arg(reference);
                for (flag, value) in [("--version", version), ("--repo", repository)] {
                    if let Some(value) = value {
                        command.args([flag, value]);
                    }
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
        command.args(&self.helm.arguments);
        // In a group of its own, so that it hears of a Ctrl-C from us, and only once.
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        command
    }

    /// Whether a helm on this machine is at this release.
    fn is_helm_running(&self, context: &DeployContext) -> bool {
        let wanted = ["upgrade", "--install", &self.release, "--namespace", &context.release().namespace];
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok()).any(|words| {
            let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
            wanted.iter().all(|word| words.contains(&word.as_bytes()))
        })
    }

    /// Writes down that a helm is going to be at it, so that whoever finds it pending knows whose it is.
    async fn announce(&self, context: &DeployContext, revision: u64) -> Result<(), Failure> {
        let patience = jiff::SignedDuration::try_from(self.options.timeout.duration() + SLACK).unwrap_or_default();
        let until = context.now().checked_add(patience).unwrap_or(jiff::Timestamp::MAX);
        let process = HelmProcess { host: self.host.clone(), revision, until };
        let name = self.common.name.clone();
        let announce = move |record: &mut Record| {
            let deployed = record.components.entry(name.clone()).or_default();
            deployed.helm = Some(process.clone());
            deployed.complete = false;
        };
        self.common.records.change(announce).await.map(drop)
    }

    /// Runs helm, and ends it with the deploy.
    async fn run(&self, context: &DeployContext) -> Result<(), Failure> {
        let set = if self.set.is_empty() { None } else { Some(write_values(&self.set)?) };
        let spawned = self.command(context, set.as_ref().map(tempfile::NamedTempFile::path)).spawn();
        let mut child = spawned.map_err(|error| Failure::new("cannot start helm").because(error).for_good())?;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let said = async { tokio::join!(listen(output, context), listen(errors, context)) };
        let ended = async {
            tokio::select! {
                status = child.wait() => (status, false),
                // It writes down that the release has failed, so it is waited for.
                () = context.cancellation().cancelled() => (end(&mut child, GRACE).await, true),
            }
        };
        let ((_, errors), (status, cancelled)) = tokio::join!(said, ended);
        let status = status.map_err(|error| Failure::new("lost sight of helm").because(error))?;
        if status.success() {
            return Ok(());
        }
        let errors = errors.join("\n");
        let told = errors.rsplit_once("Error: ").map_or(errors.as_str(), |(_, told)| told).trim();
        let told = if told.is_empty() { status.to_string() } else { told.to_owned() };
        Err(Failure::new(if cancelled { format!("helm was told to end: {told}") } else { format!("helm: {told}") }))
    }
}

#[async_trait]
impl Component for ChartComponent {
    fn name(&self) -> &str {
        &self.common.name
    }

    fn depends_on(&self) -> Vec<String> {
        self.common.depends_on.clone()
    }

    async fn decide(&self, context: &DeployContext) -> Result<Decision, Failure> {
        let record = self.common.records.get().await;
        let deployed = record.components.get(&self.common.name);
        let mut last = self.releases.last(&self.release).await?;
        if let Some(revision) = last.as_ref().filter(|revision| revision.is_pending()) {
            last = self.judge_pending(revision, deployed, context).await?;
        }
        let Some(revision) = last else {
            return Ok(Decision::Install(format!("there is no Helm release `{}`", self.release)));
        };
        if revision.is_pending() {
            let reason = format!("a helm was killed while it was at revision {}", revision.number);
            return Ok(if revision.number == 1 { Decision::Install(reason) } else { Decision::Upgrade(reason) });
        }
        if revision.status != "deployed" {
            return Ok(Decision::Upgrade(format!("its Helm release is {}", revision.status)));
        }
        let decision = match self.common.changes(deployed, &self.parts()?) {
            // Helm knows it, though we do not.
            Some(Decision::Install(_)) => Decision::Upgrade("it was not deployed from here yet".to_owned()),
            Some(decision) => decision,
            None => match deployed.and_then(|deployed| deployed.helm_revision) {
                Some(number) if number != revision.number => Decision::Upgrade(format!(
                    "somebody else has deployed it: revision {} instead of {number}",
                    revision.number
                )),
                _ => Decision::Unchanged("the same chart, values and version".to_owned()),
            },
        };
        Ok(decision)
    }

    async fn deploy(&self, context: &DeployContext, _: Occasion) -> Result<(), Failure> {
        let parts = self.parts()?;
        let last = self.releases.last_now(&self.release).await?;
        let before = match last {
            Some(pending) if pending.is_pending() => {
                context.progress(format!(
                    "taking up revision {}, which a killed helm left {}",
                    pending.number, pending.status
                ));
                self.releases.forget(&pending).await?;
                pending.number.saturating_sub(1)
            }
            Some(last) => last.number,
            None => 0,
        };
        context.progress(format!("helm {} upgrade --install {}", self.helm.version, self.release));
        self.announce(context, before).await?;
        self.run(context).await?;
        let revision = self.releases.last_now(&self.release).await?.map(|revision| revision.number);
        let (name, version) = (self.common.name.clone(), self.common.version.clone());
        let deployed = Deployed { parts, version, helm_revision: revision, ..Deployed::default() };
        self.common
            .records
            .change(move |record| drop(record.components.insert(name.clone(), deployed.clone())))
            .await?;
        Ok(())
    }

    async fn complete(&self, _: &DeployContext) -> Result<(), Failure> {
        self.common.complete().await
    }
}

fn write_values(values: &BTreeMap<String, Value>) -> Result<tempfile::NamedTempFile, Failure> {
    let written = tempfile::Builder::new().prefix("jobwright-").suffix(".yaml").tempfile().and_then(|file| {
        std::fs::write(file.path(), json!(values).to_string())?;
        Ok(file)
    });
    written.map_err(|error| Failure::new("cannot write a temporary values file").because(error))
}

/// Hears what helm says, tells it, and keeps the end.
async fn listen(stream: Option<impl AsyncRead + Unpin>, context: &DeployContext) -> Vec<String> {
    let Some(stream) = stream else { return Vec::new() };
    let mut lines = BufReader::new(stream).lines();
    let mut kept: Vec<String> = Vec::new();
    while let Ok(Some(line)) = lines.next_line().await {
        if !line.trim().is_empty() {
            context.progress(line.clone());
            kept.push(line);
            if kept.len() > LINES {
                kept.remove(0);
            }
        }
    }
    kept
}
