//! Programs of the machine that deploys.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::support::{Lab, place};
use jobwright_engine::JobOutcome;
use jobwright_jobs::Command;
use std::collections::BTreeMap;
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
    assert_eq!(lines, ["here", "leaving"], "{}", report.reason);
}
