//! Programs of the machine that deploys.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use crate::support::{Lab, place};
use jobwright_engine::{JobOutcome, Retries};
use jobwright_jobs::Command;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

fn shell(line: &str) -> Command {
    Command {
        place: place("command"),
        program: "sh".to_owned(),
        arguments: vec!["-c".to_owned(), line.to_owned()],
        environment: BTreeMap::from([("GREETING".to_owned(), "hello".to_owned())]),
        directory: None,
    }
}

#[tokio::test]
async fn a_program_runs_and_is_heard() {
    let lab = Lab::new();
    let (report, lines) = lab.run(shell("echo $GREETING $JOBWRIGHT_RELEASE; echo more >&2")).await;
    assert_eq!(report.outcome, JobOutcome::Succeeded, "{}", report.reason);
    assert!(lines.contains(&"hello shop".to_owned()) && lines.contains(&"more".to_owned()), "{lines:?}");
}

#[tokio::test]
async fn a_program_that_fails_or_is_not_there_is_a_failure() {
    let lab = Lab::new();
    let (report, _) = lab.run(shell("exit 7")).await;
    assert_eq!(report.reason, "`sh` ended with exit status: 7");
    let (report, _) = lab.run(Command { program: "/nowhere/program".to_owned(), ..shell("") }).await;
    assert!(
        report.reason.starts_with("cannot start `/nowhere/program` (a `command` runs where you deploy from)"),
        "{}",
        report.reason
    );
}

#[tokio::test]
async fn a_program_is_told_to_end_with_the_deploy() {
    let lab = Lab::new();
    let token = lab.cancellation.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        token.cancel();
    });
    let (report, lines) =
        lab.run(shell("trap 'echo leaving; exit 3' TERM; echo here; while :; do sleep 0.1; done")).await;
    assert_eq!(report.outcome, JobOutcome::Failed);
    // The shell may also report that its `sleep` was terminated.
    let heard: Vec<&str> = lines.iter().map(String::as_str).filter(|line| *line != "Terminated").collect();
    assert_eq!(heard, ["here", "leaving"], "{}", report.reason);
}

/// Longer than anything here takes: a test that waits for this hangs.
const HANGS: Duration = Duration::from_mins(1);

/// The process whose id was written into a file.
fn process(file: &Path) -> Option<u32> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Whether a process runs. One that nobody has waited for yet does not.
fn is_running(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

async fn until(condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(HANGS, wait).await.unwrap();
}

#[tokio::test]
async fn attempts_never_overlap_though_an_attempt_leaves_a_process_behind() {
    let lab = Lab::new();
    let directory = tempfile::tempdir().unwrap();
    let lock = directory.path().join("lock");
    // What is left behind holds a lock until it has cleaned up.
    let script = format!(
        "mkdir {lock} || {{ echo overlap; exit 9; }}
         sh -c \"trap 'sleep 0.3; rmdir {lock}; exit' TERM; while :; do sleep 0.05; done\" >/dev/null 2>&1 &
         sleep 0.2; exit 1",
        lock = lock.display()
    );
    let mut job = shell(&script);
    job.place.retries = Retries { limit: 2, backoff: Duration::from_millis(1) };
    let (report, lines) = tokio::time::timeout(HANGS, lab.run(job)).await.unwrap();
    assert_eq!((report.outcome, report.attempts), (JobOutcome::Failed, 3), "{}", report.reason);
    assert!(!lines.contains(&"overlap".to_owned()), "{lines:?}");
    assert!(!lock.exists(), "what was left behind was asked to end before it was killed");
}

#[tokio::test]
async fn a_process_left_behind_that_ignores_sigterm_is_killed_before_the_attempt_ends() {
    for end in ["exit 0", "exit 1"] {
        let lab = Lab::new();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("id");
        let script = format!(
            "sh -c 'trap \"\" TERM; echo $$ > {file}; while :; do sleep 0.05; done' >/dev/null 2>&1 &
             while ! [ -s {file} ]; do sleep 0.01; done; {end}",
            file = file.display()
        );
        tokio::time::timeout(HANGS, lab.run(shell(&script))).await.unwrap();
        assert!(!is_running(process(&file).unwrap()), "after `{end}`");
    }
}

#[tokio::test]
async fn output_held_open_by_a_process_that_left_the_group_does_not_keep_the_attempt() {
    let lab = Lab::new();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("id");
    let script = format!(
        "setsid sh -c 'echo $$ > {file}; exec sleep 300' &
         while ! [ -s {file} ]; do sleep 0.01; done; echo done; printf unfinished",
        file = file.display()
    );
    let ran = tokio::time::timeout(Duration::from_secs(30), lab.run(shell(&script))).await;
    let escaped = process(&file).unwrap();
    assert!(is_running(escaped), "it has left the group");
    let _ = std::process::Command::new("kill").arg(escaped.to_string()).status();
    let (report, lines) = ran.unwrap();
    assert_eq!(report.outcome, JobOutcome::Succeeded, "{}", report.reason);
    assert_eq!(lines, ["done", "unfinished"]);
}

#[tokio::test]
async fn a_cancelled_deploy_ends_what_the_program_started() {
    let lab = Lab::new();
    let token = lab.cancellation.clone();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("id");
    let started = file.clone();
    tokio::spawn(async move {
        until(|| process(&started).is_some()).await;
        token.cancel();
    });
    let script = format!(
        "trap 'exit 3' TERM
         sh -c 'trap \"sleep 0.2; echo child leaving; exit\" TERM; echo $$ > {file}; while :; do sleep 0.05; done' &
         wait",
        file = file.display()
    );
    let (report, lines) = tokio::time::timeout(HANGS, lab.run(shell(&script))).await.unwrap();
    assert_eq!(report.outcome, JobOutcome::Failed);
    let heard = lines.contains(&"child leaving".to_owned());
    assert!(heard, "the grace period is that of the group: {lines:?}, {}", report.reason);
    assert!(!is_running(process(&file).unwrap()));
}

#[tokio::test]
async fn an_aborted_attempt_kills_its_whole_group() {
    let lab = Lab::new();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("id");
    let script =
        format!("sh -c 'trap \"\" TERM; echo $$ > {file}; while :; do sleep 0.05; done' & wait", file = file.display());
    let deploy = lab.run(shell(&script));
    tokio::select! {
        _ = deploy => panic!("it cannot have ended"),
        () = until(|| process(&file).is_some()) => {}
    }
    let left = process(&file).unwrap();
    until(|| !is_running(left)).await;
}

#[tokio::test]
async fn a_very_long_line_is_cut_and_the_next_one_is_heard() {
    let lab = Lab::new();
    let (report, lines) = lab.run(shell("head -c 30000000 /dev/zero | tr '\\0' x; echo; echo next")).await;
    assert_eq!(report.outcome, JobOutcome::Succeeded, "{}", report.reason);
    assert_eq!(lines.len(), 2);
    assert!(lines[0].len() < 10_000 && lines[0].starts_with("xxx") && lines[0].ends_with('…'), "{}", lines[0].len());
    assert_eq!(lines[1], "next");
}
