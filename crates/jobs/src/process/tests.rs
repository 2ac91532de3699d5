//! Groups that end by themselves, on request, and only by force.

use super::Group;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

const GRACE: Duration = Duration::from_secs(30);

/// A shell that has written something, so that its traps are set.
async fn shell(line: &str) -> Group {
    let mut command = Command::new("sh");
    let mut group = Group::spawn(command.args(["-c", line]).stdout(Stdio::piped()).stderr(Stdio::null())).unwrap();
    group.child.stdout.as_mut().unwrap().read_u8().await.unwrap();
    group
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
