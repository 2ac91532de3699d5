//! What is going on, as far as events have told it, and how that is shown. No input or output.

use super::Loudness;
use crate::output::table::cut;
use crate::output::{BAD, DIM, DOUBTFUL, GOOD, STRONG, duration};
use anstyle::Style;
use jiff::Timestamp;
use jobwright_engine::{Action, Decision, Event, JobOutcome, JobReport, Occasion, Outcome};
use std::collections::BTreeMap;
use std::time::Duration;

/// What is going on.
pub(super) struct Scene {
    loudness: Loudness,
    is_live: bool,
    started: Timestamp,
    /// What runs, by the component it belongs to.
    running: BTreeMap<String, Vec<Running>>,
    components: (usize, usize),
    jobs: usize,
}

struct Running {
    /// `migrate`, or empty for the component itself.
    job: String,
    /// `pre`, `post`, `deploying`.
    what: String,
    since: Timestamp,
    attempt: u32,
    /// The last thing it said, or what keeps it.
    line: String,
    is_troubled: bool,
}

/// How many lines of a failed attempt's log are shown.
const LAST_WORDS: usize = 10;

pub(crate) const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

impl Scene {
    pub(super) fn new(loudness: Loudness, is_live: bool, started: Timestamp) -> Self {
        Self { loudness, is_live, started, running: BTreeMap::new(), components: (0, 0), jobs: 0 }
    }

    /// Takes an event in, and gives the lines that stay.
    pub(super) fn take(&mut self, event: &Event, now: Timestamp) -> Vec<String> {
        let line = self.apply(event, now);
        match self.loudness {
            Loudness::Quiet => Vec::new(),
            // Each line was told when it was said.
            Loudness::Verbose => line.into_iter().collect(),
            Loudness::Usual => last_words(event).into_iter().chain(line).collect(),
        }
    }

    fn apply(&mut self, event: &Event, now: Timestamp) -> Option<String> {
        let verbose = self.loudness == Loudness::Verbose;
        // What a live tree shows need not be written down as well.
        let is_live = self.is_live;
        let told = |line: String| (!is_live || verbose).then_some(line);
        match event {
            Event::Busy { holder } => {
                Some(format!("{DOUBTFUL}waiting{DOUBTFUL:#} for `{holder}`, which is deploying this release"))
            }
            Event::Retrying { doing, error } => Some(format!("{DOUBTFUL}retrying{DOUBTFUL:#} to {doing}: {error}")),
            Event::Decided { component, decision } => {
                self.components.1 += usize::from(decision.occasion().is_some());
                let what = match decision {
                    Decision::Install(_) => "to be installed",
                    Decision::Upgrade(_) => "to be upgraded",
                    Decision::Remove(_) => "to be removed",
                    Decision::Unchanged(_) => "unchanged",
                };
                (verbose || decision.occasion().is_some() && !self.is_live)
                    .then(|| format!("{DIM}{component}: {what}: {}{DIM:#}", decision.reason()))
            }
            Event::JobConsidered { job, scope, phase } => {
                let running = Running {
                    job: job.clone(),
                    what: phase.to_string(),
                    since: now,
                    attempt: 0,
                    line: String::new(),
                    is_troubled: false,
                };
                self.running.entry(scope.to_string()).or_default().push(running);
                None
            }
            Event::AttemptStarted { job, attempt, name, run } => {
                let running = self.find(job)?;
                running.attempt = *attempt;
                running.line = String::new();
                let object = if name.is_empty() { String::new() } else { format!(", Job {name}") };
                let line = format!("{DIM}{job}: run {run}, attempt {attempt}{object}{DIM:#}");
                (!self.is_live || verbose).then_some(line)
            }
            Event::Trouble { job, trouble } => {
                let running = self.find(job)?;
                running.is_troubled = trouble.is_some();
                running.line = trouble.clone().unwrap_or_default();
                let trouble = trouble.as_ref()?;
                told(format!("{DOUBTFUL}{job}{DOUBTFUL:#}: {trouble}"))
            }
            Event::Waiting { job, what } => {
                let running = self.find(job)?;
                if running.attempt == 0 || *what != "its Job" {
                    running.line = format!("waiting for {what}");
                }
                verbose.then(|| format!("{DIM}{job}: waiting for {what}{DIM:#}"))
            }
            Event::Log { job, line } => {
                let running = self.find(job)?;
                if !running.is_troubled {
                    running.line.clone_from(line);
                }
                verbose.then(|| format!("{DIM}{job} |{DIM:#} {line}"))
            }
            Event::AttemptEnded { job, attempt, outcome, reason, retry_in, .. } => {
                let retry = (*retry_in)?;
                let running = self.find(job)?;
                running.line = format!("attempt {attempt} {outcome}: {reason}");
                let bad = if *outcome == Outcome::Failed { BAD } else { DOUBTFUL };
                Some(format!(
                    "{bad}{job}{bad:#}: attempt {attempt} {outcome}: {reason}; retrying in {}",
                    duration(retry)
                ))
            }
            Event::JobDone(report) => {
                self.remove(&report.scope.to_string(), &report.id);
                self.jobs += 1;
                let worth_saying =
                    report.outcome != JobOutcome::Skipped || verbose || !report.reason.contains("unchanged");
                worth_saying.then(|| done_line(report))
            }
            Event::Deploying { component, occasion } => {
                let what = match occasion {
                    Occasion::Install => "installing",
                    Occasion::Upgrade => "upgrading",
                };
                let running = Running {
                    job: String::new(),
                    what: what.to_owned(),
                    since: now,
                    attempt: 0,
                    line: String::new(),
                    is_troubled: false,
                };
                self.running.entry(component.clone()).or_default().push(running);
                told(format!("{DIM}{component}: {what}{DIM:#}"))
            }
            Event::Progress { component, line } => {
                let running = self.running.get_mut(component)?.iter_mut().find(|running| running.job.is_empty())?;
                running.line.clone_from(line);
                verbose.then(|| format!("{DIM}{component} |{DIM:#} {line}"))
            }
            Event::ComponentDone { component, action, reason, took } => {
                self.remove(component, "");
                self.components.0 += usize::from(!matches!(action, Action::Unchanged));
                let (sign, style, word) = match action {
                    Action::Installed => ("✓", GOOD, "installed"),
                    Action::Upgraded => ("✓", GOOD, "upgraded"),
                    Action::Removed => ("✓", GOOD, "removed"),
                    Action::Unchanged => ("=", DIM, "unchanged"),
                    Action::Failed => ("✗", BAD, "failed"),
                    Action::Skipped => ("-", DIM, "skipped"),
                };
                let took = if took.is_zero() { String::new() } else { format!(" in {}", duration(*took)) };
                Some(format!("{style}{sign}{style:#} {STRONG}{component}{STRONG:#} {word}{took}{DIM}: {reason}{DIM:#}"))
            }
            Event::Cancelled => Some(format!(
                "{DOUBTFUL}cancelling{DOUBTFUL:#}: waiting for running steps to end; Ctrl-C stops without waiting"
            )),
            _ => None,
        }
    }

