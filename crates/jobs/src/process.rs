//! Programs in process groups of their own: what a program started ends with it.
//!
//! The leader of a group is the program itself, or a watchdog that ends the group if this process is killed or stopped. It
//! is reaped last: while it is a zombie its process id, which is also the group's, cannot be given to another process, so
//! that a signal never reaches a stranger.

mod members;
#[cfg(test)]
mod tests;
mod watchdog;

pub use watchdog::watch_group;

use crate::lines::Lines;
use jobwright_engine::{Mask, Watchdog};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::io;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How long what a program left behind may take to end after SIGTERM.
const LEFT_BEHIND: Duration = Duration::from_secs(2);
/// How long a process may take to disappear after SIGKILL: longer only in a call that the kernel cannot interrupt.
const KILLED: Duration = Duration::from_secs(1);
/// How long output is read after the group has ended: a process that left the group may hold it open indefinitely.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How often the rest of a group is checked: only the leader's end is signalled.
const POLL: Duration = Duration::from_millis(20);

/// A program and everything it started, unless that has left its process group.
///
/// Dropping it kills the whole group immediately.
#[derive(Debug)]
pub struct Group {
    child: Child,
    /// The process id of the program.
    program: Pid,
    /// What ends the group if this process is killed or stopped; the leader, if there is one.
    watchdog: Option<Child>,
    /// Shows the watchdog that this process works.
    beats: Option<watchdog::Beats>,
    /// The process id of the leader, and the id of the group.
    id: Pid,
    /// Whether the leader has been reaped. From then on the id may be another process's.
    is_over: bool,
}

/// Where a line was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Standard,
    /// Standard error.
    Error,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The exit status of the program itself.
    pub status: ExitStatus,
    /// Whether it was told to end.
    pub was_cancelled: bool,
}

