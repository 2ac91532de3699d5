//! What is waited for before anything begins.

use super::http_sink::{run, to};
use super::server::{Reply, Server, good};
use super::stage::Stage;
use jobwright_drydock::Drydock;
use jobwright_jobs::backfill::Task;
use serde_json::json;
use std::time::Duration;

/// A backfill that waits for this.
fn after(wait: &str) -> Task {
    let wait_timeout = Duration::from_secs(30);
    Task { waits: vec![wait.parse().unwrap()], wait_timeout, ..to("file:/nowhere/out") }
}

/// What is said when it is not there, or `there`.
async fn wait(stage: &Stage, task: &Task) -> String {
    let told = run(stage, task).await.unwrap_err().to_string();
    if told.starts_with("cannot write `/nowhere/out`") { "there".to_owned() } else { told }
}

#[tokio::test(start_paused = true)]
async fn what_listens_and_answers_is_there_and_what_does_not_is_told_with_the_limit() {
    let stage = Stage::new(0).await;
    let server = Server::start(|number, _| match number {
        1 => Reply::Answer(503, "", String::new()),
        _ => good(),
    })
    .await;
    assert_eq!(wait(&stage, &after(&format!("tcp:127.0.0.1:{}", server.port))).await, "there");
    assert_eq!(wait(&stage, &after(&format!("http://127.0.0.1:{}/ready", server.port))).await, "there");
    assert!(server.received().len() >= 2, "it was asked until it answered well");
    let told = wait(&stage, &after("tcp:127.0.0.1:9")).await;
    assert!(told.starts_with("tcp:127.0.0.1:9 is not there after 30 s: "), "{told}");
    let notes = stage.notes();
    assert!(notes.iter().any(|note| note.starts_with("waiting for tcp:127.0.0.1:9, for ")), "{notes:?}");
    let told = wait(&stage, &after(&format!("tls:127.0.0.1:{}", server.port))).await;
    assert!(told.contains("is not there after 30 s"), "it speaks no TLS: {told}");
}

#[tokio::test(start_paused = true)]
async fn an_object_has_to_be_ready() {
    let stage = Stage::on(Drydock::builder(), 0).await;
    let spec = json!({"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": {
        "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "shop/api:1"}]}}});
    let later = async {
        tokio::time::sleep(Duration::from_secs(7)).await;
        stage.create("apps/v1", "Deployment", json!({"metadata": {"name": "api"}, "spec": spec})).await;
    };
    let task = after("deploy/api=Available");
    let (told, ()) = tokio::join!(wait(&stage, &task), later);
    assert_eq!(told, "there");
    let notes = stage.notes();
    assert!(notes.iter().any(|note| note.contains("deployments.apps \"api\" not found")), "{notes:?}");
    let told = wait(&stage, &after("deploy/other=Available")).await;
    assert_eq!(told, "deploy/other=Available is not there after 30 s: deployments.apps \"other\" not found");
    let told = wait(&stage, &after("deploymnt/api=Available")).await;
    assert!(told.ends_with("did you mean `Deployment`?"), "{told}");
}
