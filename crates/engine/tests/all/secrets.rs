//! Secrets in logs, termination messages and output: no event, report or ledger has any part of one, wherever it was cut.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

use crate::support::{Lab, NAMESPACE, pod, registry};
use jobwright_engine::{
    Borrowed, Component, Context, Decision, DeployContext, DeployOutcome, Event, Events, Failure, Job, Keep, Occasion,
    PodJob, Registry, Report, Retires, Settings, When, async_trait,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Its length is prime: no limit is a multiple of it.
const SECRET: &str = "Qx7vZpL9kTwJ4";

async fn create_secret(client: Client, name: &str) {
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": name}, "stringData": {"password": SECRET}})).unwrap();
    Api::namespaced(client, NAMESPACE).create(&PostParams::default(), &secret).await.unwrap();
}

async fn lab() -> Lab {
    let lab = Lab::new().await;
    create_secret(lab.stranger(), "db").await;
    lab
}

/// A container that gets a Secret.
fn container(line: &str, secret: &str) -> Value {
    json!({"name": "m", "image": "busybox:1", "command": ["sh", "-c", line],
        "env": [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": secret, "key": "password"}}}]})
}

/// A job whose pod gets a Secret.
fn reader(id: &str, line: &str, secret: &str) -> PodJob {
    let mut job = pod(id, line);
    job.template = json!({"spec": {"containers": [container(line, secret)]}});
    job
}

/// Deploys, and gives the report and all lines that were logged.
async fn deploy(lab: &Lab, registry: &Registry) -> (Report, Vec<String>) {
    let (events, mut received) = Events::channel();
    let settings = Settings { follow_logs: true, ..Settings::default() };
    let report = lab.manager(settings).deploy(registry, CancellationToken::new(), events).await.unwrap();
    let mut heard = Vec::new();
    while let Some(event) = received.recv().await {
        heard.push(event);
    }
    assert_hidden(&format!("{heard:?}"));
    assert_hidden(&format!("{report:?}"));
    assert_hidden(&format!("{:?}", lab.ledgers().await));
    let line = |event| match event {
        Event::Log { line, .. } | Event::Progress { line, .. } => Some(line),
        _ => None,
    };
    (report, heard.into_iter().filter_map(line).collect())
}

/// Four letters in a row are in no other word here.
fn assert_hidden(said: &str) {
    for start in 0..=SECRET.len() - 4 {
        let part = &SECRET[start..start + 4];
        let place = said.find(part).unwrap_or_default();
        assert!(!said.contains(part), "`{part}` is in {:?}", said.get(place.saturating_sub(40)..place + 40));
    }
}

#[tokio::test(start_paused = true)]
async fn secret_across_the_cut_of_a_line_or_a_log_leaves_no_part_of_itself() {
    for shift in ["", "_____"] {
        let lab = lab().await;
        // Every cut is within the value: of the line that is followed, of the log while it is read, of what is kept.
        let long = SECRET.repeat(60_000 / SECRET.len());
        let mut job = reader("migrate", &format!("echo {shift}{long}{shift}; sleep 20"), "db");
        job.keep = Keep { log_bytes: 1000, ..Keep::default() };
        let (report, lines) = deploy(&lab, &registry([job])).await;
        assert_eq!(report.outcome, DeployOutcome::Succeeded);
        assert!(lines[0].starts_with(&format!("{shift}***")), "{lines:?}");
        let log = lab.ledger("migrate", "logs").await["1"].as_str().unwrap().to_owned();
        assert!(log.contains("******") && log.len() <= 1000, "{log}");
    }
}

/// A component that prints and reports the secret, as helm may, after it has created a Secret.
struct Talkative {
    creates: Option<&'static str>,
    fails: bool,
}

#[async_trait]
impl Component for Talkative {
    fn name(&self) -> &'static str {
        "api"
    }

    async fn decide(&self, _: &DeployContext) -> Result<Decision, Failure> {
        Ok(Decision::Upgrade("it has changed".to_owned()))
    }

    async fn deploy(&self, context: &DeployContext, _: Occasion) -> Result<(), Failure> {
        match self.creates {
            Some(name) => create_secret(context.client().clone(), name).await,
            None => context.progress(format!("working with {SECRET}")),
        }
        if self.fails { Err(Failure::new(format!("{SECRET} is wrong"))) } else { Ok(()) }
    }
}

#[tokio::test(start_paused = true)]
async fn borrowed_pods_hide_their_secrets_in_logs_messages_and_the_output_of_components() {
    for fails in [true, false] {
        let lab = lab().await;
        let deployment: Deployment = serde_json::from_value(json!({"metadata": {"name": "api"}, "spec": {
            "selector": {"matchLabels": {"app": "api"}}, "template": {
                "metadata": {"labels": {"app": "api"}}, "spec": {"containers": [container("sleep 100000", "db")]}}}}))
        .unwrap();
        Api::namespaced(lab.stranger(), NAMESPACE).create(&PostParams::default(), &deployment).await.unwrap();
        let line = "echo log $PASSWORD; sleep 20; echo message $PASSWORD > /dev/termination-log; exit 3";
        let mut job = PodJob::new("warm", When::after("api"), Retires::never("test"), Value::Null);
        job.borrowed = Some(Borrowed {
            deployment: "api".to_owned(),
            container: None,
            image: None,
            command: Some(vec!["sh".to_owned(), "-c".to_owned(), line.to_owned()]),
            args: None,
        });
        let mut registry = Registry::new();
        registry.component(Talkative { creates: None, fails }).pod(job);
        let (report, lines) = deploy(&lab, &registry).await;
        assert_eq!(lines[0], "working with ***");
        if fails {
            assert_eq!(report.components[0].reason, "*** is wrong");
        } else {
            assert_eq!(lines[1], "log ***");
            assert_eq!(report.jobs[0].reason, "container m ended with exit code 3: message ***");
            assert_eq!(lab.ledger("warm", "logs").await["1"], "log ***\n");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_component_that_fails_hides_a_secret_that_it_has_created_itself() {
    let lab = lab().await;
    let mut registry = Registry::new();
    let mut job = reader("warm", "true", "late");
    job.when = When::after("api");
    registry.component(Talkative { creates: Some("late"), fails: true }).pod(job);
    let (report, _) = deploy(&lab, &registry).await;
    assert_eq!(report.components[0].reason, "*** is wrong");
}

/// A job in code that prints the secret and fails with it.
struct Leaky;

#[async_trait]
impl Job for Leaky {
    fn id(&self) -> &'static str {
        "leaky"
    }

    fn when(&self) -> When {
        When::before_all()
    }

    fn retires(&self) -> Retires {
        Retires::never("test")
    }

    async fn run(&self, context: &Context) -> Result<(), Failure> {
        context.log(format!("log {SECRET}"));
        tokio::time::sleep(Duration::from_secs(1)).await;
        Err(Failure::new(format!("wrong: {SECRET}")))
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_in_code_hides_secrets_that_only_pods_name() {
    let lab = lab().await;
    let mut registry = Registry::new();
    let mut later = reader("later", "true", "db");
    later.when = When::after_all();
    registry.job(Leaky).pod(later);
    let (report, lines) = deploy(&lab, &registry).await;
    assert_eq!((lines, report.jobs[0].reason.as_str()), (vec!["log ***".to_owned()], "wrong: ***"));
}
