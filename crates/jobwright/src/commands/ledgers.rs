//! `jobwright status|history`: what ledgers record, also of Jobs that were deleted.

use super::session::{self, Named};
use crate::arguments::{self, Format};
use crate::cluster::{self, Connection};
use crate::failure::Failure;
use crate::output::table::{Cell, Table};
use crate::output::{self, BAD, DIM, DOUBTFUL, GOOD, STRONG, duration};
use anstyle::Style;
use jiff::Timestamp;
use jobwright_engine::{Ledger, Outcome, Run, read_ledgers};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A job, and its ledger.
pub(super) struct Entry {
    job: String,
    component: Option<String>,
    pub(super) ledger: Ledger,
}

pub(super) fn status(arguments: &arguments::Ledgers) -> Result<(), Failure> {
    cluster::block_on(&arguments.cluster, false, async {
        let (entries, connection) = read(arguments).await?;
        match arguments.output.output {
            Format::Json => {
                let jobs: Vec<Value> = entries.iter().map(status_to_json).collect();
                output::line(&json!({"jobs": jobs}).to_string());
            }
            Format::Text => show_status(&entries, connection.clock.now()),
        }
        Ok(())
    })
}

pub(super) fn history(arguments: &arguments::History) -> Result<(), Failure> {
    cluster::block_on(&arguments.ledgers.cluster, false, async {
        let (entries, _) = read(&arguments.ledgers).await?;
        let mut runs: Vec<(&Entry, &Run)> =
            entries.iter().flat_map(|entry| entry.ledger.runs().map(move |run| (entry, run))).collect();
        runs.sort_by_key(|(_, run)| std::cmp::Reverse((run.finished_at, run.run, run.attempt)));
        runs.truncate(arguments.limit.unwrap_or(usize::MAX));
        match arguments.ledgers.output.output {
            Format::Json => {
                let runs: Vec<Value> = runs.iter().map(|(entry, run)| run_to_json(&entry.job, run)).collect();
                output::line(&json!({"runs": runs}).to_string());
            }
            Format::Text => show_history(&runs),
        }
        Ok(())
    })
}

/// Reads the ledgers that the arguments mean, by job.
async fn read(arguments: &arguments::Ledgers) -> Result<(Vec<Entry>, Connection), Failure> {
    let named = session::find_release(&arguments.whose, &arguments.cluster).await?;
    let entries = find(&named, arguments.job.as_deref()).await?;
    Ok((entries, named.connection))
}

/// The ledgers of a release, or of one job, by job.
pub(super) async fn find(named: &Named, job: Option<&str>) -> Result<Vec<Entry>, Failure> {
    let mut labels = BTreeMap::new();
    labels.extend(named.name.clone().map(|release| ("jobwright.io/release".to_owned(), release)));
    labels.extend(job.map(|job| ("jobwright.io/job".to_owned(), job.to_owned())));
    let (client, retry) = (named.connection.bounded(), named.connection.retry());
    let found = read_ledgers(&client, &named.namespace, &labels, &retry).await.map_err(session::failed)?;
    let mut entries = Vec::new();
    for (labels, ledger) in found {
        let label = |key: &str| labels.get(key).cloned();
        let ledger = ledger.map_err(session::failed)?;
        let job = label("jobwright.io/job").unwrap_or_default();
        entries.push(Entry { job, component: label("jobwright.io/component"), ledger });
    }
    if let (true, Some(job), Some(file)) = (entries.is_empty(), job, &named.plan) {
        session::check_names(file, std::iter::once(job))?;
    }
    entries.sort_by(|one, other| one.job.cmp(&other.job));
    Ok(entries)
}

