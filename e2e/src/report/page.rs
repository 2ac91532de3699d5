//! The report as a page: scenario × version, as in reality or why not yet. The same plays make the same page.

use super::{Summary, chain};
use crate::play::{Result, StepDifference};
use crate::run::{End, Played};
use crate::version::HelmVersion;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Longer texts are cut: the page says why, the comparison itself shows all.
const LONGEST: usize = 240;

/// The results of another run, on a cluster, by scenario and version.
#[derive(Debug, Default)]
pub struct Beside(BTreeMap<(String, String), String>);

impl Beside {
    /// Reads what [`super::json`] wrote.
    pub fn read(document: &Value) -> Self {
        let plays = document.get("plays").and_then(Value::as_array).into_iter().flatten();
        let text = |play: &Value, field: &str| play.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self(plays.map(|play| ((text(play, "scenario"), text(play, "helm")), text(play, "result"))).collect())
    }

    fn of(&self, scenario: &str, version: HelmVersion) -> &str {
        self.0.get(&(scenario.to_owned(), version.number().to_owned())).map_or("not played", String::as_str)
    }
}

const AS_IN_REALITY: &str = "as in reality";

/// The page, in Markdown.
pub fn page(target: &str, played: &[Played<'_>], beside: Option<&Beside>) -> String {
    let Summary { as_in_reality, different, need_containers, .. } = Summary::new(played);
    let total = as_in_reality + different + need_containers;
    let mut page = format!("# Helm on {target}\n\n{as_in_reality} of {total} plays end as in reality.\n");
    if let Some(beside) = beside {
        let same = played.iter().filter(|it| beside.of(&it.scenario.name, it.version) == AS_IN_REALITY).count();
        let _ = writeln!(page, "Played on a real cluster beside it, {same} of {total} do.");
    }
    let mut section = "";
    let mut plays = played.iter().peekable();
    while let Some(first) = plays.next() {
        let mut row = vec![first];
        while let Some(next) = plays.next_if(|next| next.scenario.name == first.scenario.name) {
            row.push(next);
        }
        if first.scenario.section != section {
            section = &first.scenario.section;
            let versions: Vec<&str> = HelmVersion::ALL.iter().map(|version| version.number()).collect();
            // Writing to a String cannot fail.
            let _ = write!(page, "\n## {section}\n\n| | {} |\n|---|---|---|---|\n", versions.join(" | "));
        }
        let _ =
            writeln!(page, "| `{}`: {} | {} |", first.scenario.name, cell(&first.scenario.about), cells(&row, beside));
    }
    let notes: String = notes(played).collect();
    if !notes.is_empty() {
        let _ = write!(page, "\n## Notes\n\n{notes}");
    }
    let reasons: String = played.iter().filter_map(reason).collect();
    if !reasons.is_empty() {
        let _ = write!(page, "\n## Not yet\n\n{reasons}");
    }
    page
}

/// What a run showed beyond the outcomes, once for each scenario.
fn notes<'a>(played: &'a [Played<'a>]) -> impl Iterator<Item = String> {
    let mut last = "";
    played.iter().filter_map(move |played| {
        let scenario = played.scenario;
        let note = scenario.note.as_ref().filter(|_| scenario.name != last)?;
        last = &scenario.name;
        Some(format!("- `{}`: {note}.\n", scenario.name))
    })
}

fn cells(row: &[&Played<'_>], beside: Option<&Beside>) -> String {
    let of = |version: HelmVersion| {
        let Some(played) = row.iter().find(|played| played.version == version) else { return "–".to_owned() };
        let own = match played.end {
            End::Played(Result::AsInReality(_), _) => AS_IN_REALITY,
            End::Played(Result::Differs(_) | Result::Broken(_), _) => "not yet",
            End::NeedsContainers => "not yet: needs running containers",
        };
        match beside.map(|beside| beside.of(&played.scenario.name, version)) {
            None => own.to_owned(),
            Some(other) if own == AS_IN_REALITY && other == AS_IN_REALITY => "both as in reality".to_owned(),
            Some(other) => format!("{own}; cluster: {other}"),
        }
    };
    HelmVersion::ALL.map(of).join(" | ")
}

fn reason(played: &Played<'_>) -> Option<String> {
    let why = match &played.end {
        End::Played(Result::Differs(steps), _) => steps.first().map(first_difference)?,
        End::Played(Result::Broken(error), _) => cut(&chain(error)),
        End::Played(Result::AsInReality(_), _) | End::NeedsContainers => return None,
    };
    Some(format!("- `{}`, {}: {why}\n", played.scenario.name, played.version))
}

fn first_difference(step: &StepDifference) -> String {
    let mut text = format!("step {}, `{}`", step.number, step.title);
    // What was said explains what is there, not the other way round.
    for difference in step.differences.iter().take(2) {
        let (expected, seen) = (cut(&difference.expected), cut(&difference.seen));
        let _ = write!(text, "; {}: expected {expected}, seen {seen}", difference.field);
    }
    text
}

/// A text as code on one line, cut where it gets long.
fn cut(text: &str) -> String {
    let line = text.replace('\n', "\\n").replace('\t', "\\t").replace('`', "´");
    let short: String = line.chars().take(LONGEST).collect();
    let dots = if short.len() < line.len() { "…" } else { "" };
    if short.is_empty() { "nothing".to_owned() } else { format!("`{short}{dots}`") }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Difference;
    use crate::scenario;
    use std::time::Duration;

    #[test]
    fn texts_stay_on_one_line_and_are_cut() {
        assert_eq!(cut("a\n\tb"), "`a\\n\\tb`");
        assert_eq!(cut(""), "nothing");
        assert_eq!(cut(&"x".repeat(LONGEST + 1)).chars().count(), LONGEST + 3);
    }

    #[test]
    fn a_row_tells_each_version_apart_and_why_not_yet() {
        let scenarios = scenario::parse(
            "{about: Some, scenarios: [{name: one, about: A|B, note: Remember, steps: [{helm: list}]}]}",
        );
        let difference = Difference { field: "exit", expected: "0".to_owned(), seen: "1".to_owned() };
        let step = StepDifference { number: 1, title: "helm list".to_owned(), differences: vec![difference] };
        let ends = [
            End::Played(Result::AsInReality(Vec::new()), Duration::from_secs(1)),
            End::NeedsContainers,
            End::Played(Result::Differs(vec![step]), Duration::from_secs(1)),
        ];
        let played: Vec<Played<'_>> = HelmVersion::ALL
            .into_iter()
            .zip(ends)
            .map(|(version, end)| Played { scenario: &scenarios[0], version, end })
            .collect();
        let expected = "\
# Helm on drydock

1 of 3 plays end as in reality.

## Some

| | 3.17.3 | 3.22.0 | 4.3.1 |
|---|---|---|---|
| `one`: A\\|B | as in reality | not yet: needs running containers | not yet |

## Notes

- `one`: Remember.

## Not yet

- `one`, 4.3.1: step 1, `helm list`; exit: expected `0`, seen `1`
";
        assert_eq!(page("drydock", &played, None), expected);
        let beside = Beside::read(&serde_json::json!({"plays": [
            {"scenario": "one", "helm": "3.17.3", "result": "as in reality"},
            {"scenario": "one", "helm": "4.3.1", "result": "differs"}]}));
        let both = page("drydock", &played, Some(&beside));
        assert!(both.contains("Played on a real cluster beside it, 1 of 3 do."), "{both}");
        assert!(both.contains("| both as in reality | not yet: needs running containers; cluster: not played | not yet; cluster: differs |"), "{both}");
    }
}
