//! The watchdog of a process group: ends the group when the process that started it is gone.
//!
//! It leads the group, so that it exists before the program does, and holds one end of a pipe whose other end only the
//! process that started it has. However that process ends, the kernel closes its end.

use super::members;
use jobwright_engine::Watchdog;
use rustix::process::{Signal, getpgrp, getpid, kill_current_process_group};
use std::io::{self, Read};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

/// How long a group may take to end after SIGTERM: another process may take the lease over 12 s after this one was killed.
const GRACE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// Starts a watchdog as the leader of a new process group.
pub(super) fn start(watchdog: &Watchdog) -> io::Result<Child> {
    let mut command = Command::new(&watchdog.program);
    command.args(&watchdog.arguments).process_group(0).kill_on_drop(true);
    // Output that it held open would keep a reader waiting.
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(|error| io::Error::new(error.kind(), format!("cannot start its watchdog: {error}")))
}

/// Is a watchdog: waits until `input` ends, and ends the process group that this process leads, and with it this process:
/// with SIGTERM, and with SIGKILL what is left after 5 s.
pub async fn watch_group(mut input: impl Read + Send + 'static) -> io::Result<()> {
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
    let ended = tokio::task::spawn_blocking(move || io::copy(&mut input, &mut io::sink())).await;
    // An input that cannot be read has ended, too.
    drop(ended);
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
