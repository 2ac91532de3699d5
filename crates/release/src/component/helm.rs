//! The helm in `PATH`, its processes, and the releases that it keeps in a cluster.

mod releases;
mod running;

pub use releases::Driver;
pub(crate) use releases::{HelmReleases, MARK, Revision};
pub(super) use running::{Machine, Running};

use jobwright_engine::{DeployContext, Failure, Mask};
use jobwright_jobs::process::{Group, Output};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A helm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Helm {
    /// The program.
    pub program: PathBuf,
    /// Its version: `3.17.3`.
    pub version: String,
    /// Arguments of every call: `--kubeconfig`, `--kube-context`.
    pub arguments: Vec<String>,
}

/// A helm that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HelmError {
    /// It cannot be started.
    #[error("cannot start helm: {0}")]
    Missing(String),
    /// It does not answer.
    #[error("`{program} version` has not ended within {}s", .limit.as_secs())]
    Hung {
        /// The program.
        program: String,
        /// How long was waited.
        limit: Duration,
    },
    /// It is no Helm 3 or 4.
    #[error("`{program}` reports version `{said}`: Helm 3 or 4 is required")]
    Unknown {
        /// The program.
        program: String,
        /// What it reports.
        said: String,
    },
}

/// How long helm may take to answer a question.
const ANSWER: Duration = Duration::from_mins(1);
/// The longest answer that is read, in lines.
const MOST_LINES: usize = 10_000;

impl Helm {
    /// Whether it can label releases: from Helm 3.13 on.
    pub(crate) fn takes_labels(&self) -> bool {
        let mut numbers = self.version.trim_start_matches('v').split('.').map_while(|part| part.parse::<u32>().ok());
        (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default()) >= (3, 13)
    }

    /// Asks a helm for its version.
    pub async fn probe(program: &Path, arguments: Vec<String>) -> Result<Self, HelmError> {
        let name = || program.display().to_string();
        let missing = |error: std::io::Error| HelmError::Missing(error.to_string());
        let mut command = command(program);
        command.args(["version", "--template", "{{.Version}}"]);
        let (_, said, _) = tokio::time::timeout(ANSWER, answer(command))
            .await
            .map_err(|_| HelmError::Hung { program: name(), limit: ANSWER })?
            .map_err(missing)?;
        let said = said.join("\n").trim().to_owned();
        let version = said.strip_prefix('v').unwrap_or(&said).to_owned();
        match version.split('.').next() {
            Some("3" | "4") => Ok(Self { program: program.to_owned(), version, arguments }),
            _ => Err(HelmError::Unknown { program: name(), said }),
        }
    }

    /// Asks for the Chart.yaml of a chart in a repository or a registry.
    pub(super) async fn show_chart(&self, context: &DeployContext, arguments: &[&str]) -> Result<String, Failure> {
        let mut command = command(&self.program);
        command.args(["show", "chart"]).args(arguments).args(&self.arguments);
        let doing = || format!("cannot resolve the chart: `helm show chart {}`", arguments.join(" "));
        let (status, output, errors) = tokio::select! {
            answer = answer(command) => answer.map_err(|error| Failure::new("cannot start helm").because(error))?,
            () = tokio::time::sleep(ANSWER) => {
                return Err(Failure::new(format!("{} has not ended within {}s", doing(), ANSWER.as_secs())));
            }
            () = context.cancellation().cancelled() => return Err(Failure::new("cancelled")),
        };
        if status.success() {
            return Ok(output.join("\n"));
        }
        Err(Failure::new(format!("{}: {}", doing(), last_words(&errors, status))))
    }
}

/// Variables with which helm would reach another cluster, or the same one as another user, than Jobwright does.
const CONNECTION: [&str; 8] = [
    "HELM_KUBEAPISERVER",
    "HELM_KUBEASGROUPS",
    "HELM_KUBEASUSER",
    "HELM_KUBECAFILE",
    "HELM_KUBECONTEXT",
    "HELM_KUBEINSECURE_SKIP_TLS_VERIFY",
    "HELM_KUBETLS_SERVER_NAME",
    "HELM_KUBETOKEN",
];

/// A call of helm. Arguments alone say which cluster it reaches.
pub(super) fn command(program: &Path) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(program);
    for variable in CONNECTION {
        command.env_remove(variable);
    }
    command
}

/// Runs helm to its end: how it ended, its output, its errors. It is killed with the future.
async fn answer(mut command: tokio::process::Command) -> std::io::Result<(ExitStatus, Vec<String>, Vec<String>)> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let hear = |from: Output, line: String| {
        let lines = match from {
            Output::Standard => &mut output,
            Output::Error => &mut errors,
        };
        if lines.len() < MOST_LINES {
            lines.push(line);
        }
    };
    // An answer is parsed, so nothing in it is replaced.
    let mask = Mask::default();
    let ended = Group::spawn(&mut command)?.attend(&CancellationToken::new(), Duration::ZERO, &mask, hear).await?;
    Ok((ended.status, output, errors))
}

/// What helm reported last, after its `Error: `; how it ended if it reported nothing.
pub(super) fn last_words(errors: &[String], status: ExitStatus) -> String {
    let errors = errors.join("\n");
    let told = errors.rsplit_once("Error: ").map_or(errors.as_str(), |(_, told)| told).trim();
    if told.is_empty() { status.to_string() } else { told.to_owned() }
}
