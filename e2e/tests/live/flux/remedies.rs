//! Settings of Flux that help against the loop, and one that does not.

use super::{
    NEEDS, Release, SOON, ends_of_actions, install_failed, installed, rollback_failed, rolled_back, upgrade_failed,
    upgraded,
};
use crate::Test;
use anyhow::{Result, ensure};
use jobwright_e2e::live::Stage;
use serde_json::json;
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    Test { name: "flux_retry_on_failure_passes_at_the_second_try", needs: NEEDS, play: retry },
    Test { name: "flux_retry_on_failure_ignores_the_limit_of_retries", needs: NEEDS, play: retry_for_ever },
    Test { name: "flux_not_waiting_for_jobs_helps_the_action_that_says_so", needs: NEEDS, play: not_waiting },
    Test { name: "flux_rollback_of_pods_that_never_were_ready_passes_at_once", needs: NEEDS, play: never_ready },
    Test { name: "flux_legacy_misses_a_job_with_the_revision_in_its_name_too", needs: NEEDS, play: revisioned },
];

fn retry(stage: &Stage<'_>) -> Result<()> {
    let upgrade = json!({"strategy": {"name": "RetryOnFailure", "retryInterval": "15s"}});
    let release = Release::of(stage, "again", json!({"waitStrategy": {"name": "legacy"}, "upgrade": upgrade}))?;
    release.apply(&json!({"ttl": 3}))?;
    release.expect("Ready", &installed("again"), SOON)?;
    let film = release.film()?;
    release.apply(&json!({"ttl": 3, "ready": 20, "version": "2"}))?;
    release.expect("Ready", &upgraded("again", 3), SOON)?;
    let failed = upgrade_failed("again", "jobs.batch \"again-migrations\" not found");
    let expected = [installed("again"), failed, upgraded("again", 3)];
    ensure!(ends_of_actions(&film) == expected, "{:?}", ends_of_actions(&film));
    let progress = film.ends_of("Reconciling");
    ensure!(progress.iter().any(|said| said == "True ProgressingWithRetry \"retrying after 15s\""), "{progress:?}");
    release.expect_runs(3)
}

fn retry_for_ever(stage: &Stage<'_>) -> Result<()> {
    let strategy = json!({"name": "RetryOnFailure", "retryInterval": "15s"});
    let upgrade = json!({"strategy": strategy, "remediation": {"retries": 1}});
    let release = Release::of(stage, "ever", json!({"upgrade": upgrade}))?;
    release.apply(&json!({}))?;
    release.expect("Ready", &installed("ever"), SOON)?;
    let film = release.film()?;
    release.apply(&json!({"version": "2", "hook": {"event": "pre-upgrade", "command": "exit 1"}}))?;
    stage.until("the fifth upgrade", Duration::from_mins(4), || {
        let failed = ends_of_actions(&film).iter().filter(|said| said.starts_with("False UpgradeFailed")).count();
        Ok((failed >= 5).then_some(()))
    })?;
    ensure!(film.ends_of("Remediated").is_empty(), "{:?}", film.ends_of("Remediated"));
    ensure!(film.ends_of("Stalled").is_empty(), "{:?}", film.ends_of("Stalled"));
    Ok(())
}

/// The setting is that of an action: without it, the rollback misses the Job.
fn not_waiting(stage: &Stage<'_>) -> Result<()> {
    let more = json!({
        "waitStrategy": {"name": "legacy"},
        "install": {"disableWaitForJobs": true},
        "upgrade": {"disableWaitForJobs": true, "remediation": {"retries": 1, "strategy": "rollback"}},
    });
    let release = Release::of(stage, "nowait", more)?;
    release.apply(&json!({"ttl": 3, "ready": 20}))?;
    release.expect("Ready", &installed("nowait"), SOON)?;
    release.apply(&json!({"ttl": 3, "ready": 20, "version": "2"}))?;
    release.expect("Ready", &upgraded("nowait", 2), SOON)?;
    release.expect_runs(2)?;
    let hook = json!({"event": "post-upgrade", "command": "exit 1"});
    release.apply(&json!({"ttl": 3, "ready": 20, "version": "3", "hook": hook}))?;
    let why = "post-upgrade hooks failed: job nowait-hook failed: BackoffLimitExceeded";
    release.expect("Released", &upgrade_failed("nowait", why), SOON)?;
    let why = "release nowait failed: jobs.batch \"nowait-migrations\" not found";
    release.expect("Remediated", &rollback_failed("nowait", 2, why), SOON)
}

/// The old pod was kept while the new one was not ready.
fn never_ready(stage: &Stage<'_>) -> Result<()> {
    let more = json!({
        "waitStrategy": {"name": "legacy"},
        "upgrade": {"timeout": "15s", "remediation": {"retries": 1, "strategy": "rollback"}},
    });
    let release = Release::of(stage, "never", more)?;
    release.apply(&json!({"ttl": 3}))?;
    release.expect("Ready", &installed("never"), SOON)?;
    release.apply(&json!({"ttl": 3, "ready": 3600, "version": "2"}))?;
    release.expect("Released", &upgrade_failed("never", "context deadline exceeded"), SOON)?;
    release.expect("Remediated", &rolled_back("True", "never", 1), Duration::from_secs(30))
}

fn revisioned(stage: &Stage<'_>) -> Result<()> {
    let release = Release::of(stage, "uniq", json!({"waitStrategy": {"name": "legacy"}}))?;
    release.apply(&json!({"ttl": 3, "ready": 20, "revisioned": true}))?;
    release.expect("Ready", &install_failed("uniq", "jobs.batch \"uniq-migrations-1\" not found"), SOON)
}
