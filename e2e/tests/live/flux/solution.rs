//! What works in the end, a Job in a Kustomization that depends on the one with its Secret; and what that still leaves.

use super::{KUSTOMIZATION, LATER, NEEDS, SOON, ends, expect_runs, kustomization, source};
use crate::Test;
use anyhow::{Result, ensure};
use jobwright_e2e::live::{Repository, Stage};
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    Test { name: "flux_dependencies_are_looked_at_every_30_seconds", needs: NEEDS, play: dependencies },
    Test { name: "flux_the_final_solution_works_until_the_image_changes", needs: NEEDS, play: until_the_image_changes },
    Test { name: "flux_a_ttl_runs_a_job_of_a_kustomization_in_every_pass", needs: NEEDS, play: every_pass },
    Test { name: "flux_prune_removes_the_job_of_the_last_version", needs: NEEDS, play: versioned_name },
];

pub(super) const SECRET: &str =
    "apiVersion: v1\nkind: Secret\nmetadata: {name: openhands-postgresql}\nstringData: {password: secret}\n";

/// A Job that needs the Secret, with more of its metadata and of its `spec`.
pub(super) fn migration(image: &str, metadata: &str, spec: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: migration{metadata}}}\nspec:\n  backoffLimit: 0\n{spec}  \
         template:\n    spec:\n      restartPolicy: Never\n      containers:\n      - name: c\n        image: {image}\n        \
         command: [sh, -c, 'test -n \"$PASSWORD\"']\n        env:\n        - name: PASSWORD\n          valueFrom: \
         {{secretKeyRef: {{name: openhands-postgresql, key: password}}}}\n"
    )
}

/// A Job that needs nothing.
fn job(name: &str, image: &str, metadata: &str, spec: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}{metadata}}}\nspec:\n  backoffLimit: 0\n{spec}  \
         template:\n    spec:\n      restartPolicy: Never\n      containers:\n      - {{name: c, image: '{image}', \
         command: [sh, -c, 'echo done']}}\n"
    )
}

fn expect(stage: &Stage<'_>, name: &str, condition: &str, expected: &str, limit: Duration) -> Result<()> {
    stage.until(&format!("{condition} of {name} to say `{expected}`"), limit, || {
        Ok((stage.condition(KUSTOMIZATION, name, condition)?.as_deref() == Some(expected)).then_some(()))
    })?;
    Ok(())
}

fn not_ready(why: &str) -> String {
    format!("False DependencyNotReady \"dependency 'NS/db' {why}\"")
}

fn dependencies(stage: &Stage<'_>) -> Result<()> {
    let migration = migration(stage.image(), "", "");
    let repository = source(stage, &[("app/job.yaml", &migration)])?;
    kustomization(stage, "app", &json!({"dependsOn": [{"name": "db"}]}))?;
    let absent = not_ready("not found: kustomizations.kustomize.toolkit.fluxcd.io \"db\" not found");
    expect(stage, "app", "Ready", &absent, SOON)?;
    let told = stage.events_of("Kustomization", "app")?;
    let event = "Normal DependencyNotReady \"Dependencies do not meet ready condition, retrying in 30s\"";
    ensure!(told.iter().any(|said| said == event), "{told:?}");
    // It is there, but its directory is not.
    kustomization(stage, "db", &json!({}))?;
    expect(stage, "app", "Ready", &not_ready("is not ready"), SOON)?;
    repository.commit(&[("app/job.yaml", &migration), ("db/secret.yaml", SECRET)])?;
    expect_ready(stage, "db", SOON)?;
    // Nothing but the next look finds out.
    expect_ready(stage, "app", SOON)?;
    expect_runs(stage, "migration", 1)?;
    kustomization(stage, "db", &json!({"suspend": true}))?;
    let label = ", labels: {changed: 'yes'}";
    let changed = self::migration(stage.image(), label, "");
    repository.commit(&[("app/job.yaml", &changed), ("db/secret.yaml", SECRET)])?;
    expect(stage, "app", "Ready", &not_ready("revision is not up to date"), SOON)?;
    kustomization(stage, "db", &json!({"suspend": false}))?;
    expect_ready(stage, "app", SOON)?;
    expect_runs(stage, "migration", 1)
}

fn expect_ready(stage: &Stage<'_>, name: &str, limit: Duration) -> Result<String> {
    Ok(stage.until_condition(KUSTOMIZATION, name, "Ready", "True ReconciliationSucceeded", limit)?)
}

/// The application of a version: a Job, five ConfigMaps, and the Secret of another Kustomization.
fn commit(repository: &Repository, version: u32, migration: &str) -> Result<()> {
    let config = |number: usize| {
        let metadata = format!("metadata: {{name: c{number}}}");
        format!("apiVersion: v1\nkind: ConfigMap\n{metadata}\ndata: {{version: \"{version}\"}}\n---\n")
    };
    let configs: String = (1..=5).map(config).collect();
    repository.commit(&[("app/job.yaml", migration), ("app/config.yaml", &configs), ("db/secret.yaml", SECRET)])?;
    Ok(())
}

fn versions(stage: &Stage<'_>) -> Result<Vec<Value>> {
    let configs = stage.list("configmaps")?;
    let ours = |config: &&Value| config["metadata"]["name"].as_str().is_some_and(|name| name.len() == 2);
    Ok(configs.iter().filter(ours).map(|config| config["data"]["version"].clone()).collect())
}

