//! A whole release on drydock: components as manifests, and jobs that are pods.

use crate::usage::Usage;
use anyhow::{Context as _, Result, anyhow, ensure};
use jobwright_drydock::Drydock;
use jobwright_engine::{Clock, DeployOutcome, Events, Settings};
use jobwright_release::{Deployment, Driver, PlanFile};
use kube::Client;
use std::fmt::Write as _;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// What a first deploy of so many components with so many jobs each takes; or, if `again`, one where nothing changed.
pub(crate) async fn measure(components: usize, jobs: usize, again: bool) -> Result<Usage> {
    let directory = tempfile::tempdir()?;
    let file = write(directory.path(), components, jobs)?;
    // A node takes a hundred pods.
    let nodes = u32::try_from(1 + components * (jobs + 1) / 100)?;
    let drydock = Drydock::builder().nodes(nodes).build();
    if again {
        deploy(&file, &drydock).await?;
    }
    let before = drydock.witness().len();
    let usage = Usage::of(deploy(&file, &drydock)).await?;
    let started = drydock.witness().len() - before;
    let expected = if again { 0 } else { components * (jobs + 1) };
    ensure!(started == expected, "{started} containers started, not {expected}");
    Ok(usage)
}

async fn deploy(file: &PlanFile, drydock: &Drydock) -> Result<()> {
    let clock = drydock.clone();
    let deployment = Deployment {
        file,
        client: Client::new(drydock.clone(), "default"),
        clock: Clock::new(move || clock.now()),
        helm: None,
        driver: Driver::Secrets,
        host: "bench".to_owned(),
        settings: Settings { parallel: 8, ..Settings::default() },
        redeploy: false,
        force: false,
        unlock: false,
        environment: jobwright_release::Environment::default(),
        dialling: jobwright_release::Dialling::Not("nobody serves".to_owned()),
    };
    let report = deployment.deploy(CancellationToken::new(), Events::nowhere()).await?;
    ensure!(report.outcome == DeployOutcome::Succeeded, "{report:?}");
    Ok(())
}

/// Writes a plan with its manifests.
fn write(directory: &Path, components: usize, jobs: usize) -> Result<PlanFile> {
    let mut plan = String::from(
        "apiVersion: jobwright.io/v1alpha1\nkind: Plan\nrelease: {name: shop, namespace: default, version: 1.4.0}\n",
    );
    let mut work = String::new();
    plan.push_str("components:\n");
    for component in 0..components {
        let name = format!("part-{component}");
        std::fs::write(directory.join(format!("{name}.yaml")), manifest(&name))?;
        writeln!(plan, "- {{name: {name}, manifests: {{path: {name}.yaml}}}}")?;
        for number in 0..jobs {
            let phase = if number % 2 == 0 { "pre" } else { "post" };
            writeln!(
                work,
                "- {{id: {name}-{number}, component: {name}, phase: {phase}, retires: {{never: measured}}, pod: {{template: \
                 {{spec: {{containers: [{{name: m, image: shop/api, command: [sh, -c, \"echo {number}\"]}}]}}}}}}}}"
            )?;
        }
    }
    plan.push_str("jobs:\n");
    plan.push_str(&work);
    let path = directory.join("jobwright.yaml");
    PlanFile::parse(&path, &plan).map_err(|findings| anyhow!("{findings}")).context("the plan is wrong")
}

fn manifest(name: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  selector: {{matchLabels: {{app: {name}}}}}\n  \
         template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec: {{containers: [{{name: c, image: shop/api}}]}}\n"
    )
}