fn show_status(entries: &[Entry], now: Timestamp) {
    if entries.is_empty() {
        output::note("no job has run yet");
        return;
    }
    let mut table = Table::new(&["job", "component", "state", "run", "version", "when", "reason"]);
    for Entry { job, component, ledger } in entries {
        let last = ledger.runs().next();
        let version = last.and_then(|run| run.version.as_ref()).map(ToString::to_string).unwrap_or_default();
        let (state, style, run, when, reason) = match (ledger.active(), last) {
            (Some(active), _) => {
                let state = if active.uid.is_some() { "running" } else { "starting" };
                let left = active.left_at.map(|_| "left running by a cancelled deploy".to_owned());
                let reason = active.stopping.as_ref().map(|stopping| format!("being stopped: {}", stopping.reason));
                let reason =
                    reason.or(left).unwrap_or_else(|| format!("attempt {}, Job {}", active.attempt, active.job));
                (state.to_owned(), STRONG, active.run.to_string(), ago(active.started_at, now), reason)
            }
            (None, Some(run)) => (
                run.outcome.to_string(),
                style(run.outcome),
                run.run.to_string(),
                ago(run.finished_at, now),
                reason_of(run),
            ),
            (None, None) => ("nothing".to_owned(), DIM, String::new(), String::new(), String::new()),
        };
        table.row(vec![
            job.as_str().into(),
            component.as_deref().unwrap_or("global").into(),
            Cell::styled(state, style),
            run.into(),
            version.into(),
            when.into(),
            reason.into(),
        ]);
    }
    table.lines(output::width()).iter().for_each(|line| output::line(line));
}

fn show_history(runs: &[(&Entry, &Run)]) {
    if runs.is_empty() {
        output::note("no job has run yet");
        return;
    }
    let heads = ["started", "finished", "job", "run", "attempt", "outcome", "took", "version", "reason"];
    let mut table = Table::new(&heads);
    for (entry, run) in runs {
        let started = if run.never_started { String::new() } else { format!("{:.0}", run.started_at) };
        table.row(vec![
            started.into(),
            format!("{:.0}", run.finished_at).into(),
            entry.job.as_str().into(),
            run.run.to_string().into(),
            run.attempt.to_string().into(),
            Cell::styled(run.outcome.to_string(), style(run.outcome)),
            took(run).map(duration).unwrap_or_default().into(),
            run.version.as_ref().map(ToString::to_string).unwrap_or_default().into(),
            reason_of(run).into(),
        ]);
    }
    table.lines(output::width()).iter().for_each(|line| output::line(line));
}

/// How long a run took; none if it never started.
fn took(run: &Run) -> Option<std::time::Duration> {
    (!run.never_started).then(|| run.finished_at.duration_since(run.started_at).try_into().unwrap_or_default())
}

/// Why a run ended as it did, and what to do about it.
fn reason_of(run: &Run) -> String {
    match run.outcome {
        Outcome::Unknown => format!("{}; check what it did, then `jobwright run JOB --again`", run.reason),
        _ => run.reason.clone(),
    }
}

fn style(outcome: Outcome) -> Style {
    match outcome {
        Outcome::Succeeded => GOOD,
        Outcome::Failed => BAD,
        Outcome::Unknown => DOUBTFUL,
        Outcome::Superseded | Outcome::Cancelled => DIM,
    }
}

fn ago(time: Timestamp, now: Timestamp) -> String {
    let passed = now.duration_since(time).try_into().unwrap_or_default();
    format!("{} ago", duration(passed))
}

pub(super) fn run_to_json(job: &str, run: &Run) -> Value {
    json!({
        "job": job,
        "run": run.run,
        "version": run.version,
        "fingerprint": run.fingerprint,
        "outcome": run.outcome,
        "reason": run.reason,
        "attempt": run.attempt,
        "exitCode": run.exit_code,
        "startedAt": (!run.never_started).then_some(run.started_at),
        "finishedAt": run.finished_at,
    })
}

fn status_to_json(entry: &Entry) -> Value {
    let last = entry.ledger.runs().next().map(|run| run_to_json(&entry.job, run));
    let active = entry.ledger.active().map(|active| {
        json!({
            "run": active.run,
            "attempt": active.attempt,
            "job": active.job,
            "uid": active.uid,
            "startedAt": active.started_at,
            "leftAt": active.left_at,
        })
    });
    json!({"job": entry.job, "component": entry.component, "active": active, "last": last})
}