fn until_the_image_changes(stage: &Stage<'_>) -> Result<()> {
    let image = stage.image();
    let repository = source(stage, &[("app/job.yaml", ""), ("db/secret.yaml", SECRET)])?;
    commit(&repository, 1, &migration(image, "", ""))?;
    kustomization(stage, "db", &json!({}))?;
    expect_ready(stage, "db", SOON)?;
    kustomization(stage, "app", &json!({"dependsOn": [{"name": "db"}]}))?;
    expect_ready(stage, "app", SOON)?;
    let said = stage.condition(KUSTOMIZATION, "app", "Healthy")?.unwrap_or_default();
    ends(&said, "True Succeeded \"Health check passed in ", "s\"")?;
    // Two passes later nothing has run again.
    std::thread::sleep(Duration::from_secs(70));
    expect_runs(stage, "migration", 1)?;

    // The next version of the image is refused, and with it all the rest.
    let other = format!("docker.io/library/{image}");
    commit(&repository, 2, &migration(&other, "", ""))?;
    let said = stage.until_condition(KUSTOMIZATION, "app", "Ready", "False ReconciliationFailed", SOON)?;
    let start = "False ReconciliationFailed \"Job/NS/migration dry-run failed (Invalid): Job.batch \"migration\" is \
         invalid: spec.template: Invalid value: ";
    ends(&said, start, ": field is immutable\n\"")?;
    stage.until_condition(KUSTOMIZATION, "app", "Reconciling", "True ProgressingWithRetry", SOON)?;
    ensure!(versions(stage)? == ["1"; 5], "{:?}", versions(stage)?);
    expect_runs(stage, "migration", 1)?;

    // Forced, the Job is replaced and runs again.
    let force = ", annotations: {kustomize.toolkit.fluxcd.io/force: enabled}";
    commit(&repository, 2, &migration(&other, force, ""))?;
    expect_ready(stage, "app", SOON)?;
    let told = stage.events_of("Kustomization", "app")?;
    let mut changes: Vec<String> = (1..=5).map(|number| format!("ConfigMap/NS/c{number} configured")).collect();
    changes.push("Job/NS/migration created".to_owned());
    let event = format!("Normal Progressing \"{}\"", changes.join("\n"));
    ensure!(told.contains(&event), "{told:?}");
    ensure!(versions(stage)? == ["2"; 5], "{:?}", versions(stage)?);
    expect_runs(stage, "migration", 2)?;

    // With a TTL it is replaced once, and then made again in every pass.
    let film = stage.film(("apis/kustomize.toolkit.fluxcd.io/v1", "kustomizations"), "app")?;
    commit(&repository, 3, &migration(image, force, "  ttlSecondsAfterFinished: 20\n"))?;
    stage.until("three more runs than one", LATER, || Ok((stage.runs("migration")? >= 6).then_some(())))?;
    let said = film.ends_of("Ready");
    // A race: both follow the same source, and it may look at the other before, while or after that one has followed.
    let behind = ["revision is not up to date", "is not ready"].map(not_ready);
    ensure!(said.iter().all(|said| said.starts_with("True ") || behind.contains(said)), "{said:?}");
    Ok(())
}

/// Whether it waits for the Job or not, and whether it would change it or not.
fn every_pass(stage: &Stage<'_>) -> Result<()> {
    let image = stage.image();
    let ttl = "  ttlSecondsAfterFinished: 3\n";
    let kept = ", annotations: {kustomize.toolkit.fluxcd.io/ssa: IfNotPresent}";
    let _repository = source(
        stage,
        &[
            ("waits/job.yaml", &job("waits", image, "", ttl)),
            ("passes/job.yaml", &job("passes", image, "", ttl)),
            ("keeps/job.yaml", &job("keeps", image, kept, ttl)),
        ],
    )?;
    let names = ["waits", "passes", "keeps"];
    let api = ("apis/kustomize.toolkit.fluxcd.io/v1", "kustomizations");
    let mut films = Vec::new();
    for name in names {
        kustomization(stage, name, &json!({"wait": name == "waits"}))?;
        films.push(stage.film(api, name)?);
    }
    for name in names {
        stage.until(&format!("{name} to run four times"), LATER, || Ok((stage.runs(name)? >= 4).then_some(())))?;
    }
    // And nobody is told.
    for film in &films {
        let said = film.ends_of("Ready");
        ensure!(said.iter().all(|said| said.starts_with("True ") || said.contains("ArtifactFailed")), "{said:?}");
    }
    Ok(())
}

fn versioned_name(stage: &Stage<'_>) -> Result<()> {
    let image = stage.image();
    let repository = source(stage, &[("app/job.yaml", &job("migrate-v1", image, "", ""))])?;
    kustomization(stage, "app", &json!({}))?;
    expect_ready(stage, "app", SOON)?;
    let film = stage.film(("apis/kustomize.toolkit.fluxcd.io/v1", "kustomizations"), "app")?;
    repository.commit(&[("app/job.yaml", &job("migrate-v2", image, "", ""))])?;
    stage.until("the second migration to run", SOON, || Ok((stage.runs("migrate-v2")? == 1).then_some(())))?;
    stage.until("the first to go", SOON, || Ok(stage.find("job", "migrate-v1")?.is_none().then_some(())))?;
    expect_ready(stage, "app", SOON)?;
    let said = film.ends_of("Ready");
    ensure!(said.iter().all(|said| said.starts_with("True ")), "{said:?}");
    expect_runs(stage, "migrate-v1", 1)
}
