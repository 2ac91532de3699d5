//! A Job from our own image runs without root and without anything writable; its logs are read; its TTL removes it.

use crate::Test;
use anyhow::{Result, ensure};
use jobwright_e2e::image::build::JOBWRIGHT;
use jobwright_e2e::live::{Need, Stage};
use serde_json::json;
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[Test {
    name: "a_job_from_our_own_image_runs_and_its_ttl_removes_it",
    needs: &[Need::Containers, Need::Image(JOBWRIGHT)],
    play: own_image,
}];

const LIMIT: Duration = Duration::from_mins(1);

fn own_image(stage: &Stage<'_>) -> Result<()> {
    stage.apply(&json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "version", "namespace": stage.namespace()},
        "spec": {
            "backoffLimit": 0,
            "template": {"spec": {
                "restartPolicy": "Never",
                "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [{
                    "name": "c",
                    "image": JOBWRIGHT.image,
                    "imagePullPolicy": "Never",
                    "args": ["--version"],
                    "securityContext": {
                        "allowPrivilegeEscalation": false,
                        "readOnlyRootFilesystem": true,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }],
            }},
        },
    }))?;
    stage.until_condition("job", "version", "Complete", "True", LIMIT)?;
    let logs = stage.kubectl(&["logs", "job/version"])?;
    ensure!(logs.trim() == concat!("jobwright ", env!("CARGO_PKG_VERSION")), "it said `{logs}`");
    ensure!(stage.list("pods")?.len() == 1, "it has run more than once");
    // A TTL that has passed already removes it at once, and its pod with it.
    stage.kubectl(&["patch", "job", "version", "--patch", r#"{"spec": {"ttlSecondsAfterFinished": 0}}"#])?;
    stage.until("the TTL to remove the Job", LIMIT, || Ok(stage.find("job", "version")?.is_none().then_some(())))?;
    stage.until("its pod to go too", LIMIT, || Ok(stage.list("pods")?.is_empty().then_some(())))?;
    Ok(())
}
