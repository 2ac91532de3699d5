//! Playing one scenario with one version of Helm.

mod place;

use crate::clock;
use crate::command::Command;
use crate::compare::{Difference, Verdict, compare};
use crate::error::Error;
use crate::normalise::Normaliser;
use crate::outcome::{Exit, Outcome, Said};
use crate::scenario::{Action, Expected, HelmStep, Read, Scenario};
use crate::state::Reader;
use crate::target::Target;
use crate::tools::Tools;
use crate::version::HelmVersion;
use place::Place;
use std::time::Duration;

/// What all plays have in common.
#[derive(Debug)]
pub struct Stage {
    /// The tools.
    pub tools: Tools,
    /// What is played against.
    pub target: Target,
    /// An image that has `sh`.
    pub image: String,
    /// How long a command may run that sets no time-out itself, and how long Jobs may take to come to rest.
    pub patience: Duration,
    /// Whether the steps after one that differs are played too.
    pub keep_going: bool,
}

/// How a play ended.
#[derive(Debug)]
pub enum Result {
    /// As in reality; the names of the outcomes of its races.
    AsInReality(Vec<String>),
    /// Not as in reality.
    Differs(Vec<StepDifference>),
    /// It could not be played to its end.
    Broken(Error),
}

/// A step that did not end as in reality.
#[derive(Debug)]
pub struct StepDifference {
    /// The number of the step, from 1.
    pub number: usize,
    /// What the step does.
    pub title: String,
    /// The fields that differ.
    pub differences: Vec<Difference>,
}

impl Stage {
    /// Plays a scenario in a namespace of its own; says how it ended and how long it took.
    pub fn play(&self, scenario: &Scenario, version: HelmVersion) -> (Result, Duration) {
        let start = clock::now();
        let result = Place::new(self, scenario, version)
            .and_then(|place| Play { stage: self, place: &place, version, ways: Vec::new(), hung: false }.run(scenario))
            .unwrap_or_else(Result::Broken);
        (result, start.elapsed())
    }
}

/// A play that is going on.
struct Play<'a> {
    stage: &'a Stage,
    place: &'a Place,
    version: HelmVersion,
    /// The ways of the races that are still possible.
    ways: Vec<Vec<String>>,
    /// Whether a command had to be killed: nothing that follows means anything.
    hung: bool,
}

impl Play<'_> {
    fn run(mut self, scenario: &Scenario) -> std::result::Result<Result, Error> {
        let mut reader = Reader::new(self.place.kubectl().clone(), self.version)?;
        let normaliser = self.place.normaliser();
        let mut found = Vec::new();
        for (index, step) in scenario.steps(self.version).iter().enumerate() {
            let differences = self.step(&step.action, &mut reader, &normaliser)?;
            if !differences.is_empty() {
                found.push(StepDifference { number: index + 1, title: step.title.clone(), differences });
                if self.hung || !self.stage.keep_going {
                    break;
                }
            }
        }
        self.place.release(reader.with_finalizers());
        if found.is_empty() {
            Ok(Result::AsInReality(self.ways.into_iter().next().unwrap_or_default()))
        } else {
            Ok(Result::Differs(found))
        }
    }

    fn step(
        &mut self,
        action: &Action,
        reader: &mut Reader,
        normaliser: &Normaliser,
    ) -> std::result::Result<Vec<Difference>, Error> {
        match action {
            Action::Helm(step) => {
                if let Some(first) = &step.first {
                    self.helm(step.helm, first)?.run()?;
                }
                let ended = self.helm(step.helm, &step.words)?.signal(step.signal).run()?;
                self.look(&step.expected, normaliser.said(&ended), step.read, reader)
            }
            Action::Wait(expected) => self.look(expected, Said::nothing(), Read::AtRest, reader),
            Action::Kubectl { words, stdin, prints } => {
                let words = self.place.fill(words);
                let stdin = stdin.as_deref().map(|text| self.place.places().fill(text));
                let ended = self.place.kubectl().command(&words).stdin(stdin).run()?;
                Ok(difference("prints", prints, normaliser.printed(&ended)))
            }
            Action::Hooks(recorded) => Ok(difference("hooks", recorded, reader.recorded_hooks()?)),
        }
    }

    fn helm(&self, version: HelmVersion, words: &[String]) -> std::result::Result<Command, Error> {
        let limit = HelmStep::timeout(words).map_or(self.stage.patience, |timeout| timeout + Duration::from_secs(45));
        Ok(self.place.helm(self.stage.tools.helm(version)?, words).deadline(limit))
    }

    fn look(
        &mut self,
        expected: &[Expected],
        said: Said,
        when: Read,
        reader: &mut Reader,
    ) -> std::result::Result<Vec<Difference>, Error> {
        self.hung = said.exit == Exit::Hung;
        let when = if self.hung { Read::AtOnce } else { when };
        let state = reader.read(when, self.stage.patience)?;
        match compare(expected, &self.ways, &Outcome { said, state }) {
            Verdict::AsInReality(ways) => {
                self.ways = ways;
                Ok(Vec::new())
            }
            Verdict::Differs(differences) => Ok(differences),
        }
    }
}

fn difference(field: &'static str, expected: &str, seen: String) -> Vec<Difference> {
    let expected = expected.trim().to_owned();
    if expected == seen { Vec::new() } else { vec![Difference { field, expected, seen }] }
}

impl HelmStep {
    /// The time-out that a command line sets itself: `--timeout 15s`.
    fn timeout(words: &[String]) -> Option<Duration> {
        let at = words.iter().position(|word| word == "--timeout")?;
        let seconds = words.get(at + 1)?.strip_suffix('s')?.parse().ok()?;
        Some(Duration::from_secs(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_may_set_its_own_time() {
        let words = ["upgrade", "r", "--timeout", "15s"].map(str::to_owned);
        assert_eq!(HelmStep::timeout(&words), Some(Duration::from_secs(15)));
        assert_eq!(HelmStep::timeout(&words[..2]), None);
    }
}
