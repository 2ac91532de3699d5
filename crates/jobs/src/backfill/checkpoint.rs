//! How far a backfill has come: written down only after it has arrived, so that another process can go on.

mod config_map;
mod file;
mod kept;

pub use config_map::ConfigMapCheckpoint;
pub(crate) use config_map::LABEL;
pub use file::FileCheckpoint;
pub(crate) use kept::{IDENTITY, Kept};

use super::Once;
use super::summary::{Batches, Counts, Problem};
use jiff::Timestamp;
use jobwright_engine::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The form of what is written down.
const FORMAT: u32 = 1;

/// How far a backfill has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    format: u32,
    /// What the run is called.
    pub run: String,
    /// What it was asked to do, as a hash.
    pub options: String,
    /// The uid of the cluster; none if it was not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it was last written.
    pub updated_at: Timestamp,
    /// Whether it came to its end, good or bad: nobody goes on with it.
    pub over: bool,
    /// What the sink has to remember.
    pub sink: Option<Value>,
    /// The batches of all kinds.
    pub batches: Batches,
    /// Kinds by their full name.
    pub kinds: BTreeMap<String, Progress>,
    /// The last complete run that had a key. Runs without one leave it as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<Completed>,
}

/// A run that had a key, and was complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completed {
    /// The key.
    pub key: String,
    /// When it was complete.
    pub since: Timestamp,
    /// What the run is called.
    pub run: String,
    /// When the last forced deploy before it was noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced: Option<Timestamp>,
}

/// How far a kind has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Progress {
    /// What there is still to do.
    pub state: State,
    /// Where its list goes on.
    pub position: Position,
    /// The number of its last batch.
    pub batches: u64,
    /// What was counted.
    pub counts: Counts,
    /// What was counted before the namespace that is being listed.
    pub before: Counts,
    /// What went wrong.
    pub errors: Vec<Problem>,
}

/// What there is still to do of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Something.
    #[default]
    Open,
    /// Nothing: it was listed to its end.
    Done,
    /// Nothing: it cannot be listed.
    Failed,
}

/// A place in the lists of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Position {
    /// Which of the namespaces is being listed.
    pub namespace: usize,
    /// What the page is asked for with; none for the first.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The moment that the page shows.
    #[serde(rename = "resourceVersion", skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How many of its objects have arrived.
    pub skip: usize,
}

/// Where checkpoints are kept.
#[async_trait]
pub trait CheckpointStore: Send + Sync {
    /// What is there; none if nothing is, or nothing that can be read.
    async fn load(&self) -> Result<Option<Checkpoint>, CheckpointError>;

    /// Writes it down, whole or not at all.
    async fn save(&self, checkpoint: &Checkpoint) -> Result<(), CheckpointError>;

    /// Whether it is in the cluster that is captured, where runs on other clusters do not find it.
    fn is_in_cluster(&self) -> bool {
        false
    }

    /// How much time there is at least between two writes.
    fn pace(&self) -> Duration {
        Duration::ZERO
    }
}

/// Why a checkpoint could not be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} the checkpoint `{place}`: {problem}")]
pub struct CheckpointError {
    /// `read`, `write`.
    pub doing: &'static str,
    /// Where it is.
    pub place: String,
    /// What went wrong.
    pub problem: String,
}

/// Whether a run goes on from a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Resume {
    /// There is nothing to go on from, and why, if that is worth saying.
    Anew(Option<&'static str>),
    GoOn(Box<Checkpoint>),
}

impl Checkpoint {
    /// Nothing has been done yet.
    pub(crate) fn new(run: String, options: String, now: Timestamp) -> Self {
        Self {
            format: FORMAT,
            run,
            options,
            cluster: None,
            started_at: now,
            updated_at: now,
            over: false,
            sink: None,
            batches: Batches::default(),
            kinds: BTreeMap::new(),
            completed: None,
        }
    }

