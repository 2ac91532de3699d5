//! Every Helm installs a chart with a Job and waits for it.

use crate::Test;
use anyhow::{Result, ensure};
use jobwright_e2e::cluster::Deployer;
use jobwright_e2e::live::{Need, Stage};
use jobwright_e2e::version::HelmVersion;

const HELM_3: &[Need] = &[Need::Deployer(&[Deployer::Helm3])];
const HELM_4: &[Need] = &[Need::Deployer(&[Deployer::Helm4])];

pub(crate) const TESTS: &[Test] = &[
    Test { name: "helm_3_17_3_waits_for_a_job", needs: HELM_3, play: |stage| waits(stage, HelmVersion::V3_17_3) },
    Test { name: "helm_3_22_0_waits_for_a_job", needs: HELM_3, play: |stage| waits(stage, HelmVersion::V3_22_0) },
    Test { name: "helm_4_3_1_waits_for_a_job", needs: HELM_4, play: |stage| waits(stage, HelmVersion::V4_3_1) },
];

fn waits(stage: &Stage<'_>, version: HelmVersion) -> Result<()> {
    let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/charts/mig");
    let image = format!("image={}", stage.image());
    stage.helm(version, &["install", "r", chart, "--set", &image, "--wait", "--wait-for-jobs", "--timeout=60s"])?;
    let said = stage.condition("job", "r-migrations", "Complete")?.unwrap_or_default();
    ensure!(said.starts_with("True"), "Helm did not wait for the Job: {said}");
    let listed = stage.helm(version, &["list", "--short", "--deployed"])?;
    ensure!(listed.trim() == "r", "the release is not deployed: `{listed}`");
    Ok(())
}
