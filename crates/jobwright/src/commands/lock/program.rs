//! `jobwright lock run`: a program that never runs twice at the same time. `jobwright lock install` brings this program
//! into containers whose image lacks it.

use crate::arguments::{Install, LockedProgram};
use crate::cluster::{self, Clients, Connection};
use crate::commands::session;
use crate::commands::signals::Signals;
use crate::commands::watchdog;
use crate::failure::{ErrorExt as _, Failure, Kind};
use crate::output;
use anyhow::Context as _;
use jobwright_engine::{Claim, Event, Events};
use jobwright_jobs::locked::{self, Ending, Stop, run_locked};
use std::collections::BTreeMap;
use std::fs;
use std::io::IsTerminal as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use tokio::process::Command;

pub(super) fn run(arguments: &LockedProgram) -> Result<(), Failure> {
    if !is_name(&arguments.name) {
        let message = format!("`{}` is no name of a Lease", arguments.name);
        return Err(Failure::new(Kind::Usage, message).hint("use lowercase letters, digits, `-` and `.`, 253 at most"));
    }
    cluster::block_on(&arguments.cluster, false, async {
        let mut signals = Signals::listen().or_fail(Kind::Internal)?;
        let stop = Stop::default();
        let mut work = Box::pin(hold(arguments, &stop));
        loop {
            tokio::select! {
                ended = &mut work => return judge(arguments, ended?),
                () = signals.next() => {
                    if stop.end.is_cancelled() {
                        stop.kill.cancel();
                    }
                    stop.end.cancel();
                }
            }
        }
    })
}

async fn hold(arguments: &LockedProgram, stop: &Stop) -> Result<Ending, Failure> {
    let connecting = cluster::connect(&arguments.cluster, None, Clients::Own);
    let connection = tokio::select! {
        connection = connecting => connection?,
        () = stop.end.cancelled() => return Ok(Ending::NotStarted),
    };
    let [program, words @ ..] = arguments.program.as_slice() else { return Ok(Ending::NotStarted) };
    let mut command = Command::new(program);
    command.args(words);
    if std::io::stdin().is_terminal() {
        // A program in a process group of its own is stopped when it reads from the terminal.
        command.stdin(Stdio::null());
    }
    let claim = Claim {
        namespace: connection.namespace.clone(),
        name: arguments.name.clone(),
        holder: session::holder(),
        labels: BTreeMap::from([("app.kubernetes.io/managed-by".to_owned(), "jobwright".to_owned())]),
        patience: arguments.wait.duration(),
    };
    let (events, watchdog) = (tell(arguments, &connection), watchdog::find());
    let running =
        run_locked(&connection.client, &connection.clock, &events, claim, &mut command, watchdog.as_ref(), stop);
    running.await.map_err(|error| explain(arguments, error))
}

/// Prints what keeps the program from starting.
fn tell(arguments: &LockedProgram, connection: &Connection) -> Events {
    let lock = format!("{}/{}", connection.namespace, arguments.name);
    Events::to(move |event| match event {
        Event::Busy { holder } => output::note(&format!("waiting for the lock {lock}, which `{holder}` holds")),
        Event::Retrying { doing, error } => output::note(&format!("cannot {doing}, trying again: {error}")),
        _ => {}
    })
}

fn explain(arguments: &LockedProgram, error: locked::Error) -> Failure {
    match error {
        locked::Error::Lease(jobwright_engine::Error::Busy { holder, .. }) => {
            let (name, waited) = (&arguments.name, arguments.wait);
            let message = format!("not started: `{holder}` still holds the lock `{name}` after {waited}");
            Failure::new(Kind::Negative, message).hint("pass a longer `--wait`")
        }
        locked::Error::Lease(error) => {
            let about = format!("the program needs `create`, `get` and `update` on the Lease `{}`", arguments.name);
            session::failed(error).hint(about)
        }
        locked::Error::Start { .. } => Failure::of(Kind::Usage, error),
        error => Failure::of(Kind::Internal, error),
    }
}

/// The exit code is the program's own.
fn judge(arguments: &LockedProgram, ending: Ending) -> Result<(), Failure> {
    match ending {
        Ending::Ended(status) if status.success() => Ok(()),
        Ending::Ended(status) => Err(Failure::reported(Kind::Program(exit_code(status)))),
        Ending::NotStarted => Err(Failure::new(Kind::Cancelled, "cancelled before the program started")),
        Ending::Lost(_) => {
            let message = format!("ended the program: the lock `{}` was lost", arguments.name);
            Err(Failure::new(Kind::Partial, message)
                .hint("it could not be renewed in time, or another process took it"))
        }
    }
}

/// As a shell has it.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

fn is_name(name: &str) -> bool {
    let is_inside = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-.".contains(letter);
    let is_end = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    name.len() <= 253 && name.chars().all(is_inside) && name.starts_with(is_end) && name.ends_with(is_end)
}

pub(super) fn install(arguments: &Install) -> Result<(), Failure> {
    copy_to(&arguments.directory).or_fail(Kind::Usage)
}

/// Never a half-written program: a container may be restarted while it is copied.
fn copy_to(directory: &Path) -> anyhow::Result<()> {
    let own = std::env::current_exe().context("cannot find this program")?;
    let (partial, whole) = (directory.join(".jobwright.partial"), directory.join("jobwright"));
    fs::copy(&own, &partial).with_context(|| format!("cannot write to `{}`", directory.display()))?;
    fs::set_permissions(&partial, fs::Permissions::from_mode(0o755))
        .and_then(|()| fs::rename(&partial, &whole))
        .with_context(|| format!("cannot write `{}`", whole.display()))
}
