//! The agent's chart under Argo CD: as it is, and with the annotations that documents of such charts give.

use super::{Application, Automation, NEEDS, OWN_VALUES, SOON};
use crate::Test;
use crate::agent::{Agent, CHART, Mode, values};
use crate::release_hooks::files;
use anyhow::{Context as _, Result, ensure};
use jobwright_e2e::image::build::{AGENT, JOBWRIGHT};
use jobwright_e2e::live::{Need, Stage};
use jobwright_e2e::version::HelmVersion;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

const NEEDS_IMAGES: &[Need] = &[NEEDS[0], NEEDS[1], Need::Image(JOBWRIGHT), Need::Image(AGENT)];

pub(crate) const TESTS: &[Test] = &[
    Test { name: "argocd_agent_hooks_are_in_sync_and_the_webhook_is_asked", needs: NEEDS_IMAGES, play: hooks },
    Test {
        name: "argocd_agent_documented_annotations_work_and_cost_the_jobs_logs",
        needs: NEEDS_IMAGES,
        play: documented,
    },
    Test {
        name: "argocd_agent_replace_counts_once_per_change_as_hooks",
        needs: NEEDS_IMAGES,
        play: |stage| replace(stage, Mode::Hook),
    },
    Test {
        name: "argocd_agent_replace_counts_once_per_change_as_plain_jobs",
        needs: NEEDS_IMAGES,
        play: |stage| replace(stage, Mode::Plain),
    },
];

fn make<'a>(stage: &'a Stage<'a>, values: &Value) -> Result<Application<'a>> {
    let mut files = files(Path::new(CHART), "")?;
    files.push((OWN_VALUES.to_owned(), values.to_string()));
    Application::make(stage, Automation::PruneAndHeal, &borrow(&files))
}

fn borrow(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect()
}

/// How often a job has run. Argo CD calls a release as the Application, which here is so long that names are cut.
fn runs(stage: &Stage<'_>, job: &str) -> Result<usize> {
    Ok(stage.runs_like(&format!("{}-{job}", stage.namespace()))?)
}

fn expect_asked(stage: &Stage<'_>, mode: Mode) -> Result<()> {
    Agent { stage, helm: HelmVersion::V3_17_3, mode }.expect_asked()
}

fn hooks(stage: &Stage<'_>) -> Result<()> {
    let application = make(stage, &values(stage.namespace(), Mode::Hook))?;
    let status = application.until_synced(1)?;
    let results = application.results(&status).join("\n");
    for (job, phase) in [("init-cert-hook", "PreSync"), ("init-cert-in", "PostSync"), ("backfill-hook", "PostSync")] {
        let is_there = results.lines().any(|line| line.contains(&format!("Job/NS-{job}")) && line.contains(phase));
        ensure!(is_there, "{job} was not run in {phase}:\n{results}");
    }
    application.until_is("Synced", "Healthy")?;
    ensure!(runs(stage, "init-c")? == 2 && runs(stage, "backf")? == 1, "the jobs did not run once");
    expect_asked(stage, Mode::Hook)
}

fn documented(stage: &Stage<'_>) -> Result<()> {
    let annotations = json!({
        "argocd.argoproj.io/hook": "PostSync",
        "argocd.argoproj.io/hook-delete-policy": "HookSucceeded",
    });
    let mut values = values(stage.namespace(), Mode::Plain);
    for job in ["initCertJob", "initBackfillJob"] {
        values[job]["annotations"] = annotations.clone();
    }
    let application = make(stage, &values)?;
    application.until_synced(1)?;
    application.until_is("Synced", "Healthy")?;
    expect_asked(stage, Mode::Plain)?;
    ensure!(runs(stage, "init-c")? == 1 && runs(stage, "backf")? == 1, "the jobs did not run once");
    stage.until("the Jobs to be gone", SOON, || Ok(stage.list("jobs")?.is_empty().then_some(())))?;
    Ok(())
}

