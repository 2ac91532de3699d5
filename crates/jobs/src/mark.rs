//! Notices a forced deploy: one that has replaced the objects of a release instead of patching them.
//!
//! `helm upgrade --force` tells a template nothing. But it replaces every object of the release, and a replaced object
//! loses what other clients have put on it. So each job puts an annotation, its *mark*, on a small ConfigMap of the
//! release, and remembers on an object of its own which ConfigMap it has marked. If the mark is missing there later, a
//! deploy was forced.
//!
//! # Flow
//!
//! The ConfigMap has an `identity` of the release in its data. `next` compares it with what the job remembers:
//!
//! | the ConfigMap | the job remembers | next |
//! |---|---|---|
//! | another uid than remembered, not marked | – | mark it |
//! | another uid than remembered, marked | – | remember its uid and identity |
//! | not marked | its uid, another identity | a forced deploy: remember the identity, and that it was forced |
//! | not marked | its uid and identity | mark it |
//! | marked | its uid | nothing |
//!
//! What is remembered of a forced deploy is when it was noticed. A job acts once for it, and records that time in the same
//! write as its result: the new certificate, the complete backfill. So the mark is put back before the job acts, and a
//! process that is killed anywhere leaves either a mark that is still missing or a forced deploy without a result. Times
//! only grow, so a process that was slow does not answer an older forced deploy again.
//!
//! # Guarantees
//!
//! - A deploy counts as forced only with proof: the job had seen its mark on this uid. A first run and a release that was
//!   installed again have no such proof.
//! - A forced deploy is lost only if the *first* run on a ConfigMap is killed between its two consecutive writes (mark,
//!   remember), and the deploy comes before any other run.
//! - Every write requires the version that was read, so that several processes may do this at the same time, without a
//!   lock, and a call that arrives late changes nothing.
//! - A forced deploy counts once per identity. Helm's revision is part of it, so each `helm upgrade --force` counts. Under
//!   Argo CD the revision never changes: with `Replace=true`, which replaces everything with every sync, a deploy counts
//!   once per change of the release.

mod notice;

pub(crate) use notice::{Cluster, Marking, Noticed};

use jiff::{SignedDuration, Timestamp};
use jobwright_engine::record_name;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Where the ConfigMap has the identity of the release: what differs between two deploys.
const IDENTITY: &str = "identity";

/// The ConfigMap of a release that jobs mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its name.
    pub config_map: String,
}

/// A text that names no ConfigMap to mark.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid mark `{0}`: expected configmap:NAME")]
pub struct NoMark(String);

impl FromStr for Mark {
    type Err = NoMark;

    fn from_str(text: &str) -> Result<Self, NoMark> {
        match text.split_once(':') {
            Some(("configmap", name)) if !name.is_empty() && !name.contains('/') => {
                Ok(Self { config_map: name.to_owned() })
            }
            _ => Err(NoMark(text.to_owned())),
        }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "configmap:{}", self.config_map)
    }
}

/// Why a mark could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MarkError {
    /// The cluster did not answer, or refused.
    #[error("{}", .0.whole_message())]
    Cluster(#[source] jobwright_engine::Error),
    /// The ConfigMap is none that jobs can mark.
    #[error("cannot mark ConfigMap `{0}`: its data has no `{IDENTITY}`, by which deploys are told apart")]
    NoIdentity(String),
}

/// What a job remembers of the ConfigMap that it has marked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// The ConfigMap.
    pub(crate) uid: String,
    /// The identity of the release when it was first marked, or last seen to be forced.
    pub(crate) identity: String,
    /// When the last forced deploy was noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) forced: Option<Timestamp>,
}

impl Memory {
    /// Reads what was remembered; none if that cannot be read.
    fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// What an object remembers.
    pub(crate) fn of(object: &ObjectMeta, key: &str) -> Option<Self> {
        Self::read(object.annotations.as_ref()?.get(key)?)
    }

