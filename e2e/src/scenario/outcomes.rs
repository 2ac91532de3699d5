//! Which outcomes a step may have, given those of the steps before it.
//!
//! What a step does not say of the release, the objects left and the runs is as it was after the step before. A race
//! has several outcomes, each with a name; from there on every one of them is followed, and a later step that names
//! the same outcomes again goes on from each.

use super::Expected;
use super::file::{RawOutcome, RawStep};
use super::per_version::PerVersion;
use crate::outcome::{Outcome, Said, State};
use crate::version::{HelmVersion, Versions};
use std::collections::BTreeSet;

/// The outcomes so far, for one version.
pub(super) struct Outcomes {
    version: HelmVersion,
    ways: Vec<(Vec<String>, State)>,
    /// Names of outcomes of races so far, also of those that this version does not have.
    names: BTreeSet<String>,
}

impl Outcomes {
    pub(super) fn new(version: HelmVersion) -> Self {
        Self { version, ways: vec![(Vec::new(), State::empty())], names: BTreeSet::new() }
    }

    /// The outcomes of the next step.
    pub(super) fn after(&mut self, step: &RawStep) -> Result<Vec<Expected>, String> {
        let is_new = step.either.keys().any(|name| !self.names.contains(name));
        if step.race.is_some() != is_new {
            return Err("a `race` has outcomes (`either`), and new names there are those of a `race`".to_owned());
        }
        self.names.extend(step.either.keys().cloned());
        let mut choices: Vec<(&String, &RawOutcome)> = Vec::new();
        for (name, outcome) in &step.either {
            let versions: Versions = outcome.on.as_deref().unwrap_or("all").parse().map_err(|e| format!("{e}"))?;
            if versions.contains(self.version) {
                choices.push((name, outcome));
            }
        }
        let common = step.common();
        let mut expected = Vec::new();
        for (path, state) in std::mem::take(&mut self.ways) {
            let known: Vec<_> = choices.iter().filter(|(name, _)| path.contains(name)).copied().collect();
            let choices = if known.is_empty() { choices.clone() } else { known };
            if choices.is_empty() {
                let outcome = self.merge(None, &common, &state)?;
                expected.push(Expected { path, outcome });
                continue;
            }
            // What ends in one way only for this version is no race for it.
            let is_race = choices.len() > 1;
            for (name, choice) in choices {
                let mut path = path.clone();
                if is_race && !path.contains(name) {
                    path.push(name.clone());
                }
                let outcome = self.merge(Some(choice), &common, &state)?;
                expected.push(Expected { path, outcome });
            }
        }
        self.ways = expected.iter().map(|e| (e.path.clone(), e.outcome.state.clone())).collect();
        Ok(expected)
    }

    fn merge(&self, choice: Option<&RawOutcome>, common: &RawOutcome, before: &State) -> Result<Outcome, String> {
        let text = |field: fn(&RawOutcome) -> &Option<PerVersion>| {
            let of = |outcome| field(outcome).as_ref().and_then(|text| text.get(self.version)).map(str::to_owned);
            choice.and_then(of).or_else(|| of(common))
        };
        let said = Said {
            exit: text(|outcome| &outcome.exit).unwrap_or_else(|| "0".to_owned()).parse()?,
            error: text(|outcome| &outcome.error).unwrap_or_default(),
            stderr: text(|outcome| &outcome.stderr).unwrap_or_default(),
            stdout: text(|outcome| &outcome.stdout).unwrap_or_default(),
        };
        let state = State {
            release: text(|outcome| &outcome.release).unwrap_or_else(|| before.release.clone()),
            left: text(|outcome| &outcome.left).map_or_else(|| Ok(before.left.clone()), |line| parse_left(&line))?,
            runs: text(|outcome| &outcome.runs).unwrap_or_else(|| before.runs.clone()),
        };
        Ok(Outcome { said, state })
    }
}

/// `Job/x#1 owned Complete; ConfigMap/m#1 owned v=1`, or `nothing`
fn parse_left(line: &str) -> Result<Vec<String>, String> {
    if line == "nothing" {
        return Ok(Vec::new());
    }
    let mut objects: Vec<String> = line.split("; ").map(str::to_owned).collect();
    for object in &objects {
        let identity = object.split_once(' ').filter(|(_, rest)| {
            ["owned", "un-owned", "half-owned"].iter().any(|word| rest.split(' ').next() == Some(word))
        });
        let counted = identity.and_then(|(identity, _)| identity.split_once('/')?.1.split_once('#'));
        if counted.is_none_or(|(_, number)| number.parse::<u32>().is_err()) {
            return Err(format!("`{object}` is not `Kind/name#k owned|un-owned|half-owned …`"));
        }
    }
    objects.sort();
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(yaml: &str) -> RawStep {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn what_is_not_said_stays_as_it_was_except_what_was_printed() {
        let mut outcomes = Outcomes::new(HelmVersion::V3_17_3);
        outcomes.after(&step("{exit: 1, error: 'no', release: 1 failed, left: ConfigMap/m#1 owned v=1}")).unwrap();
        let expected = outcomes.after(&step("{runs: x 1}")).unwrap().swap_remove(0);
        assert_eq!(expected.outcome.state.release, "1 failed");
        assert_eq!(expected.outcome.state.left, ["ConfigMap/m#1 owned v=1"]);
        assert_eq!(expected.outcome.state.runs, "x 1");
        assert_eq!(expected.outcome.said, Said::nothing());
    }

    #[test]
    fn a_race_goes_on_by_the_names_of_its_outcomes() {
        let mut outcomes = Outcomes::new(HelmVersion::V4_3_1);
        let race = "{race: timing, either: {early: {}, late: {runs: h 1}, never: {on: v3}}}";
        let first: Vec<_> = outcomes.after(&step(race)).unwrap().into_iter().map(|e| e.path).collect();
        assert_eq!(first, [["early"], ["late"]]);
        let second = outcomes.after(&step("{either: {late: {release: 1 failed}, early: {}}}")).unwrap();
        let releases: Vec<_> = second.iter().map(|e| (e.path.join("/"), e.outcome.state.release.as_str())).collect();
        assert_eq!(releases, [("early".to_owned(), "none"), ("late".to_owned(), "1 failed")]);
        assert_eq!(second[1].outcome.state.runs, "h 1");
    }

    #[test]
    fn a_race_has_a_reason_and_outcomes() {
        let mut outcomes = Outcomes::new(HelmVersion::V4_3_1);
        assert!(outcomes.after(&step("{either: {a: {}}}")).is_err());
        assert!(outcomes.after(&step("{race: why}")).is_err());
    }

    #[test]
    fn objects_left_have_a_form() {
        assert_eq!(parse_left("nothing"), Ok(Vec::new()));
        assert_eq!(parse_left("Job/x#1 owned Complete; ConfigMap/a#2 un-owned v=1").unwrap().len(), 2);
        assert!(parse_left("Job/x owned").is_err());
        assert!(parse_left("Job/x#1 mine").is_err());
    }
}
