//! The story of a migration Job whose helper makes it a hook only on upgrades, under Argo CD: the old helper, the fixed
//! one, and a hook that needs what the same chart brings later.

use crate::Test;
use anyhow::{Result, ensure};
use jobwright_e2e::cluster::Deployer;
use jobwright_e2e::live::{Need, Repository, Stage};
use serde_json::{Value, json};
use std::time::Duration;

const NEEDS: &[Need] = &[Need::Containers, Need::Deployer(&[Deployer::Argocd, Deployer::Argocd2])];

pub(crate) const TESTS: &[Test] = &[
    Test { name: "argocd_the_old_helper_makes_a_plain_job_that_cannot_change", needs: NEEDS, play: old_helper },
    Test { name: "argocd_the_fixed_helper_runs_the_migration_before_every_change", needs: NEEDS, play: fixed_helper },
    Test { name: "argocd_a_hook_that_needs_the_bundled_database_waits_for_ever", needs: NEEDS, play: bundled_database },
];

const CHART: &[(&str, &str)] = &[
    ("Chart.yaml", include_str!("charts/core/Chart.yaml")),
    ("values.yaml", include_str!("charts/core/values.yaml")),
    ("templates/all.yaml", include_str!("charts/core/templates/all.yaml")),
];
const OLD: &str = include_str!("charts/core/old.tpl");
const FIXED: &str = include_str!("charts/core/fixed.tpl");

const SOON: Duration = Duration::from_secs(90);

/// What Argo CD 3 says of an operation that failed to apply something, and Argo CD 2.
fn unsuccessful(stage: &Stage<'_>) -> &'static str {
    if stage.live().has(Deployer::Argocd2) {
        "one or more objects failed to apply"
    } else {
        "one or more synchronization tasks completed unsuccessfully"
    }
}

/// The status of a hook that was created: Argo CD 2 gives it none.
fn hook_status(stage: &Stage<'_>) -> &'static str {
    if stage.live().has(Deployer::Argocd2) { "" } else { "Synced" }
}

const ALL_RUN: &str = "successfully synced (all tasks run)";

/// An Application that follows a repository. Dropping it deletes it.
struct Application<'a> {
    stage: &'a Stage<'a>,
    repository: Repository,
}

impl<'a> Application<'a> {
    fn make(stage: &'a Stage<'a>, files: &[(&str, &str)]) -> Result<Self> {
        let repository = stage.live().repository(stage.namespace())?;
        repository.commit(files)?;
        let source = json!({"repoURL": repository.url(), "path": ".", "targetRevision": "main"});
        stage.apply(&json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": stage.namespace(), "namespace": "argocd"},
            "spec": {
                "project": "default",
                "source": source,
                "destination": {"server": "https://kubernetes.default.svc", "namespace": stage.namespace()},
                "syncPolicy": {"automated": {"prune": true, "selfHeal": true}},
            },
        }))?;
        Ok(Self { stage, repository })
    }

    /// Commits, and asks for a look at it.
    fn commit(&self, files: &[(&str, &str)]) -> Result<()> {
        self.repository.commit(files)?;
        let annotation = "argocd.argoproj.io/refresh=normal";
        let words =
            ["annotate", "application", self.stage.namespace(), "--namespace=argocd", "--overwrite", annotation];
        self.stage.kubectl(&words)?;
        Ok(())
    }

    fn status(&self) -> Result<Value> {
        let words = ["get", "application", self.stage.namespace(), "--namespace=argocd", "--output=json"];
        let object: Value = serde_json::from_str(&self.stage.kubectl(&words)?)?;
        Ok(object["status"].clone())
    }

    /// Waits until the operation says this, and returns the state of the Application.
    fn until(&self, what: &str, reached: impl Fn(&str, &str, &Value) -> bool) -> Result<Value> {
        Ok(self.stage.until(what, SOON, || {
            let status = self.status().unwrap_or_default();
            let text = |field: &str| status["operationState"][field].as_str().unwrap_or_default().to_owned();
            Ok(reached(&text("phase"), &text("message"), &status).then_some(status))
        })?)
    }

    /// Waits until the newest commit is in the cluster.
    fn until_synced(&self, revisions: usize) -> Result<Value> {
        self.until(&format!("{revisions} revisions to be synced"), |phase, message, status| {
            let synced = status["history"].as_array().map_or(0, Vec::len);
            phase == "Succeeded" && message == ALL_RUN && synced == revisions
        })
    }
}

impl Drop for Application<'_> {
    fn drop(&mut self) {
        let name = self.stage.namespace();
        // It ends with the cluster anyway.
        let _ = self.stage.kubectl(&["delete", "application", name, "--namespace=argocd", "--wait=false"]);
    }
}

/// How the operation ended for an object: `status hookPhase syncPhase | message`.
fn result(status: &Value, kind: &str, name: &str) -> String {
    let resources = status["operationState"]["syncResult"]["resources"].as_array().cloned().unwrap_or_default();
    let found = resources.into_iter().find(|one| one["kind"] == kind && one["name"] == name).unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    format!("{} {} {} | {}", text("status"), text("hookPhase"), text("syncPhase"), text("message"))
}

