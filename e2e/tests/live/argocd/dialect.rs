//! What Argo CD 2 says and does otherwise than Argo CD 3.

use super::UNSUCCESSFUL;
use jobwright_e2e::cluster::Deployer;
use jobwright_e2e::live::Stage;

/// Which of them is there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Argocd2,
    Argocd3,
}

impl Dialect {
    pub(super) fn of(stage: &Stage<'_>) -> Self {
        if stage.live().has(Deployer::Argocd2) { Self::Argocd2 } else { Self::Argocd3 }
    }

    /// What is said of an operation in which a Job could not be applied and something else could.
    pub(super) fn partly_applied(self) -> &'static str {
        match self {
            Self::Argocd2 => "one or more objects failed to apply",
            Self::Argocd3 => UNSUCCESSFUL,
        }
    }

    /// A line of results for a hook before the sync. Argo CD 2 gives it no status.
    pub(super) fn hook(self, object: &str, phase: &str, message: &str) -> String {
        match self {
            Self::Argocd2 => format!("{object} {phase} PreSync [PreSync] | {message}"),
            Self::Argocd3 => format!("{object} Synced {phase} PreSync [PreSync] | {message}"),
        }
    }

    /// How a hook ends that is terminated. To Argo CD 2 a hook that is gone has succeeded.
    pub(super) fn terminated(self, object: &str) -> String {
        match self {
            Self::Argocd2 => self.hook(object, "Succeeded", "Deleted"),
            Self::Argocd3 => self.hook(object, "Failed", "Terminated"),
        }
    }

    /// What is waited for at first, and how many other tasks are still to come, which only Argo CD 2 counts.
    pub(super) fn waiting(self, hook: &str, others: usize) -> String {
        match self {
            Self::Argocd2 if others > 0 => format!("waiting for completion of hook {hook} and {others} more hooks"),
            _ => format!("waiting for completion of hook {hook}"),
        }
    }

    /// What is said before an attempt. Argo CD 2 speaks of a time-out that nobody has set.
    pub(super) fn retrying(self, failure: &str, attempt: usize) -> String {
        let why = match self {
            Self::Argocd2 => " due to application controller sync timeout",
            Self::Argocd3 => "",
        };
        format!("{failure}{why}. Retrying attempt #{attempt} at TIME.")
    }

    /// What the Application says of an operation that failed.
    pub(super) fn sync_error(self, failure: &str) -> String {
        match self {
            Self::Argocd2 => format!("SyncError: Failed sync attempt to REV: {failure}"),
            Self::Argocd3 => format!("SyncError: Failed last sync attempt to [REV]: {failure}"),
        }
    }

    /// The phase of what an operation has applied that failed with something else.
    pub(super) fn applied(self) -> &'static str {
        match self {
            Self::Argocd2 => "Running",
            Self::Argocd3 => "Succeeded",
        }
    }

    /// How many of so many retries run the hook again. Argo CD 2 keeps the results of the last attempt, finds the hook
    /// failed, and gives up at once; then it has none, and runs it.
    pub(super) fn runs_of_retries(self, retries: usize) -> usize {
        match self {
            Self::Argocd2 => retries / 2,
            Self::Argocd3 => retries,
        }
    }
}
