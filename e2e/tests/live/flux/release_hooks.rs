//! The library chart `release-hooks` under Flux, by the example that uses it: a migration runs once for every change, as a
//! hook and as a plain Job, however often Flux looks; and the tree that a story of three failed attempts should have had.

use super::{KUSTOMIZATION, LATER, NEEDS, RELEASE, SOON, kustomization, source};
use crate::Test;
use crate::release_hooks::{CHART, files};
use anyhow::{Result, ensure};
use jobwright_e2e::live::{Repository, Stage};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    Test {
        name: "flux_release_hooks_a_hook_runs_once_for_every_change",
        needs: NEEDS,
        play: |stage| once(stage, "hook"),
    },
    Test {
        name: "flux_release_hooks_a_plain_job_runs_once_for_every_change",
        needs: NEEDS,
        play: |stage| once(stage, "plain"),
    },
    Test { name: "flux_release_hooks_the_better_tree_migrates_before_it_rolls_out", needs: NEEDS, play: tree },
];

/// Three passes of 20 seconds, and some time for each.
const THREE_PASSES: Duration = Duration::from_secs(75);

/// A repository with the chart and other files.
fn commit(repository: &Repository, more: &[(&str, &str)]) -> Result<()> {
    let chart = files(Path::new(CHART), "migration/")?;
    let mut all: Vec<(&str, &str)> = chart.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    all.extend(more);
    repository.commit(&all)?;
    Ok(())
}

fn release(stage: &Stage<'_>, values: &Value) -> Value {
    let source = json!({"kind": "GitRepository", "name": "git"});
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": "shop", "namespace": stage.namespace()},
        "spec": {
            "interval": "20s",
            "timeout": "5m",
            "chart": {"spec": {"chart": "migration", "sourceRef": source}},
            "driftDetection": {"mode": "enabled"},
            "values": values,
        },
    })
}

fn expect_runs(stage: &Stage<'_>, expected: usize, when: &str) -> Result<()> {
    let runs = stage.runs_like("shop-migrate-")?;
    ensure!(runs == expected, "{when}: it ran {runs} times, not {expected}");
    Ok(())
}

fn once(stage: &Stage<'_>, mode: &str) -> Result<()> {
    let repository = source(stage, &[("readme", "soon")])?;
    commit(&repository, &[])?;
    // A hook that has gone by its TTL is nothing that Flux would miss.
    let settings = json!({"mode": mode, "ttlSecondsAfterFinished": 3});
    let values = |schema: &str| json!({"image": stage.image(), "schema": schema, "releaseHooks": settings});
    stage.apply(&release(stage, &values("1")))?;
    stage.until_condition(RELEASE, "shop", "Ready", "True InstallSucceeded", SOON)?;
    std::thread::sleep(THREE_PASSES);
    expect_runs(stage, 1, "after three passes")?;
    stage.apply(&release(stage, &values("2")))?;
    stage.until_condition(RELEASE, "shop", "Ready", "True UpgradeSucceeded", SOON)?;
    std::thread::sleep(THREE_PASSES);
    expect_runs(stage, 2, "after a change and three passes")?;
    let ready = stage.condition(RELEASE, "shop", "Ready")?.unwrap_or_default();
    ensure!(ready.starts_with("True"), "{ready}");
    Ok(())
}

/// The database's Secret in a Kustomization, and a release that depends on it in another. Nothing stands in two places:
/// the image of the migration is that of the application, and it runs before the application is rolled out.
fn tree(stage: &Stage<'_>) -> Result<()> {
    let repository = source(stage, &[("readme", "soon")])?;
    let secret =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: openhands-postgresql}\nstringData: {password: secret}\n";
    let database = json!({"migration": {"secret": "openhands-postgresql"}});
    let state = |schema: &str, migrate: &str| -> Result<()> {
        let values = json!({"image": stage.image(), "schema": schema, "migrate": migrate, "database": database});
        let release = release(stage, &values).to_string();
        commit(&repository, &[("app/release.yaml", &release), ("db/secret.yaml", secret)])
    };
    state("1", "sleep 2")?;
    kustomization(stage, "app", &json!({"dependsOn": [{"name": "db"}], "wait": true, "timeout": "3m"}))?;
    kustomization(stage, "db", &json!({}))?;
    stage.until_condition(KUSTOMIZATION, "app", "Ready", "True ReconciliationSucceeded", LATER)?;
    expect_runs(stage, 1, "at first")?;
    std::thread::sleep(THREE_PASSES);
    expect_runs(stage, 1, "after three passes")?;

    state("2", "sleep 2")?;
    stage.until("the second version to serve", LATER, || {
        let serving = stage.kubectl(&["logs", "deployment/shop"])?;
        Ok((serving.trim() == "serving with schema 2").then_some(()))
    })?;
    expect_runs(stage, 2, "after a change")?;

    // A migration that fails keeps the application where it was.
    state("3", "exit 3")?;
    stage.until_condition(RELEASE, "shop", "Released", "False UpgradeFailed", LATER)?;
    let serving = stage.kubectl(&["logs", "deployment/shop"])?;
    ensure!(serving.trim() == "serving with schema 2", "{serving}");
    Ok(())
}
