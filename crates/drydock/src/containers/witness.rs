//! The witness: every container that started, written down where nobody who is judged can write.

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
}

/// What has started so far.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    started: Vec<Started>,
    /// How often, by namespace, owner and container: nothing is counted again for every start.
    counts: BTreeMap<[String; 3], u32>,
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
        self.started.push(started);
    }

    pub(crate) fn all(&self) -> &[Started] {
        &self.started
    }
}
