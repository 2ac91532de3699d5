//! The library chart `release-hooks` under Argo CD, by the example that uses it.

use super::{ALL_RUN, Application, Automation, NEEDS, OWN_VALUES, SOON, expect_runs_of};
use crate::Test;
use crate::release_hooks::{CHART, files};
use anyhow::{Context as _, Result, ensure};
use jobwright_e2e::live::Stage;
use std::path::Path;

pub(crate) const TESTS: &[Test] = &[
    Test { name: "argocd_release_hooks_run_before_every_sync_and_when_they_alone_change", needs: NEEDS, play: hook },
    Test { name: "argocd_release_hooks_plain_jobs_run_when_they_change", needs: NEEDS, play: plain },
    Test { name: "argocd_release_hooks_wait_for_a_bundled_database", needs: NEEDS, play: bundled },
    Test { name: "argocd_release_hooks_a_missing_secret_ends_at_the_deadline", needs: NEEDS, play: deadline },
];

/// The chart with values over its own.
fn commit_of(stage: &Stage<'_>, values: &str) -> Result<Vec<(String, String)>> {
    let mut files = files(Path::new(CHART), "")?;
    files.push((OWN_VALUES.to_owned(), format!("image: '{}'\n{values}", stage.image())));
    Ok(files)
}

fn borrow(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect()
}

fn make<'a>(stage: &'a Stage<'a>, automation: Automation, values: &str) -> Result<Application<'a>> {
    Application::make(stage, automation, &borrow(&commit_of(stage, values)?))
}

fn commit(stage: &Stage<'_>, application: &Application<'_>, values: &str) -> Result<()> {
    application.commit(&borrow(&commit_of(stage, values)?)).map(drop)
}

fn hook(stage: &Stage<'_>) -> Result<()> {
    let job = format!("{}-migrate-hook", stage.namespace());
    let application = make(stage, Automation::PruneAndHeal, "")?;
    let status = application.until_synced(1)?;
    let results = application.results(&status).join("\n");
    ensure!(results.contains("Job/NS-migrate-hook") && results.contains("PreSync [PreSync]"), "{results}");
    application.until_is("Synced", "Healthy")?;
    expect_runs_of(stage, &job, 1)?;
    let first = stage.find("job", &job)?.context("the Job stays")?["metadata"]["uid"].clone();

    let status = application.sync()?;
    ensure!(application.message(&status) == ALL_RUN, "{}", status["operationState"]);
    expect_runs_of(stage, &job, 2)?;
    let second = stage.find("job", &job)?.context("the Job stays")?["metadata"]["uid"].clone();
    ensure!(first != second, "the Job was not made anew");

    // Nothing but the migration changes, and it runs: the ConfigMap beside it tells Argo CD.
    commit(stage, &application, "migrate: sleep 2\n")?;
    application.until_synced(3)?;
    expect_runs_of(stage, &job, 3)?;
    application.until_is("Synced", "Healthy")?;

    application.kubectl("delete", &["--timeout=60s"])?;
    for kind in ["jobs", "pods", "deployments"] {
        stage.until(&format!("{kind} to be gone"), SOON, || Ok(stage.list(kind)?.is_empty().then_some(())))?;
    }
    Ok(())
}

fn plain(stage: &Stage<'_>) -> Result<()> {
    let start = format!("{}-migrate-", stage.namespace());
    let runs = |expected: usize| -> Result<()> {
        let runs = stage.runs_like(&start)?;
        ensure!(runs == expected, "it ran {runs} times, not {expected}");
        Ok(())
    };
    let mode = "releaseHooks: {mode: plain}\n";
    let application = make(stage, Automation::PruneAndHeal, mode)?;
    application.until_synced(1)?;
    application.until_is("Synced", "Healthy")?;
    runs(1)?;
    let status = application.sync()?;
    ensure!(application.message(&status) == ALL_RUN, "{}", status["operationState"]);
    runs(1)?;
    commit(stage, &application, &format!("{mode}schema: 2\n"))?;
    application.until_synced(3)?;
    application.until_is("Synced", "Healthy")?;
    runs(2)?;
    ensure!(stage.list("jobs")?.len() == 1, "the Job of the last version is still there");
    Ok(())
}

fn bundled(stage: &Stage<'_>) -> Result<()> {
    let values = format!("releaseHooks: {{database: bundled, waitFor: {{image: '{}'}}}}\n", stage.image());
    let application = make(stage, Automation::PruneAndHeal, &values)?;
    application.until_synced(1)?;
    application.until_is("Synced", "Healthy")?;
    let jobs = stage.list("jobs")?;
    ensure!(jobs.len() == 1 && jobs[0]["status"]["succeeded"] == 1, "{jobs:#?}");
    Ok(())
}

fn deadline(stage: &Stage<'_>) -> Result<()> {
    let values = "releaseHooks: {deadlineSeconds: 10}\ndatabase: {migration: {secret: nobody-has-it}}\n";
    let application = make(stage, Automation::Manual, values)?;
    application.until("the Application to be compared", SOON, |status| status["sync"]["status"] == "OutOfSync")?;
    let status = application.sync()?;
    let results = application.results(&status).join("\n");
    ensure!(results.contains("Job was active longer than specified deadline"), "{results}");
    expect_runs_of(stage, &format!("{}-migrate-hook", stage.namespace()), 0)
}
