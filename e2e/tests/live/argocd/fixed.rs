//! The fixed helper: a hook on installs and upgrades alike, kept until the next, after its account.

use super::{
    ALL_POLICIES, ALL_RUN, Application, Automation, Dialect, FIXED, NEEDS, SOON, SUCCEEDED, UNSUCCESSFUL, chart,
    expect_deployed, expect_in_order, expect_runs, values,
};
use crate::Test;
use anyhow::{Result, ensure};
use jobwright_e2e::live::Stage;
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    Test { name: "argocd_the_fixed_helper_runs_the_migration_before_every_sync", needs: NEEDS, play: every_sync },
    Test { name: "argocd_a_change_of_the_hook_alone_runs_nothing", needs: NEEDS, play: hook_alone },
    Test { name: "argocd_a_ttl_removes_the_hook_and_healing_does_not_run_it", needs: NEEDS, play: ttl },
    Test { name: "argocd_an_application_without_finalizer_leaves_everything", needs: NEEDS, play: without_finalizer },
    Test { name: "argocd_all_delete_policies_leave_no_logs", needs: NEEDS, play: all_policies },
];

/// How long is looked whether something does not happen, which would take a moment.
const A_WHILE: Duration = Duration::from_secs(15);

/// How a sync with the hooks ends.
fn hooks(stage: &Stage<'_>, deployment: &str) -> Vec<String> {
    let dialect = Dialect::of(stage);
    vec![
        dialect.hook("ServiceAccount/NS-migrate", "Succeeded", "NS-migrate created"),
        dialect.hook("Job/NS-migrate", "Succeeded", SUCCEEDED),
        format!("Deployment/NS-web Synced Running Sync | deployment.apps/NS-web {deployment}"),
    ]
}

fn every_sync(stage: &Stage<'_>) -> Result<()> {
    let job = format!("{}-migrate", stage.namespace());
    let application = Application::make(stage, Automation::PruneAndHeal, &chart(FIXED, &values(1, "")))?;
    let film = application.film()?;
    let status = application.until_synced(1)?;
    let dialect = Dialect::of(stage);
    let account = dialect.waiting("/ServiceAccount/NS-migrate", 2);
    let migration = dialect.waiting("batch/Job/NS-migrate", 1);
    expect_in_order(&application.messages(&film), &[&account, &migration, ALL_RUN])?;
    let results = application.results(&status);
    ensure!(results == hooks(stage, "created"), "{results:#?}");
    let status = application.until_is("Synced", "Healthy")?;
    let resources = application.resources(&status);
    ensure!(resources.iter().any(|one| one == "Job/NS-migrate hook requiresPruning"), "{resources:?}");
    expect_runs(stage, 1)?;

    let film = application.film()?;
    let status = application.sync()?;
    let deletions =
        ["/ServiceAccount", "batch/Job"].map(|kind| format!("waiting for deletion of hook {kind}/NS-migrate"));
    let waiting: &[&str] = match dialect {
        Dialect::Argocd2 => &[&account, &migration, ALL_RUN],
        Dialect::Argocd3 => &[&deletions[0], &account, &deletions[1], &migration, ALL_RUN],
    };
    expect_in_order(&application.messages(&film), waiting)?;
    let results = application.results(&status);
    ensure!(results == hooks(stage, "unchanged"), "{results:#?}");
    expect_runs(stage, 2)?;

    application.commit(&chart(FIXED, &values(2, "")))?;
    let status = application.until_synced(3)?;
    let results = application.results(&status);
    ensure!(results == hooks(stage, "configured"), "{results:#?}");
    expect_deployed(stage, "2")?;
    expect_runs(stage, 3)?;
    // The Job and its logs stay.
    let logs = stage.kubectl(&["logs", &format!("job/{job}")])?;
    ensure!(logs.trim() == "migrating to 2", "it said `{logs}`");

    // Deleted with what it made, nothing is left.
    application.kubectl("delete", &["--timeout=60s"])?;
    for kind in ["jobs", "pods", "deployments"] {
        stage.until(&format!("{kind} to be gone"), SOON, || Ok(stage.list(kind)?.is_empty().then_some(())))?;
    }
    ensure!(stage.find("serviceaccount", &job)?.is_none(), "the account is still there");
    Ok(())
}