fn chart(helper: &'static str, values: &'static str) -> Vec<(&'static str, &'static str)> {
    let mut files: Vec<(&str, &str)> = CHART.iter().copied().filter(|(path, _)| *path != "values.yaml").collect();
    files.extend([("templates/_helpers.tpl", helper), ("values.yaml", values)]);
    files
}

const VALUES_1: &str = include_str!("charts/core/values.yaml");
const VALUES_2: &str = "image: busybox:1\nversion: \"2\"\nfeature: {migrationHooks: true}\n";

fn deployed_version(stage: &Stage<'_>, name: &str) -> Result<Value> {
    let deployment = stage.find("deployment", name)?.unwrap_or_default();
    Ok(deployment["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"].clone())
}

fn old_helper(stage: &Stage<'_>) -> Result<()> {
    let release = stage.namespace();
    let job = format!("{release}-migrate");
    let application = Application::make(stage, &chart(OLD, VALUES_1))?;
    let status = application.until_synced(1)?;
    // To Argo CD everything is an install: the Job is no hook.
    let said = result(&status, "Job", &job);
    ensure!(said == format!("Synced Running Sync | job.batch/{job} created"), "{said}");
    stage.until_condition("job", &job, "Complete", "True", SOON)?;
    ensure!(stage.runs(&job)? == 1, "the migration did not run once");

    application.commit(&chart(OLD, VALUES_2))?;
    let status =
        application.until("the sync to be tried again", |_, message, _| message.contains("Retrying attempt #1"))?;
    let message = status["operationState"]["message"].as_str().unwrap_or_default();
    let start = format!("{}, reason: error when patching \"/dev/shm/", unsuccessful(stage));
    ensure!(message.starts_with(&start), "{message}");
    ensure!(message.contains(&format!("Job.batch \"{job}\" is invalid: spec.template: Invalid value: ")), "{message}");
    ensure!(message.contains("field is immutable"), "{message}");
    // The new version is there without its migration.
    ensure!(deployed_version(stage, &format!("{release}-web"))? == "2", "the Deployment was not changed");
    ensure!(stage.runs(&job)? == 1, "the migration ran again");
    Ok(())
}

fn fixed_helper(stage: &Stage<'_>) -> Result<()> {
    let release = stage.namespace();
    let job = format!("{release}-migrate");
    let application = Application::make(stage, &chart(FIXED, VALUES_1))?;
    let status = application.until_synced(1)?;
    let created = hook_status(stage);
    let said = result(&status, "ServiceAccount", &job);
    ensure!(said == format!("{created} Succeeded PreSync | {job} created"), "{said}");
    let said = result(&status, "Job", &job);
    ensure!(said == format!("{created} Succeeded PreSync | Reached expected number of succeeded pods"), "{said}");
    ensure!(stage.runs(&job)? == 1, "the migration did not run once");

    application.commit(&chart(FIXED, VALUES_2))?;
    application.until_synced(2)?;
    ensure!(deployed_version(stage, &format!("{release}-web"))? == "2", "the Deployment was not changed");
    let runs = stage.runs(&job)?;
    ensure!(runs == 2, "the migration ran {runs} times");
    // The Job and its logs stay.
    let logs = stage.kubectl(&["logs", &format!("job/{job}")])?;
    ensure!(logs.trim() == "migrating to 2", "it said `{logs}`");
    Ok(())
}

fn bundled_database(stage: &Stage<'_>) -> Result<()> {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: secret}\n";
    let job = format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: mig\n  annotations: {{argocd.argoproj.io/hook: PreSync}}\n\
         spec:\n  backoffLimit: 0\n  template:\n    spec:\n      restartPolicy: Never\n      containers:\n      - name: c\n        \
         image: {}\n        command: [sh, -c, 'echo migrating']\n        env:\n        - name: PASSWORD\n          \
         valueFrom: {{secretKeyRef: {{name: db, key: password}}}}\n",
        stage.image()
    );
    let application = Application::make(stage, &[("secret.yaml", secret), ("job.yaml", &job)])?;
    let waiting = "waiting for completion of hook batch/Job/mig";
    let status =
        application.until("the hook to be waited for", |phase, message, _| phase == "Running" && message == waiting)?;
    let said = result(&status, "Job", "mig");
    ensure!(said == format!("{} Running PreSync | job.batch/mig created", hook_status(stage)), "{said}");
    // To Argo CD 2 an object without a health of its own is not missed.
    let health = if stage.live().has(Deployer::Argocd2) { "Healthy" } else { "Missing" };
    ensure!(status["health"]["status"] == health, "health is {}", status["health"]);
    let reason = stage.until("the pod to say why it waits", SOON, || {
        let pods = stage.list("pods")?;
        let waiting = pods.first().map(|pod| pod["status"]["containerStatuses"][0]["state"]["waiting"].clone());
        Ok(waiting.filter(|waiting| waiting["reason"] == "CreateContainerConfigError"))
    })?;
    ensure!(reason["message"] == "secret \"db\" not found", "the pod waits for {reason}");
    ensure!(stage.find("secret", "db")?.is_none(), "the Secret came before the hook");
    // Nothing but a Secret by hand ends it.
    stage.kubectl(&["create", "secret", "generic", "db", "--from-literal=password=secret"])?;
    application.until_synced(1)?;
    ensure!(stage.runs("mig")? == 1, "the migration did not run once");
    Ok(())
}
