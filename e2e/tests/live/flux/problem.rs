//! Why it loops: the waiter of Helm 3 asks for a Job that its TTL has removed while a pod is not ready yet.

use super::{
    LATER, NEEDS, Release, SOON, attempts_exceeded, ends_of_actions, install_failed, installed, rollback_failed,
    rolled_back, upgrade_failed, upgraded,
};
use crate::Test;
use anyhow::{Result, ensure};
use jobwright_e2e::live::Stage;
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    Test { name: "flux_poller_does_not_miss_a_job_that_its_ttl_removed", needs: NEEDS, play: poller },
    Test { name: "flux_legacy_install_fails_is_uninstalled_and_fails_again", needs: NEEDS, play: install },
    Test { name: "flux_legacy_upgrade_and_rollback_fail_in_turn", needs: NEEDS, play: turns },
    Test { name: "flux_legacy_upgrade_fails_and_rollback_succeeds_in_turn", needs: NEEDS, play: quick_rollback },
    Test { name: "flux_legacy_upgrade_fails_once_without_remediation", needs: NEEDS, play: without_remediation },
];

/// How long twelve revisions of half a minute may take.
const TWELVE_REVISIONS: Duration = Duration::from_mins(12);

fn not_found(job: &str) -> String {
    format!("jobs.batch \"{job}\" not found")
}

fn values(version: &str, ready: u32) -> Value {
    json!({"ready": ready, "ttl": 3, "version": version})
}

fn poller(stage: &Stage<'_>) -> Result<()> {
    let upgrade = json!({"remediation": {"retries": 3, "strategy": "rollback"}});
    let more = json!({"install": {"remediation": {"retries": 1}}, "upgrade": upgrade});
    let release = Release::of(stage, "poll", more)?;
    release.apply(&values("1", 20))?;
    let film = release.film()?;
    release.expect("Released", &installed("poll"), SOON)?;
    release.apply(&values("2", 20))?;
    release.expect("Released", &upgraded("poll", 2), SOON)?;
    ensure!(stage.find("job", "poll-migrations")?.is_none(), "the wait ended before the TTL");
    ensure!(ends_of_actions(&film) == [installed("poll"), upgraded("poll", 2)], "{:?}", ends_of_actions(&film));
    ensure!(film.ends_of("Remediated").is_empty(), "{:?}", film.ends_of("Remediated"));
    ensure!(release.history()? == ["deployed", "superseded"], "{:?}", release.history()?);
    release.expect_runs(2)
}

fn install(stage: &Stage<'_>) -> Result<()> {
    let more = json!({"waitStrategy": {"name": "legacy"}, "install": {"remediation": {"retries": 1}}});
    let release = Release::of(stage, "legin", more)?;
    release.apply(&values("1", 20))?;
    let film = release.film()?;
    let failed = install_failed("legin", &not_found("legin-migrations"));
    release.expect("Ready", &failed, SOON)?;
    let uninstalled = "Helm uninstall remediation for release NS/legin.v1 with chart mig@0.1.0 succeeded";
    release.expect("Remediated", &format!("True UninstallSucceeded \"{uninstalled}\""), SOON)?;
    release.expect("Stalled", &attempts_exceeded("install", 2), LATER)?;
    // What was uninstalled is installed once more, and left as it is.
    ensure!(ends_of_actions(&film) == [failed.clone(), failed], "{:?}", ends_of_actions(&film));
    let told = stage.events_of("HelmRelease", "legin")?;
    let count = |reason: &str| told.iter().filter(|event| event.split(' ').nth(1) == Some(reason)).count();
    ensure!(count("UninstallSucceeded") == 1, "{told:?}");
    ensure!(told.iter().any(|event| event.contains("not found\n\nLast Helm logs:\n\n")), "{told:?}");
    let uninstalled = |entry: &Value| entry["status"] == "uninstalling" && entry["action"] == "uninstall-remediation";
    let histories = film.values_of("history");
    ensure!(histories.iter().any(|history| uninstalled(&history[0])), "{histories:?}");
    let status = release.status()?;
    ensure!(status["installFailures"] == 2, "{status}");
    ensure!(
        film.values_of("observedGeneration") == [json!(-1), json!(1)],
        "{:?}",
        film.values_of("observedGeneration")
    );
    release.expect_runs(2)
}

