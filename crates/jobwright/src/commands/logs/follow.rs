//! Follows the log of a run, from attempt to attempt, until the run is over.

use super::ledgers;
use crate::commands::session::{self, Named};
use crate::failure::Failure;
use crate::output::{self, DIM};
use jobwright_engine::{Active, AttemptLog, Holder, LEASE_DURATION, Ledger, Run, read_holder};
use std::io::Write as _;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often the ledger is read.
const POLL: Duration = Duration::from_secs(1);

/// The run or attempt that is asked for; the last one where there is no number.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) run: Option<u64>,
    pub(super) attempt: Option<u32>,
}

impl Wanted {
    /// Whether a recorded attempt is the one.
    pub(super) fn is(self, run: &Run) -> bool {
        self.run.is_none_or(|number| run.run == number) && self.attempt.is_none_or(|number| run.attempt == number)
    }
}

/// What was followed.
pub(super) struct Followed {
    pub(super) run: u64,
    /// Whether anything was printed.
    pub(super) has_printed: bool,
    /// Whether stdout was closed by its reader.
    pub(super) is_closed: bool,
}

/// Follows a run.
pub(super) struct Follower<'a> {
    named: &'a Named,
    job: &'a str,
    wanted: Wanted,
    is_printed: bool,
    log: AttemptLog,
    /// The attempt that is followed.
    current: Option<(u64, u32)>,
    deploy: Watched,
    closed: CancellationToken,
}

/// The process that deploys the release, as far as its lease tells.
struct Watched {
    holder: Option<Holder>,
    since: Instant,
    is_announced: bool,
}

impl<'a> Follower<'a> {
    /// A follower that prints lines, or only waits for the end.
    pub(super) fn new(named: &'a Named, job: &'a str, wanted: Wanted, is_printed: bool) -> Self {
        let log = AttemptLog::new(&named.connection.client, &named.namespace, named.connection.retry());
        let deploy = Watched { holder: None, since: Instant::now(), is_announced: false };
        Self { named, job, wanted, is_printed, log, current: None, deploy, closed: CancellationToken::new() }
    }

    /// Follows the run that is asked for until it is over, waiting for one that is about to start. None if there is
    /// nothing to wait for.
    pub(super) async fn follow(&mut self) -> Result<Option<Followed>, Failure> {
        loop {
            let entries = ledgers::find(self.named, Some(self.job)).await?;
            let ledger = entries.into_iter().next().map(|entry| entry.ledger).unwrap_or_default();
            match ledger.active().filter(|active| self.is_ahead(active)) {
                Some(active) => self.follow_attempt(active).await?,
                None if self.current.is_some() || !self.is_expected(&ledger).await? => return Ok(self.result()),
                None => {}
            }
            tokio::select! {
                () = tokio::time::sleep(POLL) => {}
                () = self.closed.cancelled() => return Ok(self.result()),
            }
        }
    }

    fn result(&self) -> Option<Followed> {
        let (has_printed, is_closed) = (self.log.has_printed(), self.closed.is_cancelled());
        let run = self.current.map(|(run, _)| run)?;
        Some(Followed { run, has_printed: has_printed && self.is_printed, is_closed })
    }

    /// Whether an attempt that is going on, or about to, is the one to follow, or comes before it.
    fn is_ahead(&self, active: &Active) -> bool {
        let is_same = self.current.is_none_or(|(run, _)| run == active.run);
        is_same
            && self.wanted.run.is_none_or(|run| active.run == run)
            && self.wanted.attempt.is_none_or(|attempt| active.attempt <= attempt)
    }

    async fn follow_attempt(&mut self, active: &Active) -> Result<(), Failure> {
        if self.wanted.attempt.is_some_and(|attempt| active.attempt < attempt) {
            return Ok(());
        }
        let number = (active.run, active.attempt);
        if self.current.replace(number) != Some(number) {
            let Active { run, attempt, job, .. } = active;
            let place = if job.is_empty() {
                "inside of the process that deploys; its log is recorded at its end".to_owned()
            } else {
                format!("Job {job}")
            };
            output::note(&format!("{DIM}run {run}, attempt {attempt}, {place}{DIM:#}"));
        }
        if active.job.is_empty() || !self.is_printed {
            return Ok(());
        }
        let closed = self.closed.clone();
        let print = |container: Option<&str>, line: &str| {
            let name = container.map(|name| format!("{name} | ")).unwrap_or_default();
            if writeln!(std::io::stdout(), "{name}{line}").is_err() {
                closed.cancel();
            }
        };
        tokio::select! {
            followed = self.log.follow(active, &print) => followed.map_err(session::failed),
            () = self.closed.cancelled() => Ok(()),
        }
    }

    /// Whether a run may be about to start: a deploy is going on, and the run that is asked for is not recorded, or was
    /// before the deploy.
    async fn is_expected(&mut self, ledger: &Ledger) -> Result<bool, Failure> {
        let is_explicit = self.wanted.run.is_some();
        let recorded = ledger.runs().find(|run| self.wanted.is(run));
        if is_explicit && recorded.is_some() {
            return Ok(false);
        }
        let Some(lease) = self.named.lease() else { return Ok(false) };
        let (client, retry) = (self.named.connection.bounded(), self.named.connection.retry());
        let found = read_holder(&client, &self.named.namespace, &lease, &retry).await;
        let Some(holder) = found.map_err(session::failed)? else { return Ok(false) };
        if recorded.is_some_and(|run| holder.since.is_some_and(|since| run.finished_at >= since)) {
            return Ok(false);
        }
        Ok(self.deploy.is_alive(holder, self.job))
    }
}

impl Watched {
    /// Whether the holder has renewed its lease while it was watched, or was not watched long enough.
    fn is_alive(&mut self, holder: Holder, job: &str) -> bool {
        if !self.is_announced {
            let name = &holder.name;
            output::note(&format!("{DIM}waiting for a run of `{job}`: `{name}` is deploying this release{DIM:#}"));
            self.is_announced = true;
        }
        if self.holder.as_ref() != Some(&holder) {
            (self.holder, self.since) = (Some(holder), Instant::now());
        }
        self.since.elapsed() < LEASE_DURATION
    }
}
