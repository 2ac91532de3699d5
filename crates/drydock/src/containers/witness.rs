//! The witness: every container that started, written down where nobody who is judged can write.

use jiff::Timestamp;

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
}

impl Witness {
    /// How often this container of this owner has started.
    pub(crate) fn starts_of(&self, namespace: &str, owner: &str, container: &str) -> u32 {
        let same = |started: &&Started| {
            started.namespace == namespace && started.owner == owner && started.container == container
        };
        u32::try_from(self.started.iter().filter(same).count()).unwrap_or(u32::MAX)
    }

    pub(crate) fn note(&mut self, started: Started) {
        self.started.push(started);
    }

    pub(crate) fn all(&self) -> &[Started] {
        &self.started
    }
}