fn turns(stage: &Stage<'_>) -> Result<()> {
    let more = json!({
        "waitStrategy": {"name": "legacy"},
        "install": {"disableWaitForJobs": true},
        "upgrade": {"remediation": {"retries": 3, "strategy": "rollback"}},
    });
    let release = Release::of(stage, "loop", more)?;
    release.apply(&values("1", 20))?;
    release.expect("Ready", &installed("loop"), SOON)?;
    let film = release.film()?;
    release.apply(&values("2", 20))?;
    release.expect("Stalled", &attempts_exceeded("upgrade", 4), TWELVE_REVISIONS)?;
    let not_found = not_found("loop-migrations");
    let failed = upgrade_failed("loop", &not_found);
    let mut expected = vec![installed("loop")];
    for target in [1, 4, 7, 10] {
        expected.push(failed.clone());
        expected.push(rollback_failed("loop", target, &format!("release loop failed: {not_found}")));
        // The second rollback finds the Deployment where it should be, and passes.
        expected.push(rolled_back("False", "loop", target));
    }
    // The last failure is remediated only once.
    expected.pop();
    let said = ends_of_actions(&film);
    ensure!(said == expected, "it said {said:#?}, not {expected:#?}");
    let failures = film.values_of("upgradeFailures");
    ensure!(failures == [Value::Null, json!(1), json!(2), json!(3), json!(4)], "{failures:?}");
    let status = release.status()?;
    ensure!(status["failures"] == 8, "failed rollbacks are counted too, but: {status}");
    release.expect_runs(12)
}

fn quick_rollback(stage: &Stage<'_>) -> Result<()> {
    let more = json!({
        "waitStrategy": {"name": "legacy"},
        "upgrade": {"remediation": {"retries": 1, "strategy": "rollback"}},
    });
    let release = Release::of(stage, "fast", more)?;
    release.apply(&values("1", 0))?;
    release.expect("Ready", &installed("fast"), SOON)?;
    let film = release.film()?;
    release.apply(&values("2", 20))?;
    release.expect("Stalled", &attempts_exceeded("upgrade", 2), LATER)?;
    let failed = upgrade_failed("fast", &not_found("fast-migrations"));
    let (first, second) = (rolled_back("False", "fast", 1), rolled_back("False", "fast", 3));
    let expected = [installed("fast"), failed.clone(), first, failed, second];
    let said = ends_of_actions(&film);
    ensure!(said == expected, "it said {said:#?}, not {expected:#?}");
    let revisions = release.revisions()?;
    ensure!(revisions == ["1 superseded", "2 failed", "3 superseded", "4 failed", "5 deployed"], "{revisions:?}");
    release.expect_runs(5)
}

fn without_remediation(stage: &Stage<'_>) -> Result<()> {
    let release = Release::of(stage, "once", json!({"waitStrategy": {"name": "legacy"}}))?;
    release.apply(&values("1", 0))?;
    release.expect("Ready", &installed("once"), SOON)?;
    release.apply(&values("2", 20))?;
    release.expect("Stalled", &attempts_exceeded("upgrade", 1), SOON)?;
    release.expect("Ready", &upgrade_failed("once", &not_found("once-migrations")), SOON)?;
    ensure!(release.history()? == ["failed", "deployed"], "{:?}", release.history()?);
    let deployment = stage.find("deployment", "once-web")?.unwrap_or_default();
    let version = &deployment["spec"]["template"]["metadata"]["annotations"]["version"];
    ensure!(version == "2", "the Deployment is at version {version}");
    release.expect_runs(2)
}
