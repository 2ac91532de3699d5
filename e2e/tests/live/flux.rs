//! The story of a migration Job in a chart under Flux: why it loops, three attempts that fail, what works, and what
//! that still leaves.

use crate::Test;
use anyhow::{Result, ensure};
use jobwright_e2e::cluster::Deployer;
use jobwright_e2e::live::{Need, Repository, Stage};
use serde_json::{Value, json};
use std::time::Duration;

const NEEDS: &[Need] = &[Need::Containers, Need::Deployer(&[Deployer::Flux])];

pub(crate) const TESTS: &[Test] = &[
    Test { name: "flux_upgrade_and_rollback_fail_in_turn_when_the_ttl_beats_the_wait", needs: NEEDS, play: turns },
    Test { name: "flux_attempt_1_hooks_on_the_pod_are_an_immutable_change", needs: NEEDS, play: attempt_1 },
    Test { name: "flux_attempt_2_values_are_not_templates", needs: NEEDS, play: attempt_2 },
    Test { name: "flux_attempt_3_a_job_before_its_secret_waits", needs: NEEDS, play: attempt_3 },
    Test { name: "flux_the_final_solution_works_until_the_image_changes", needs: NEEDS, play: final_solution },
];

const RELEASE: &str = "helmreleases.helm.toolkit.fluxcd.io";
const KUSTOMIZATION: &str = "kustomizations.kustomize.toolkit.fluxcd.io";

const CHART: &[(&str, &str)] = &[
    ("mig/Chart.yaml", include_str!("charts/mig/Chart.yaml")),
    ("mig/values.yaml", include_str!("charts/mig/values.yaml")),
    ("mig/templates/all.yaml", include_str!("charts/mig/templates/all.yaml")),
];

const SOON: Duration = Duration::from_secs(90);
const LATER: Duration = Duration::from_mins(6);

/// Serves files from a repository that Flux watches.
fn source(stage: &Stage<'_>, files: &[(&str, &str)]) -> Result<Repository> {
    let repository = stage.live().repository(stage.namespace())?;
    repository.commit(files)?;
    stage.apply(&json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "GitRepository",
        "metadata": {"name": "git", "namespace": stage.namespace()},
        "spec": {"interval": "5s", "url": repository.url(), "ref": {"branch": "main"}},
    }))?;
    Ok(repository)
}

fn release(stage: &Stage<'_>, name: &str, values: &Value, more: &Value) -> Result<()> {
    let mut object = json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": name, "namespace": stage.namespace()},
        "spec": {
            "interval": "20s",
            "timeout": "60s",
            "chart": {"spec": {"chart": "mig", "sourceRef": {"kind": "GitRepository", "name": "git"}}},
            "values": values,
        },
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    Ok(stage.apply(&object)?)
}

fn kustomization(stage: &Stage<'_>, name: &str, more: &Value) -> Result<()> {
    let mut object = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": name, "namespace": stage.namespace()},
        "spec": {
            "interval": "30s",
            "retryInterval": "5s",
            "timeout": "20s",
            "path": format!("./{name}"),
            "prune": true,
            "wait": true,
            "targetNamespace": stage.namespace(),
            "sourceRef": {"kind": "GitRepository", "name": "git"},
        },
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    Ok(stage.apply(&object)?)
}

fn ends(said: &str, start: &str, end: &str) -> Result<()> {
    ensure!(said.starts_with(start) && said.ends_with(end), "it said `{said}`, not `{start}…{end}`");
    Ok(())
}

