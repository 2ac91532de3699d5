//! The fixed helper with a migration that fails: five retries, all of them of the same commit.

use super::{
    ALL_RUN, Application, Automation, BACKOFF, Dialect, FIVE_RETRIES, FIXED, NEEDS, SOON, UNSUCCESSFUL, chart,
    expect_deployed, expect_in_order, expect_runs, values,
};
use crate::Test;
use anyhow::{Result, ensure};
use jobwright_e2e::live::Stage;
use serde_json::json;

pub(crate) const TESTS: &[Test] = &[
    Test { name: "argocd_a_failing_migration_runs_six_times_and_keeps_the_last_logs", needs: NEEDS, play: six_times },
    Test { name: "argocd_a_fix_waits_for_the_retries_of_what_it_fixes", needs: NEEDS, play: fix_waits },
];

const FAILING: &str = "migration: echo cannot migrate; exit 1\n";

fn six_times(stage: &Stage<'_>) -> Result<()> {
    let job = format!("{}-migrate", stage.namespace());
    let application = Application::make(stage, Automation::PruneAndHeal, &chart(FIXED, &values(1, "")))?;
    application.until_synced(1)?;
    let film = application.film()?;
    application.commit(&chart(FIXED, &values(2, FAILING)))?;
    let status = application.until_said("Failed", &format!("{UNSUCCESSFUL} (retried 5 times)."), FIVE_RETRIES)?;
    let dialect = Dialect::of(stage);
    let expected: Vec<String> = (1..=5).map(|attempt| dialect.retrying(UNSUCCESSFUL, attempt)).collect();
    expect_in_order(&application.messages(&film), &expected)?;
    let results = application.results(&status);
    ensure!(results.contains(&dialect.hook("Job/NS-migrate", "Failed", BACKOFF)), "{results:#?}");
    ensure!(!results.iter().any(|one| one.starts_with("Deployment/")), "{results:#?}");
    // The old pods run on.
    expect_deployed(stage, "1")?;
    let status = application.until_is("OutOfSync", "Healthy")?;
    let conditions = application.conditions(&status);
    let expected = dialect.sync_error(&format!("{UNSUCCESSFUL} (retried 5 times)."));
    ensure!(conditions == [expected], "{conditions:#?}");
    expect_runs(stage, 2 + dialect.runs_of_retries(5))?;
    // Of all attempts one pod is left.
    let pods = stage.list("pods")?;
    let of_job: Vec<_> = pods.iter().filter(|pod| pod["metadata"]["labels"]["job-name"] == job.as_str()).collect();
    ensure!(of_job.len() == 1, "{} pods are left", of_job.len());
    let logs = stage.kubectl(&["logs", &format!("job/{job}")])?;
    ensure!(logs.trim() == "cannot migrate", "it said `{logs}`");
    Ok(())
}

fn fix_waits(stage: &Stage<'_>) -> Result<()> {
    let limit = json!({"retry": {"limit": 3}});
    let files = values(1, FAILING);
    let application = Application::make_with(stage, Automation::PruneAndHeal, &limit, &chart(FIXED, &files))?;
    let film = application.film()?;
    let dialect = Dialect::of(stage);
    application.until_said("Running", &dialect.retrying(UNSUCCESSFUL, 1), SOON)?;
    let fix = application.commit(&chart(FIXED, &values(1, "")))?;
    application.until("the fix to be seen", SOON, |status| status["sync"]["revision"] == *fix)?;
    let status = application.until("the fix to be synced", FIVE_RETRIES, |status| {
        status["operationState"]["phase"] == "Succeeded" && status["operationState"]["message"] == ALL_RUN
    })?;
    ensure!(status["operationState"]["syncResult"]["revision"] == *fix, "{}", status["operationState"]);
    let retried: Vec<String> = (1..=3).map(|attempt| dialect.retrying(UNSUCCESSFUL, attempt)).collect();
    expect_in_order(&application.messages(&film), &retried)?;
    expect_runs(stage, 2 + dialect.runs_of_retries(3))
}
