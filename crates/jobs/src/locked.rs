//! A program that runs while this process holds a lease: two of them never run at the same time, in whatever pods.

use crate::process::Group;
use jobwright_engine::{Claim, Clock, Events, Lease, Watchdog};
use kube::Client;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// How long a program may take to end once the lease is lost: what is left until another process may take it.
const AFTER_LOSS: Duration = Duration::from_secs(3);
/// How long a program that is told to end may take: whoever tells it, such as the kubelet, has a time limit of its own.
const FOREVER: Duration = Duration::from_hours(24 * 365);

/// Ends a locked program before its time.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Asks the program to end (SIGTERM), or the wait for the lease.
    pub end: CancellationToken,
    /// Kills the program.
    pub kill: CancellationToken,
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The program has ended, by itself or because it was told to.
    Ended(ExitStatus),
    /// It was cancelled before the program started.
    NotStarted,
    /// The lease was lost, so the program was ended.
    Lost(ExitStatus),
}

/// Why a program did not run, or is not known to have ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The lease cannot be had.
    #[error(transparent)]
    Lease(#[from] jobwright_engine::Error),
    /// There is no such program, or it cannot be executed.
    #[error("cannot start `{program}`")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// Something of it cannot be killed. The lease is not released; it expires.
    #[error("lost track of `{program}`")]
    Astray {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
}

/// Takes a lease, runs a program while holding it, and releases it once nothing of the program is left.
pub async fn run_locked(
    client: &Client,
    clock: &Clock,
    events: &Events,
    claim: Claim,
    command: &mut Command,
    watchdog: Option<&Watchdog>,
    stop: &Stop,
) -> Result<Ending, Error> {
    let program = || command.as_std().get_program().display().to_string();
    let lease = tokio::select! {
        biased;
        () = stop.end.cancelled() => return Ok(Ending::NotStarted),
        taken = Lease::take(client, claim, clock, events) => taken?,
    };
    let program = program();
    let mut group = match Group::spawn_watched(command, watchdog) {
        Ok(group) => group,
        Err(source) => {
            lease.release().await;
            return Err(Error::Start { program, source });
        }
    };
    let ended = attend(&mut group, &lease, stop).await.map_err(|source| Error::Astray { program, source })?;
    lease.release().await;
    Ok(ended)
}

async fn attend(group: &mut Group, lease: &Lease, stop: &Stop) -> io::Result<Ending> {
    tokio::select! {
        status = group.wait() => return status.map(Ending::Ended),
        () = stop.end.cancelled() => {}
        () = lease.lost() => return group.end(AFTER_LOSS).await.map(Ending::Lost),
    }
    tokio::select! {
        status = group.end(FOREVER) => return status.map(Ending::Ended),
        () = stop.kill.cancelled() => {}
        () = lease.lost() => return group.end(AFTER_LOSS).await.map(Ending::Lost),
    }
    group.end(Duration::ZERO).await.map(Ending::Ended)
}
