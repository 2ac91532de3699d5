//! From scenario files to the steps of each version, with everything checked that can be without a cluster.

use super::file::{RawFile, RawScenario, RawStep};
use super::outcomes::Outcomes;
use super::{Action, HelmStep, Scenario, Step, words};
use crate::chart::Chart;
use crate::error::Error;
use crate::outcome::Signal;
use crate::version::{HelmVersion, Versions};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// A complaint about a scenario and the line it is about.
struct Complaint {
    line: u64,
    message: String,
}

/// The scenarios of a file, each with its line.
pub(super) fn parse(file: &Path, text: &str) -> Result<Vec<(u64, Scenario)>, Error> {
    let raw: RawFile = serde_saphyr::from_str(text).map_err(|error| Error::Scenario {
        file: file.to_owned(),
        line: error.location().map_or(1, |location| location.line()),
        message: error.to_string(),
    })?;
    raw.scenarios
        .into_iter()
        .map(|scenario| {
            let line = scenario.referenced.line();
            let resolved = resolve(scenario.value, line, &raw.about);
            resolved.map(|scenario| (line, scenario)).map_err(|Complaint { line, message }| Error::Scenario {
                file: file.to_owned(),
                line,
                message,
            })
        })
        .collect()
}

fn resolve(raw: RawScenario, line: u64, section: &str) -> Result<Scenario, Complaint> {
    let here = |message: String| Complaint { line, message };
    let versions = raw.only.as_deref().map_or_else(|| Ok(Versions::all()), str::parse);
    let versions = versions.map_err(|error| here(error.to_string()))?;
    let mut charts = BTreeMap::new();
    for (name, objects) in &raw.charts {
        let mut templates = Vec::new();
        for object in objects {
            let complain = |message| Complaint { line: object.referenced.line(), message };
            templates.push(object.value.clone().try_into().map_err(complain)?);
        }
        charts.insert(name.clone(), Chart::new(templates));
    }
    let names: BTreeSet<&str> = raw.charts.keys().chain(raw.files.keys()).map(String::as_str).collect();
    let mut unused = names.clone();
    let mut steps = BTreeMap::new();
    for version in versions.iter() {
        let mut outcomes = Outcomes::new(version);
        let mut resolved = Vec::new();
        for step in &raw.steps {
            let complain = |message| Complaint { line: step.referenced.line(), message };
            let step = resolve_step(&step.value, &raw, version, &mut outcomes).map_err(complain)?;
            for word in step.iter().flat_map(Step::words) {
                if let Some(name) = word.strip_prefix('@') {
                    if !names.contains(name) {
                        return Err(complain(format!("there is neither a chart nor a file `{name}`")));
                    }
                    unused.remove(name);
                }
            }
            resolved.extend(step);
        }
        steps.insert(version, resolved);
    }
    if let Some(name) = unused.first() {
        return Err(here(format!("no step uses `{name}`")));
    }
    let RawScenario { name, about, note, files, plugins, .. } = raw;
    Ok(Scenario { name, about, note, section: section.to_owned(), versions, files, plugins, charts, steps })
}

/// The step for this version, or nothing if it has no command for it.
fn resolve_step(
    raw: &RawStep,
    scenario: &RawScenario,
    version: HelmVersion,
    outcomes: &mut Outcomes,
) -> Result<Option<Step>, String> {
    let split = |line: &str| words::split(line).map_err(|message| format!("{message}: {line}"));
    match (&raw.helm, &raw.kubectl, &raw.hooks, &raw.wait) {
        (Some(line), None, None, None) => {
            refuse(raw.stdin.is_some() || raw.prints.is_some(), "`stdin` and `prints` go with `kubectl`")?;
            let Some(line) = line.get(version) else { return Ok(None) };
            let helm = raw.with.as_deref().map_or(Ok(version), str::parse).map_err(|error| error.to_string())?;
            let step = HelmStep {
                helm,
                first: raw.first.as_deref().map(split).transpose()?,
                words: split(line)?,
                signal: raw.signal.as_deref().map(parse_signal).transpose()?,
                read: raw.read.unwrap_or(scenario.read),
                expected: outcomes.after(raw)?,
            };
            let by = raw.with.as_deref().map(|with| format!(" (by {with})")).unwrap_or_default();
            let sent = raw.signal.as_deref().map(|signal| format!(" ({signal})")).unwrap_or_default();
            Ok(Some(Step { title: format!("helm {line}{by}{sent}"), action: Action::Helm(step) }))
        }
        (None, Some(line), None, None) => {
            refuse(raw.speaks_of_helm(), "a `kubectl` step compares only what it `prints`")?;
            let Some(line) = line.get(version) else { return Ok(None) };
            let prints = raw.prints.as_ref().and_then(|prints| prints.get(version));
            let prints = prints.ok_or("a `kubectl` step says what it `prints`")?.to_owned();
            let action = Action::Kubectl { words: split(line)?, stdin: raw.stdin.clone(), prints };
            Ok(Some(Step { title: format!("kubectl {line}"), action }))
        }
        (None, None, Some(hooks), None) => {
            refuse(raw.speaks_of_helm() || raw.prints.is_some(), "a `hooks` step compares nothing else")?;
            let hooks = hooks.get(version).map(str::to_owned);
            Ok(hooks.map(|hooks| Step { title: "recorded hooks".to_owned(), action: Action::Hooks(hooks) }))
        }
        (None, None, None, Some(until)) => {
            refuse(until != "at rest", "a `wait` step is `wait: at rest`")?;
            Ok(Some(Step { title: "(later)".to_owned(), action: Action::Wait(outcomes.after(raw)?) }))
        }
        _ => Err("a step has one of `helm`, `kubectl`, `hooks`, `wait`".to_owned()),
    }
}

