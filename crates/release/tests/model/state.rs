//! What the model knows: what must exist in the cluster, what must have run, and what Jobwright has to remember.
//!
//! The model is written from the documentation, and shares no code with what it judges.

use crate::case::Act;
use crate::plan::{ADOPT, COMPONENTS, Declared, JOBS, Key, adopter};
use std::collections::{BTreeMap, BTreeSet};

/// One way the world may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// A deploy of all components has succeeded.
    pub(crate) is_installed: bool,
    /// The version of the last deploy of all components that succeeded.
    pub(crate) version: Option<u8>,
    /// The newest version that a deploy has begun with since.
    pub(crate) attempted: Option<u8>,
    /// How many deploys have begun.
    pub(crate) deploys: u64,
    /// The deploy that has not ended: its number, and how it was asked for.
    pub(crate) interrupted: Option<(u64, String)>,
    /// Jobs that were due and skipped, with what they were due for.
    pub(crate) owed: BTreeMap<usize, Occasion>,
    pub(crate) components: BTreeMap<usize, Known>,
    pub(crate) jobs: BTreeMap<usize, History>,
    pub(crate) objects: BTreeMap<Key, Live>,
    /// How many containers have started, by job and content.
    pub(crate) starts: BTreeMap<(usize, usize), usize>,
    /// The content of the job that has adopted the legacy object.
    pub(crate) adopted: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    Install,
    Upgrade,
}

/// What is remembered of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// What was deployed; none after a deploy that did not come to its end.
    pub(crate) manifests: Option<Vec<Declared>>,
    pub(crate) version: Option<u8>,
    /// What it may have applied, in the order of its applying.
    pub(crate) objects: Vec<Key>,
    /// It is deployed, and its jobs have succeeded.
    pub(crate) is_complete: bool,
    /// It was complete once.
    pub(crate) is_installed: bool,
}

/// An object of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) mark: String,
    /// The component that it belongs to; none if another client has taken it.
    pub(crate) component: Option<usize>,
    /// Another client has changed it.
    pub(crate) is_changed: bool,
}

/// What is remembered of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    pub(crate) runs: u64,
    pub(crate) active: Option<Active>,
    /// How runs ended, oldest first.
    pub(crate) ends: Vec<End>,
    /// Forced deploys that it has started for.
    pub(crate) forced: BTreeSet<u64>,
}

/// A run that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Active {
    pub(crate) content: usize,
    pub(crate) version: Option<u8>,
    /// The deploy that it belongs to.
    pub(crate) deploy: u64,
    /// The forced deploy that asked for it.
    pub(crate) forced: Option<u64>,
    pub(crate) attempt: u32,
    pub(crate) stage: Stage,
    /// Another client has deleted its Job.
    pub(crate) is_gone: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It is recorded; its Job may exist, and cannot have started.
    Intended,
    /// Its Job is recorded, and has not started.
    Held,
    Started {
        succeeds: bool,
    },
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) content: usize,
    pub(crate) version: Option<u8>,
    pub(crate) deploy: u64,
    pub(crate) result: Result,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Result {
    Succeeded,
    Failed,
    Unknown,
}

/// What can be seen of the world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// Objects with their marks and the component that they belong to.
    pub(crate) objects: BTreeMap<Key, (String, String)>,
    /// Container starts by job and content.
    pub(crate) starts: BTreeMap<String, usize>,
    /// The Helm release that the legacy object belongs to.
    pub(crate) adopted: Option<String>,
}

impl View {
    /// Lines that say what differs from what is expected.
    pub(crate) fn differences(&self, expected: &Self) -> Vec<String> {
        let mut found = differ("", &self.objects, &expected.objects);
        found.extend(differ("containers of ", &self.starts, &expected.starts));
        if self.adopted != expected.adopted {
            found.push(format!("legacy object adopted by {:?}, expected {:?}", self.adopted, expected.adopted));
        }
        found
    }
}

/// Lines that say how a map differs from what is expected.
pub(crate) fn differ<K: Ord + std::fmt::Display, V: PartialEq + std::fmt::Debug>(
    what: &str,
    found: &BTreeMap<K, V>,
    expected: &BTreeMap<K, V>,
) -> Vec<String> {
    let keys: BTreeSet<&K> = found.keys().chain(expected.keys()).collect();
    let differs = keys.into_iter().filter(|key| found.get(*key) != expected.get(*key));
    differs.map(|key| format!("{what}{key}: {:?}, expected {:?}", found.get(key), expected.get(key))).collect()
}

/// The mark of what another client has changed.
pub(crate) const CHANGED: &str = "changed";
/// The component to which another client gives what it takes.
pub(crate) const STRANGER: &str = "stranger";

impl State {
    pub(crate) fn view(&self) -> View {
        let object = |live: &Live| {
            let mark = if live.is_changed { CHANGED.to_owned() } else { live.mark.clone() };
            (mark, live.component.map_or(STRANGER, |component| COMPONENTS[component]).to_owned())
        };
        View {
            objects: self.objects.iter().map(|(key, live)| (key.clone(), object(live))).collect(),
            starts: self
                .starts
                .iter()
                .map(|((job, content), count)| (format!("{} {content}", JOBS[*job]), *count))
                .collect(),
            adopted: self.adopted.map(adopter),
        }
    }

    /// The key of the object that an act is about.
    pub(crate) fn choose(&self, number: usize) -> Option<Key> {
        self.objects.keys().cycle().nth(number).cloned()
    }

    /// Another client does something.
    pub(crate) fn act(&mut self, act: Act) {
        match act {
            Act::DeleteObject(number) => {
                if let Some(key) = self.choose(number) {
                    self.objects.remove(&key);
                }
            }
            Act::ChangeObject(number) => {
                if let Some(live) = self.choose(number).and_then(|key| self.objects.get_mut(&key)) {
                    live.is_changed = true;
                }
            }
            Act::TakeObject(number) => {
                if let Some(live) = self.choose(number).and_then(|key| self.objects.get_mut(&key)) {
                    live.component = None;
                }
            }
            Act::DeleteJobs => {
                let runs = self.jobs.values_mut().filter_map(|history| history.active.as_mut());
                for active in runs.filter(|active| active.stage != Stage::Intended) {
                    active.is_gone = true;
                }
            }
        }
    }

    /// Whether any job has ever been a pod.
    pub(crate) fn had_pods(&self) -> bool {
        self.jobs.iter().any(|(job, history)| *job != ADOPT && history.runs > 0)
    }
}

impl History {
    /// The last success.
    pub(crate) fn last_success(&self) -> Option<&End> {
        self.ends.iter().rev().find(|end| end.result == Result::Succeeded)
    }

    pub(crate) fn has_succeeded_with(&self, content: usize) -> bool {
        self.ends.iter().any(|end| end.result == Result::Succeeded && end.content == content)
    }

    /// The newest version with which it has succeeded.
    pub(crate) fn newest_success(&self) -> Option<u8> {
        self.ends.iter().filter(|end| end.result == Result::Succeeded).filter_map(|end| end.version).max()
    }

    /// Whether the last run with a content is one of which the result is unknown.
    pub(crate) fn is_unknown(&self, content: usize) -> bool {
        self.ends.iter().rev().find(|end| end.content == content).is_some_and(|end| end.result == Result::Unknown)
    }
}
