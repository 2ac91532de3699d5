//! A deploy or a run of a job while it is carried out: progress, signals, a time limit, and the report at its end.

use super::session::{self, Prepared};
use super::signals::Signals;
use crate::arguments::{self, Format};
use crate::cluster::Connection;
use crate::failure::{ErrorExt as _, Failure, Kind};
use crate::output::progress::{self, Loudness};
use crate::output::{self, report};
use jobwright_engine::{ComponentFailure, DeployOutcome, Error, Event, Events, JobOutcome, Report};
use jobwright_release::Period;
use std::future::Future;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a second signal waits for the lease to be released.
const RELEASE: Duration = Duration::from_secs(1);

/// A deploy or a run of a job: what it works on, and how it is reported.
pub(super) struct Task<'a> {
    pub(super) connection: &'a Connection,
    pub(super) output: arguments::Output,
    pub(super) is_watched: bool,
    /// What was done before.
    pub(super) prepared: Prepared,
    /// Ends the work where it stands.
    pub(super) abandon: CancellationToken,
}

impl Task<'_> {
    /// Carries out work that can be cancelled and followed, and reports its result.
    pub(super) async fn attend<F>(
        &self,
        limit: Option<Duration>,
        work: impl FnOnce(CancellationToken, Events) -> F,
    ) -> Result<(), Failure>
    where
        F: Future<Output = Result<Report, Error>>,
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
        let mut late = Box::pin(wait(limit));
        let mut timed_out = None;
        let result = loop {
            tokio::select! {
                result = &mut work => break result,
                () = signals.next() => {
                    if cancellation.is_cancelled() {
                        self.abandon.cancel();
                        break tokio::time::timeout(RELEASE, &mut work).await.unwrap_or(Err(Error::Abandoned));
                    }
                    events.send(Event::Cancelled);
                    cancellation.cancel();
                }
                limit = &mut late, if timed_out.is_none() => {
                    timed_out = Some(limit);
                    events.send(Event::Cancelled);
                    cancellation.cancel();
                }
            }
        };
        drop(work);
        drop(events);
        // The screen ends with the last event; if it has failed, the report is still printed.
        let _ = screen.join();
        let report = result.map_err(|error| self.explain(&error, timed_out))?;
        let judged = judge(&report, timed_out);
        let failure = judged.as_ref().err();
        match self.output.output {
            Format::Json => output::line(&report::to_json(&report, failure).to_string()),
            Format::Text if self.output.quiet && report.outcome == DeployOutcome::Succeeded => {}
            Format::Text => report::show(&report),
        }
        judged.map_err(Failure::documented)
    }

    /// Why there is no report.
    fn explain(&self, error: &Error, timed_out: Option<Duration>) -> Failure {
        let (kind, ended) = match timed_out {
            Some(limit) => (Kind::Negative, timeout(limit)),
            None => (Kind::Cancelled, "cancelled".to_owned()),
        };
        let done = self.prepared.summary();
        match error {
            Error::CancelledWaiting { holder } => {
                let waiting = format!("while waiting for `{holder}`, which is deploying this release");
                Failure::new(kind, format!("{ended} {waiting}; {done}"))
                    .hint("check whether it still runs: `jobwright lock show`")
            }
            Error::Cancelled => Failure::new(kind, format!("{ended} before the deploy began; {done}")),
            other => session::failure_of(other),
        }
    }
}

/// Waits until a limit has passed; indefinitely if there is none.
async fn wait(limit: Option<Duration>) -> Duration {
    let Some(limit) = limit else { return std::future::pending().await };
    tokio::time::sleep(limit).await;
    limit
}

fn timeout(limit: Duration) -> String {
    format!("timed out after {}", Period::from(limit))
}

/// What a report means for the exit code. What it says itself is not repeated.
fn judge(report: &Report, timed_out: Option<Duration>) -> Result<(), Failure> {
    if let Some(error) = &report.error {
        return Err(session::failure_of(error));
    }
    let kind = match report.outcome {
        DeployOutcome::Succeeded => return Ok(()),
        DeployOutcome::Cancelled => match timed_out {
            Some(limit) => return Err(Failure::new(Kind::Negative, timeout(limit))),
            None => Kind::Cancelled,
        },
        DeployOutcome::Failed => {
            let failed = report.jobs.iter().any(|job| job.outcome == JobOutcome::Failed)
                || report.components.iter().any(|component| component.failure == Some(ComponentFailure::Component));
            let unknown = report.jobs.iter().any(|job| job.outcome == JobOutcome::Unknown);
            if unknown && !failed { Kind::Partial } else { Kind::Negative }
        }
    };
    Err(Failure::reported(kind))
}