fn refuse(condition: bool, why: &str) -> Result<(), String> {
    if condition { Err(why.to_owned()) } else { Ok(()) }
}

/// `SIGKILL after 2.5 s`
fn parse_signal(text: &str) -> Result<(Signal, Duration), String> {
    let (signal, delay) = text.split_once(" after ").ok_or("a signal is `SIGNAL after SECONDS s`")?;
    let seconds: f64 = delay.trim_end_matches('s').trim().parse().map_err(|_| format!("`{delay}` is no time"))?;
    Ok((signal.parse()?, Duration::try_from_secs_f64(seconds).map_err(|_| format!("`{delay}` is no time"))?))
}

impl RawStep {
    fn speaks_of_helm(&self) -> bool {
        let common = self.common();
        [&common.exit, &common.error, &common.stderr, &common.stdout, &common.release, &common.left, &common.runs]
            .iter()
            .any(|field| field.is_some())
            || !self.either.is_empty()
            || self.with.is_some()
            || self.first.is_some()
            || self.signal.is_some()
    }
}

impl Step {
    fn words(&self) -> &[String] {
        match &self.action {
            Action::Helm(HelmStep { words, .. }) | Action::Kubectl { words, .. } => words,
            Action::Wait(_) | Action::Hooks(_) => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_one(scenario: &str) -> Result<Scenario, Error> {
        let indented = scenario.replace('\n', "\n    ");
        let text = format!("about: A file\nscenarios:\n  - name: one\n    about: One\n    {indented}\n");
        Ok(parse(Path::new("file.yaml"), &text)?.swap_remove(0).1)
    }

    #[test]
    fn a_step_without_a_command_for_a_version_is_not_played_with_it() {
        let scenario = parse_one(
            "charts: {a: [{job: x}]}\nsteps:\n  - helm: install r @a\n  - helm: {v4: upgrade r @a --force-conflicts}",
        )
        .unwrap();
        assert_eq!(scenario.steps(HelmVersion::V3_17_3).len(), 1);
        assert_eq!(scenario.steps(HelmVersion::V4_3_1).len(), 2);
    }

    #[test]
    fn complaints_name_the_line_of_the_step() {
        let error = parse_one("steps:\n  - helm: list\n  - helm: install r @nowhere").err().unwrap();
        assert_eq!(error.to_string(), "file.yaml:7: there is neither a chart nor a file `nowhere`");
    }

    #[test]
    fn what_is_misspelt_is_refused_with_its_line() {
        let error = parse_one("steps:\n  - helm: list\n    exits: 1").err().unwrap().to_string();
        assert!(error.starts_with("file.yaml:7") && error.contains("exits"), "{error}");
        let error = parse_one("charts: {a: [{jobb: x}]}\nsteps: []").err().unwrap().to_string();
        assert!(error.contains("jobb"), "{error}");
    }

    #[test]
    fn a_chart_that_no_step_uses_is_refused() {
        let error = parse_one("charts: {a: [{job: x}]}\nsteps:\n  - helm: list").err().unwrap();
        assert!(error.to_string().contains("no step uses `a`"), "{error}");
    }

    #[test]
    fn kinds_of_steps_do_not_mix() {
        assert!(parse_one("steps:\n  - {helm: list, kubectl: get pods}").is_err());
        assert!(parse_one("steps:\n  - {kubectl: get pods, prints: '', exit: 0}").is_err());
        assert!(parse_one("steps:\n  - {kubectl: get pods}").is_err());
        assert!(parse_one("steps:\n  - {wait: a while}").is_err());
    }

    #[test]
    fn containers_are_needed_where_something_with_containers_is_left() {
        let scenario = parse_one(
            "charts: {a: [{job: x}]}\nsteps:\n  - helm: install r @a\n    left: {v3: Job/x#1 owned Complete, v4: nothing}",
        )
        .unwrap();
        assert!(scenario.needs_containers(HelmVersion::V3_22_0));
        assert!(!scenario.needs_containers(HelmVersion::V4_3_1));
    }

    #[test]
    fn signals_come_after_a_time() {
        assert_eq!(parse_signal("SIGKILL after 2.5 s"), Ok((Signal::Kill, Duration::from_millis(2500))));
        assert!(parse_signal("SIGKILL").is_err());
        assert!(parse_signal("SIGHUP after 1 s").is_err());
        assert!(parse_signal("SIGKILL after -1 s").is_err());
    }
}
