//! The agent's chart under Argo CD: as it is, and with the annotations that documents of such charts give.

use super::{Application, Automation, NEEDS, OWN_VALUES, SOON};
use crate::Test;
use crate::agent::{Agent, CHART, Mode, values};
use crate::release_hooks::files;
use anyhow::{Result, ensure};
use jobwright_e2e::image::build::{AGENT, JOBWRIGHT};
use jobwright_e2e::live::{Need, Stage};
use jobwright_e2e::version::HelmVersion;
use serde_json::{Value, json};
use std::path::Path;

const NEEDS_IMAGES: &[Need] = &[NEEDS[0], NEEDS[1], Need::Image(JOBWRIGHT), Need::Image(AGENT)];

pub(crate) const TESTS: &[Test] = &[
    Test { name: "argocd_agent_hooks_are_in_sync_and_the_webhook_is_asked", needs: NEEDS_IMAGES, play: hooks },
    Test {
        name: "argocd_agent_documented_annotations_work_and_cost_the_jobs_logs",
        needs: NEEDS_IMAGES,
        play: documented,
    },
];

fn make<'a>(stage: &'a Stage<'a>, values: &Value) -> Result<Application<'a>> {
    let mut files = files(Path::new(CHART), "")?;
    files.push((OWN_VALUES.to_owned(), values.to_string()));
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    Application::make(stage, Automation::PruneAndHeal, &files)
}

/// How often a job has run. Argo CD calls a release as the Application, which here is so long that names are cut.
fn runs(stage: &Stage<'_>, job: &str) -> Result<usize> {
    Ok(stage.runs_like(&format!("{}-{job}", stage.namespace()))?)
}

fn expect_asked(stage: &Stage<'_>, mode: Mode) -> Result<()> {
    Agent { stage, helm: HelmVersion::V3_17_3, mode }.expect_asked()
}

fn hooks(stage: &Stage<'_>) -> Result<()> {
    let application = make(stage, &values(stage.namespace(), Mode::Hook))?;
    let status = application.until_synced(1)?;
    let results = application.results(&status).join("\n");
    for (job, phase) in [("init-cert-hook", "PreSync"), ("init-cert-in", "PostSync"), ("backfill-hook", "PostSync")] {
        let is_there = results.lines().any(|line| line.contains(&format!("Job/NS-{job}")) && line.contains(phase));
        ensure!(is_there, "{job} was not run in {phase}:\n{results}");
    }
    application.until_is("Synced", "Healthy")?;
    ensure!(runs(stage, "init-c")? == 2 && runs(stage, "backf")? == 1, "the jobs did not run once");
    expect_asked(stage, Mode::Hook)
}

fn documented(stage: &Stage<'_>) -> Result<()> {
    let annotations = json!({
        "argocd.argoproj.io/hook": "PostSync",
        "argocd.argoproj.io/hook-delete-policy": "HookSucceeded",
    });
    let mut values = values(stage.namespace(), Mode::Plain);
    for job in ["initCertJob", "initBackfillJob"] {
        values[job]["annotations"] = annotations.clone();
    }
    let application = make(stage, &values)?;
    application.until_synced(1)?;
    application.until_is("Synced", "Healthy")?;
    expect_asked(stage, Mode::Plain)?;
    ensure!(runs(stage, "init-c")? == 1 && runs(stage, "backf")? == 1, "the jobs did not run once");
    stage.until("the Jobs to be gone", SOON, || Ok(stage.list("jobs")?.is_empty().then_some(())))?;
    Ok(())
}
