//! A process that dies at any batch: the next one goes on, and together they have sent everything.

use super::stage::{Collector, Deed, Happening, PATHS, Stage, backfill, compare};
use jobwright_jobs::backfill::{Backfill, CheckpointStore, ConfigMapCheckpoint, Counts, FileCheckpoint, Summary};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Where checkpoints are kept.
#[derive(Clone, Copy, Debug)]
enum Kept {
    File,
    ConfigMap,
}

struct Play {
    stage: Arc<Stage>,
    directory: tempfile::TempDir,
    kept: Kept,
}

impl Play {
    async fn new(kept: Kept) -> Self {
        Self { stage: Arc::new(Stage::new(30).await), directory: tempfile::tempdir().unwrap(), kept }
    }

    fn store(&self) -> Arc<dyn CheckpointStore> {
        match self.kept {
            Kept::File => Arc::new(FileCheckpoint::new(self.directory.path().join("checkpoint"))),
            Kept::ConfigMap => {
                Arc::new(ConfigMapCheckpoint::new(&self.stage.stranger(), "default", "progress", self.stage.retry()))
            }
        }
    }

    /// Runs a process until its sink stops answering, and ends it there. Says whether it was ended.
    async fn die(&self, backfill: &Backfill, sink: &Arc<Collector>) -> bool {
        let run = self.stage.run_with(backfill, sink, Some(self.store()), CancellationToken::new());
        tokio::select! {
            _ = run => false,
            () = sink.died() => true,
        }
    }

    async fn go_on(&self, backfill: &Backfill, sink: &Arc<Collector>) -> Summary {
        self.stage.run_with(backfill, sink, Some(self.store()), CancellationToken::new()).await
    }
}

/// Without the checkpoint itself, which is an object, too.
fn others(kinds: &[&str]) -> Backfill {
    Backfill { kinds: kinds.iter().map(|kind| (*kind).into()).collect(), ..backfill() }
}

