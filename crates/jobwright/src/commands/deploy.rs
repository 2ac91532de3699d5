//! `jobwright deploy`: a release, component by component, with its jobs before and after.

use super::session;
use super::signals::Signals;
use crate::arguments::{self, Format};
use crate::cluster::{self, Connection};
use crate::failure::{ErrorExt as _, Failure, Kind};
use crate::output::progress::{self, Loudness};
use crate::output::{self, report};
use jobwright_engine::{DeployOutcome, Event, Events, JobOutcome, Report};
use jobwright_release::Deployment;
use std::future::Future;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub(super) fn run(arguments: &arguments::Deploy) -> Result<(), Failure> {
    if arguments.dry_run {
        return super::plan::preview_deploy(arguments);
    }
    let is_watched = output::is_watched();
    cluster::block_on(&arguments.cluster, is_watched, deploy(arguments, is_watched))
}

async fn deploy(arguments: &arguments::Deploy, is_watched: bool) -> Result<(), Failure> {
    let file = session::read_plan(&arguments.plan, &arguments.cluster)?;
    session::check_names(&file, arguments.selection.only.iter().chain(&arguments.selection.skip))?;
    let connection = cluster::connect(&arguments.cluster, file.path.parent()).await?;
    let helm = session::find_helm(&file, &connection).await?;
    session::ensure_namespace(&file.plan.release.namespace, &connection).await?;
    session::check_permissions(&file, &connection).await?;

    let settings = session::settings(&file, &arguments.selection, arguments.guards);
    let deployment = Deployment {
        redeploy: arguments.redeploy,
        force: arguments.force,
        unlock: arguments.unlock,
        ..session::deployment(&file, &connection, helm, settings)?
    };
    let limit = arguments.timeout.map(jobwright_release::Period::duration);
    let task = Task { connection: &connection, output: arguments.output, is_watched };
    task.attend(limit, async |cancellation, events| {
        deployment.deploy(cancellation, events).await.map_err(session::stopped)
    })
    .await
}

/// A deploy or a run of a job: what it works on, and how it is told.
pub(super) struct Task<'a> {
    pub(super) connection: &'a Connection,
    pub(super) output: arguments::Output,
    pub(super) is_watched: bool,
}

impl Task<'_> {
    /// Carries work out that can be cancelled and followed, and tells what became of it.
    pub(super) async fn attend<F>(
        &self,
        limit: Option<Duration>,
        work: impl FnOnce(CancellationToken, Events) -> F,
    ) -> Result<(), Failure>
    where
        F: Future<Output = Result<Report, Failure>>,
    {
        let loudness = match self.output {
            arguments::Output { quiet: true, .. } => Loudness::Quiet,
            arguments::Output { verbose: true, .. } => Loudness::Verbose,
            _ => Loudness::Usual,
        };
        let (events, receiver) = Events::channel();
        let screen = progress::follow(receiver, self.connection.clock.clone(), loudness, self.is_watched);
        let cancellation = CancellationToken::new();
        let mut signals = Signals::listen().or_fail(Kind::Internal)?;
        let mut work = Box::pin(work(cancellation.clone(), events.clone()));
        let mut timed_out = false;
        let result = loop {
            tokio::select! {
                result = &mut work => break result,
                () = signals.next() => {
                    if cancellation.is_cancelled() {
                        break Err(Failure::new(Kind::Cancelled, "left at once; what runs goes on, and the next deploy takes it up"));
                    }
                    events.send(Event::Cancelled);
                    cancellation.cancel();
                }
                () = wait(limit), if !timed_out => {
                    timed_out = true;
                    events.send(Event::Cancelled);
                    cancellation.cancel();
                }
            }
        };
        drop(work);
        drop(events);
        // The screen ends with the last event; if it has broken, the report is still worth telling.
        let _ = screen.join();
        let report = result?;
        match self.output.output {
            Format::Json => output::line(&report::to_json(&report).to_string()),
            Format::Text if self.output.quiet && report.outcome == DeployOutcome::Succeeded => {}
            Format::Text => report::show(&report),
        }
        judge(&report, limit.filter(|_| timed_out))
    }
}

async fn wait(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// What a report means for the exit code. What there is to say has been said.
fn judge(report: &Report, timed_out: Option<Duration>) -> Result<(), Failure> {
    let told = |kind| Err(Failure::new(kind, ""));
    match report.outcome {
        DeployOutcome::Succeeded => Ok(()),
        DeployOutcome::Cancelled => match timed_out {
            Some(limit) => {
                Err(Failure::new(Kind::Negative, format!("it took longer than {}", output::duration(limit))))
            }
            None => told(Kind::Cancelled),
        },
        DeployOutcome::Failed => {
            let failed = report.jobs.iter().any(|job| job.outcome == JobOutcome::Failed)
                || report.components.iter().any(|component| {
                    component.action == jobwright_engine::Action::Failed
                        && !component.reason.contains("-job of it failed")
                });
            let unknown = report.jobs.iter().any(|job| job.outcome == JobOutcome::Unknown);
            told(if unknown && !failed { Kind::Partial } else { Kind::Negative })
        }
    }
}
