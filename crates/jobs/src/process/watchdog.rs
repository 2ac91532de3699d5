//! The watchdog of a process group: ends the group when the process that started it is gone, or stopped.
//!
//! It leads the group, so that it exists before the program does, and holds one end of a pipe whose other end only the
//! process that started it has. However that process ends, the kernel closes its end. A process that is stopped, by Ctrl-Z
//! or because it hangs, no longer writes to the pipe: it does not renew its lease either, and another process may take the
//! lease over and start the same program.

use super::members;
use jobwright_engine::Watchdog;
use rustix::process::{Signal, getpgrp, getpid, kill_current_process_group};
use std::io::{self, Read};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

/// How long a group may take to end after SIGTERM. Together with [`SILENCE`] less than the 12 s after which another process
/// may take the lease over from one that was killed or stopped.
const GRACE: Duration = Duration::from_secs(5);
/// How often a process shows that it works.
const BEAT: Duration = Duration::from_secs(1);
/// How long a process may show nothing before it counts as stopped.
const SILENCE: Duration = Duration::from_secs(6);
const POLL: Duration = Duration::from_millis(20);

/// Starts a watchdog as the leader of a new process group.
pub(super) fn start(watchdog: &Watchdog) -> io::Result<Child> {
    let mut command = Command::new(&watchdog.program);
    command.args(&watchdog.arguments).process_group(0).kill_on_drop(true);
    // Output that it held open would keep a reader waiting.
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(|error| io::Error::new(error.kind(), format!("cannot start its watchdog: {error}")))
}

/// Shows a watchdog that this process works, until it is dropped.
#[derive(Debug)]
pub(super) struct Beats(JoinHandle<()>);

impl Beats {
    pub(super) fn start(mut pipe: ChildStdin) -> Self {
        Self(tokio::spawn(async move {
            let mut beats = tokio::time::interval(BEAT);
            beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
            // Without its watchdog there is nothing to show it to.
            while pipe.write_all(b"\n").await.is_ok() {
                beats.tick().await;
            }
        }))
    }
}

impl Drop for Beats {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Is a watchdog: waits until `input` ends, or has been silent for 6 s, and ends the process group that this process leads,
/// and with it this process: with SIGTERM, and with SIGKILL what is left after 5 s.
pub async fn watch_group(input: impl Read + Send + 'static) -> io::Result<()> {
    if getpgrp() != getpid() {
        return Err(io::Error::other("this process does not lead its process group"));
    }
    // Signals that the program sends to its group are not meant for its watchdog.
    let ignored = [
        SignalKind::alarm(),
        SignalKind::hangup(),
        SignalKind::interrupt(),
        SignalKind::quit(),
        SignalKind::terminate(),
        SignalKind::user_defined1(),
        SignalKind::user_defined2(),
    ];
    let _ignored = ignored.map(signal);
    wait_for_silence(listen(input)).await;
    kill_current_process_group(Signal::TERM)?;
    kill_current_process_group(Signal::CONT)?;
    let gone = async {
        // Without a `/proc` it is unknown what is left.
        while members::has_others(getpid(), &[getpid()]).unwrap_or(true) {
            tokio::time::sleep(POLL).await;
        }
    };
    let _ = tokio::time::timeout(GRACE, gone).await;
    kill_current_process_group(Signal::KILL)?;
    Ok(())
}

/// Tells of everything that is read, in a thread: standard input cannot be waited for otherwise. An input that cannot be read
/// has ended.
fn listen(mut input: impl Read + Send + 'static) -> mpsc::Receiver<()> {
    let (beats, heard) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut buffer = [0; 64];
        while input.read(&mut buffer).is_ok_and(|read| read > 0) {
            if beats.blocking_send(()).is_err() {
                return;
            }
        }
    });
    heard
}

/// Waits until the beats end, or stop. What was written before a stop says nothing after it.
async fn wait_for_silence(mut beats: mpsc::Receiver<()>) {
    let mut last = Instant::now();
    while let Ok(Some(())) = tokio::time::timeout(SILENCE, beats.recv()).await {
        if last.elapsed() > SILENCE {
            return;
        }
        last = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_process_that_shows_nothing_for_six_seconds_counts_as_stopped() {
        let (beats, heard) = mpsc::channel(1);
        let begun = Instant::now();
        let watching = tokio::spawn(wait_for_silence(heard));
        for _ in 0..5 {
            tokio::time::sleep(BEAT).await;
            beats.send(()).await.unwrap();
        }
        watching.await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), 5 + SILENCE.as_secs());
        drop(beats);
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_is_gone_is_not_waited_for() {
        let (beats, heard) = mpsc::channel::<()>(1);
        drop(beats);
        let begun = Instant::now();
        wait_for_silence(heard).await;
        assert!(begun.elapsed().is_zero());
    }
}