fn hook_alone(stage: &Stage<'_>) -> Result<()> {
    let application = Application::make(stage, Automation::PruneAndHeal, &chart(FIXED, &values(1, "")))?;
    let before = application.until_synced(1)?;
    let revision = application.commit(&chart(FIXED, &values(1, "migrationVersion: \"2\"\n")))?;
    let status =
        application.until("the new commit to be seen", SOON, |status| status["sync"]["revision"] == *revision)?;
    ensure!(status["sync"]["status"] == "Synced", "{}", status["sync"]);
    std::thread::sleep(A_WHILE);
    let after = application.status()?;
    ensure!(after["history"] == before["history"], "{}", after["history"]);
    expect_runs(stage, 1)
}

fn ttl(stage: &Stage<'_>) -> Result<()> {
    let (job, web) = (format!("{}-migrate", stage.namespace()), format!("{}-web", stage.namespace()));
    let application = Application::make(stage, Automation::PruneAndHeal, &chart(FIXED, &values(1, "ttl: 15\n")))?;
    application.until_synced(1)?;
    stage.until("the TTL to remove the Job", SOON, || Ok(stage.find("job", &job)?.is_none().then_some(())))?;
    application.until_is("Synced", "Healthy")?;
    ensure!(stage.find("serviceaccount", &job)?.is_some(), "the account has gone too");
    stage.kubectl(&["scale", "deployment", &web, "--replicas=2"])?;
    stage.until("the Deployment to be healed", SOON, || {
        let deployment = stage.find("deployment", &web)?.unwrap_or_default();
        Ok((deployment["spec"]["replicas"] == 1).then_some(()))
    })?;
    let status = application.until_is("Synced", "Healthy")?;
    let results = application.results(&status);
    ensure!(results.len() == 1 && results[0].starts_with("Deployment/NS-web Synced"), "{results:?}");
    expect_runs(stage, 1)?;
    application.kubectl("delete", &["--timeout=60s"])?;
    ensure!(stage.find("serviceaccount", &job)?.is_none(), "the account is still there");
    Ok(())
}

fn without_finalizer(stage: &Stage<'_>) -> Result<()> {
    let job = format!("{}-migrate", stage.namespace());
    let application = Application::make(stage, Automation::PruneAndHeal, &chart(FIXED, &values(1, "")))?;
    application.until_synced(1)?;
    application.kubectl("patch", &["--type=merge", "--patch", r#"{"metadata": {"finalizers": null}}"#])?;
    application.kubectl("delete", &["--timeout=60s"])?;
    std::thread::sleep(Duration::from_secs(5));
    let kinds = [("job", &job), ("serviceaccount", &job), ("deployment", &format!("{}-web", stage.namespace()))];
    for (kind, name) in kinds {
        ensure!(stage.find(kind, name)?.is_some(), "{kind}/{name} has gone");
    }
    Ok(())
}

/// However it ends, the Job and its pod go at once.
fn all_policies(stage: &Stage<'_>) -> Result<()> {
    let job = format!("{}-migrate", stage.namespace());
    let failing = values(1, "migration: exit 1\n");
    let application = Application::make(stage, Automation::Manual, &chart(ALL_POLICIES, &failing))?;
    application.until("the Application to be compared", SOON, |status| status["sync"]["status"] == "OutOfSync")?;
    let status = application.sync()?;
    ensure!(application.message(&status) == UNSUCCESSFUL, "{}", status["operationState"]);
    for expected in [UNSUCCESSFUL, ALL_RUN] {
        stage.until("the Job to go", SOON, || Ok(stage.find("job", &job)?.is_none().then_some(())))?;
        stage.until("its pod to go", SOON, || {
            let pods = stage.list("pods")?;
            let of_job = pods.iter().filter(|pod| pod["metadata"]["labels"]["job-name"] == job.as_str()).count();
            Ok((of_job == 0).then_some(()))
        })?;
        if expected == UNSUCCESSFUL {
            let revision = application.commit(&chart(ALL_POLICIES, &values(1, "")))?;
            application.until("the new commit to be seen", SOON, |status| status["sync"]["revision"] == *revision)?;
            let status = application.sync()?;
            ensure!(application.message(&status) == ALL_RUN, "{}", status["operationState"]);
        }
    }
    expect_runs(stage, 2)
}
