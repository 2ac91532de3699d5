//! A run that is told to stop: what was read is sent, and the next process goes on from there.

use super::stage::{Collector, Deed, PATHS, Stage, backfill, compare};
use jobwright_jobs::backfill::{Backfill, CheckpointStore, Ending, FileCheckpoint};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[tokio::test(start_paused = true)]
async fn what_was_read_is_sent_and_the_next_process_does_the_rest_and_nothing_twice() {
    let stage = Stage::new(60).await;
    let directory = tempfile::tempdir().unwrap();
    let store = || -> Option<Arc<dyn CheckpointStore>> {
        Some(Arc::new(FileCheckpoint::new(directory.path().join("checkpoint"))))
    };
    let token = CancellationToken::new();
    let cancels = token.clone();
    let sink = Collector::new(move |number| {
        if number == 4 {
            cancels.cancel();
        }
        Deed::Take
    });
    let summary = stage.run_with(&backfill(), &sink, store(), token).await;
    assert_eq!(summary.ending(), Ending::Cancelled);
    let (mut arrived, _) = sink.objects();
    assert_eq!(summary.total().sent, arrived.len() as u64);
    let all = stage.expected(&PATHS).await;
    assert!(arrived.len() < all.len());

    let second = Collector::new(|_| Deed::Take);
    let summary = stage.run_with(&backfill(), &second, store(), CancellationToken::new()).await;
    assert!(summary.complete && summary.resumed);
    let (more, _) = second.objects();
    assert!(more.keys().all(|key| !arrived.contains_key(key)), "everything that was sent was written down");
    arrived.extend(more);
    compare(&arrived, &all, "in the end");
    assert_eq!((summary.total().sent, summary.total().listed), (all.len() as u64, all.len() as u64));
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_does_not_answer_does_not_keep_a_run_from_stopping() {
    let stage = Stage::new(30).await;
    let sink = Collector::new(|number| if number > 2 { Deed::Die } else { Deed::Take });
    let token = CancellationToken::new();
    let cancels = token.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        cancels.cancel();
    });
    let summary = tokio::time::timeout(Duration::from_mins(1), stage.run_with(&backfill(), &sink, None, token)).await;
    assert_eq!(summary.unwrap().ending(), Ending::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_stopped_before_it_begins_sends_nothing() {
    let stage = Stage::new(3).await;
    let sink = Collector::new(|_| Deed::Take);
    let token = CancellationToken::new();
    token.cancel();
    let summary = stage.run_with(&Backfill::default(), &sink, None, token).await;
    assert_eq!((summary.ending(), sink.ids().len()), (Ending::Cancelled, 0));
}