    /// Reads what was written down; nothing if it was something else.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Self>(text).ok().filter(|checkpoint| checkpoint.format == FORMAT)
    }

    pub(crate) fn write(&self) -> String {
        // Nothing in it cannot be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The run that makes another one needless.
pub(crate) fn find_completed(found: Option<&Checkpoint>, once: Option<&Once>, now: Timestamp) -> Option<Completed> {
    let once = once.filter(|once| !once.force)?;
    let holds = |since| once.holds.is_none_or(|holds| age(since, now) <= holds);
    let is_same = |completed: &Completed| completed.key == once.key && completed.forced >= once.forced;
    found?.completed.clone().filter(|completed| is_same(completed) && holds(completed.since))
}

fn age(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

/// Decides whether a run goes on from what was found, which is about the cluster that is captured or about another one.
pub(crate) fn decide(found: Option<(Checkpoint, bool)>, options: &str, now: Timestamp, within: Duration) -> Resume {
    match found {
        None => Resume::Anew(None),
        Some((found, _)) if found.over => Resume::Anew(None),
        Some((_, false)) => {
            Resume::Anew(Some("the last run was not finished, but it may have captured another cluster"))
        }
        Some((found, true)) if found.options != options => {
            Resume::Anew(Some("the last run was not finished, but it was asked to do something else"))
        }
        Some((found, true)) => {
            if age(found.updated_at, now) > within {
                return Resume::Anew(Some("the last run was not finished, but that is too long ago"));
            }
            Resume::GoOn(Box::new(found))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint() -> Checkpoint {
        let mut checkpoint = Checkpoint::new("r1".to_owned(), "abc".to_owned(), Timestamp::UNIX_EPOCH);
        let position = Position { token: Some("t".to_owned()), version: Some("7".to_owned()), skip: 3, namespace: 1 };
        let progress = Progress { position, batches: 4, ..Progress::default() };
        checkpoint.kinds.insert("pods".to_owned(), progress);
        checkpoint
    }

    #[test]
    fn what_is_written_is_read() {
        let checkpoint = checkpoint();
        assert_eq!(Checkpoint::read(checkpoint.write().as_bytes()).unwrap(), checkpoint);
        for text in ["", "{}", "nonsense", "[1]", &checkpoint.write().replace("\"format\":1", "\"format\":2")] {
            assert_eq!(Checkpoint::read(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn only_an_unfinished_run_of_the_same_kind_goes_on() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let hour = Duration::from_hours(1);
        let found = checkpoint;
        let here = || Some((found(), true));
        assert_eq!(decide(here(), "abc", at(60), hour), Resume::GoOn(Box::new(found())));
        assert_eq!(decide(None, "abc", at(60), hour), Resume::Anew(None));
        let over = Checkpoint { over: true, ..found() };
        assert_eq!(decide(Some((over, true)), "abc", at(60), hour), Resume::Anew(None));
        assert!(matches!(decide(here(), "other", at(60), hour), Resume::Anew(Some(_))));
        assert!(matches!(decide(here(), "abc", at(3601), hour), Resume::Anew(Some(_))));
        let elsewhere = decide(Some((found(), false)), "abc", at(60), hour);
        assert!(matches!(elsewhere, Resume::Anew(Some(why)) if why.contains("another cluster")));
    }

    #[test]
    fn only_the_same_key_makes_a_run_needless() {
        let completed =
            Completed { key: "k1".to_owned(), since: Timestamp::UNIX_EPOCH, run: "r0".to_owned(), forced: None };
        let kept = Checkpoint { completed: Some(completed.clone()), ..checkpoint() };
        let once = |key: &str, force| Once { key: key.to_owned(), holds: None, force, forced: None };
        let held = |seconds| Once { holds: Some(Duration::from_secs(seconds)), ..once("k1", false) };
        let now = Timestamp::from_second(60).unwrap();
        for (found, asked, needless) in [
            (Some(&kept), Some(once("k1", false)), true),
            (Some(&kept), Some(once("k1", true)), false),
            (Some(&kept), Some(held(60)), true),
            (Some(&kept), Some(held(59)), false),
            (Some(&kept), Some(once("k2", false)), false),
            (Some(&kept), Some(Once { forced: Some(now), ..once("k1", false) }), false),
            (Some(&kept), None, false),
            (Some(&checkpoint()), Some(once("k1", false)), false),
            (None, Some(once("k1", false)), false),
        ] {
            let expected = needless.then(|| completed.clone());
            assert_eq!(find_completed(found, asked.as_ref(), now), expected, "{asked:?}");
        }
        assert_eq!(Checkpoint::read(kept.write().as_bytes()).unwrap(), kept);
    }
}
