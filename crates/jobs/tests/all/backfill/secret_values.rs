//! Values of Secrets are taken out wherever they are, and the run says so where it does not know them.

use super::http_sink::{run, to};
use super::stage::{Collector, Deed, Stage, backfill};
use jobwright_drydock::{Drydock, Fault};
use jobwright_jobs::backfill::{Backfill, Error, SecretValues, Summary};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const VALUE: &str = "pl4nted hunter-two";

/// A cluster with a value of a Secret where nothing tells that it is one.
async fn stage(rbac: bool) -> Stage {
    let stage = Stage::on(Drydock::builder().bare().rbac(rbac), 6).await;
    let secret = json!({"metadata": {"name": "db"}, "stringData": {"foo": VALUE, "host": "postgres.shop"}});
    stage.create("v1", "Secret", secret).await;
    let container = json!({"name": "c", "image": "shop/api:1", "args": ["-p", VALUE, "postgres.shop"],
        "env": [{"name": "FOO", "value": format!("say {VALUE}!")}]});
    let pod = json!({"metadata": {"name": "api", "annotations": {"note": VALUE}}, "spec": {"containers": [container]}});
    stage.create("v1", "Pod", pod).await;
    stage
}

fn pods(secret_values: SecretValues) -> Backfill {
    Backfill { kinds: vec!["pods".into()], secret_values, ..backfill() }
}

/// What arrives of the pod, and the summary.
async fn capture(stage: &Stage, backfill: &Backfill) -> (Value, Summary) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let task =
        jobwright_jobs::backfill::Task { backfill: backfill.clone(), ..to(&format!("file:{}", file.path().display())) };
    let summary = run(stage, &task).await.unwrap();
    let text = std::fs::read_to_string(file.path()).unwrap();
    let pod = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let pod = pod.into_iter().find(|pod| pod["metadata"]["name"] == "api").unwrap();
    (pod, summary)
}

#[tokio::test(start_paused = true)]
async fn values_of_secrets_never_leave_whatever_they_are_called() {
    let stage = stage(false).await;
    let (pod, summary) = capture(&stage, &pods(SecretValues::Auto)).await;
    let container = &pod["spec"]["containers"][0];
    assert_eq!(container["args"], json!(["-p", "(removed)", "postgres.shop"]));
    assert_eq!(container["env"][0]["value"], "say (removed)!");
    assert_eq!(pod["metadata"]["annotations"]["note"], "(removed)");
    assert_eq!(summary.names_only, None);
}

#[tokio::test(start_paused = true)]
async fn run_that_may_not_list_secrets_says_so_or_sends_nothing() {
    let mut stage = stage(true).await;
    stage.user = Some("visitor");
    stage.allow("visitor", &json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}])).await;
    let (pod, summary) = capture(&stage, &pods(SecretValues::Auto)).await;
    assert!(summary.complete && pod.to_string().contains(VALUE));
    let why = summary.names_only.unwrap();
    assert!(why.contains("403") && why.contains("secrets"), "{why}");
    assert!(stage.notes().iter().any(|note| note.contains("only known by the names of fields")), "{:?}", stage.notes());

    let sink = Collector::new(|_| Deed::Take);
    let required = pods(SecretValues::Require);
    let refused = required.run(stage.surroundings(), sink.clone(), None, CancellationToken::new()).await;
    assert!(matches!(refused, Err(Error::Secrets(_))), "{refused:?}");
    assert!(sink.ids().is_empty());
}

#[tokio::test(start_paused = true)]
async fn secrets_are_not_read_if_told_so() {
    let stage = stage(false).await;
    let (_, summary) = capture(&stage, &pods(SecretValues::Never)).await;
    assert!(summary.names_only.is_some());
    assert!(!stage.faults.calls().iter().any(|call| call.to_string().contains("secrets")));
}

#[tokio::test(start_paused = true)]
async fn list_of_secrets_that_fails_for_a_moment_is_retried_and_for_longer_stops_the_run() {
    for (times, is_sent) in [(3, true), (10_000, false)] {
        let stage = stage(false).await;
        stage.faults.on(|call| call.to_string().starts_with("list secrets")).times(times).fail(Fault::Unavailable);
        let sink = Collector::new(|_| Deed::Take);
        let result =
            pods(SecretValues::Auto).run(stage.surroundings(), sink.clone(), None, CancellationToken::new()).await;
        assert_eq!(result.is_ok(), is_sent, "{result:?}");
        let sent: String = sink.objects().0.values().map(Value::to_string).collect();
        assert!(!sent.contains(VALUE) && sent.is_empty() != is_sent);
    }
}
