//! The story of a migration Job in a chart under Flux: why it loops, three attempts that fail, what works, and what
//! that still leaves.
//!
//! Waits and pauses are those of the controllers; unless said, a release is looked at every 20 s and an action may take
//! 60 s. "Legacy" is the waiter of Helm 3, "poller" the one that is used unless another is named.

#[path = "flux/agent.rs"]
pub(crate) mod agent;
#[path = "flux/attempts.rs"]
pub(crate) mod attempts;
#[path = "flux/drift.rs"]
pub(crate) mod drift;
#[path = "flux/problem.rs"]
pub(crate) mod problem;
#[path = "flux/release_hooks.rs"]
pub(crate) mod release_hooks;
#[path = "flux/remedies.rs"]
pub(crate) mod remedies;
#[path = "flux/solution.rs"]
pub(crate) mod solution;

use anyhow::{Result, ensure};
use jobwright_e2e::cluster::Deployer;
use jobwright_e2e::live::{Film, Need, Repository, Stage};
use serde_json::{Value, json};
use std::time::Duration;

const NEEDS: &[Need] = &[Need::Containers, Need::Deployer(&[Deployer::Flux])];

const RELEASE: &str = "helmreleases.helm.toolkit.fluxcd.io";
const KUSTOMIZATION: &str = "kustomizations.kustomize.toolkit.fluxcd.io";

const CHART: &[(&str, &str)] = &[
    ("mig/Chart.yaml", include_str!("charts/mig/Chart.yaml")),
    ("mig/values.yaml", include_str!("charts/mig/values.yaml")),
    ("mig/templates/all.yaml", include_str!("charts/mig/templates/all.yaml")),
];

const SOON: Duration = Duration::from_mins(4);
const LATER: Duration = Duration::from_mins(8);

/// Serves files from a repository that Flux watches.
fn source(stage: &Stage<'_>, files: &[(&str, &str)]) -> Result<Repository> {
    let repository = stage.live().repository(stage.namespace())?;
    repository.commit(files)?;
    stage.apply(&json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "GitRepository",
        "metadata": {"name": "git", "namespace": stage.namespace()},
        "spec": {"interval": "5s", "url": repository.url(), "ref": {"branch": "main"}},
    }))?;
    Ok(repository)
}

/// A HelmRelease of the chart `mig`. Dropping it leaves it to the end of the namespace.
struct Release<'a> {
    stage: &'a Stage<'a>,
    name: &'static str,
    /// Of its `spec`, what is not as usual.
    more: Value,
    /// What it is served from, unless another release has that.
    _repository: Option<Repository>,
}

impl<'a> Release<'a> {
    fn of(stage: &'a Stage<'a>, name: &'static str, more: Value) -> Result<Self> {
        let repository = source(stage, CHART)?;
        Ok(Self { stage, name, more, _repository: Some(repository) })
    }

    /// Another one of the same chart.
    fn beside(&self, name: &'static str, more: Value) -> Self {
        Self { stage: self.stage, name, more, _repository: None }
    }

