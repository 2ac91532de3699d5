//! The report as a page: scenario × version, as in reality or why not yet. The same plays make the same page.

use super::{Summary, chain};
use crate::play::{Result, StepDifference};
use crate::run::{End, Played};
use crate::version::HelmVersion;
use std::fmt::Write as _;

/// Longer texts are cut: the page says why, the comparison itself shows all.
const LONGEST: usize = 240;

/// The page, in Markdown.
pub fn page(target: &str, played: &[Played<'_>]) -> String {
    let mut page = format!("# Helm on {target}\n\n{}.\n", Summary::new(played).line());
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
        let _ = writeln!(page, "| `{}`: {} | {} |", first.scenario.name, cell(&first.scenario.about), cells(&row));
    }
    let reasons: String = played.iter().filter_map(reason).collect();
    if !reasons.is_empty() {
        let _ = write!(page, "\n## Not yet\n\n{reasons}");
    }
    page
}

fn cells(row: &[&Played<'_>]) -> String {
    let of = |version: HelmVersion| {
        let played = row.iter().find(|played| played.version == version);
        match played.map(|played| &played.end) {
            None => "–",
            Some(End::Played(Result::AsInReality(_), _)) => "as in reality",
            Some(End::Played(Result::Differs(_) | Result::Broken(_), _)) => "not yet",
            Some(End::NeedsContainers) => "not yet: needs running containers",
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

    #[test]
    fn texts_stay_on_one_line_and_are_cut() {
        assert_eq!(cut("a\n\tb"), "`a\\n\\tb`");
        assert_eq!(cut(""), "nothing");
        assert_eq!(cut(&"x".repeat(LONGEST + 1)).chars().count(), LONGEST + 3);
    }
}
