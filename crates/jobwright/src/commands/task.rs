//! A deploy or a run of a job while it is carried out: progress, signals, a time limit, and the report at its end.

use super::attention::{Attention, Interruption};
use super::session::{self, Prepared};
use crate::arguments::{self, Format};
use crate::cluster::Connection;
use crate::failure::{Failure, Kind};
use crate::output::progress::{self, Loudness};
use crate::output::{self, report};
use jobwright_engine::{ComponentFailure, DeployOutcome, Error, Event, Events, JobOutcome, Report};
use std::future::Future;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a second signal waits for the lease to be released.
const RELEASE: Duration = Duration::from_secs(1);

/// A deploy or a run of a job: what it works on, and how it is reported.
pub(super) struct Task<'a> {
    pub(super) subject: report::Subject<'a>,
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
        mut attention: Attention,
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
        let mut work = Box::pin(work(cancellation.clone(), events.clone()));
        let mut first = None;
        let result = loop {
            tokio::select! {
                result = &mut work => break result,
                interruption = attention.next() => {
                    if cancellation.is_cancelled() && matches!(interruption, Interruption::Signal) {
                        self.abandon.cancel();
                        break tokio::time::timeout(RELEASE, &mut work).await.unwrap_or(Err(Error::Abandoned));
                    }
                    if first.is_none() {
                        first = Some(interruption);
                        events.send(Event::Cancelled);
                        cancellation.cancel();
                    }
                }
            }
        };
        drop(work);
        drop(events);
        // The screen ends with the last event; if it has failed, the report is still printed.
        let _ = screen.join();
        let report = result.map_err(|error| self.explain(&error, first.unwrap_or(Interruption::Signal)))?;
        let judged = judge(&report, first);
        let failure = judged.as_ref().err();
        match self.output.output {
            Format::Json => output::line(&report::to_json(&report, failure).to_string()),
            Format::Text if self.output.quiet && report.outcome == DeployOutcome::Succeeded => {}
            Format::Text => report::show(&report, self.subject),
        }
        judged.map_err(Failure::documented)
    }

    /// Why there is no report.
    fn explain(&self, error: &Error, interruption: Interruption) -> Failure {
        match error {
            Error::CancelledWaiting { holder } => {
                let (kind, ended) = interruption.tell();
                let waiting = format!("while waiting for `{holder}`, which is deploying this release");
                Failure::new(kind, format!("{ended} {waiting}; {}", self.prepared.summary()))
                    .hint("check whether it still runs: `jobwright lock show`")
            }
            Error::Cancelled => interruption.end_early(&self.prepared),
            other => session::failure_of(other),
        }
    }
}

/// What a report means for the exit code. What it says itself is not repeated.
fn judge(report: &Report, interruption: Option<Interruption>) -> Result<(), Failure> {
    if let Some(error) = &report.error {
        return Err(session::failure_of(error));
    }
    let kind = match report.outcome {
        DeployOutcome::Succeeded => return Ok(()),
        DeployOutcome::Cancelled => match interruption {
            Some(late @ Interruption::Late(_)) => {
                let (kind, ended) = late.tell();
                return Err(Failure::new(kind, ended));
            }
            Some(Interruption::Signal) | None => Kind::Cancelled,
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
