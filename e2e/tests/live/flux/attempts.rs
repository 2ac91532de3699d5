//! The three attempts that fail: hooks where they are inert, a template where there are none, a Job too early.

use super::{
    KUSTOMIZATION, LATER, NEEDS, Release, SOON, attempts_exceeded, ends, ends_of_actions, expect_runs, install_failed,
    installed, kustomization, rolled_back, source, upgrade_failed,
};
use crate::Test;
use anyhow::{Result, ensure};
use jobwright_e2e::live::Stage;
use serde_json::{Value, json};

pub(crate) const TESTS: &[Test] = &[
    Test { name: "flux_attempt_1_hooks_on_the_pod_are_an_immutable_change", needs: NEEDS, play: hooks_on_the_pod },
    Test { name: "flux_attempt_2_values_are_not_templates_on_install", needs: NEEDS, play: template_on_install },
    Test { name: "flux_attempt_2_values_are_not_templates_on_upgrade", needs: NEEDS, play: template_on_upgrade },
    Test { name: "flux_attempt_3_a_job_before_its_secret_waits", needs: NEEDS, play: before_its_secret },
];

fn hooks_on_the_pod(stage: &Stage<'_>) -> Result<()> {
    let upgrade = json!({"remediation": {"retries": 1, "strategy": "rollback"}});
    let release = Release::of(stage, "att1", json!({"upgrade": upgrade}))?;
    release.apply(&json!({}))?;
    release.expect("Ready", &installed("att1"), SOON)?;
    let film = release.film()?;
    let hooks =
        json!({"helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-delete-policy": "before-hook-creation"});
    release.apply(&json!({"podAnnotations": hooks}))?;
    release.expect("Stalled", &attempts_exceeded("upgrade", 2), LATER)?;
    let said = ends_of_actions(&film);
    ensure!(said.len() == 5, "{said:#?}");
    let immutable = upgrade_failed(
        "att1",
        "server-side apply failed for object NS/att1-migrations batch/v1, Kind=Job: Job.batch \"att1-migrations\" is \
         invalid: spec.template: Invalid value: ",
    );
    for failed in [&said[1], &said[3]] {
        ends(failed, immutable.trim_end_matches('"'), ": field is immutable\"")?;
    }
    ensure!(said[2] == rolled_back("False", "att1", 1), "{said:#?}");
    ensure!(said[4] == rolled_back("False", "att1", 3), "{said:#?}");
    // On a pod they are annotations like any other.
    expect_runs(stage, "att1-migrations", 1)
}

const TEMPLATE: &str = "openhands-litellm-{{ .Release.Revision }}";