/// With `Replace=true` every sync removes the mark. That is a forced deploy once per change of the release.
fn replace(stage: &Stage<'_>, mode: Mode) -> Result<()> {
    let mut values = values(stage.namespace(), mode);
    for job in ["initCertJob", "initBackfillJob"] {
        values[job]["ttlSecondsAfterFinished"] = Value::Null;
    }
    let chart = files(Path::new(CHART), "")?;
    let files = |values: &Value| [&chart[..], &[(OWN_VALUES.to_owned(), values.to_string())]].concat();
    let policy = json!({"syncOptions": ["Replace=true"]});
    let application = Application::make_with(stage, Automation::Manual, &policy, &borrow(&files(&values)))?;
    let sync = || -> Result<()> {
        let status = application.sync()?;
        let state = &status["operationState"];
        ensure!(state["phase"] == "Succeeded", "{state}");
        // Not always in sync: a sync by hand prunes no plain Job that was left behind.
        application.until("the Application to be healthy", SOON, |status| status["health"]["status"] == "Healthy")?;
        Ok(())
    };
    let mut seen = Seen::default();
    sync()?;
    ensure!(seen.news(stage)? == (true, 1), "the first sync has no certificate or no backfill");
    // Any change of a value is a change of the release; a commit is none.
    for (replicas, expected) in [(2, (false, 0)), (3, (true, 1)), (3, (false, 0)), (3, (false, 0)), (2, (true, 1))] {
        values["replicas"] = json!(replicas);
        application.commit(&borrow(&files(&values)))?;
        let before = mark(stage)?;
        sync()?;
        let news = seen.news(stage)?;
        ensure!(news == expected, "{replicas} replicas: {news:?}, not {expected:?}");
        let after = mark(stage)?;
        ensure!(before.0 == after.0 && !before.0.is_null(), "the ConfigMap is another one");
        // A replaced webhook configuration has no `caBundle` until a Job fills it, and a plain Job does not run again.
        if mode == Mode::Hook || expected.0 {
            expect_asked(stage, mode)?;
        } else {
            ensure!(bundle(stage)?.is_null(), "the documented limit is none");
        }
    }
    Ok(())
}

fn bundle(stage: &Stage<'_>) -> Result<Value> {
    let name = format!("{0}-{0}", stage.namespace());
    let hooks = stage.find("validatingwebhookconfiguration", &name)?.context("there is no webhook")?;
    Ok(hooks["webhooks"][0]["clientConfig"]["caBundle"].clone())
}

/// The uid of the ConfigMap that jobs mark, and its marks.
fn mark(stage: &Stage<'_>) -> Result<(Value, Vec<String>)> {
    let name = format!("{}-mark", stage.namespace());
    let map = stage.find("configmap", &name)?.unwrap_or_default();
    let annotations = map["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    let marks = annotations.into_iter().map(|(key, _)| key).filter(|key| key.starts_with("jobwright.io/mark-"));
    Ok((map["metadata"]["uid"].clone(), marks.collect()))
}

/// What was there before.
#[derive(Default)]
struct Seen {
    certificate: Value,
    /// By their uids.
    jobs: BTreeSet<String>,
}

impl Seen {
    /// Whether there is a new certificate, and how many new Jobs have captured the cluster, once all Jobs have ended.
    fn news(&mut self, stage: &Stage<'_>) -> Result<(bool, usize)> {
        let jobs = stage.until("the Jobs to end", SOON, || {
            let jobs = stage.list("jobs")?;
            Ok(jobs.iter().all(|job| job["status"]["succeeded"] == 1).then_some(jobs))
        })?;
        let mut captures = 0;
        for job in jobs {
            let text = |field: &str| job["metadata"][field].as_str().unwrap_or_default().to_owned();
            if self.jobs.insert(text("uid")) {
                let log = stage.kubectl(&["logs", &format!("job/{}", text("name")), "--tail=-1"])?;
                captures += usize::from(log.lines().any(|line| line.starts_with("{\"apiVersion\"")));
            }
        }
        let secret = stage.find("secret", &format!("{}-certificate", stage.namespace()))?.unwrap_or_default();
        let certificate = secret["data"]["tls.crt"].clone();
        let is_new = certificate != self.certificate;
        self.certificate = certificate;
        Ok((is_new, captures))
    }
}
