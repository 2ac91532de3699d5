//! What detection of drift makes of a Job that its TTL removed.

use super::{NEEDS, Release, SOON, ends, installed};
use crate::Test;
use anyhow::{Result, ensure};
use jobwright_e2e::live::Stage;
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    Test { name: "flux_drift_is_not_looked_for_unless_asked", needs: NEEDS, play: disabled },
    Test { name: "flux_drift_of_a_job_with_a_ttl_is_warned_of", needs: NEEDS, play: warned },
    Test { name: "flux_drift_of_a_job_with_a_ttl_is_corrected_in_every_pass", needs: NEEDS, play: corrected },
    Test { name: "flux_drift_of_a_job_with_a_ttl_of_0_is_corrected_by_the_install", needs: NEEDS, play: at_once },
    Test { name: "flux_drift_of_a_job_is_ignored_by_kind_or_by_annotation", needs: NEEDS, play: ignored },
    Test { name: "flux_drift_of_the_template_of_a_job_is_an_error", needs: NEEDS, play: other_template },
];

/// Time for two passes and what they take.
const TWO_PASSES: Duration = Duration::from_secs(50);

const IN_SYNC: &str = "False NoDriftDetected \"No drift detected against the cluster state\"";

fn release<'a>(stage: &'a Stage<'a>, name: &'static str, detection: Value, values: &Value) -> Result<Release<'a>> {
    let release = Release::of(stage, name, json!({"driftDetection": detection}))?;
    release.apply(values)?;
    release.expect("Ready", &installed(name), SOON)?;
    Ok(release)
}

fn drifted(name: &str) -> String {
    let what = format!("Cluster state of release NS/{name}.v1 has drifted from the desired state:");
    format!("{what}\nJob/NS/{name}-migrations removed")
}

fn disabled(stage: &Stage<'_>) -> Result<()> {
    let release = release(stage, "off", json!({"mode": "disabled"}), &json!({"ttl": 3}))?;
    std::thread::sleep(TWO_PASSES);
    ensure!(stage.find("job", "off-migrations")?.is_none(), "the TTL has not passed");
    release.expect_runs(1)
}

fn warned(stage: &Stage<'_>) -> Result<()> {
    let release = release(stage, "warn", json!({"mode": "warn"}), &json!({"ttl": 3}))?;
    release.expect("Drifted", &format!("True DriftDetected \"{}\"", drifted("warn")), SOON)?;
    let told = stage.events_of("HelmRelease", "warn")?;
    ensure!(told.contains(&format!("Warning DriftDetected \"{}\"", drifted("warn"))), "{told:?}");
    std::thread::sleep(TWO_PASSES);
    release.expect("Ready", &installed("warn"), SOON)?;
    release.expect_runs(1)
}

fn corrected(stage: &Stage<'_>) -> Result<()> {
    let release = release(stage, "mend", json!({"mode": "enabled"}), &json!({"ttl": 3}))?;
    stage.until(
        "the fourth run",
        Duration::from_mins(3),
        || Ok((stage.runs("mend-migrations")? >= 4).then_some(())),
    )?;
    let told = stage.events_of("HelmRelease", "mend")?;
    ensure!(told.contains(&format!("Warning DriftDetected \"{}\"", drifted("mend"))), "{told:?}");
    let corrected = "Cluster state of release NS/mend.v1 has been corrected:\nJob/NS/mend-migrations created";
    ensure!(told.contains(&format!("Normal DriftCorrected \"{corrected}\"")), "{told:?}");
    ensure!(release.revisions()? == ["1 deployed"], "{:?}", release.revisions()?);
    release.expect("Ready", &installed("mend"), SOON)
}

fn at_once(stage: &Stage<'_>) -> Result<()> {
    let release = Release::of(stage, "zero", json!({"driftDetection": {"mode": "enabled"}}))?;
    release.apply(&json!({"ttl": 0}))?;
    release.expect("Ready", &installed("zero"), SOON)?;
    stage
        .until("the second run", Duration::from_secs(15), || Ok((stage.runs("zero-migrations")? >= 2).then_some(())))?;
    stage.until(
        "the fourth run",
        Duration::from_mins(2),
        || Ok((stage.runs("zero-migrations")? >= 4).then_some(())),
    )?;
    Ok(())
}

fn ignored(stage: &Stage<'_>) -> Result<()> {
    let rule = json!([{"paths": [""], "target": {"kind": "Job"}}]);
    let release = release(stage, "skip", json!({"mode": "enabled", "ignore": rule}), &json!({"ttl": 3}))?;
    let annotation = json!({"helm.toolkit.fluxcd.io/driftDetection": "disabled"});
    let other = release.beside("mark", json!({"driftDetection": {"mode": "enabled"}}));
    other.apply(&json!({"ttl": 3, "jobAnnotations": annotation}))?;
    other.expect("Ready", &installed("mark"), SOON)?;
    std::thread::sleep(TWO_PASSES);
    for release in [&release, &other] {
        release.expect("Drifted", IN_SYNC, SOON)?;
        release.expect_runs(1)?;
    }
    Ok(())
}

fn other_template(stage: &Stage<'_>) -> Result<()> {
    let release = release(stage, "swap", json!({"mode": "enabled"}), &json!({}))?;
    let mut job = stage.find("job", "swap-migrations")?.unwrap_or_default();
    let spec = json!({
        "backoffLimit": 0,
        "template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": stage.image(), "command": ["sh", "-c", "sleep 1"]}],
        }},
    });
    job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "swap-migrations",
            "namespace": stage.namespace(),
            "labels": job["metadata"]["labels"],
            "annotations": job["metadata"]["annotations"],
        },
        "spec": spec,
    });
    stage.kubectl(&["delete", "job", "swap-migrations"])?;
    stage.apply(&job)?;
    let said = release.until("Ready", "False StateError", SOON)?;
    let start = "False StateError \"Could not determine release state: unable to determine cluster state: \
         Job/NS/swap-migrations dry-run failed (Invalid): Job.batch \"swap-migrations\" is invalid: spec.template: Invalid \
         value: ";
    ends(&said, start, ": field is immutable\"")
}
