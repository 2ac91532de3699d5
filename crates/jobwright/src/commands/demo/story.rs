//! What the demo does, and how it tells it.

use crate::output;
use anyhow::{Context as _, Result};
use jobwright_drydock::Drydock;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, DeleteParams, ListParams, LogParams, Patch, PatchParams};
use kube::runtime::conditions::{is_deleted, is_job_completed};
use kube::runtime::wait::await_condition;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use std::time::Duration;

const NAMESPACE: &str = "shop";
const JOB: &str = "migrate";

/// What has been told so far.
pub(super) struct Story {
    drydock: Drydock,
    client: Option<Client>,
    aloud: bool,
    lines: Vec<Value>,
}

/// How a line is meant.
#[derive(Clone, Copy)]
pub(super) enum Tone {
    Plain,
    Good,
    Bad,
}

impl Story {
    pub(super) fn new(drydock: Drydock, aloud: bool) -> Self {
        Self { drydock, client: None, aloud, lines: Vec::new() }
    }

    /// The story as one JSON document.
    pub(super) fn to_json(&self) -> String {
        json!({"story": self.lines}).to_string()
    }

    pub(super) fn chapter(&mut self, title: &str) {
        if self.aloud {
            let bold = output::STRONG;
            output::line(&format!("\n{bold}{title}{bold:#}"));
        }
        self.lines.push(json!({"chapter": title}));
    }

    pub(super) fn say(&mut self, tone: Tone, text: &str) {
        let now = self.drydock.now();
        let clock = now.strftime("%H:%M:%S").to_string();
        if self.aloud {
            let (dim, style) = (
                output::DIM,
                match tone {
                    Tone::Plain => anstyle::Style::new(),
                    Tone::Good => output::GOOD,
                    Tone::Bad => output::BAD,
                },
            );
            output::line(&format!("  {dim}{clock}{dim:#}  {style}{text}{style:#}"));
        }
        self.lines.push(json!({"at": now.to_string(), "text": text}));
    }

    /// The client, made when there is a runtime to make it on.
    fn client(&mut self) -> Client {
        let drydock = self.drydock.clone();
        self.client.get_or_insert_with(|| Client::new(drydock, NAMESPACE)).clone()
    }

    fn jobs(&mut self) -> Api<Job> {
        Api::default_namespaced(self.client())
    }

    pub(super) async fn apply_namespace(&mut self) -> Result<()> {
        let namespaces = Api::<Namespace>::all(self.client());
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        namespaces.patch(NAMESPACE, &PatchParams::apply("demo"), &Patch::Apply(&namespace)).await?;
        self.say(Tone::Plain, "namespace shop");
        Ok(())
    }

    /// Applies the Job of a release and tells what the API says to it.
    pub(super) async fn apply_job(&mut self, version: &str, line: &str, expires_after: Option<u32>) -> Result<()> {
        let mut job = json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": JOB},
            "spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [
                {"name": "main", "image": format!("shop/api:{version}"), "command": ["sh", "-c", line]}]}}},
        });
        if let Some(seconds) = expires_after {
            job["spec"]["ttlSecondsAfterFinished"] = json!(seconds);
        }
        let jobs = self.jobs();
        let before = jobs.get_opt(JOB).await?.and_then(|job| job.resource_version());
        let applied = jobs.patch(JOB, &PatchParams::apply("demo").force(), &Patch::Apply(&job)).await;
        match applied {
            Ok(job) if job.resource_version() == before => self.say(Tone::Plain, "job migrate applied: unchanged"),
            Ok(_) if before.is_none() => {
                self.say(Tone::Plain, &format!("job migrate applied: created, image shop/api:{version}"));
            }
            Ok(_) => self.say(Tone::Plain, "job migrate applied: changed"),
            Err(kube::Error::Api(status)) => {
                self.say(Tone::Bad, &format!("refused: {}", without_values(&status.message)));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    pub(super) async fn wait_for_job(&mut self) -> Result<()> {
        let done = await_condition(self.jobs(), JOB, is_job_completed());
        let limit = Duration::from_mins(10);
        tokio::time::timeout(limit, done).await.context("the job should have completed")??;
        self.say(Tone::Good, "job migrate completed");
        Ok(())
    }

    pub(super) async fn show_log(&mut self) -> Result<()> {
        let pods = Api::<Pod>::default_namespaced(self.client());
        for pod in pods.list(&ListParams::default().labels("job-name=migrate")).await? {
            for line in pods.logs(&pod.name_any(), &LogParams::default()).await?.lines() {
                self.say(Tone::Plain, &format!("its log: {line}"));
            }
        }
        Ok(())
    }

    pub(super) async fn delete_job(&mut self) -> Result<()> {
        let jobs = self.jobs();
        let uid = jobs.get(JOB).await?.uid().unwrap_or_default();
        jobs.delete(JOB, &DeleteParams::foreground()).await?;
        await_condition(jobs, JOB, is_deleted(&uid)).await?;
        self.say(Tone::Plain, "job migrate deleted by hand");
        Ok(())
    }

    pub(super) async fn look_for_job(&mut self) -> Result<()> {
        match self.jobs().get_opt(JOB).await? {
            Some(_) => self.say(Tone::Plain, "job migrate is there"),
            None => self.say(Tone::Plain, "job migrate is gone: ttlSecondsAfterFinished was 60"),
        }
        Ok(())
    }

    pub(super) async fn sleep_minutes(&mut self, minutes: u64) {
        tokio::time::sleep(Duration::from_mins(minutes)).await;
    }

    /// Tells how often the migration has really run, by the witness.
    pub(super) fn count_runs(&mut self, expected: usize, why: &str) {
        let runs = self.drydock.witness().len();
        let tone = if runs == 1 { Tone::Good } else { Tone::Bad };
        debug_assert_eq!(runs, expected);
        self.say(tone, &format!("the migration has run {runs} time{}: {why}", if runs == 1 { "" } else { "s" }));
    }
}

/// A refusal without the objects that it quotes.
fn without_values(message: &str) -> String {
    match (message.find("Invalid value: {"), message.rfind('}')) {
        (Some(start), Some(end)) if start < end => {
            format!("{}Invalid value: {{…{}", &message[..start], &message[end..])
        }
        _ => message.to_owned(),
    }
}
