//! The witness: every container that started and how it ended, recorded where nothing under test can write.

use jiff::Timestamp;
use std::collections::BTreeMap;

/// A container that started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Started {
    /// When.
    pub at: Timestamp,
    /// The namespace of the pod.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The uid of the pod.
    pub pod_uid: String,
    /// What the pod belongs to: the Job, the Deployment, or the pod itself.
    pub owner: String,
    /// The container.
    pub container: String,
    /// The image.
    pub image: String,
    /// What it ran.
    pub command: Vec<String>,
    /// How often this container of this owner has started by now, this time included.
    pub attempt: u32,
    /// How it ended; none while it runs, and if its node never learned of its end.
    pub ended: Option<Ended>,
}

/// How a container ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended {
    /// When.
    pub at: Timestamp,
    /// Its exit code; 137 if it was killed.
    pub code: i32,
}

/// What has started so far.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    started: Vec<Started>,
    /// How often, by namespace, owner and container: nothing is counted again for every start.
    counts: BTreeMap<[String; 3], u32>,
    /// What runs, by the uid of its pod and its name: where it stands in the list.
    running: BTreeMap<[String; 2], usize>,
}

impl Witness {
    /// How often this container of this owner has started.
    pub(crate) fn starts_of(&self, namespace: &str, owner: &str, container: &str) -> u32 {
        let key = [namespace, owner, container].map(str::to_owned);
        self.counts.get(&key).copied().unwrap_or_default()
    }

    pub(crate) fn note(&mut self, started: Started) {
        let key = [&started.namespace, &started.owner, &started.container].map(Clone::clone);
        let count = self.counts.entry(key).or_default();
        *count = count.saturating_add(1);
        self.running.insert([&started.pod_uid, &started.container].map(Clone::clone), self.started.len());
        self.started.push(started);
    }

    /// Notes how a container ended.
    pub(crate) fn note_end(&mut self, pod_uid: &str, container: &str, at: Timestamp, code: i32) {
        let running = self.running.remove(&[pod_uid, container].map(str::to_owned));
        if let Some(started) = running.and_then(|index| self.started.get_mut(index)) {
            started.ended = Some(Ended { at, code });
        }
    }

    pub(crate) fn all(&self) -> &[Started] {
        &self.started
    }
}
