//! The result of a deploy, or its preview: tables for people, one document for programs.

mod summary;

pub(crate) use summary::Subject;

use super::table::{Cell, Table};
use super::{BAD, DIM, DOUBTFUL, GOOD, STRONG, duration, line, width};
use crate::failure::Failure;
use anstyle::Style;
use jobwright_engine::{
    Action, Decision, DeployOutcome, JobOutcome, JobPreview, JobReport, Phase, Preview, Report, Scope, Violation, Would,
};
use serde_json::{Value, json};
use std::time::Duration;

/// Prints the result of a deploy, or of a run of one job.
pub(crate) fn show(report: &Report, subject: Subject<'_>) {
    if !report.components.is_empty() {
        let mut table = Table::new(&["component", "result", "time", "reason"]);
        for component in &report.components {
            let (word, style) = action(component.action);
            let took = if component.took.is_zero() { String::new() } else { duration(component.took) };
            table.row(vec![
                component.name.as_str().into(),
                Cell::styled(word, style),
                took.into(),
                component.reason.as_str().into(),
            ]);
        }
        show_table(&table);
    }
    if !report.jobs.is_empty() {
        let mut table = Table::new(&["job", "phase", "result", "time", "run", "attempts", "reason"]);
        for job in &report.jobs {
            let (word, style) = outcome(job.outcome);
            let attempts = if job.attempts == 0 { String::new() } else { job.attempts.to_string() };
            let took = if job.took.is_zero() { String::new() } else { duration(job.took) };
            let run = job.run.map(|run| run.to_string()).unwrap_or_default();
            // The reason of a success is its run, which has a column.
            let reason = if job.outcome == JobOutcome::Succeeded { "" } else { job.reason.as_str() };
            table.row(vec![
                job.id.as_str().into(),
                place(&job.scope, job.phase).into(),
                Cell::styled(word, style),
                took.into(),
                run.into(),
                attempts.into(),
                reason.into(),
            ]);
        }
        show_table(&table);
    }
    if report.critical_path.len() > 1 {
        let steps: Vec<String> =
            report.critical_path.iter().map(|step| format!("{} {}", step.name, duration(step.took))).collect();
        let text = format!("Critical path ({}): {}", duration(report.took), steps.join(" → "));
        for part in super::table::wrap(&text, width()) {
            line(&format!("{DIM}{part}{DIM:#}"));
        }
        line("");
    }
    for text in summary::lines(report, subject) {
        line(&text);
    }
}

/// Prints the preview of a deploy.
pub(crate) fn show_preview(preview: &Preview, violations: &[Violation]) {
    if !preview.components.is_empty() {
        let mut table = Table::new(&["component", "would be", "reason"]);
        for (name, decision) in &preview.components {
            let (word, style) = decided(decision);
            let reason = match decision {
                Ok(decision) => decision.reason(),
                Err(reason) => reason,
            };
            table.row(vec![name.as_str().into(), Cell::styled(word, style), reason.into()]);
        }
        show_table(&table);
    }
    if !preview.jobs.is_empty() {
        let mut table = Table::new(&["job", "phase", "would", "reason"]);
        for job in &preview.jobs {
            let (word, style) = would(job.would);
            table.row(vec![
                job.id.as_str().into(),
                place(&job.scope, job.phase).into(),
                Cell::styled(word, style),
                job.reason.as_str().into(),
            ]);
        }
        show_table(&table);
    }
    for violation in violations {
        line(&format!("{BAD}refused{BAD:#}: {violation}"));
    }
}

fn show_table(table: &Table) {
    table.lines(width()).iter().for_each(|text| line(text));
    line("");
}

fn place(scope: &Scope, phase: Phase) -> String {
    format!("{scope} {phase}")
}

