//! A bundled database: a hook before the sync needs what only the sync brings, and nothing but a hand ends that.

use super::{Application, Automation, Dialect, NEEDS, SOON, SUCCEEDED, UNSUCCESSFUL, expect_in_order, expect_runs_of};
use crate::Test;
use anyhow::{Result, ensure};
use jobwright_e2e::live::Stage;
use serde_json::json;
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    Test { name: "argocd_a_hook_that_needs_the_secret_of_the_database_waits_for_ever", needs: NEEDS, play: secret },
    Test { name: "argocd_a_hook_that_needs_an_account_of_the_sync_waits_for_ever", needs: NEEDS, play: account },
    Test { name: "argocd_a_hook_that_calls_the_database_fails_with_every_retry", needs: NEEDS, play: service },
    Test { name: "argocd_a_deadline_ends_the_wait_of_a_hook", needs: NEEDS, play: deadline },
    Test { name: "argocd_a_secret_that_is_a_hook_too_is_there_in_time", needs: NEEDS, play: secret_as_hook },
];

const WAITING: &str = "waiting for completion of hook batch/Job/mig";

/// The database: a Service and a Deployment of the sync.
fn database(image: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: db}}\nspec: {{selector: {{app: db}}, ports: [{{port: 5432}}]}}\n\
         ---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: db}}\nspec:\n  selector: {{matchLabels: {{app: db}}}}\n  \
         template:\n    metadata: {{labels: {{app: db}}}}\n    spec:\n      terminationGracePeriodSeconds: 0\n      \
         containers: [{{name: c, image: '{image}', command: [sleep, '86400']}}]\n"
    )
}

fn secret_manifest(annotations: &str) -> String {
    format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: db{annotations}}}\nstringData: {{password: secret}}\n")
}

/// A hook before the sync: more of its `spec`, of that of its pods, and its container.
fn hook(spec: &str, pod: &str, container: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: mig\n  annotations: {{argocd.argoproj.io/hook: PreSync}}\n\
         spec:\n{spec}  template:\n    spec:\n      restartPolicy: Never\n{pod}      containers:\n      - name: c\n        \
         {container}\n"
    )
}

const ONCE: &str = "  backoffLimit: 0\n";

fn needs_secret(image: &str) -> String {
    let reference = "valueFrom: {secretKeyRef: {name: db, key: password}}";
    format!(
        "image: {image}\n        command: [sh, -c, 'echo migrating']\n        env: [{{name: PASSWORD, {reference}}}]"
    )
}

fn created(stage: &Stage<'_>) -> String {
    Dialect::of(stage).hook("Job/mig", "Running", "job.batch/mig created")
}

fn secret(stage: &Stage<'_>) -> Result<()> {
    let (database, job) = (database(stage.image()), hook(ONCE, "", &needs_secret(stage.image())));
    let secret = secret_manifest("");
    let files = [("secret.yaml", secret.as_str()), ("database.yaml", &database), ("job.yaml", &job)];
    let application = Application::make(stage, Automation::PruneAndHeal, &files)?;
    let status = application.until_said("Running", WAITING, SOON)?;
    ensure!(application.results(&status) == [created(stage)], "{:?}", application.results(&status));
    ensure!(application.conditions(&status).is_empty(), "{:?}", application.conditions(&status));
    let status = application.until_is("OutOfSync", "Missing")?;
    let resources = application.resources(&status);
    let expected = ["Service/db OutOfSync", "Secret/db OutOfSync", "Deployment/db OutOfSync"];
    ensure!(expected.iter().all(|one| resources.iter().any(|there| there == one)), "{resources:?}");
    let waiting = stage.until("the pod to say why it waits", SOON, || {
        let pods = stage.list("pods")?;
        let waiting = pods.first().map(|pod| pod["status"]["containerStatuses"][0]["state"]["waiting"].clone());
        Ok(waiting.filter(|waiting| waiting["reason"] == "CreateContainerConfigError"))
    })?;
    ensure!(waiting["message"] == "secret \"db\" not found", "the pod waits for {waiting}");
    expect_runs_of(stage, "mig", 0)?;
    // Another commit is seen, and waits for the operation.
    let first = status["sync"]["revision"].clone();
    let more = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n";
    let second = application.commit(&[&files[..], &[("more.yaml", more)]].concat())?;
    application.until("the commit to be seen", SOON, |status| status["sync"]["revision"] == *second)?;
    let status = application.until_said("Running", WAITING, SOON)?;
    ensure!(status["operationState"]["operation"]["sync"]["revision"] == first, "{}", status["operationState"]);
    // Nothing but a Secret by hand ends it; then the other commit runs the hook again.
    let film = application.film()?;
    stage.kubectl(&["create", "secret", "generic", "db", "--from-literal=password=secret"])?;
    application.until_synced(2)?;
    let said: Vec<String> = film.states().iter().flat_map(|state| application.results(&state["status"])).collect();
    let adopted = "Secret/db Synced Running Sync | secret/db configured. Warning: resource secrets/db is missing the \
         kubectl.kubernetes.io/last-applied-configuration annotation which is required by  apply.  apply should only be used \
         on resources created declaratively by either  create --save-config or  apply. The missing annotation will be \
         patched automatically.";
    expect_in_order(&said, &[adopted])?;
    expect_runs_of(stage, "mig", 2)
}