/// The waiter of Helm 3 asks for a Job that its TTL has removed while a pod is not ready yet; so does the rollback.
fn turns(stage: &Stage<'_>) -> Result<()> {
    let _repository = source(stage, CHART)?;
    let more = json!({
        "waitStrategy": {"name": "legacy"},
        "install": {"disableWaitForJobs": true},
        "upgrade": {"remediation": {"retries": 1, "strategy": "rollback", "remediateLastFailure": true}},
    });
    release(stage, "loop", &json!({"ready": 15, "ttl": 3}), &more)?;
    let said = stage.until_condition(RELEASE, "loop", "Ready", "True InstallSucceeded", SOON)?;
    let expected = "True InstallSucceeded \"Helm install succeeded for release NS/loop.v1 with chart mig@0.1.0\"";
    ensure!(said == expected, "{said}");
    release(stage, "loop", &json!({"ready": 15, "ttl": 3, "version": "2"}), &more)?;
    let said = stage.until_condition(RELEASE, "loop", "Released", "False UpgradeFailed", SOON)?;
    let expected = "False UpgradeFailed \"Helm upgrade failed for release NS/loop with chart mig@0.1.0: \
         jobs.batch \"loop-migrations\" not found\"";
    ensure!(said == expected, "{said}");
    let said = stage.until_condition(RELEASE, "loop", "Remediated", "False RollbackFailed", SOON)?;
    let expected = "False RollbackFailed \"Helm rollback to previous release NS/loop.v1 with chart mig@0.1.0 failed: \
         release loop failed: jobs.batch \"loop-migrations\" not found\"";
    ensure!(said == expected, "{said}");
    // The next rollback finds the Deployment where it should be, and passes; then all of it again.
    stage.until_condition(RELEASE, "loop", "Remediated", "True RollbackSucceeded", SOON)?;
    let said = stage.until_condition(RELEASE, "loop", "Stalled", "True", LATER)?;
    ensure!(said == "True RetriesExceeded \"Failed to upgrade after 2 attempt(s)\"", "{said}");
    let said = stage.condition(RELEASE, "loop", "Ready")?.unwrap_or_default();
    ends(&said, "False RollbackFailed \"Helm rollback to previous release NS/loop.v4 ", "not found\"")?;
    let runs = stage.runs("loop-migrations")?;
    ensure!(runs == 6, "the migration ran {runs} times, not once for each of six revisions");
    Ok(())
}

fn attempt_1(stage: &Stage<'_>) -> Result<()> {
    let _repository = source(stage, CHART)?;
    release(stage, "att1", &json!({}), &json!({}))?;
    stage.until_condition(RELEASE, "att1", "Ready", "True", SOON)?;
    let hooks =
        json!({"helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-delete-policy": "before-hook-creation"});
    release(stage, "att1", &json!({"podAnnotations": hooks}), &json!({}))?;
    let said = stage.until_condition(RELEASE, "att1", "Ready", "False", SOON)?;
    let start = "False UpgradeFailed \"Helm upgrade failed for release NS/att1 with chart mig@0.1.0: server-side apply \
         failed for object NS/att1-migrations batch/v1, Kind=Job: Job.batch \"att1-migrations\" is invalid: \
         spec.template: Invalid value: ";
    ends(&said, start, ": field is immutable\"")?;
    let runs = stage.runs("att1-migrations")?;
    ensure!(runs == 1, "the migration ran {runs} times");
    Ok(())
}

fn attempt_2(stage: &Stage<'_>) -> Result<()> {
    let _repository = source(stage, CHART)?;
    release(stage, "att2", &json!({"fullname": "openhands-litellm-{{ .Release.Revision }}"}), &json!({}))?;
    let said = stage.until_condition(RELEASE, "att2", "Ready", "False InstallFailed", SOON)?;
    let config = "openhands-litellm-{{ .Release.Revision }}-config";
    let expected = format!(
        "server-side apply failed for object NS/{config} /v1, Kind=ConfigMap: ConfigMap \"{config}\" is invalid: \
         metadata.name: Invalid value: \"{config}\": a lowercase RFC 1123 subdomain must consist of"
    );
    ensure!(said.contains(&expected), "it said `{said}`");
    ensure!(said.contains("batch/v1, Kind=Job"), "the install tells of every object that fails, but said `{said}`");
    Ok(())
}

fn migration(image: &str, more: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: migration{more}}}\nspec:\n  backoffLimit: 0\n  template:\n    \
         spec:\n      restartPolicy: Never\n      containers:\n      - name: c\n        image: {image}\n        \
         command: [sh, -c, 'test -n \"$PASSWORD\"']\n        env:\n        - name: PASSWORD\n          valueFrom: \
         {{secretKeyRef: {{name: openhands-postgresql, key: password}}}}\n"
    )
}

