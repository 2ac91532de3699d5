//! A forced deploy is seen by the missing mark: the backfill runs once more for it, and not otherwise; also when it is
//! killed at any call. The judge is the file that a complete backfill leaves, and what was asked of the cluster.

use super::http_sink::{run, to};
use super::stage::{Stage, backfill};
use crate::release::{Deploy, NAME, Tracked};
use jobwright_drydock::{Builder, Call, Drydock, Fault, When};
use jobwright_jobs::Mark;
use jobwright_jobs::backfill::{Backfill, CheckpointPlace, Once, Summary, Task};
use std::path::PathBuf;
use std::time::Duration;

struct Play {
    stage: Stage,
    directory: tempfile::TempDir,
}

/// What follows a run that was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Retry,
    Ordinary,
    Forced,
}

const THENS: [Then; 3] = [Then::Retry, Then::Ordinary, Then::Forced];

fn builder() -> Builder {
    Drydock::builder().bare()
}

impl Play {
    async fn new() -> Self {
        Self { stage: Stage::on(builder(), 6).await, directory: tempfile::tempdir().unwrap() }
    }

    /// A release that was installed and captured.
    async fn installed() -> Self {
        let play = Self::new().await;
        play.deploy(Deploy::Patch, "1.a").await;
        assert!(play.captures(&play.task("k")).await, "the first one runs");
        play
    }

    fn tracked(&self) -> Tracked {
        Tracked::new(self.stage.stranger(), "default")
    }

    async fn deploy(&self, how: Deploy, identity: &str) {
        self.tracked().deploy(how, identity).await;
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("out.ndjson")
    }

    fn task(&self, key: &str) -> Task {
        let once = Once { key: key.to_owned(), holds: None, force: false, forced: None };
        Task {
            backfill: Backfill { kinds: vec!["secrets".into()], once: Some(once), ..backfill() },
            checkpoint: Some(CheckpointPlace::ConfigMap("progress".to_owned())),
            mark: Some(Mark { config_map: NAME.to_owned() }),
            ..to(&format!("file:{}", self.file().display()))
        }
    }

    /// Runs it, and says whether it has captured the cluster. What it said agrees.
    async fn captures(&self, task: &Task) -> bool {
        let (summary, is_there) = self.attempt(task).await;
        assert!(summary.complete, "{summary:?}");
        assert_eq!(is_there, summary.kept.is_none() && summary.skipped.is_none(), "{summary:?}");
        is_there
    }

    async fn attempt(&self, task: &Task) -> (Summary, bool) {
        let _ = std::fs::remove_file(self.file());
        let stage = self.stage.restarted();
        let summary = run(&stage, task).await.unwrap();
        (summary, self.file().exists())
    }
}

