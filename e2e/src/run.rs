//! Playing many scenarios, several at a time.

use crate::play::{Result, Stage};
use crate::scenario::Scenario;
use crate::version::{HelmVersion, Versions};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Which plays are asked for.
#[derive(Debug)]
pub struct Choice {
    /// The versions of Helm.
    pub versions: Versions,
    /// Names of scenarios, or starts of names; none means all.
    pub only: Vec<String>,
    /// Whether plays that need containers are played; else they are only listed.
    pub containers: bool,
}

/// A play and how it ended.
#[derive(Debug)]
pub struct Played<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The version.
    pub version: HelmVersion,
    /// How it ended.
    pub end: End,
}

/// How a play ended, if it was played.
#[derive(Debug)]
pub enum End {
    /// It was played.
    Played(Result, Duration),
    /// It needs running containers and the target is said to have none.
    NeedsContainers,
}

impl Played<'_> {
    /// Whether it ended otherwise than in reality, or not at all.
    pub fn differs(&self) -> bool {
        matches!(self.end, End::Played(Result::Differs(_) | Result::Broken(_), _))
    }
}

impl Choice {
    /// The scenarios that are asked for, with the versions to play them with.
    pub fn plays<'a>(&self, scenarios: &'a [Scenario]) -> Vec<(&'a Scenario, HelmVersion)> {
        let wanted = |name: &str| self.only.is_empty() || self.only.iter().any(|only| name.starts_with(only.as_str()));
        scenarios
            .iter()
            .filter(|scenario| wanted(&scenario.name))
            .flat_map(|scenario| scenario.versions.iter().map(move |version| (scenario, version)))
            .filter(|(_, version)| self.versions.contains(*version))
            .collect()
    }
}

/// Plays, at most this many at a time, and tells of each as it ends. The result is in the order of the plays.
pub fn run<'a>(
    stage: &Stage,
    choice: &Choice,
    plays: &[(&'a Scenario, HelmVersion)],
    at_a_time: usize,
    tell: &(dyn Fn(usize, &Played<'a>) + Sync),
) -> Vec<Played<'a>> {
    let next = AtomicUsize::new(0);
    let ended: Mutex<Vec<(usize, Played<'a>)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..at_a_time.max(1) {
            scope.spawn(|| {
                while let Some((index, (scenario, version))) = take(&next, plays) {
                    let end = if choice.containers || !scenario.needs_containers(version) {
                        let (result, time) = stage.play(scenario, version);
                        End::Played(result, time)
                    } else {
                        End::NeedsContainers
                    };
                    let played = Played { scenario, version, end };
                    let mut ended = ended.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    tell(ended.len() + 1, &played);
                    ended.push((index, played));
                }
            });
        }
    });
    let mut ended = ended.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    ended.sort_by_key(|(index, _)| *index);
    ended.into_iter().map(|(_, played)| played).collect()
}

/// The next item that nobody has taken.
fn take<T: Copy>(next: &AtomicUsize, items: &[T]) -> Option<(usize, T)> {
    let index = next.fetch_add(1, Ordering::SeqCst);
    items.get(index).map(|item| (index, *item))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario;

    fn choice(versions: &str, only: &[&str]) -> Choice {
        let only = only.iter().map(|&name| name.to_owned()).collect();
        Choice { versions: versions.parse().unwrap(), only, containers: true }
    }

    #[test]
    fn plays_are_chosen_by_version_and_by_the_start_of_the_name() {
        let step = "steps: [{helm: list}]";
        let scenarios = scenario::parse(&format!(
            "{{about: A, scenarios: [{{name: j1, about: A, {step}}}, {{name: j2, about: A, only: v4, {step}}}]}}"
        ));
        let names = |choice: Choice| {
            let plays = choice.plays(&scenarios);
            plays.iter().map(|(scenario, version)| format!("{} {version}", scenario.name)).collect::<Vec<_>>()
        };
        assert_eq!(names(choice("all", &[])), ["j1 3.17.3", "j1 3.22.0", "j1 4.3.1", "j2 4.3.1"]);
        assert_eq!(names(choice("v3", &["j2"])), [""; 0]);
        assert_eq!(names(choice("v4", &["j"])), ["j1 4.3.1", "j2 4.3.1"]);
    }
}