fn account(stage: &Stage<'_>) -> Result<()> {
    let container = format!("image: {}\n        command: [sh, -c, 'echo migrating']", stage.image());
    let job = hook(ONCE, "      serviceAccountName: mig\n", &container);
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: mig}\n";
    let application =
        Application::make(stage, Automation::PruneAndHeal, &[("account.yaml", account), ("job.yaml", &job)])?;
    let status = application.until_said("Running", WAITING, SOON)?;
    ensure!(application.results(&status) == [created(stage)], "{:?}", application.results(&status));
    let refused = "Warning FailedCreate \"Error creating: pods \"mig-\" is forbidden: error looking up service account \
         NS/mig: serviceaccount \"mig\" not found\"";
    stage.until("the Job to say why it waits", SOON, || {
        Ok(stage.events_of("Job", "mig")?.iter().any(|event| event == refused).then_some(()))
    })?;
    ensure!(stage.list("pods")?.is_empty(), "there is a pod");
    // Terminated, nothing starts before the next commit.
    let status = application.terminate()?;
    ensure!(application.message(&status) == "Operation terminated", "{}", status["operationState"]);
    let results = application.results(&status);
    ensure!(results == [Dialect::of(stage).terminated("Job/mig")], "{results:?}");
    let expected = Dialect::of(stage).sync_error("Operation terminated");
    application.until("the Application to say why", SOON, |status| application.conditions(status) == [&*expected])?;
    ensure!(stage.find("job", "mig")?.is_none(), "the Job is still there");
    application.commit(&[("account.yaml", account), ("job.yaml", &job), ("README.md", "hello")])?;
    application.until_said("Running", WAITING, SOON)?;
    stage.kubectl(&["create", "serviceaccount", "mig"])?;
    application.until_synced(1)?;
    expect_runs_of(stage, "mig", 1)
}

fn service(stage: &Stage<'_>) -> Result<()> {
    let container = format!("image: {}\n        command: [sh, -c, 'timeout 5 nc -z db 5432']", stage.image());
    let (database, job) = (database(stage.image()), hook("  backoffLimit: 1\n", "", &container));
    let limit = json!({"retry": {"limit": 2}});
    let files = [("database.yaml", database.as_str()), ("job.yaml", &job)];
    let application = Application::make_with(stage, Automation::PruneAndHeal, &limit, &files)?;
    let film = application.film()?;
    let failed = format!("{UNSUCCESSFUL} (retried 2 times).");
    application.until_said("Failed", &failed, Duration::from_mins(5))?;
    let dialect = Dialect::of(stage);
    let retried: Vec<String> = (1..=2).map(|attempt| dialect.retrying(UNSUCCESSFUL, attempt)).collect();
    expect_in_order(&application.messages(&film), &retried)?;
    let status = application.until_is("OutOfSync", "Missing")?;
    let conditions = application.conditions(&status);
    ensure!(conditions == [dialect.sync_error(&failed)], "{conditions:?}");
    for kind in ["services", "deployments"] {
        ensure!(stage.list(kind)?.is_empty(), "there are {kind}");
    }
    // Two pods for each Job.
    expect_runs_of(stage, "mig", 2 * (1 + dialect.runs_of_retries(2)))
}

fn deadline(stage: &Stage<'_>) -> Result<()> {
    let spec = format!("{ONCE}  activeDeadlineSeconds: 10\n");
    let (secret, job) = (secret_manifest(""), hook(&spec, "", &needs_secret(stage.image())));
    let application = Application::make(stage, Automation::Manual, &[("secret.yaml", &secret), ("job.yaml", &job)])?;
    application.until("the Application to be compared", SOON, |status| status["sync"]["status"] == "OutOfSync")?;
    let status = application.sync()?;
    ensure!(application.message(&status) == UNSUCCESSFUL, "{}", status["operationState"]);
    let late = "Job was active longer than specified deadline";
    let expected = Dialect::of(stage).hook("Job/mig", "Failed", late);
    ensure!(application.results(&status) == [expected], "{:?}", application.results(&status));
    stage.until("the pod to go", SOON, || Ok(stage.list("pods")?.is_empty().then_some(())))?;
    expect_runs_of(stage, "mig", 0)
}

fn secret_as_hook(stage: &Stage<'_>) -> Result<()> {
    let annotations = ", annotations: {argocd.argoproj.io/hook: PreSync, argocd.argoproj.io/sync-wave: '-5'}";
    let (secret, job) = (secret_manifest(annotations), hook(ONCE, "", &needs_secret(stage.image())));
    let database = database(stage.image());
    let files = [("secret.yaml", secret.as_str()), ("job.yaml", &job), ("database.yaml", &database)];
    let application = Application::make(stage, Automation::Automatic, &files)?;
    let status = application.until_synced(1)?;
    let done = Dialect::of(stage).hook("Job/mig", "Succeeded", SUCCEEDED);
    ensure!(application.results(&status).contains(&done), "{:?}", application.results(&status));
    expect_runs_of(stage, "mig", 1)?;
    // It is another Secret after every sync.
    let uid = || stage.find("secret", "db").map(|secret| secret.unwrap_or_default()["metadata"]["uid"].clone());
    let before = uid()?;
    application.sync()?;
    ensure!(uid()? != before, "the Secret is the same");
    expect_runs_of(stage, "mig", 2)
}