const SECRET: &str =
    "apiVersion: v1\nkind: Secret\nmetadata: {name: openhands-postgresql}\nstringData: {password: secret}\n";

fn attempt_3(stage: &Stage<'_>) -> Result<()> {
    let migration = migration(stage.image(), "");
    let _repository = source(stage, &[("app/job.yaml", &migration), ("db/secret.yaml", SECRET)])?;
    kustomization(stage, "app", &json!({}))?;
    let said = stage.until_condition(KUSTOMIZATION, "app", "Ready", "False", SOON)?;
    ends(&said, "False HealthCheckFailed \"health check failed after ", "[Job/NS/migration status: 'InProgress']\"")?;
    let pods = stage.list("pods")?;
    let waiting = &pods[0]["status"]["containerStatuses"][0]["state"]["waiting"];
    ensure!(waiting["reason"] == "CreateContainerConfigError", "the pod waits for {waiting}");
    ensure!(waiting["message"] == "secret \"openhands-postgresql\" not found", "the pod waits for {waiting}");
    // The same pod starts by itself once the Secret is there.
    kustomization(stage, "db", &json!({}))?;
    stage.until_condition(KUSTOMIZATION, "app", "Ready", "True", SOON)?;
    let runs = stage.runs("migration")?;
    ensure!(runs == 1, "{runs} pods were made");
    Ok(())
}

fn final_solution(stage: &Stage<'_>) -> Result<()> {
    let image = stage.image();
    let config = |version: u8| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: config}}\ndata: {{version: \"{version}\"}}\n")
    };
    let repository = source(
        stage,
        &[("app/job.yaml", &migration(image, "")), ("app/config.yaml", &config(1)), ("db/secret.yaml", SECRET)],
    )?;
    kustomization(stage, "app", &json!({"dependsOn": [{"name": "db"}]}))?;
    let said = stage.until_condition(KUSTOMIZATION, "app", "Ready", "False", SOON)?;
    let expected = "False DependencyNotReady \"dependency 'NS/db' not found: \
         kustomizations.kustomize.toolkit.fluxcd.io \"db\" not found\"";
    ensure!(said == expected, "{said}");
    kustomization(stage, "db", &json!({}))?;
    stage.until_condition(KUSTOMIZATION, "app", "Ready", "True ReconciliationSucceeded", SOON)?;
    ensure!(stage.runs("migration")? == 1, "the migration did not run once");

    // What it leaves: the next version of the image is refused, and with it all the rest.
    let other = format!("docker.io/library/{image}");
    repository.commit(&[
        ("app/job.yaml", &migration(&other, "")),
        ("app/config.yaml", &config(2)),
        ("db/secret.yaml", SECRET),
    ])?;
    let said = stage.until_condition(KUSTOMIZATION, "app", "Ready", "False ReconciliationFailed", SOON)?;
    let start = "False ReconciliationFailed \"Job/NS/migration dry-run failed (Invalid): Job.batch \"migration\" is \
         invalid: spec.template: Invalid value: ";
    ends(&said, start, ": field is immutable\n\"")?;
    let data = stage.find("configmap", "config")?.unwrap_or_default()["data"].clone();
    ensure!(data["version"] == "1", "the ConfigMap was changed although the Job could not be: {data}");

    // Forced, the Job is replaced and runs again.
    let force = ", annotations: {kustomize.toolkit.fluxcd.io/force: enabled}";
    repository.commit(&[
        ("app/job.yaml", &migration(&other, force)),
        ("app/config.yaml", &config(2)),
        ("db/secret.yaml", SECRET),
    ])?;
    stage.until_condition(KUSTOMIZATION, "app", "Ready", "True ReconciliationSucceeded", SOON)?;
    let runs = stage.runs("migration")?;
    ensure!(runs == 2, "the migration ran {runs} times");
    Ok(())
}
