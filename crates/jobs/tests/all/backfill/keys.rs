//! Idempotency keys, to a server that honours them: the same key never carries different content.

use super::http_sink::quick;
use super::receiver::Receiver;
use super::stage::{PATHS, Stage, compare};
use jobwright_jobs::backfill::{Backfill, Compression, ConfigMapCheckpoint, HttpSink, Summary, TlsSources, Transport};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Sends to a receiver, with a checkpoint in a ConfigMap: it is written at the beginning, and then every five seconds.
async fn run(stage: &Stage, backfill: &Backfill, receiver: &Receiver) -> Summary {
    let transport = Transport::new(TlsSources::default());
    let (uri, clock) = (receiver.address().parse().unwrap(), stage.surroundings().clock);
    let sink = Arc::new(HttpSink::new(uri, Compression::None, transport, None, clock));
    let store = Arc::new(ConfigMapCheckpoint::new(&stage.stranger(), "default", "progress", stage.retry()));
    backfill.run(stage.surroundings(), sink, Some(store), CancellationToken::new()).await.unwrap()
}

#[tokio::test]
async fn run_killed_before_its_checkpoint_sends_other_content_under_other_keys() {
    let stage = Stage::new(60).await;
    let receiver = Receiver::start(|_| None).await;
    let backfill = Backfill { kinds: vec!["pods".into()], ..quick() };
    tokio::select! {
        _ = run(&stage, &backfill, &receiver) => panic!("it ended before it was killed"),
        () = receiver.reaches(2) => {}
    }
    // Every object moves up in the list that the next process reads: the same batches have other objects.
    for name in ["pod-000", "pod-003", "pod-009"] {
        stage.api("v1", "Pod").delete(name, &kube::api::DeleteParams::default()).await.unwrap();
    }
    let stage = stage.restarted();
    let summary = run(&stage, &backfill, &receiver).await;
    assert!(summary.complete && summary.resumed, "{summary:?}");
    let expected = stage.expected(&PATHS[2..3]).await;
    let mut arrived = receiver.objects();
    arrived.retain(|key, _| expected.contains_key(key));
    compare(&arrived, &expected, "what exists");
}

#[tokio::test]
async fn run_killed_before_its_checkpoint_sends_the_same_content_under_the_same_keys() {
    let stage = Stage::new(60).await;
    let receiver = Receiver::start(|_| None).await;
    let backfill = Backfill { kinds: vec!["pods".into()], ..quick() };
    tokio::select! {
        _ = run(&stage, &backfill, &receiver) => panic!("it ended before it was killed"),
        () = receiver.reaches(2) => {}
    }
    let stage = stage.restarted();
    let summary = run(&stage, &backfill, &receiver).await;
    assert!(summary.complete && summary.resumed, "{summary:?}");
    compare(&receiver.objects(), &stage.expected(&PATHS[2..3]).await, "what exists");
    assert!((1..=2).contains(&receiver.dropped()), "{} were dropped", receiver.dropped());
}
