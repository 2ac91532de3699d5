//! `jobwright backfill`: captures the state of a cluster and uploads it, all of it or says so.

mod read;

pub(super) use read::environment;

use super::session;
use super::signals::Signals;
use crate::arguments::{self, Format};
use crate::cluster::{self, Clients, Connection};
use crate::failure::{ErrorExt as _, Failure, Kind};
use crate::output::backfill::{self as shown, Screen};
use crate::output::progress::Loudness;
use crate::output::{self, duration};
use anyhow::Context as _;
use jobwright_jobs::backfill::{Address, Ending, Error, Meter, Setting, Summary, Surroundings, Task, serve_metrics};
use jobwright_jobs::mark::MarkError;
use std::io::Write;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub(super) fn run(arguments: &arguments::Backfill) -> Result<(), Failure> {
    let is_watched = output::is_watched();
    // Whoever takes batches lives in our time, and so must a cluster in memory.
    let cluster = arguments::Cluster { speed: arguments.cluster.speed.or(Some(1)), ..arguments.cluster.clone() };
    cluster::block_on(&cluster, is_watched, backfill(arguments, is_watched))
}

async fn backfill(arguments: &arguments::Backfill, is_watched: bool) -> Result<(), Failure> {
    let task = read::task(arguments)?;
    let connection = cluster::connect(&arguments.cluster, None, Clients::Own).await?;
    if arguments.print_rbac {
        let needs = task.needs(&connection.client, &connection.namespace, &connection.retry()).await.map_err(failed)?;
        print(&needs.to_yaml())?;
        return Ok(());
    }
    if arguments.dry_run {
        let (_, kinds) = task.backfill.discover(&connection.client, &connection.retry()).await.map_err(failed)?;
        shown::show_kinds(&kinds, arguments.output.output);
        return Ok(());
    }
    let summary = attend(arguments, &task, &connection, is_watched).await?;
    tell(arguments, &task, &summary)?;
    judge(&summary)
}

/// Carries it out, with a screen, signals and a limit.
async fn attend(
    arguments: &arguments::Backfill,
    task: &Task,
    connection: &Connection,
    is_watched: bool,
) -> Result<Summary, Failure> {
    let meter = Meter::new();
    let _metrics = serve(arguments, &meter).await?;
    let loudness = match arguments.output {
        arguments::Output { quiet: true, .. } => Loudness::Quiet,
        arguments::Output { verbose: true, .. } => Loudness::Verbose,
        _ => Loudness::Usual,
    };
    let screen = Screen::open(&meter, connection.clock.clone(), loudness, is_watched);
    let surroundings = Surroundings {
        client: connection.client.clone(),
        clock: connection.clock.clone(),
        meter,
        listener: screen.listener(),
    };
    let cancellation = CancellationToken::new();
    let setting = Setting {
        surroundings,
        namespace: connection.namespace.clone(),
        holder: session::holder(),
        stdout: Box::new(std::io::stdout()),
        cancellation: cancellation.clone(),
    };
    let mut signals = Signals::listen().or_fail(Kind::Internal)?;
    let limit = arguments.way.timeout.map(jobwright_release::Period::duration);
    let mut timed_out = false;
    let mut work = Box::pin(task.run(setting));
    let result = loop {
        tokio::select! {
            result = &mut work => break result.map_err(failed),
            () = signals.next() => {
                if cancellation.is_cancelled() && !timed_out {
                    break Err(Failure::new(Kind::Cancelled, "left at once; what was on its way may arrive or not"));
                }
                timed_out = false;
                screen.say("told to stop: sending what was read");
                cancellation.cancel();
            }
            () = wait(limit), if !cancellation.is_cancelled() => {
                timed_out = true;
                screen.say("out of time: sending what was read");
                cancellation.cancel();
            }
        }
    };
    drop(work);
    screen.close();
    let summary = result?;
    match limit {
        Some(limit) if timed_out => {
            let stopped = Some(format!("it took longer than {}", duration(limit)));
            Ok(Summary { cancelled: false, stopped, ..summary })
        }
        _ => Ok(summary),
    }
}

async fn wait(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// Serves what is counted, if somebody wants to know, for as long as this is kept.
async fn serve(
    arguments: &arguments::Backfill,
    meter: &Meter,
) -> Result<Option<tokio_util::task::AbortOnDropHandle<()>>, Failure> {
    let Some(address) = arguments.metrics_listen else { return Ok(None) };
    let listener = tokio::net::TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("cannot listen on {address}")).or_fail(Kind::Usage)?;
    let address = listener.local_addr().or_fail(Kind::Internal)?;
    if !arguments.output.quiet {
        output::note(&format!("metrics are at http://{address}/metrics"));
    }
    let serving = tokio::spawn(serve_metrics(listener, meter.clone()));
    Ok(Some(tokio_util::task::AbortOnDropHandle::new(serving)))
}

/// Says what became of it: beside the lines, where those are printed.
fn tell(arguments: &arguments::Backfill, task: &Task, summary: &Summary) -> Result<(), Failure> {
    let is_beside = task.sink == Address::Stdout;
    match arguments.output.output {
        Format::Json => {
            let text = serde_json::to_string(summary).or_fail(Kind::Internal)?;
            if is_beside { output::note(&text) } else { output::line(&text) }
        }
        Format::Text if arguments.output.quiet && summary.complete => {}
        Format::Text => {
            for line in shown::lines(summary, arguments.output.verbose) {
                if is_beside { output::note(&line) } else { output::line(&line) }
            }
        }
    }
    Ok(())
}

fn print(text: &str) -> Result<(), Failure> {
    std::io::stdout().write_all(text.as_bytes()).or_fail(Kind::Internal)
}

/// What a summary means for the exit code. What there is to say has been said.
fn judge(summary: &Summary) -> Result<(), Failure> {
    let kind = match summary.ending() {
        Ending::Complete => return Ok(()),
        Ending::Partial => Kind::Partial,
        Ending::Failed => Kind::Negative,
        Ending::Cancelled => Kind::Cancelled,
        Ending::Forbidden => {
            return Err(Failure::new(Kind::Cluster, "the cluster lets nothing be listed")
                .hint("`jobwright backfill --print-rbac` prints the roles that allow it")
                .documented());
        }
    };
    Err(Failure::new(kind, ""))
}

/// What it means to the command line that a backfill did not begin.
fn failed(error: Error) -> Failure {
    let kind = match &error {
        Error::UnknownKind(_) | Error::Open(_) | Error::Sink(_) => Kind::Usage,
        Error::Checkpoint(error) if error.place.starts_with("configmap:") => Kind::Cluster,
        Error::Checkpoint(_) => Kind::Usage,
        Error::Discovery(_)
        | Error::Identity(_)
        | Error::Secrets(_)
        | Error::Lock(_)
        | Error::Mark(MarkError::Cluster(_)) => Kind::Cluster,
        Error::Cancelled => Kind::Cancelled,
        _ => Kind::Negative,
    };
    let hint = match &error {
        Error::UnknownKind(_) => Some("`jobwright backfill --sink stdout --dry-run` lists the kinds that there are"),
        Error::Busy { .. } => Some("wait for it, or look whether it still runs; `--lock-wait` waits longer"),
        Error::Secrets(_) => Some("`--print-rbac` prints the roles that allow it; `--secret-values auto` goes without"),
        Error::Wait(_) => Some("`--wait-timeout` waits longer"),
        _ => None,
    };
    let failure = Failure::new(kind, error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
