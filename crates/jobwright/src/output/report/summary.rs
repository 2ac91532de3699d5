//! The last lines of a deploy: what was done in how much time, or what failed and which commands come next.

use crate::output::{BAD, DOUBTFUL, GOOD, duration};
use jobwright_engine::{Action, ComponentFailure, DeployOutcome, JobOutcome, Report};
use jobwright_release::plan::Release;

/// What was asked for: a deploy of a release, or a run of one job.
#[derive(Clone, Copy)]
pub(crate) enum Subject<'a> {
    Deploy(&'a Release),
    Job(&'a str),
}

/// The last lines of a report.
pub(super) fn lines(report: &Report, subject: Subject<'_>) -> Vec<String> {
    let took = duration(report.took);
    match (report.outcome, subject) {
        (DeployOutcome::Succeeded, Subject::Deploy(release)) => {
            let done = count(report);
            let done = if done.is_empty() { "nothing to do".to_owned() } else { done.join(", ") };
            let namespace = &release.namespace;
            vec![format!("{GOOD}Deployed{GOOD:#} {} to namespace {namespace} in {took}: {done}", name(release))]
        }
        (DeployOutcome::Succeeded, Subject::Job(job)) => {
            let skipped = report.jobs.iter().find(|report| report.outcome == JobOutcome::Skipped);
            vec![match skipped {
                Some(skipped) => format!("{GOOD}Skipped{GOOD:#} job {job}: {}", skipped.reason),
                None => format!("{GOOD}Ran{GOOD:#} job {job} in {took}"),
            }]
        }
        (DeployOutcome::Failed, subject) => {
            let what = match subject {
                Subject::Deploy(release) => format!("deploy {}", name(release)),
                Subject::Job(job) => format!("run job {job}"),
            };
            let cause = cause(report).map(|cause| format!(": {cause}")).unwrap_or_default();
            let failed = format!("{BAD}Failed{BAD:#} to {what} after {took}{cause}");
            std::iter::once(failed).chain(next_commands(report, subject)).collect()
        }
        (DeployOutcome::Cancelled, subject) => {
            let again = again(subject);
            vec![format!("{DOUBTFUL}Cancelled{DOUBTFUL:#} after {took}"), format!("Resume: {again}")]
        }
    }
}

fn name(release: &Release) -> String {
    let version = release.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    format!("{}{version}", release.name)
}

fn again(subject: Subject<'_>) -> String {
    match subject {
        Subject::Deploy(_) => "jobwright deploy".to_owned(),
        Subject::Job(job) => format!("jobwright run {job}"),
    }
}

/// What was done, counted: `3 components installed`, `4 jobs succeeded`.
fn count(report: &Report) -> Vec<String> {
    let actions = [
        (Action::Installed, "installed"),
        (Action::Upgraded, "upgraded"),
        (Action::Removed, "removed"),
        (Action::Unchanged, "unchanged"),
        (Action::Failed, "failed"),
        (Action::Skipped, "skipped"),
    ];
    let components = actions.iter().map(|(action, word)| {
        (report.components.iter().filter(|component| component.action == *action).count(), *word)
    });
    let outcomes = [
        (JobOutcome::Succeeded, "succeeded"),
        (JobOutcome::Failed, "failed"),
        (JobOutcome::Unknown, "unknown"),
        (JobOutcome::Skipped, "skipped"),
    ];
    let jobs = outcomes
        .iter()
        .map(|(outcome, word)| (report.jobs.iter().filter(|job| job.outcome == *outcome).count(), *word));
    [plural(components, "component"), plural(jobs, "job")].concat()
}

/// The noun stands with the first count only: `4 jobs succeeded, 1 skipped`.
fn plural(counts: impl Iterator<Item = (usize, &'static str)>, noun: &str) -> Vec<String> {
    let counts = counts.filter(|(count, _)| *count > 0).enumerate();
    counts
        .map(|(index, (count, word))| match (index, count) {
            (0, 1) => format!("1 {noun} {word}"),
            (0, count) => format!("{count} {noun}s {word}"),
            (_, count) => format!("{count} {word}"),
        })
        .collect()
}

/// What ended the deploy: the first job or component that failed by itself.
fn cause(report: &Report) -> Option<String> {
    if let Some(reason) = &report.reason {
        return Some(reason.clone());
    }
    let failed = |outcome| report.jobs.iter().find(move |job| job.outcome == outcome);
    let job = failed(JobOutcome::Failed).or_else(|| failed(JobOutcome::Unknown));
    let component = report.components.iter().find(|component| component.failure == Some(ComponentFailure::Component));
    match (job, component) {
        (Some(job), _) => {
            let attempts = if job.attempts > 1 { format!(" after {} attempts", job.attempts) } else { String::new() };
            let word = if job.outcome == JobOutcome::Unknown { "is unresolved" } else { "failed" };
            Some(format!("job {} {word}{attempts}: {}", job.id, job.reason))
        }
        (None, Some(component)) => Some(format!("component {} failed: {}", component.name, component.reason)),
        (None, None) => None,
    }
}

/// Where to look, and how to go on.
fn next_commands(report: &Report, subject: Subject<'_>) -> Vec<String> {
    let ran = report.jobs.iter().find(|job| job.outcome == JobOutcome::Failed && job.run.is_some());
    let logs = ran.map(|job| format!("Logs:  jobwright logs {}", job.id));
    let deployed = report
        .components
        .iter()
        .filter(|component| matches!(component.action, Action::Installed | Action::Upgraded | Action::Unchanged));
    let names: Vec<&str> = deployed.map(|component| component.name.as_str()).collect();
    let skipped = match names.as_slice() {
        [] => String::new(),
        [one] => format!(" ({one} is up to date and is skipped)"),
        names => format!(" ({} are up to date and are skipped)", names.join(", ")),
    };
    logs.into_iter().chain([format!("Retry: {}{skipped}", again(subject))]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_name_their_noun_once() {
        let counts = [(4, "succeeded"), (0, "failed"), (1, "skipped")];
        assert_eq!(plural(counts.into_iter(), "job"), ["4 jobs succeeded", "1 skipped"]);
        assert_eq!(plural([(1, "installed")].into_iter(), "component"), ["1 component installed"]);
    }
}
