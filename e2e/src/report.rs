//! Telling how plays ended: lines for people, a page, a document for machines.

mod page;
mod results;

pub use page::page;
pub use results::{Results, lines};

use crate::play::{Result, StepDifference};
use crate::run::{End, Played};
use std::error::Error as _;

/// One line on a play.
pub fn line(played: &Played<'_>) -> String {
    let name = &played.scenario.name;
    let version = played.version;
    match &played.end {
        End::Played(result, time) => format!("{name} {version}: {} ({:.1} s)", words(result), time.as_secs_f64()),
        End::NeedsContainers => format!("{name} {version}: not yet: needs running containers"),
    }
}

fn words(result: &Result) -> String {
    match result {
        Result::AsInReality(race) if race.is_empty() => "as in reality".to_owned(),
        Result::AsInReality(race) => format!("as in reality (race: {})", race.join(", ")),
        Result::Differs(_) => "DIFFERS".to_owned(),
        Result::Broken(error) => format!("BROKEN: {}", chain(error)),
    }
}

/// What differs in a play, on several lines; empty if nothing does.
pub fn details(played: &Played<'_>) -> String {
    let End::Played(Result::Differs(steps), _) = &played.end else { return String::new() };
    let mut lines = Vec::new();
    for StepDifference { number, title, differences } in steps {
        lines.push(format!("    step {number}, {title}"));
        for difference in differences {
            let indent = |text: &str| text.replace('\n', "\n                ");
            lines.push(format!("      {} expected: {}", difference.field, indent(&difference.expected)));
            lines.push(format!("      {}     seen: {}", difference.field, indent(&difference.seen)));
        }
    }
    lines.join("\n")
}

/// An error and all its causes.
fn chain(error: &crate::error::Error) -> String {
    let mut texts = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        texts.push(error.to_string());
        cause = error.source();
    }
    texts.join(": ")
}

/// How many plays ended how.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// As in reality.
    pub as_in_reality: usize,
    /// Of those: with a race among its steps.
    pub races: usize,
    /// Not as in reality, or broken.
    pub different: usize,
    /// Not played because they need containers.
    pub need_containers: usize,
}

impl Summary {
    /// Counts.
    pub fn new<'a>(played: impl IntoIterator<Item = &'a Played<'a>>) -> Self {
        let mut summary = Self::default();
        for played in played {
            match &played.end {
                End::Played(Result::AsInReality(race), _) => {
                    summary.as_in_reality += 1;
                    summary.races += usize::from(!race.is_empty());
                }
                End::Played(Result::Differs(_) | Result::Broken(_), _) => summary.different += 1,
                End::NeedsContainers => summary.need_containers += 1,
            }
        }
        summary
    }

    /// One line.
    pub fn line(&self) -> String {
        let Self { as_in_reality, races, different, need_containers } = self;
        let not_played =
            if *need_containers > 0 { format!(", {need_containers} need running containers") } else { String::new() };
        format!("{as_in_reality} as in reality ({races} with a race), {different} different{not_played}")
    }
}