    fn find(&mut self, job: &str) -> Option<&mut Running> {
        self.running.values_mut().flatten().find(|running| running.job == job)
    }

    fn remove(&mut self, place: &str, job: &str) {
        if let Some(list) = self.running.get_mut(place) {
            list.retain(|running| running.job != job);
            if list.is_empty() {
                self.running.remove(place);
            }
        }
    }

    /// The lines at the foot of a terminal.
    pub(super) fn frame(&self, now: Timestamp, width: usize, height: usize, tick: usize) -> Vec<String> {
        let spinner = SPINNER[tick % SPINNER.len()];
        let mut lines = Vec::new();
        for (place, list) in &self.running {
            lines.push(format!("{STRONG}{place}{STRONG:#}"));
            for (index, running) in list.iter().enumerate() {
                let branch = if index + 1 == list.len() { "└" } else { "├" };
                lines.push(running.line(branch, spinner, now, width));
            }
        }
        // The terminal must not scroll, or what is drawn cannot be taken away again.
        let room = height.saturating_sub(3).max(1);
        if lines.len() > room {
            let hidden = lines.len() - room + 1;
            lines.truncate(room - 1);
            lines.push(format!("{DIM}… and {hidden} lines more{DIM:#}"));
        }
        let (done, all) = self.components;
        let elapsed = duration(between(self.started, now));
        let foot = format!("{spinner} {done} of {all} components, {} jobs done, {elapsed}", self.jobs);
        lines.push(format!("{DIM}{}{DIM:#}", cut(&foot, width.saturating_sub(1))));
        lines
    }
}

impl Running {
    fn line(&self, branch: &str, spinner: &str, now: Timestamp, width: usize) -> String {
        let elapsed = duration(between(self.since, now));
        let name = if self.job.is_empty() { self.what.clone() } else { format!("{} {}", self.what, self.job) };
        let attempt = if self.attempt > 1 { format!(" (attempt {})", self.attempt) } else { String::new() };
        let head = format!("{branch} {spinner} {name}{attempt} {elapsed}");
        let room = width.saturating_sub(unicode_width::UnicodeWidthStr::width(head.as_str()) + 3);
        let said = cut(self.line.trim_end(), room);
        let style: Style = if self.is_troubled { DOUBTFUL } else { DIM };
        if said.is_empty() || room < 10 { head } else { format!("{head}  {style}{said}{style:#}") }
    }
}

/// What an attempt that failed said at its end.
fn last_words(event: &Event) -> Vec<String> {
    let Event::AttemptEnded { job, outcome: Outcome::Failed, log: Some(log), .. } = event else { return Vec::new() };
    let lines: Vec<&str> = log.lines().collect();
    let last = &lines[lines.len().saturating_sub(LAST_WORDS)..];
    last.iter().map(|line| format!("{DIM}{job} |{DIM:#} {line}")).collect()
}

