//! The agent's chart under Flux: each of its jobs runs once for every change, however often Flux looks.

use super::{LATER, NEEDS, RELEASE, source};
use crate::Test;
use crate::agent::{CHART, Mode, values};
use crate::release_hooks::files;
use anyhow::{Result, ensure};
use jobwright_e2e::image::build::{AGENT, JOBWRIGHT};
use jobwright_e2e::live::{Need, Stage};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// Three passes of 20 seconds, and some time for each.
const THREE_PASSES: Duration = Duration::from_secs(75);

const NEEDS_IMAGES: &[Need] = &[NEEDS[0], NEEDS[1], Need::Image(JOBWRIGHT), Need::Image(AGENT)];

pub(crate) const TESTS: &[Test] = &[
    Test { name: "flux_agent_hooks_run_once_for_every_change", needs: NEEDS_IMAGES, play: |s| once(s, Mode::Hook) },
    Test {
        name: "flux_agent_plain_jobs_run_once_for_every_change",
        needs: NEEDS_IMAGES,
        play: |s| once(s, Mode::Plain),
    },
];

fn release(stage: &Stage<'_>, values: &Value) -> Value {
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": "agent", "namespace": stage.namespace()},
        "spec": {
            "interval": "20s",
            "timeout": "5m",
            "chart": {"spec": {"chart": "agent", "sourceRef": {"kind": "GitRepository", "name": "git"}}},
            "driftDetection": {"mode": "enabled"},
            "values": values,
        },
    })
}

fn once(stage: &Stage<'_>, mode: Mode) -> Result<()> {
    let chart = files(Path::new(CHART), "agent/")?;
    let chart: Vec<(&str, &str)> = chart.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let _repository = source(stage, &chart)?;
    let mut values = values(stage.namespace(), mode);
    if mode == Mode::Plain {
        // What heals makes a Job again that has gone.
        for job in ["initCertJob", "initBackfillJob"] {
            values[job]["ttlSecondsAfterFinished"] = Value::Null;
        }
    }
    // As hooks, the certificate is made by two Jobs.
    let stages = if mode == Mode::Hook { 2 } else { 1 };
    let expect = |changes: usize| -> Result<()> {
        for (job, expected) in [("agent-init-cert-", stages * changes), ("agent-backfill-", changes)] {
            let runs = stage.runs_like(job)?;
            ensure!(runs == expected, "{job}… ran {runs} times, not {expected}, after {changes} changes");
        }
        Ok(())
    };
    stage.apply(&release(stage, &values))?;
    stage.until_condition(RELEASE, "agent", "Ready", "True InstallSucceeded", LATER)?;
    std::thread::sleep(THREE_PASSES);
    expect(1)?;
    let next = JOBWRIGHT.next();
    let tag = next.rsplit_once(':').map_or("", |(_, tag)| tag);
    for job in ["initCertJob", "initBackfillJob"] {
        values[job]["image"]["tag"] = json!(tag);
    }
    stage.apply(&release(stage, &values))?;
    stage.until_condition(RELEASE, "agent", "Ready", "True UpgradeSucceeded", LATER)?;
    std::thread::sleep(THREE_PASSES);
    expect(2)?;
    let ready = stage.condition(RELEASE, "agent", "Ready")?.unwrap_or_default();
    ensure!(ready.starts_with("True"), "{ready}");
    Ok(())
}
