//! The old helper: a hook on upgrades only, which Argo CD never sees, because to it everything is an install.

use super::{
    ALL_RUN, Application, Automation, Dialect, FIVE_RETRIES, FIXED, IMMUTABLE, NEEDS, OLD, SOON, chart,
    expect_deployed, expect_in_order, expect_runs, values,
};
use crate::Test;
use anyhow::{Result, ensure};
use jobwright_e2e::live::Stage;
use serde_json::Value;
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    Test { name: "argocd_the_old_helper_makes_a_plain_job_that_cannot_change", needs: NEEDS, play: plain },
    Test { name: "argocd_from_the_old_helper_to_the_fixed_one_and_back", needs: NEEDS, play: there_and_back },
];

/// How long is looked whether something does not happen, which would take a moment.
const A_WHILE: Duration = Duration::from_secs(12);

fn plain(stage: &Stage<'_>) -> Result<()> {
    let release = stage.namespace();
    let (job, web) = (format!("{release}-migrate"), format!("{release}-web"));
    let application = Application::make(stage, Automation::PruneAndHeal, &chart(OLD, &values(1, "")))?;
    let status = application.until_synced(1)?;
    let created = [
        "ServiceAccount/NS-migrate Synced Running Sync | serviceaccount/NS-migrate created",
        "Deployment/NS-web Synced Running Sync | deployment.apps/NS-web created",
        "Job/NS-migrate Synced Running Sync | job.batch/NS-migrate created",
    ];
    expect_results(&application, &status, &created)?;
    application.until_is("Synced", "Healthy")?;
    stage.until_condition("job", &job, "Complete", "True", SOON)?;
    expect_runs(stage, 1)?;

    let film = application.film()?;
    application.commit(&chart(OLD, &values(2, "")))?;
    let dialect = Dialect::of(stage);
    let failed = format!("{}, reason: {IMMUTABLE}", dialect.partly_applied());
    let status = application.until_said("Failed", &format!("{failed} (retried 5 times)."), FIVE_RETRIES)?;
    let said = application.messages(&film);
    let mut expected = Vec::new();
    for attempt in 1..=5 {
        expected.push(dialect.retrying(&failed, attempt));
        if dialect == Dialect::Argocd3 {
            expected.push(format!("Retrying operation. Attempt #{attempt}"));
        }
    }
    expect_in_order(&said, &expected)?;
    ensure!(status["operationState"]["retryCount"] == 5, "{}", status["operationState"]);
    let applied = dialect.applied();
    let results = [
        format!("ServiceAccount/NS-migrate Synced {applied} Sync | serviceaccount/NS-migrate unchanged"),
        format!("Deployment/NS-web Synced {applied} Sync | deployment.apps/NS-web unchanged"),
        format!("Job/NS-migrate SyncFailed Failed Sync | {IMMUTABLE}"),
    ];
    expect_results(&application, &status, &results)?;
    // The new version is there without its migration.
    expect_deployed(stage, "2")?;
    expect_runs(stage, 1)?;
    let status = application.until_is("OutOfSync", "Healthy")?;
    let expected = ["ServiceAccount/NS-migrate Synced", "Deployment/NS-web Synced", "Job/NS-migrate OutOfSync"];
    expect_same(application.resources(&status), &expected)?;
    let expected = dialect.sync_error(&format!("{failed} (retried 5 times)."));
    expect_same(application.conditions(&status), &[expected])?;
    ensure!(status["history"].as_array().map(Vec::len) == Some(1), "{}", status["history"]);

    // Nothing heals it any more.
    stage.kubectl(&["scale", "deployment", &web, "--replicas=2"])?;
    stage.kubectl(&["delete", "job", &job])?;
    application.refresh()?;
    std::thread::sleep(A_WHILE);
    let replicas = stage.find("deployment", &web)?.unwrap_or_default()["spec"]["replicas"].clone();
    ensure!(replicas == 2 && stage.find("job", &job)?.is_none(), "it was healed");
    let status = application.sync()?;
    ensure!(application.message(&status) == ALL_RUN, "{}", status["operationState"]);
    let results = application.results(&status);
    let created = "Job/NS-migrate Synced Running Sync | job.batch/NS-migrate created";
    let configured = "Deployment/NS-web Synced Running Sync | deployment.apps/NS-web configured";
    ensure!(results.iter().any(|one| one == created) && results.iter().any(|one| one == configured), "{results:#?}");
    stage.until_condition("job", &job, "Complete", "True", SOON)?;
    expect_runs(stage, 2)
}

/// It is not the second sync that fails but the first with a changed template; and a hook that has become a plain Job
/// fails without a word.
fn there_and_back(stage: &Stage<'_>) -> Result<()> {
    let job = format!("{}-migrate", stage.namespace());
    let off = values(1, "").replace("true", "false");
    let application = Application::make(stage, Automation::Automatic, &chart(OLD, &off))?;
    application.until_synced(1)?;
    stage.until_condition("job", &job, "Complete", "True", SOON)?;
    let status = application.sync()?;
    let unchanged = [
        "ServiceAccount/NS-migrate Synced Running Sync | serviceaccount/NS-migrate unchanged",
        "Deployment/NS-web Synced Running Sync | deployment.apps/NS-web unchanged",
        "Job/NS-migrate Synced Running Sync | job.batch/NS-migrate unchanged",
    ];
    expect_results(&application, &status, &unchanged)?;
    expect_runs(stage, 1)?;

    // The old Job makes way for the hook, and the account with it.
    application.commit(&chart(FIXED, &values(2, "")))?;
    let status = application.until_synced(3)?;
    let dialect = Dialect::of(stage);
    let results = application.results(&status);
    ensure!(results.contains(&dialect.hook("Job/NS-migrate", "Succeeded", super::SUCCEEDED)), "{results:#?}");
    application.until_is("Synced", "Healthy")?;
    expect_deployed(stage, "2")?;
    expect_runs(stage, 2)?;

    application.commit(&chart(OLD, &values(3, "")))?;
    let failed = format!("{}, reason: {IMMUTABLE}", dialect.partly_applied());
    application.until_said("Running", &dialect.retrying(&failed, 1), SOON)?;
    expect_deployed(stage, "3")?;
    expect_runs(stage, 2)?;
    // The Job that is there says that it is a hook, so it is not compared.
    let status = application.until_is("Synced", "Healthy")?;
    expect_same(application.conditions(&status), &[""; 0])?;
    let resources = application.resources(&status);
    ensure!(resources.iter().any(|one| one == "Job/NS-migrate hook"), "{resources:?}");
    Ok(())
}

fn expect_results(application: &Application<'_>, status: &Value, expected: &[impl AsRef<str>]) -> Result<()> {
    expect_same(application.results(status), expected)
}

fn expect_same(said: Vec<String>, expected: &[impl AsRef<str>]) -> Result<()> {
    let expected: Vec<&str> = expected.iter().map(AsRef::as_ref).collect();
    ensure!(said == expected, "{said:#?} instead of {expected:#?}");
    Ok(())
}
