//! Scenarios: charts, steps, and what each version of Helm does with them in reality.

mod file;
mod outcomes;
mod per_version;
mod resolve;
mod words;

pub use file::Read;

use crate::chart::Chart;
use crate::error::Error;
use crate::outcome::{Outcome, Signal};
use crate::version::{HelmVersion, Versions};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A scenario, with the steps of each version it is played with.
#[derive(Debug)]
pub struct Scenario {
    /// A short name, unique among all.
    pub name: String,
    /// One line of what it is about.
    pub about: String,
    /// What a run showed beyond the outcomes.
    pub note: Option<String>,
    /// What the scenarios of its file have in common.
    pub section: String,
    /// The versions it is played with.
    pub versions: Versions,
    /// Executable files that commands name as `@name`.
    pub files: BTreeMap<String, String>,
    /// Files in the plugin directory of Helm, by path.
    pub plugins: BTreeMap<String, String>,
    /// Charts that commands name as `@name`.
    pub charts: BTreeMap<String, Chart>,
    steps: BTreeMap<HelmVersion, Vec<Step>>,
}

/// Something that is done, and what it should lead to.
#[derive(Debug)]
pub struct Step {
    /// What stands in the file, for people.
    pub title: String,
    /// What is done.
    pub action: Action,
}

/// What a step does.
#[derive(Debug)]
pub enum Action {
    /// Runs Helm and reads what it left.
    Helm(HelmStep),
    /// Waits until the Jobs are at rest and reads what is there.
    Wait(Vec<Expected>),
    /// Runs kubectl and compares what it printed.
    Kubectl {
        /// The arguments.
        words: Vec<String>,
        /// What it reads on its standard input.
        stdin: Option<String>,
        /// What it should print.
        prints: String,
    },
    /// Compares the hooks that the last revision records, by start time.
    Hooks(String),
}

/// A command of Helm.
#[derive(Debug)]
pub struct HelmStep {
    /// The version that runs it.
    pub helm: HelmVersion,
    /// A command that is run before; how it ends does not matter.
    pub first: Option<Vec<String>>,
    /// The arguments.
    pub words: Vec<String>,
    /// The signal that it gets, and after how long.
    pub signal: Option<(Signal, Duration)>,
    /// When state is read.
    pub read: Read,
    /// What it may lead to.
    pub expected: Vec<Expected>,
}

/// An outcome that is as in reality.
#[derive(Clone, Debug)]
pub struct Expected {
    /// How the races up to here ended, by the names of their outcomes.
    pub path: Vec<String>,
    /// The outcome.
    pub outcome: Outcome,
}

impl Scenario {
    /// The steps for this version; none if it is not played with it.
    pub fn steps(&self, version: HelmVersion) -> &[Step] {
        self.steps.get(&version).map_or(&[], Vec::as_slice)
    }

    /// The versions of Helm that run its commands: some scenarios change the version half-way.
    pub fn helms(&self, version: HelmVersion) -> impl Iterator<Item = HelmVersion> + '_ {
        self.steps(version).iter().filter_map(|step| match &step.action {
            Action::Helm(step) => Some(step.helm),
            Action::Wait(_) | Action::Kubectl { .. } | Action::Hooks(_) => None,
        })
    }

    /// Whether containers must run for it to end as in reality: it leaves or starts something that has some.
    pub fn needs_containers(&self, version: HelmVersion) -> bool {
        let with_containers = |line: &String| ["Job/", "Pod/", "Deployment/"].iter().any(|kind| line.starts_with(kind));
        let needs = |expected: &Expected| {
            expected.outcome.state.runs != "none" || expected.outcome.state.left.iter().any(with_containers)
        };
        self.steps(version).iter().any(|step| match &step.action {
            Action::Helm(HelmStep { expected, .. }) | Action::Wait(expected) => expected.iter().any(needs),
            Action::Kubectl { .. } | Action::Hooks(_) => false,
        })
    }
}

/// The scenarios of a file's text.
#[cfg(test)]
pub(crate) fn parse(text: &str) -> Vec<Scenario> {
    let scenarios = resolve::parse(Path::new("file.yaml"), text).unwrap();
    scenarios.into_iter().map(|(_, scenario)| scenario).collect()
}

/// Reads all scenario files of a directory, in the order of their names.
pub fn load(directory: &Path) -> Result<Vec<Scenario>, Error> {
    let listing = || Error::io(format!("list the scenarios in `{}`", directory.display()));
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(listing())? {
        let path = entry.map_err(listing())?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    let mut scenarios: Vec<Scenario> = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).map_err(Error::io(format!("read `{}`", path.display())))?;
        for (line, scenario) in resolve::parse(&path, &text)? {
            if scenarios.iter().any(|other| other.name == scenario.name) {
                let message = format!("`{}` is the name of another scenario", scenario.name);
                return Err(Error::Scenario { file: path, line, message });
            }
            scenarios.push(scenario);
        }
    }
    Ok(scenarios)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_file_is_understood() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/helm");
        let scenarios = load(&directory).unwrap();
        assert!(scenarios.iter().all(|scenario| scenario.versions.iter().all(|v| !scenario.steps(v).is_empty())));
    }
}