fn done_line(report: &JobReport) -> String {
    let (sign, style) = match report.outcome {
        JobOutcome::Succeeded => ("✓", GOOD),
        JobOutcome::Failed => ("✗", BAD),
        JobOutcome::Skipped => ("-", DIM),
        JobOutcome::Unknown => ("?", DOUBTFUL),
    };
    let place = format!("{} {}", report.scope, report.phase);
    let word = match report.outcome {
        JobOutcome::Succeeded => "succeeded",
        JobOutcome::Failed => "failed",
        JobOutcome::Skipped => "skipped",
        JobOutcome::Unknown => "unknown",
    };
    let took = if report.took.is_zero() { String::new() } else { format!(" in {}", duration(report.took)) };
    let attempts = if report.attempts > 1 { format!(", attempt {}", report.attempts) } else { String::new() };
    let reason = match report.outcome {
        JobOutcome::Succeeded => String::new(),
        _ => format!("{DIM}: {}{DIM:#}", report.reason),
    };
    format!(
        "{style}{sign}{style:#} {STRONG}{}{STRONG:#} {DIM}({place}){DIM:#} {word}{took}{attempts}{reason}",
        report.id
    )
}

fn between(start: Timestamp, end: Timestamp) -> Duration {
    end.duration_since(start).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobwright_engine::{Phase, Scope};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn plain(lines: &[String]) -> Vec<String> {
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    fn scene(is_live: bool) -> Scene {
        let mut scene = Scene::new(Loudness::Usual, is_live, at(0));
        let api = || Scope::Component("api".to_owned());
        for event in [
            Event::Decided {
                component: "api".to_owned(),
                decision: Decision::Upgrade("its chart has changed".to_owned()),
            },
            Event::JobConsidered { job: "migrate".to_owned(), scope: api(), phase: Phase::Pre },
            Event::AttemptStarted { job: "migrate".to_owned(), run: 7, attempt: 2, name: "shop-migrate-x".to_owned() },
            Event::Log {
                job: "migrate".to_owned(),
                line: "applying 002-orders to a table with a long name".to_owned(),
            },
            Event::Deploying { component: "db".to_owned(), occasion: Occasion::Install },
            Event::Progress { component: "db".to_owned(), line: "helm 3.17.3 upgrade --install db".to_owned() },
        ] {
            scene.take(&event, at(1));
        }
        scene
    }

    #[test]
    fn a_tree_shows_what_runs_and_what_it_said_last() {
        let scene = scene(true);
        assert_eq!(
            plain(&scene.frame(at(13), 100, 40, 0)),
            [
                "api",
                "└ ⠋ pre migrate (attempt 2) 12s  applying 002-orders to a table with a long name",
                "db",
                "└ ⠋ installing 12s  helm 3.17.3 upgrade --install db",
                "⠋ 0 of 1 components, 0 jobs done, 13s",
            ]
        );
        let narrow = plain(&scene.frame(at(13), 50, 40, 1));
        assert_eq!(narrow[1], "└ ⠙ pre migrate (attempt 2) 12s  applying 002-or…");
        assert!(narrow.iter().all(|line| unicode_width::UnicodeWidthStr::width(line.as_str()) < 50), "{narrow:?}");
        let low = plain(&scene.frame(at(13), 100, 5, 1));
        assert_eq!(low, ["api", "… and 3 lines more", "⠙ 0 of 1 components, 0 jobs done, 13s"]);
    }

    #[test]
    fn lines_are_for_logs_and_a_tree_needs_fewer() {
        let trouble = Event::Trouble { job: "migrate".to_owned(), trouble: Some("ImagePullBackOff: no".to_owned()) };
        assert_eq!(plain(&scene(false).take(&trouble, at(5))), ["migrate: ImagePullBackOff: no"]);
        assert_eq!(plain(&scene(true).take(&trouble, at(5))), [""; 0]);
        let ended = Event::AttemptEnded {
            job: "migrate".to_owned(),
            attempt: 2,
            outcome: Outcome::Failed,
            reason: "exit code 3".to_owned(),
            retry_in: Some(Duration::from_secs(20)),
            log: Some("connecting\nno such table\n".to_owned()),
        };
        assert_eq!(
            plain(&scene(true).take(&ended, at(5))),
            [
                "migrate | connecting",
                "migrate | no such table",
                "migrate: attempt 2 failed: exit code 3; retrying in 20s"
            ]
        );
        let mut scene = scene(true);
        let report = JobReport {
            id: "migrate".to_owned(),
            scope: Scope::Component("api".to_owned()),
            phase: Phase::Pre,
            outcome: JobOutcome::Succeeded,
            reason: "run 7".to_owned(),
            run: Some(7),
            attempts: 2,
            took: Duration::from_secs(75),
        };
        assert_eq!(
            plain(&scene.take(&Event::JobDone(report), at(80))),
            ["✓ migrate (api pre) succeeded in 1m15s, attempt 2"]
        );
        assert!(!plain(&scene.frame(at(80), 100, 40, 0)).join("").contains("migrate"));
        let mut quiet = Scene::new(Loudness::Quiet, false, at(0));
        assert_eq!(quiet.take(&Event::Cancelled, at(1)), [""; 0]);
    }
}
