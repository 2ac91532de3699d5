//! Groups that end by themselves, on request, and only by force.

use super::Group;
use jobwright_engine::Watchdog;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

const GRACE: Duration = Duration::from_secs(30);

/// A shell that has written something, so that its traps are set.
async fn shell(line: &str) -> Group {
    watched(line, None).await
}

async fn watched(line: &str, watchdog: Option<&Watchdog>) -> Group {
    let mut command = Command::new("sh");
    command.args(["-c", line]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut group = Group::spawn_watched(&mut command, watchdog).unwrap();
    group.child.stdout.as_mut().unwrap().read_u8().await.unwrap();
    group
}

/// What a watchdog does, as a script.
fn watchdog() -> Watchdog {
    let line = "trap '' TERM; while read -r _; do :; done; kill -KILL 0";
    Watchdog { program: "sh".into(), arguments: vec!["-c".to_owned(), line.to_owned()] }
}

#[tokio::test]
async fn a_program_that_ends_by_itself_is_reaped_once() {
    let mut group = shell("echo x; exit 7").await;
    assert_eq!(group.wait().await.unwrap().code(), Some(7));
    assert_eq!(group.wait().await.unwrap().code(), Some(7));
    assert_eq!(group.end(GRACE).await.unwrap().code(), Some(7));
}

#[tokio::test]
async fn a_program_that_is_asked_to_end_keeps_its_own_status() {
    let mut group = shell("trap 'exit 3' TERM; echo x; while :; do sleep 0.05; done").await;
    assert_eq!(group.end(GRACE).await.unwrap().code(), Some(3));
}

#[tokio::test]
async fn a_program_that_ignores_sigterm_is_killed() {
    let mut group = shell("trap '' TERM; echo x; while :; do sleep 0.05; done").await;
    assert_eq!(group.end(Duration::from_millis(100)).await.unwrap().signal(), Some(9));
}

#[tokio::test]
async fn a_stopped_program_is_continued_to_end() {
    let mut group = shell("trap 'exit 3' TERM; echo x; kill -STOP $$; while :; do sleep 0.05; done").await;
    let stat = format!("/proc/{}/stat", group.id.as_raw_nonzero());
    while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(group.end(GRACE).await.unwrap().code(), Some(3));
}

#[tokio::test]
async fn a_watched_program_ends_as_one_that_is_not_watched() {
    let watchdog = watchdog();
    let mut group = watched("echo x; exit 7", Some(&watchdog)).await;
    assert_ne!(group.id, group.program);
    assert_eq!(group.wait().await.unwrap().code(), Some(7));
    let mut group = watched("trap 'exit 3' TERM; echo x; while :; do sleep 0.05; done", Some(&watchdog)).await;
    assert_eq!(group.end(GRACE).await.unwrap().code(), Some(3));
    let mut group = watched("trap '' TERM; echo x; while :; do sleep 0.05; done", Some(&watchdog)).await;
    assert_eq!(group.end(Duration::from_millis(100)).await.unwrap().signal(), Some(9));
    let leader = group.id.as_raw_nonzero();
    assert!(!std::path::Path::new(&format!("/proc/{leader}")).exists(), "the watchdog is gone, too");
}

#[tokio::test]
async fn a_group_ends_when_the_input_of_its_watchdog_does() {
    let mut group = watched("echo x; while :; do sleep 0.05; done", Some(&watchdog())).await;
    // As if this process had been killed.
    drop(group.beats.take());
    assert_eq!(group.wait().await.unwrap().signal(), Some(9));
}

#[tokio::test]
async fn without_its_watchdog_a_program_is_not_started() {
    let nowhere = Watchdog { program: "/nowhere/watchdog".into(), arguments: Vec::new() };
    let error = Group::spawn_watched(&mut Command::new("true"), Some(&nowhere)).unwrap_err();
    assert!(error.to_string().starts_with("cannot start its watchdog: "), "{error}");
}