/// What the API says against a name.
fn not_a_name(kind: &str, name: &str) -> String {
    format!(
        "{kind} \"{name}\" is invalid: metadata.name: Invalid value: \"{name}\": a lowercase RFC 1123 subdomain must \
         consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character \
         (e.g. 'example.com', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    )
}

fn template_on_install(stage: &Stage<'_>) -> Result<()> {
    let release = Release::of(stage, "att2", json!({"install": {"remediation": {"retries": 1}}}))?;
    release.apply(&json!({"fullname": TEMPLATE}))?;
    release.expect("Stalled", &attempts_exceeded("install", 2), LATER)?;
    let config = format!("{TEMPLATE}-config");
    let refused = not_a_name("ConfigMap", &config);
    // An install tells of every object that it could not make, each in a line.
    let job = format!("server-side apply failed for object NS/{TEMPLATE}-migrations batch/v1, Kind=Job: Job.batch ");
    let why = format!("server-side apply failed for object NS/{config} /v1, Kind=ConfigMap: {refused}\n{job}");
    let said = release.until("Ready", "False InstallFailed", SOON)?;
    let expected = install_failed("att2", &why);
    ensure!(said.starts_with(expected.trim_end_matches('"')), "it said `{said}`");
    ensure!(said.contains("is invalid: [metadata.name: ") && said.contains(", spec.template.labels: "), "{said}");
    ensure!(release.status()?["installFailures"] == 2, "{}", release.status()?);
    expect_runs(stage, &format!("{TEMPLATE}-migrations"), 0)
}

fn template_on_upgrade(stage: &Stage<'_>) -> Result<()> {
    let upgrade = json!({"remediation": {"retries": 1, "strategy": "rollback"}});
    let release = Release::of(stage, "att2", json!({"upgrade": upgrade}))?;
    release.apply(&json!({}))?;
    release.expect("Ready", &installed("att2"), SOON)?;
    let film = release.film()?;
    release.apply(&json!({"fullname": TEMPLATE}))?;
    release.expect("Stalled", &attempts_exceeded("upgrade", 2), LATER)?;
    let config = format!("{TEMPLATE}-config");
    let object = format!("server-side apply failed for object NS/{config} /v1, Kind=ConfigMap");
    // An upgrade tells of the first.
    let why = format!("failed to create resource: {object}: {}", not_a_name("ConfigMap", &config));
    let said = ends_of_actions(&film);
    let failed: Vec<&String> = said.iter().filter(|said| said.starts_with("False UpgradeFailed")).collect();
    let expected = upgrade_failed("att2", &why);
    ensure!(failed == [&expected, &expected], "it said {said:#?}");
    ensure!(release.status()?["upgradeFailures"] == 2, "{}", release.status()?);
    expect_runs(stage, "att2-migrations", 1)?;
    // The same in a label.
    release.apply(&json!({"label": "{{ .Release.Revision }}"}))?;
    let label = "metadata.labels: Invalid value: \"{{ .Release.Revision }}\": a valid label must be an empty string or \
         consist of alphanumeric characters, '-', '_' or '.', ";
    // It is stalled all the while: only what it says tells that it has tried.
    stage.until("the label to be refused", LATER, || {
        Ok(ends_of_actions(&film).iter().any(|said| said.contains(label)).then_some(()))
    })?;
    release.until("Stalled", "True RetriesExceeded", LATER)?;
    expect_runs(stage, "att2-migrations", 1)
}

fn before_its_secret(stage: &Stage<'_>) -> Result<()> {
    let migration = super::solution::migration(stage.image(), "", "");
    let _repository = source(stage, &[("app/job.yaml", &migration), ("db/secret.yaml", super::solution::SECRET)])?;
    kustomization(stage, "app", &json!({}))?;
    let said = stage.until_condition(KUSTOMIZATION, "app", "Ready", "False HealthCheckFailed", SOON)?;
    let waiting = "timeout waiting for: [Job/NS/migration status: 'InProgress']\"";
    ends(&said, "False HealthCheckFailed \"health check failed after 30.", &format!("s: {waiting}"))?;
    let said = stage.condition(KUSTOMIZATION, "app", "Healthy")?.unwrap_or_default();
    ensure!(said == format!("False HealthCheckFailed \"{waiting}"), "{said}");
    let pods = stage.list("pods")?;
    let state = &pods[0]["status"]["containerStatuses"][0]["state"]["waiting"];
    ensure!(state["reason"] == "CreateContainerConfigError", "the pod waits for {state}");
    ensure!(state["message"] == "secret \"openhands-postgresql\" not found", "the pod waits for {state}");
    let told = stage.events_of("Pod", pods[0]["metadata"]["name"].as_str().unwrap_or_default())?;
    let expected = "Warning Failed \"Error: secret \"openhands-postgresql\" not found\"";
    ensure!(told.iter().any(|event| event == expected), "{told:?}");
    expect_runs(stage, "migration", 0)?;
    // The same pod starts by itself once the Secret is there.
    kustomization(stage, "db", &json!({}))?;
    stage.until_condition(KUSTOMIZATION, "app", "Ready", "True ReconciliationSucceeded", SOON)?;
    let after: Vec<Value> = stage.list("pods")?.iter().map(|pod| pod["metadata"]["uid"].clone()).collect();
    ensure!(after == [pods[0]["metadata"]["uid"].clone()], "{} pods", after.len());
    expect_runs(stage, "migration", 1)
}