#[tokio::test(start_paused = true)]
async fn helm_force_runs_it_again_once_and_ordinary_upgrades_do_not() {
    let play = Play::installed().await;
    for (how, identity, key, expected) in [
        (Deploy::Patch, "2.a", "k", false),
        (Deploy::Replace, "3.a", "k", true),
        (Deploy::Patch, "4.a", "k", false),
        (Deploy::Apply, "5.b", "k2", true),
        (Deploy::Replace, "6.b", "k2", true),
        (Deploy::Replace, "7.c", "k3", true),
        (Deploy::Apply, "8.c", "k3", false),
    ] {
        // As another deployer would, without a conflict.
        if how == Deploy::Apply {
            play.deploy(Deploy::Patch, identity).await;
        } else {
            play.deploy(how, identity).await;
        }
        assert_eq!(play.captures(&play.task(key)).await, expected, "{how:?} {identity}");
        assert!(!play.captures(&play.task(key)).await, "{how:?} {identity}: a second run");
        assert_eq!(play.tracked().marks().await, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn argocd_replace_counts_once_per_change_and_another_uid_does_not() {
    let play = Play::new().await;
    play.deploy(Deploy::Replace, "1.a").await;
    assert!(play.captures(&play.task("k")).await);
    for (identity, expected) in [("1.a", false), ("1.b", true), ("1.b", false), ("1.b", false), ("1.c", true)] {
        play.deploy(Deploy::Replace, identity).await;
        assert_eq!(play.captures(&play.task("k")).await, expected, "{identity}");
    }
    play.tracked().delete().await;
    play.deploy(Deploy::Replace, "1.d").await;
    assert!(!play.captures(&play.task("k")).await, "installed again");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_only_for_forced_deploys_ends_without_the_lock() {
    let play = Play::new().await;
    play.deploy(Deploy::Patch, "1.a").await;
    let only = Task { only_if_forced: true, ..play.task("k") };
    // Nothing is complete yet: that is the other Job's affair.
    let (summary, _) = play.attempt(&only).await;
    assert_eq!(summary.skipped.as_deref(), Some("no deploy was forced"));
    assert!(play.captures(&play.task("k")).await);

    play.deploy(Deploy::Patch, "2.a").await;
    let stage = play.stage.restarted();
    let other = Task { only_if_forced: true, ..play.task("k2") };
    assert!(run(&stage, &other).await.unwrap().skipped.is_some(), "a changed Job runs by itself");
    let calls: Vec<String> = stage.faults.calls().iter().map(ToString::to_string).collect();
    let get = |name: &str| format!("get configmaps/default/{name}");
    let identity = "get namespaces/kube-system".to_owned();
    assert_eq!(calls, [get("progress"), get(NAME), identity, get("progress")], "neither the lock nor a write");

    play.deploy(Deploy::Replace, "3.a").await;
    assert!(play.captures(&only).await);
    assert!(!play.captures(&only).await && !play.captures(&play.task("k")).await, "one of the two Jobs has run");
}

#[tokio::test(start_paused = true)]
async fn a_run_without_a_mark_changes_nothing_that_is_known_of_forced_deploys() {
    let play = Play::installed().await;
    play.deploy(Deploy::Replace, "2.a").await;
    assert!(play.captures(&play.task("k")).await);
    let plain = Task { mark: None, ..play.task("k") };
    assert!(!play.captures(&plain).await, "it was complete");
    assert!(play.captures(&Task { mark: None, ..play.task("k2") }).await);
    assert!(!play.captures(&play.task("k2")).await, "the forced deploy was answered before");
}

#[tokio::test(start_paused = true)]
async fn what_began_before_a_forced_deploy_is_not_resumed() {
    let play = Play::installed().await;
    let key = play.task("k2");
    let stage = play.stage.restarted();
    let is_list = |call: &Call| call.verb == "list" && call.resource == "secrets";
    stage.faults.on(is_list).fail(Fault::Slow(Duration::from_hours(1)));
    let killed = tokio::time::timeout(Duration::from_mins(1), run(&stage, &key)).await;
    assert!(killed.is_err(), "{killed:?}");
    play.deploy(Deploy::Replace, "2.a").await;
    let (summary, is_there) = play.attempt(&key).await;
    assert!(is_there && !summary.resumed, "{summary:?}");
}

/// A run, killed at a call, and what follows. Gives the number of calls, if it was not killed.
async fn killed_at(is_forced: bool, call: usize, when: When, then: Then) -> Option<usize> {
    let context = format!("forced: {is_forced}, killed {when:?} call {call}, then {then:?}");
    let play = Play::installed().await;
    let task = play.task("k");
    play.deploy(if is_forced { Deploy::Replace } else { Deploy::Patch }, "2.a").await;
    let _ = std::fs::remove_file(play.file());
    let stage = play.stage.restarted();
    stage.faults.stop_at(call, when);
    let killed = tokio::select! {
        _ = run(&stage, &task) => false,
        () = stage.faults.stopped() => true,
    };
    if !killed {
        return Some(stage.faults.calls().len());
    }
    // What the killed process has captured may not be known: then it is captured twice.
    let was_there = play.file().exists();
    match then {
        Then::Retry => {}
        Then::Ordinary => play.deploy(Deploy::Patch, "3.a").await,
        Then::Forced => play.deploy(Deploy::Replace, "3.a").await,
    }
    let captured = play.captures(&task).await;
    let wanted = is_forced && !was_there || then == Then::Forced;
    let needless = captured && !wanted;
    assert!(captured || !wanted, "{context}: a forced deploy was lost");
    assert!(!needless || is_forced && was_there, "{context}: a forced deploy was invented");
    play.deploy(Deploy::Patch, "8.a").await;
    assert!(!play.captures(&task).await, "{context}: something is still owed");
    play.deploy(Deploy::Replace, "9.a").await;
    assert!(play.captures(&task).await, "{context}: a later forced deploy does not count");
    None
}

#[tokio::test(start_paused = true)]
async fn a_kill_at_any_call_neither_invents_nor_loses_a_forced_deploy() {
    for (is_forced, least) in [(true, 14), (false, 3)] {
        let mut calls = None;
        for call in 1.. {
            for (when, then) in THENS.into_iter().flat_map(|then| [(When::Before, then), (When::After, then)]) {
                calls = calls.or(killed_at(is_forced, call, when, then).await);
            }
            if calls.is_some() {
                assert!(call > least, "only {call} calls");
                break;
            }
        }
    }
}

/// The first run on a ConfigMap is the only one that can lose a force: killed after its mark, before it has remembered.
#[tokio::test(start_paused = true)]
async fn a_first_run_killed_at_any_call_is_not_forced() {
    let mut lost = Vec::new();
    for call in 1.. {
        let mut was_killed = false;
        for then in THENS {
            // It was complete before marks were used.
            let play = Play::new().await;
            let task = play.task("k");
            assert!(play.captures(&Task { mark: None, ..task.clone() }).await);
            play.deploy(Deploy::Patch, "1.a").await;
            let stage = play.stage.restarted();
            stage.faults.stop_at(call, When::After);
            was_killed |= tokio::select! {
                _ = run(&stage, &task) => false,
                () = stage.faults.stopped() => true,
            };
            match then {
                Then::Retry => {}
                Then::Ordinary => play.deploy(Deploy::Patch, "3.a").await,
                Then::Forced => play.deploy(Deploy::Replace, "3.a").await,
            }
            let captured = play.captures(&task).await;
            if then != Then::Forced {
                assert!(!captured, "killed after call {call}, then {then:?}: a forced deploy was invented");
            } else if !captured {
                lost.push(stage.faults.calls().get(call - 1).map(ToString::to_string).unwrap_or_default());
            }
        }
        if !was_killed {
            break;
        }
    }
    let get = |name: &str| format!("get configmaps/default/{name}");
    let mark = format!("patch configmaps/default/{NAME}");
    // Until it has marked it is no run that could notice anything; then two reads, and it remembers.
    let expected = [get("progress"), get(NAME), get("progress"), mark, get("progress"), get(NAME)];
    assert_eq!(lost, expected);
}

#[tokio::test(start_paused = true)]
async fn a_fault_at_any_call_changes_nothing() {
    let faults = [
        Fault::Conflict,
        Fault::TooManyRequests { retry_after: 2 },
        Fault::Internal,
        Fault::TimeOut(When::After),
        Fault::Disconnect(When::After),
        Fault::Slow(Duration::from_mins(3)),
    ];
    let mut points = 0;
    for is_forced in [true, false] {
        // The calls of the marks: two reads, and for a forced deploy five more with two writes.
        for call in 1..=if is_forced { 7 } else { 2 } {
            for fault in &faults {
                let play = Play::installed().await;
                play.deploy(if is_forced { Deploy::Replace } else { Deploy::Patch }, "2.a").await;
                let _ = std::fs::remove_file(play.file());
                let stage = play.stage.restarted();
                stage.faults.on(|_| true).skip(call - 1).times(1).fail(fault.clone());
                let summary = run(&stage, &play.task("k")).await.unwrap();
                assert!(summary.complete, "{fault:?} at call {call}: {summary:?}");
                assert_eq!(play.file().exists(), is_forced, "{fault:?} at call {call}");
                assert!(!play.captures(&play.task("k")).await, "{fault:?} at call {call}: something is owed");
                points += 1;
            }
        }
    }
    assert_eq!(points, 9 * faults.len());
}