impl Group {
    /// Starts a program as the leader of a new process group, so that it does not get the terminal's Ctrl-C. If this process
    /// is killed with SIGKILL, the program runs on.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        Self::spawn_watched(command, None)
    }

    /// Starts a program in a new process group, which a watchdog ends if this process is killed, or stopped for so long that
    /// another may take its lease over. Without a watchdog it is [`spawn`](Self::spawn).
    pub fn spawn_watched(command: &mut Command, watchdog: Option<&Watchdog>) -> io::Result<Self> {
        // Before the program: there is no moment in which it is not watched.
        let mut watchdog = watchdog.map(watchdog::start).transpose()?;
        let beats = watchdog.as_mut().and_then(|watchdog| watchdog.stdin.take()).map(watchdog::Beats::start);
        let leader = watchdog.as_ref().map(id_of).transpose()?;
        let group = leader.map_or(0, |leader| leader.as_raw_nonzero().get());
        let child = command.process_group(group).kill_on_drop(true).spawn()?;
        let program = id_of(&child)?;
        Ok(Self { child, program, watchdog, beats, id: leader.unwrap_or(program), is_over: false })
    }

    /// Waits until the program has ended, hands every line that it writes to `hear`, and ends it when told to:
    /// [`wait`](Self::wait) and [`end`](Self::end) with the output that [`spawn`](Self::spawn) was asked to pipe.
    ///
    /// Lines come without what the mask hides. Reading ends with the group, even if another process holds the output open.
    pub async fn attend(
        &mut self,
        cancellation: &CancellationToken,
        grace: Duration,
        mask: &Mask,
        mut hear: impl FnMut(Output, String),
    ) -> io::Result<Ended> {
        let mut output = self.child.stdout.take().map(|output| Lines::new(output, mask));
        let mut errors = self.child.stderr.take().map(|errors| Lines::new(errors, mask));
        let ended = {
            let mut ending = std::pin::pin!(async {
                let status = tokio::select! {
                    status = self.wait() => return (status, false),
                    () = cancellation.cancelled() => self.end(grace).await,
                };
                (status, true)
            });
            loop {
                tokio::select! {
                    ended = &mut ending => break ended,
                    Some((from, line)) = next(&mut output, &mut errors) => hear(from, line),
                }
            }
        };
        let rest = async {
            while let Some((from, line)) = next(&mut output, &mut errors).await {
                hear(from, line);
            }
        };
        if tokio::time::timeout(LAST_WORDS, rest).await.is_err() {
            for (from, lines) in [(Output::Standard, output.map(take)), (Output::Error, errors.map(take))] {
                lines.flatten().into_iter().for_each(|line| hear(from, line));
            }
        }
        let (status, was_cancelled) = ended;
        Ok(Ended { status: status?, was_cancelled })
    }

    /// Waits until the program has ended by itself. What it left behind in its group is ended as well.
    ///
    /// Fails if something in the group cannot be killed. Cancel-safe.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.wait_for_program().await?;
        if !self.is_over && self.has_others().await {
            self.ask_to_end();
            self.wait_for_others(LEFT_BEHIND).await;
        }
        self.kill().await
    }

    /// Asks the group to end (SIGTERM) and kills what is left of it after `grace`.
    ///
    /// Fails if something in the group cannot be killed.
    pub async fn end(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        if !self.is_over {
            self.ask_to_end();
            let ended = async {
                self.wait_for_program().await?;
                self.wait_for_others(grace).await;
                io::Result::Ok(())
            };
            tokio::time::timeout(grace, ended).await.unwrap_or(Ok(()))?;
        }
        self.kill().await
    }

    /// Kills what is left of the group and reaps the program and the watchdog.
    async fn kill(&mut self) -> io::Result<ExitStatus> {
        if !self.is_over {
            // Even if nothing seems to be left: a process may have been started while `/proc` was read.
            self.signal(Signal::KILL);
            let gone = async {
                self.wait_for_program().await?;
                self.wait_for_others(KILLED).await;
                io::Result::Ok(())
            };
            let is_gone = tokio::time::timeout(KILLED, gone).await;
            if is_gone.is_err() || self.has_others().await {
                let message = format!("process group {} cannot be killed", self.id.as_raw_nonzero());
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            is_gone.unwrap_or(Ok(()))?;
        }
        let status = self.child.wait().await;
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.wait().await?;
        }
        drop(self.beats.take());
        self.is_over = true;
        status
    }

    /// Waits until the program has ended, and leaves it unreaped.
    async fn wait_for_program(&self) -> io::Result<()> {
        let mut children = signal(SignalKind::child())?;
        while !self.has_program_ended()? {
            children.recv().await;
        }
        Ok(())
    }

    fn has_program_ended(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(self.is_over || waitid(WaitId::Pid(self.program), options)?.is_some())
    }

    /// Waits until nothing but the program and its watchdog is left, or that cannot be known.
    async fn wait_for_others(&self, limit: Duration) {
        let gone = async {
            while self.has_others().await {
                tokio::time::sleep(POLL).await;
            }
        };
        // The caller finds out what is left.
        let _ = tokio::time::timeout(limit, gone).await;
    }

    /// Whether anything else is known to run than the program and its watchdog.
    async fn has_others(&self) -> bool {
        let (id, known) = (self.id, [self.id, self.program]);
        let others = tokio::task::spawn_blocking(move || members::has_others(id, &known)).await;
        others.ok().flatten().unwrap_or(false)
    }

    fn ask_to_end(&self) {
        self.signal(Signal::TERM);
        // A process that was stopped would not hear of it.
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        // The leader is unreaped, so only what runs as another user can be out of reach.
        let _ = kill_process_group(self.id, signal);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_over {
            self.signal(Signal::KILL);
        }
    }
}

fn id_of(child: &Child) -> io::Result<Pid> {
    let id = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
    id.ok_or_else(|| io::Error::other("the process has no id"))
}

/// The next line of either; none when both have ended.
async fn next(
    output: &mut Option<Lines<impl tokio::io::AsyncRead + Unpin>>,
    errors: &mut Option<Lines<impl tokio::io::AsyncRead + Unpin>>,
) -> Option<(Output, String)> {
    while output.is_some() || errors.is_some() {
        let (from, line) = tokio::select! {
            line = next_of(output), if output.is_some() => (Output::Standard, line),
            line = next_of(errors), if errors.is_some() => (Output::Error, line),
        };
        if let Some(line) = line {
            return Some((from, line));
        }
    }
    None
}

/// The next line of a stream, which is none from its end on.
async fn next_of(lines: &mut Option<Lines<impl tokio::io::AsyncRead + Unpin>>) -> Option<String> {
    let line = lines.as_mut()?.next().await.ok().flatten();
    if line.is_none() {
        *lines = None;
    }
    line
}

fn take(mut lines: Lines<impl tokio::io::AsyncRead + Unpin>) -> Option<String> {
    lines.take_rest()
}

/// Asks a program alone to end, and makes it after a while. [`Group`] ends what it started, too.
pub async fn end(child: &mut Child, grace: Duration) -> io::Result<ExitStatus> {
    let id = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
    if let Some(id) = id {
        // If it has ended already there is nothing to tell.
        let _ = rustix::process::kill_process(id, Signal::TERM);
    }
    if let Ok(status) = tokio::time::timeout(grace, child.wait()).await {
        return status;
    }
    child.start_kill()?;
    child.wait().await
}
