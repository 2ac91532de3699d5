//! The page on Helm: scenario × version, on drydock and on a cluster. The same results make the same page.

use super::results::{AS_IN_REALITY, Results};
use crate::scenario::Scenario;
use crate::version::HelmVersion;
use serde_json::Value;
use std::fmt::Write as _;

/// Longer texts are cut: the page says why, the comparison itself shows all.
const LONGEST: usize = 240;

/// The page, in Markdown.
pub fn page(scenarios: &[Scenario], drydock: &Results, cluster: &Results) -> String {
    let plays: Vec<(&Scenario, HelmVersion)> = scenarios
        .iter()
        .flat_map(|scenario| scenario.versions.iter().map(move |version| (scenario, version)))
        .collect();
    let count = |results: &Results| {
        plays.iter().filter(|(scenario, version)| results.of(&scenario.name, *version) == AS_IN_REALITY).count()
    };
    let mut page = format!(
        "# Helm on drydock and on a real cluster\n\n\
         Generated from the scenarios and the results of the last nightly run by `cargo xtask generate`.\n\n\
         Of {} plays, {} end as in reality on drydock, and {} on a real cluster.\n",
        plays.len(),
        count(drydock),
        count(cluster)
    );
    let mut section = "";
    for scenario in scenarios {
        if scenario.section != section {
            section = &scenario.section;
            let versions: Vec<&str> = HelmVersion::ALL.iter().map(|version| version.number()).collect();
            // Writing to a String cannot fail.
            let _ = write!(page, "\n## {section}\n\n| | {} |\n|---|---|---|---|\n", versions.join(" | "));
        }
        let cells = HelmVersion::ALL.map(|version| {
            let played = scenario.versions.iter().any(|own| own == version);
            if played {
                cell(drydock.of(&scenario.name, version), cluster.of(&scenario.name, version))
            } else {
                "–".to_owned()
            }
        });
        let about = scenario.about.replace('|', "\\|");
        let _ = writeln!(page, "| `{}`: {about} | {} |", scenario.name, cells.join(" | "));
    }
    let notes: String = scenarios.iter().filter_map(note).collect();
    if !notes.is_empty() {
        let _ = write!(page, "\n## Notes\n\n{notes}");
    }
    for (title, results) in [("drydock", drydock), ("the cluster", cluster)] {
        let reasons: String =
            plays.iter().filter_map(|(scenario, version)| reason(scenario, *version, results)).collect();
        if !reasons.is_empty() {
            let _ = write!(page, "\n## Not yet on {title}\n\n{reasons}");
        }
    }
    page
}

fn cell(drydock: &str, cluster: &str) -> String {
    if drydock == cluster { format!("both {drydock}") } else { format!("drydock: {drydock}; cluster: {cluster}") }
}

/// What a run showed beyond the outcomes.
fn note(scenario: &Scenario) -> Option<String> {
    scenario.note.as_ref().map(|note| format!("- `{}`: {note}.\n", scenario.name))
}

fn reason(scenario: &Scenario, version: HelmVersion, results: &Results) -> Option<String> {
    let play = results.play(&scenario.name, version)?;
    let why = match play["result"].as_str() {
        Some("differs") => first_difference(&play["steps"][0]),
        Some("broken") => cut(text(play, "why")),
        _ => return None,
    };
    Some(format!("- `{}`, {version}: {why}\n", scenario.name))
}

fn first_difference(step: &Value) -> String {
    let mut line = format!("step {}, `{}`", step["number"], text(step, "step"));
    // What was said explains what is there, not the other way round.
    for difference in step["differences"].as_array().into_iter().flatten().take(2) {
        let (expected, seen) = (cut(text(difference, "expected")), cut(text(difference, "seen")));
        let _ = write!(line, "; {}: expected {expected}, seen {seen}", text(difference, "field"));
    }
    line
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// A text as code on one line, cut where it gets long.
fn cut(text: &str) -> String {
    let line = text.replace('\n', "\\n").replace('\t', "\\t").replace('`', "´");
    let short: String = line.chars().take(LONGEST).collect();
    let dots = if short.len() < line.len() { "…" } else { "" };
    if short.is_empty() { "nothing".to_owned() } else { format!("`{short}{dots}`") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Difference;
    use crate::play::{Result, StepDifference};
    use crate::report::lines;
    use crate::run::{End, Played};
    use crate::scenario;
    use std::time::Duration;

    #[test]
    fn texts_stay_on_one_line_and_are_cut() {
        assert_eq!(cut("a\n\tb"), "`a\\n\\tb`");
        assert_eq!(cut(""), "nothing");
        assert_eq!(cut(&"x".repeat(LONGEST + 1)).chars().count(), LONGEST + 3);
    }

    #[test]
    fn a_row_tells_versions_and_targets_apart_and_why_not_yet() {
        let scenarios = scenario::parse(
            "{about: Some, scenarios: [{name: one, about: A|B, note: Remember, steps: [{helm: list}]}]}",
        );
        let difference = Difference { field: "exit", expected: "0".to_owned(), seen: "1".to_owned() };
        let step = StepDifference { number: 1, title: "helm list".to_owned(), differences: vec![difference] };
        let well = || End::Played(Result::AsInReality(Vec::new()), Duration::from_secs(1));
        let played = |ends: [End; 3]| {
            let ends = HelmVersion::ALL.into_iter().zip(ends);
            let played = ends.map(|(version, end)| Played { scenario: &scenarios[0], version, end });
            Results::read(&lines(&played.collect::<Vec<_>>())).unwrap()
        };
        let drydock = played([well(), End::NeedsContainers, End::Played(Result::Differs(vec![step]), Duration::ZERO)]);
        let cluster = played([well(), well(), well()]);
        let expected = "\
# Helm on drydock and on a real cluster

Generated from the scenarios and the results of the last nightly run by `cargo xtask generate`.

Of 3 plays, 1 end as in reality on drydock, and 3 on a real cluster.

## Some

| | 3.17.3 | 3.22.0 | 4.3.1 |
|---|---|---|---|
| `one`: A\\|B | both as in reality | drydock: needs containers; cluster: as in reality | drydock: differs; cluster: as in reality |

## Notes

- `one`: Remember.

## Not yet on drydock

- `one`, 4.3.1: step 1, `helm list`; exit: expected `0`, seen `1`
";
        assert_eq!(page(&scenarios, &drydock, &cluster), expected);
        assert!(
            page(&scenarios, &Results::default(), &cluster).contains("drydock: not played; cluster: as in reality")
        );
    }
}
