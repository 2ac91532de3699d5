//! The story of a migration Job whose helper makes it a hook only on upgrades, under Argo CD: the old helper, the fixed
//! one, and a hook that needs what the same chart brings later.

#[path = "argocd/agent.rs"]
pub(crate) mod agent;
#[path = "argocd/application.rs"]
mod application;
#[path = "argocd/database.rs"]
pub(crate) mod database;
#[path = "argocd/dialect.rs"]
mod dialect;
#[path = "argocd/failing.rs"]
pub(crate) mod failing;
#[path = "argocd/fixed.rs"]
pub(crate) mod fixed;
#[path = "argocd/old.rs"]
pub(crate) mod old;
#[path = "argocd/release_hooks.rs"]
pub(crate) mod release_hooks;

use anyhow::{Result, ensure};
use application::{Application, Automation, OWN_VALUES};
use dialect::Dialect;
use jobwright_e2e::cluster::Deployer;
use jobwright_e2e::live::{Need, Stage};
use std::time::Duration;

const NEEDS: &[Need] = &[Need::Containers, Need::Deployer(&[Deployer::Argocd, Deployer::Argocd2])];

const CHART: &[(&str, &str)] = &[
    ("Chart.yaml", include_str!("charts/core/Chart.yaml")),
    ("templates/all.yaml", include_str!("charts/core/templates/all.yaml")),
];
const OLD: &str = include_str!("charts/core/old.tpl");
const FIXED: &str = include_str!("charts/core/fixed.tpl");
const ALL_POLICIES: &str = include_str!("charts/core/all-policies.tpl");

const SOON: Duration = Duration::from_mins(4);
/// Five retries, with 10, 20, 40, 80 and 160 s between.
const FIVE_RETRIES: Duration = Duration::from_mins(8);

const ALL_RUN: &str = "successfully synced (all tasks run)";
/// What it says instead if hooks after the sync were the last.
const NO_MORE: &str = "successfully synced (no more tasks)";
const SUCCEEDED: &str = "Reached expected number of succeeded pods";
const BACKOFF: &str = "Job has reached the specified backoff limit";
const UNSUCCESSFUL: &str = "one or more synchronization tasks completed unsuccessfully";
const IMMUTABLE: &str = "error when patching \"/dev/shm/DIGITS\": Job.batch \"NS-migrate\" is invalid: spec.template: \
     Invalid value: TEMPLATE: field is immutable";

/// The chart with a helper and values.
fn chart<'a>(helper: &'a str, values: &'a str) -> Vec<(&'a str, &'a str)> {
    [CHART, &[("templates/_helpers.tpl", helper), ("values.yaml", values)]].concat()
}

/// The values of a version, and more: what the `migration` does, its `migrationVersion` if that is another, and the `ttl`
/// of its Job.
fn values(version: u32, more: &str) -> String {
    let usual = "image: busybox:1\nfeature: {migrationHooks: true}\n";
    let migration = if more.contains("migration:") { "" } else { "migration: echo migrating to $VERSION\n" };
    format!("{usual}{migration}version: \"{version}\"\n{more}")
}

fn expect_deployed(stage: &Stage<'_>, version: &str) -> Result<()> {
    let deployment = stage.find("deployment", &format!("{}-web", stage.namespace()))?.unwrap_or_default();
    let deployed = &deployment["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"];
    ensure!(deployed == version, "the Deployment is at version {deployed}, not {version}");
    Ok(())
}

fn expect_runs(stage: &Stage<'_>, expected: usize) -> Result<()> {
    expect_runs_of(stage, &format!("{}-migrate", stage.namespace()), expected)
}

fn expect_runs_of(stage: &Stage<'_>, job: &str, expected: usize) -> Result<()> {
    let runs = stage.runs(job)?;
    ensure!(runs == expected, "Job/{job} ran {runs} times, not {expected}");
    Ok(())
}

/// Whether what was said holds these, in this order, and maybe more between.
fn expect_in_order(said: &[String], expected: &[impl AsRef<str>]) -> Result<()> {
    let mut rest = said.iter();
    for text in expected {
        let text = text.as_ref();
        ensure!(rest.any(|said| said == text), "`{text}` was not said where it should be, in {said:#?}");
    }
    Ok(())
}