    pub(crate) fn write(&self) -> String {
        // Nothing in it cannot be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The ConfigMap as a job sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Tracked {
    uid: String,
    version: String,
    identity: String,
    is_marked: bool,
}

impl Tracked {
    fn read(map: &ConfigMap, key: &str) -> Result<Self, MarkError> {
        let identity = map.data.as_ref().and_then(|data| data.get(IDENTITY)).filter(|identity| !identity.is_empty());
        Ok(Self {
            uid: map.uid().unwrap_or_default(),
            version: map.resource_version().unwrap_or_default(),
            identity: identity.cloned().ok_or_else(|| MarkError::NoIdentity(map.name_any()))?,
            is_marked: map.annotations().contains_key(key),
        })
    }
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Next {
    /// Mark the ConfigMap.
    Mark,
    /// Remember this.
    Remember(Memory),
    /// Nothing: it is marked, and the job remembers that.
    Settled,
}

/// Decides what comes next. Pure: after each step everything is read again.
fn next(tracked: &Tracked, memory: Option<&Memory>, now: Timestamp) -> Next {
    let forced = memory.and_then(|memory| memory.forced);
    let Tracked { uid, identity, is_marked, .. } = tracked;
    let remember = |forced| Next::Remember(Memory { uid: uid.clone(), identity: identity.clone(), forced });
    match memory.filter(|memory| memory.uid == *uid) {
        // Marked first: what is remembered has to be true.
        None if !is_marked => Next::Mark,
        None => remember(forced),
        Some(_) if *is_marked => Next::Settled,
        Some(known) if known.identity == *identity => Next::Mark,
        // Remembered first: once it is marked again, nothing shows that it was forced.
        Some(_) => remember(Some(after(forced, now))),
    }
}

/// Now, or just after the last time where clocks differ.
fn after(last: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let last = last.and_then(|last| last.checked_add(SignedDuration::from_millis(1)).ok());
    last.map_or(now, |last| last.max(now))
}

/// The annotation of a job: its mark on the ConfigMap of the release, and its memory on an object of its own. No two jobs
/// of a namespace have the same.
pub(crate) fn key(job: &str, name: &str) -> String {
    format!("jobwright.io/{}", record_name(name, &[job, name, "mark"]).replacen("jobwright-", "mark-", 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracked(uid: &str, identity: &str, is_marked: bool) -> Tracked {
        Tracked { uid: uid.to_owned(), version: "1".to_owned(), identity: identity.to_owned(), is_marked }
    }

    fn memory(uid: &str, identity: &str, forced: Option<i64>) -> Memory {
        Memory { uid: uid.to_owned(), identity: identity.to_owned(), forced: forced.map(at) }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_missing_mark_counts_only_where_it_was_seen_before() {
        let before = memory("u1", "1", Some(5));
        for (is_marked, known, expected) in [
            (false, None, Next::Mark),
            (true, None, Next::Remember(memory("u1", "2", None))),
            (false, Some(memory("u0", "7", Some(5))), Next::Mark),
            (true, Some(memory("u0", "7", Some(5))), Next::Remember(memory("u1", "2", Some(5)))),
            (true, Some(before.clone()), Next::Settled),
            (false, Some(before), Next::Remember(memory("u1", "2", Some(9)))),
            (false, Some(memory("u1", "2", None)), Next::Mark),
        ] {
            assert_eq!(next(&tracked("u1", "2", is_marked), known.as_ref(), at(9)), expected, "{is_marked} {known:?}");
        }
    }

    #[test]
    fn a_later_forced_deploy_has_a_later_time_whatever_the_clock_says() {
        assert_eq!(after(None, at(9)), at(9));
        assert_eq!(after(Some(at(5)), at(9)), at(9));
        assert!(after(Some(at(12)), at(9)) > at(12));
    }

    #[test]
    fn every_state_settles_in_at_most_two_steps() {
        for is_marked in [false, true] {
            let known =
                [None, Some(memory("u0", "2", None)), Some(memory("u1", "1", None)), Some(memory("u1", "2", None))];
            for mut known in known {
                let mut tracked = tracked("u1", "2", is_marked);
                let mut steps = 0;
                loop {
                    match next(&tracked, known.as_ref(), at(9)) {
                        Next::Mark => tracked.is_marked = true,
                        Next::Remember(memory) => known = Some(memory),
                        Next::Settled => break,
                    }
                    steps += 1;
                }
                assert!(steps <= 2, "{steps} steps");
            }
        }
    }

    #[test]
    fn memories_are_read_as_written_and_nonsense_is_none() {
        for known in [memory("u1", "1", None), memory("u1", "1", Some(7))] {
            assert_eq!(Memory::read(&known.write()), Some(known));
        }
        assert_eq!((Memory::read(""), Memory::read("{}"), Memory::read("[1]")), (None, None, None));
    }

    #[test]
    fn annotations_of_two_jobs_differ_and_fit() {
        assert_ne!(key("init-cert", "a"), key("backfill", "a"));
        assert_ne!(key("backfill", &"a".repeat(250)), key("backfill", &"a".repeat(251)));
        for name in ["a", "agent-backfill", &"a.".repeat(120)] {
            let key = key("backfill", name);
            let name = key.strip_prefix("jobwright.io/mark-").unwrap();
            assert!(
                key.len() <= "jobwright.io/".len() + 63 && name.ends_with(|end: char| end.is_ascii_alphanumeric()),
                "{key}"
            );
        }
    }

    #[test]
    fn only_a_config_map_can_be_marked() {
        assert_eq!("configmap:agent".parse::<Mark>().map(|mark| mark.to_string()), Ok("configmap:agent".to_owned()));
        for text in ["", "agent", "configmap:", "configmap:a/b", "secret:a"] {
            assert!(text.parse::<Mark>().is_err(), "{text}");
        }
    }
}
