//! `jobwright logs`: the log of a run that is going on, or the recorded end of one that is over.

mod follow;

use super::ledgers::{self, run_to_json};
use super::session;
use super::signals::Signals;
use crate::arguments::{self, Format};
use crate::cluster;
use crate::failure::{ErrorExt as _, Failure, Kind};
use crate::output::{self, DIM};
use follow::{Followed, Follower, Wanted};
use jobwright_engine::{Ledger, Run};
use serde_json::json;

pub(super) fn run(arguments: &arguments::Logs) -> Result<(), Failure> {
    cluster::block_on(&arguments.ledgers.cluster, false, logs(arguments))
}

async fn logs(arguments: &arguments::Logs) -> Result<(), Failure> {
    let job = arguments.ledgers.job.as_deref();
    let job = job.ok_or_else(|| Failure::new(Kind::Usage, "no job named").hint("pass the id of a job"))?;
    let ledgers = &arguments.ledgers;
    let named = session::find_release(&ledgers.whose, &ledgers.cluster).await?;
    let wanted = Wanted { run: arguments.run, attempt: arguments.attempt };
    let mut followed = None;
    if arguments.follow {
        let is_printed = ledgers.output.output == Format::Text;
        let mut follower = Follower::new(&named, job, wanted, is_printed);
        let mut signals = Signals::listen().or_fail(Kind::Internal)?;
        tokio::select! {
            done = follower.follow() => followed = done?,
            () = signals.next() => return Err(Failure::new(Kind::Cancelled, "")),
        }
    }
    if followed.as_ref().is_some_and(|followed| followed.is_closed) {
        return Ok(());
    }
    let entries = ledgers::find(&named, Some(job)).await?;
    let none = || Failure::new(Kind::Negative, format!("job `{job}` has not run"));
    let ledger = &entries.first().ok_or_else(none)?.ledger;
    // The run that was followed, though a later one may have started meanwhile.
    let wanted = Wanted { run: followed.as_ref().map(|followed| followed.run).or(wanted.run), ..wanted };
    let Some(run) = ledger.runs().find(|run| wanted.is(run)) else {
        let runs: Vec<String> = ledger.runs().map(|run| format!("{}.{}", run.run, run.attempt)).collect();
        let failure = Failure::new(Kind::Negative, format!("job `{job}` has no such run on record"));
        return Err(failure.hint(format!("recorded runs and attempts: {}", runs.join(", "))));
    };
    print(ledger, job, run, followed.as_ref(), ledgers.output.output);
    Ok(())
}

/// Prints what is recorded of a run, except for what was printed while it was followed.
fn print(ledger: &Ledger, job: &str, run: &Run, followed: Option<&Followed>, format: Format) {
    let log = ledger.log(run.run, run.attempt);
    if format == Format::Json {
        let mut shown = run_to_json(job, run);
        shown["log"] = json!(log);
        shown["logUnavailable"] = json!(run.log_unavailable);
        output::line(&shown.to_string());
        return;
    }
    if let Some(active) = ledger.active() {
        let hint = format!("run {} is running: `jobwright logs {job} --follow`", active.run);
        output::note(&format!("{DIM}{hint}{DIM:#}"));
    }
    let Run { run: number, attempt, outcome, finished_at, .. } = run;
    output::note(&format!("{DIM}run {number}, attempt {attempt}, {outcome} at {finished_at:.0}{DIM:#}"));
    if followed.is_some_and(|followed| followed.has_printed) {
        return;
    }
    match (log, &run.log_unavailable) {
        (Some(log), _) => output::line(log.trim_end_matches('\n')),
        (None, Some(why)) => output::note(&format!("log unavailable: {why}")),
        (None, None) => output::note("the run printed nothing, or its log was not kept (`keep.logBytes: 0`)"),
    }
}
