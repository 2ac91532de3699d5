//! What was expected against what was seen.

use crate::outcome::Outcome;
use crate::scenario::Expected;
use serde::Serialize;

/// A field that is not as expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Which field.
    pub field: &'static str,
    /// What it is in reality.
    pub expected: String,
    /// What it was in this play.
    pub seen: String,
}

/// The fields in which two outcomes differ.
pub(crate) fn differences(expected: &Outcome, seen: &Outcome) -> Vec<Difference> {
    let fields = [
        ("exit", expected.said.exit.to_string(), seen.said.exit.to_string()),
        ("error", expected.said.error.trim().to_owned(), seen.said.error.clone()),
        ("stderr", expected.said.stderr.trim().to_owned(), seen.said.stderr.clone()),
        ("stdout", expected.said.stdout.trim().to_owned(), seen.said.stdout.clone()),
        ("release", expected.state.release.clone(), seen.state.release.clone()),
        ("left", expected.state.left_line(), seen.state.left_line()),
        ("runs", expected.state.runs.clone(), seen.state.runs.clone()),
    ];
    fields
        .into_iter()
        .filter(|(_, expected, seen)| expected != seen)
        .map(|(field, expected, seen)| Difference { field, expected, seen })
        .collect()
}

/// What the comparison with all outcomes that reality may have says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// As in reality, in these ways of the races so far.
    AsInReality(Vec<Vec<String>>),
    /// Not as in reality; how it differs from the outcome that is nearest.
    Differs(Vec<Difference>),
}

/// Compares with every outcome that goes on from one of these ways; none yet means that all are possible.
pub(crate) fn compare(expected: &[Expected], ways: &[Vec<String>], seen: &Outcome) -> Verdict {
    let possible = |path: &[String]| ways.is_empty() || ways.iter().any(|way| path.starts_with(way));
    let mut matching = Vec::new();
    let mut nearest: Option<Vec<Difference>> = None;
    for Expected { path, outcome } in expected.iter().filter(|expected| possible(&expected.path)) {
        let found = differences(outcome, seen);
        if found.is_empty() {
            matching.push(path.clone());
        } else if nearest.as_ref().is_none_or(|nearest| found.len() < nearest.len()) {
            nearest = Some(found);
        }
    }
    if matching.is_empty() { Verdict::Differs(nearest.unwrap_or_default()) } else { Verdict::AsInReality(matching) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Exit, Said, State};

    fn outcome(exit: i32, runs: &str) -> Outcome {
        let said = Said { exit: Exit::Code(exit), ..Said::nothing() };
        Outcome { said, state: State { runs: runs.to_owned(), ..State::empty() } }
    }

    fn expected(path: &[&str], exit: i32, runs: &str) -> Expected {
        Expected { path: path.iter().map(|&name| name.to_owned()).collect(), outcome: outcome(exit, runs) }
    }

    #[test]
    fn every_differing_field_is_told() {
        let found = differences(&outcome(0, "x 1"), &outcome(1, "x 2"));
        let fields: Vec<_> = found.iter().map(|difference| difference.field).collect();
        assert_eq!(fields, ["exit", "runs"]);
        assert_eq!((found[1].expected.as_str(), found[1].seen.as_str()), ("x 1", "x 2"));
    }

    #[test]
    fn a_race_may_end_in_any_of_its_ways() {
        let outcomes = [expected(&["early"], 0, "none"), expected(&["late"], 0, "x 1")];
        assert_eq!(compare(&outcomes, &[], &outcome(0, "x 1")), Verdict::AsInReality(vec![vec!["late".to_owned()]]));
    }

    #[test]
    fn a_race_that_has_ended_stays_as_it_was() {
        let outcomes = [expected(&["early"], 0, "none"), expected(&["late"], 0, "x 1")];
        let ways = [vec!["early".to_owned()]];
        let verdict = compare(&outcomes, &ways, &outcome(0, "x 1"));
        assert!(matches!(verdict, Verdict::Differs(found) if found[0].expected == "none"));
    }

    #[test]
    fn the_nearest_outcome_tells_the_difference() {
        let outcomes = [expected(&["a"], 1, "none"), expected(&["b"], 0, "x 1")];
        let Verdict::Differs(found) = compare(&outcomes, &[], &outcome(0, "x 2")) else { panic!("no difference") };
        assert_eq!(found.len(), 1);
    }
}