fn action(action: Action) -> (&'static str, Style) {
    match action {
        Action::Installed => ("installed", GOOD),
        Action::Upgraded => ("upgraded", GOOD),
        Action::Removed => ("removed", GOOD),
        Action::Unchanged => ("unchanged", DIM),
        Action::Failed => ("failed", BAD),
        Action::Skipped => ("skipped", DOUBTFUL),
    }
}

fn outcome(outcome: JobOutcome) -> (&'static str, Style) {
    match outcome {
        JobOutcome::Succeeded => ("succeeded", GOOD),
        JobOutcome::Failed => ("failed", BAD),
        JobOutcome::Skipped => ("skipped", DIM),
        JobOutcome::Unknown => ("unknown", DOUBTFUL),
    }
}

fn would(would: Would) -> (&'static str, Style) {
    match would {
        Would::Run => ("run", STRONG),
        Would::GoOn => ("resume", STRONG),
        Would::Skip => ("skip", DIM),
        Would::Fail => ("fail", BAD),
    }
}

fn decided(decision: &Result<Decision, String>) -> (&'static str, Style) {
    match decision {
        Ok(Decision::Install(_)) => ("installed", STRONG),
        Ok(Decision::Upgrade(_)) => ("upgraded", STRONG),
        Ok(Decision::Remove(_)) => ("removed", STRONG),
        Ok(Decision::Unchanged(_)) => ("unchanged", DIM),
        Err(_) => ("failed", BAD),
    }
}

/// The report on a deploy as one document, with the failure that ended it.
pub(crate) fn to_json(report: &Report, failure: Option<&Failure>) -> Value {
    let component = |component: &jobwright_engine::ComponentReport| {
        json!({
            "name": component.name,
            "action": action(component.action).0,
            "reason": component.reason,
            "seconds": seconds(component.took),
        })
    };
    let job = |job: &JobReport| {
        json!({
            "id": job.id,
            "component": job.scope.component(),
            "phase": job.phase.to_string(),
            "outcome": outcome(job.outcome).0,
            "reason": job.reason,
            "run": job.run,
            "attempts": job.attempts,
            "seconds": seconds(job.took),
        })
    };
    json!({
        "outcome": match report.outcome {
            DeployOutcome::Succeeded => "succeeded",
            DeployOutcome::Failed => "failed",
            DeployOutcome::Cancelled => "cancelled",
        },
        "reason": report.reason,
        "error": failure.map(Failure::message).filter(|message| !message.is_empty()),
        "hints": failure.map(|failure| failure.hints.as_slice()).unwrap_or_default(),
        "components": report.components.iter().map(component).collect::<Vec<_>>(),
        "jobs": report.jobs.iter().map(job).collect::<Vec<_>>(),
        "phases": report.phases.iter().map(|phase| json!({
            "component": phase.scope.component(),
            "phase": phase.phase.to_string(),
            "seconds": seconds(phase.took),
        })).collect::<Vec<_>>(),
        "criticalPath": report.critical_path.iter().map(|step| json!({
            "name": step.name,
            "seconds": seconds(step.took),
        })).collect::<Vec<_>>(),
        "seconds": seconds(report.took),
    })
}

/// The preview of a deploy as one document.
pub(crate) fn preview_to_json(preview: &Preview, violations: &[Violation], denied: &[String]) -> Value {
    let component = |(name, decision): &(String, Result<Decision, String>)| {
        let reason = match decision {
            Ok(decision) => decision.reason(),
            Err(reason) => reason,
        };
        json!({"name": name, "would": decided(decision).0, "reason": reason})
    };
    let job = |job: &JobPreview| {
        json!({
            "id": job.id,
            "component": job.scope.component(),
            "phase": job.phase.to_string(),
            "would": would(job.would).0,
            "reason": job.reason,
        })
    };
    json!({
        "components": preview.components.iter().map(component).collect::<Vec<_>>(),
        "jobs": preview.jobs.iter().map(job).collect::<Vec<_>>(),
        "violations": violations.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "denied": denied,
    })
}

/// Seconds, to the millisecond.
fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}