    /// Gives it these values.
    fn apply(&self, values: &Value) -> Result<()> {
        let mut object = json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2",
            "kind": "HelmRelease",
            "metadata": {"name": self.name, "namespace": self.stage.namespace()},
            "spec": {
                "interval": "20s",
                "timeout": "60s",
                "chart": {"spec": {"chart": "mig", "sourceRef": {"kind": "GitRepository", "name": "git"}}},
                "values": values,
            },
        });
        merge(&mut object["spec"], &self.more);
        Ok(self.stage.apply(&object)?)
    }

    /// Follows what is said of it from now on.
    fn film(&self) -> Result<Film> {
        Ok(self.stage.film(("apis/helm.toolkit.fluxcd.io/v2", "helmreleases"), self.name)?)
    }

    /// Waits until a condition starts like this, and returns all that it says.
    fn until(&self, condition: &str, start: &str, limit: Duration) -> Result<String> {
        Ok(self.stage.until_condition(RELEASE, self.name, condition, start, limit)?)
    }

    /// Waits until a condition says exactly this.
    fn expect(&self, condition: &str, expected: &str, limit: Duration) -> Result<()> {
        let start: Vec<&str> = expected.splitn(3, ' ').take(2).collect();
        let said = self.until(condition, &start.join(" "), limit)?;
        ensure!(said == expected, "{condition} says `{said}`, not `{expected}`");
        Ok(())
    }

    fn status(&self) -> Result<Value> {
        Ok(self.stage.find(RELEASE, self.name)?.unwrap_or_default()["status"].clone())
    }

    /// How the revisions that Flux remembers are, the newest first.
    fn history(&self) -> Result<Vec<String>> {
        let status = self.status()?;
        let history = status["history"].as_array().cloned().unwrap_or_default();
        Ok(history.iter().map(|entry| entry["status"].as_str().unwrap_or_default().to_owned()).collect())
    }

    /// How the revisions that Helm keeps are, the oldest first: `1 superseded`.
    fn revisions(&self) -> Result<Vec<String>> {
        let label =
            |secret: &Value, name: &str| secret["metadata"]["labels"][name].as_str().unwrap_or_default().to_owned();
        let mut secrets = self.stage.list("secrets")?;
        secrets.retain(|secret| label(secret, "owner") == "helm" && label(secret, "name") == self.name);
        secrets.sort_by_key(|secret| label(secret, "version").parse::<u32>().unwrap_or_default());
        Ok(secrets.iter().map(|secret| format!("{} {}", label(secret, "version"), label(secret, "status"))).collect())
    }

    fn expect_runs(&self, runs: usize) -> Result<()> {
        expect_runs(self.stage, &format!("{}-migrations", self.name), runs)
    }
}

/// What Flux says of an action of a release that ended well, and of one that did not.
fn installed(name: &str) -> String {
    format!("True InstallSucceeded \"Helm install succeeded for release NS/{name}.v1 with chart mig@0.1.0\"")
}

fn upgraded(name: &str, revision: u32) -> String {
    format!("True UpgradeSucceeded \"Helm upgrade succeeded for release NS/{name}.v{revision} with chart mig@0.1.0\"")
}

fn upgrade_failed(name: &str, why: &str) -> String {
    format!("False UpgradeFailed \"Helm upgrade failed for release NS/{name} with chart mig@0.1.0: {why}\"")
}

fn install_failed(name: &str, why: &str) -> String {
    format!("False InstallFailed \"Helm install failed for release NS/{name} with chart mig@0.1.0: {why}\"")
}

fn rolled_back(status: &str, name: &str, to: u32) -> String {
    let what = format!("Helm rollback to previous release NS/{name}.v{to} with chart mig@0.1.0");
    format!("{status} RollbackSucceeded \"{what} succeeded\"")
}

fn rollback_failed(name: &str, to: u32, why: &str) -> String {
    let what = format!("Helm rollback to previous release NS/{name}.v{to} with chart mig@0.1.0");
    format!("False RollbackFailed \"{what} failed: {why}\"")
}

fn attempts_exceeded(action: &str, attempts: u32) -> String {
    format!("True RetriesExceeded \"Failed to {action} after {attempts} attempt(s)\"")
}

/// How the actions of a release ended. In its first moment a chart may not have been fetched.
fn ends_of_actions(film: &Film) -> Vec<String> {
    let mut ends = film.ends_of("Ready");
    if ends.first().is_some_and(|first| first.starts_with("False SourceNotReady ")) {
        ends.remove(0);
    }
    ends
}

fn kustomization(stage: &Stage<'_>, name: &str, more: &Value) -> Result<()> {
    let mut object = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": name, "namespace": stage.namespace()},
        "spec": {
            "interval": "30s",
            "retryInterval": "15s",
            "timeout": "30s",
            "path": format!("./{name}"),
            "prune": true,
            "wait": true,
            "targetNamespace": stage.namespace(),
            "sourceRef": {"kind": "GitRepository", "name": "git"},
        },
    });
    merge(&mut object["spec"], more);
    Ok(stage.apply(&object)?)
}

fn merge(into: &mut Value, more: &Value) {
    for (field, value) in more.as_object().into_iter().flatten() {
        into[field] = value.clone();
    }
}

fn expect_runs(stage: &Stage<'_>, job: &str, expected: usize) -> Result<()> {
    let runs = stage.runs(job)?;
    ensure!(runs == expected, "Job/{job} ran {runs} times, not {expected}");
    Ok(())
}

fn ends(said: &str, start: &str, end: &str) -> Result<()> {
    ensure!(said.starts_with(start) && said.ends_with(end), "it said `{said}`, not `{start}…{end}`");
    Ok(())
}