#[tokio::test(start_paused = true)]
async fn stopped_at_every_batch_the_next_process_completes_it() {
    for kept in [Kept::File, Kept::ConfigMap] {
        for deed in [Deed::Die, Deed::TakeAndDie] {
            let mut at = 1;
            loop {
                let play = Play::new(kept).await;
                let (first, dies) = (deed.clone(), at);
                let sink = Collector::new(move |number| if number == dies { first.clone() } else { Deed::Take });
                let backfill = others(&["secrets", "pods", "widgets.example.com"]);
                let died = play.die(&backfill, &sink).await;
                if !died {
                    break;
                }
                let before: BTreeSet<String> = sink.ids().into_iter().collect();
                let second = Collector::new(|_| Deed::Take);
                let summary = play.go_on(&backfill, &second).await;
                let context = format!("{kept:?}, {deed:?} at batch {at}");
                assert!(summary.complete && summary.resumed, "{context}: {summary:?}");
                let (mut arrived, again) = sink.objects();
                let (more, again_later) = second.objects();
                let twice = more.keys().filter(|key| arrived.contains_key(*key)).count();
                arrived.extend(more);
                compare(&arrived, &play.stage.expected(&PATHS[1..]).await, &context);
                assert_eq!((again, again_later), (0, 0), "{context}: within a process nothing comes twice");
                // What is sent twice has the same id, so that a sink can tell.
                let ids: BTreeSet<String> = second.ids().into_iter().collect();
                let same = before.intersection(&ids).count();
                assert!(twice <= same * 7, "{context}: {twice} objects in {same} batches came twice");
                if matches!(kept, Kept::File) {
                    assert!(same <= 4, "{context}: no more than what was on its way comes twice: {same}");
                }
                at += 1;
            }
            assert!(at > 5, "there are only {at} batches");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_comes_too_late_for_the_moment_of_a_list_sends_some_of_it_again() {
    let play = Play::new(Kept::File).await;
    let backfill = others(&["configmaps"]);
    let sink = Collector::new(|number| if number == 4 { Deed::Die } else { Deed::Take });
    assert!(play.die(&backfill, &sink).await);
    play.stage.create("v1", "Namespace", serde_json::json!({"metadata": {"name": "later"}})).await;
    play.stage.drydock.compact();
    let second = Collector::new(|_| Deed::Take);
    let summary = play.go_on(&backfill, &second).await;
    assert!(summary.complete && summary.resumed);
    let Counts { expired, repeated, listed, sent, .. } = summary.total();
    let (mut arrived, _) = sink.objects();
    let (more, _) = second.objects();
    let twice = more.keys().filter(|key| arrived.contains_key(*key)).count() as u64;
    arrived.extend(more);
    compare(&arrived, &play.stage.expected(&PATHS[..1]).await, "in the end");
    assert_eq!(expired, 1);
    assert_eq!(repeated, twice, "those that came twice are counted");
    assert_eq!((listed, sent), (30, 30 + repeated));
}

#[tokio::test(start_paused = true)]
async fn a_moment_that_is_forgotten_on_the_first_page_begins_the_list_again() {
    let play = Play::new(Kept::File).await;
    let backfill = Backfill { page_size: 500, ..others(&["configmaps"]) };
    let sink = Collector::new(|number| if number == 3 { Deed::Die } else { Deed::Take });
    assert!(play.die(&backfill, &sink).await);
    play.stage.create("v1", "Namespace", serde_json::json!({"metadata": {"name": "later"}})).await;
    play.stage.drydock.compact();
    let second = Collector::new(|_| Deed::Take);
    let summary = play.go_on(&backfill, &second).await;
    assert!(summary.complete);
    let Counts { expired, repeated, listed, sent, .. } = summary.total();
    assert_eq!((expired, repeated, listed, sent), (1, 14, 30, 44));
    assert_eq!(second.objects().0.len(), 30);
    assert!(play.stage.notes().iter().any(|note| note.contains("the list begins again; 14 objects may be sent twice")));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_asked_something_else_or_is_too_old_or_over_begins_anew_and_says_so() {
    let play = Play::new(Kept::File).await;
    let backfill = others(&["configmaps"]);
    let dying = || Collector::new(|number| if number == 3 { Deed::Die } else { Deed::Take });
    let taking = || Collector::new(|_| Deed::Take);
    assert!(play.die(&backfill, &dying()).await);
    let other = Backfill { namespaces: vec!["default".to_owned()], ..backfill.clone() };
    let summary = play.go_on(&other, &taking()).await;
    assert!(summary.complete && !summary.resumed);
    assert!(play.stage.notes().iter().any(|note| note.contains("asked to do something else")));

    assert!(play.die(&backfill, &dying()).await);
    tokio::time::sleep(Duration::from_hours(2)).await;
    let sink = taking();
    let summary = play.go_on(&backfill, &sink).await;
    assert!(summary.complete && !summary.resumed);
    assert!(play.stage.notes().iter().any(|note| note.contains("too long ago")));
    assert_eq!(sink.objects().0.len(), 30);

    let summary = play.go_on(&backfill, &taking()).await;
    assert!(summary.complete && !summary.resumed, "the last one was over");
}

#[tokio::test(start_paused = true)]
async fn processes_that_die_one_after_the_other_come_to_the_end_while_others_come_and_go() {
    let play = Play::new(Kept::File).await;
    let backfill = Backfill { concurrency: 2, ..backfill() };
    let mut arrived = std::collections::BTreeMap::new();
    let before = play.stage.expected(&PATHS).await;
    for process in 0_usize.. {
        assert!(process < 40, "it does not come to its end");
        let stage = Some(Arc::clone(&play.stage));
        let sink = Collector::in_stage(stage, move |number| match number {
            1 => Deed::Meanwhile(Happening::Create(format!("aa-{process}"))),
            2 if process % 3 == 0 => Deed::Meanwhile(Happening::Forget),
            3 => Deed::TakeAndDie,
            _ => Deed::Take,
        });
        let died = play.die(&backfill, &sink).await;
        arrived.extend(sink.objects().0);
        if !died {
            break;
        }
    }
    for (key, object) in before {
        assert_eq!(arrived.get(&key), Some(&object), "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_is_deleted_while_it_runs_is_created_again() {
    let play = Play::new(Kept::ConfigMap).await;
    let sink = Collector::in_stage(Some(Arc::clone(&play.stage)), |number| match number {
        2 => Deed::Meanwhile(Happening::Delete("progress".to_owned())),
        _ => Deed::Take,
    });
    let summary = play.go_on(&others(&["pods"]), &sink).await;
    assert!(summary.complete, "{summary:?}");
    let checkpoint = play.store().load().await.unwrap().unwrap();
    assert!(checkpoint.over && checkpoint.run == summary.run, "{:?}", play.stage.notes());
}
