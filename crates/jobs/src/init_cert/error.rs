//! Why there is no certificate, or nobody trusts it.

use jobwright_engine::{Failure, Refusal};
use std::time::Duration;

/// Why a certificate could not be brought where it belongs. What was done so far is good, and the next run goes on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What is wanted cannot be.
    #[error("{0}")]
    Options(String),
    /// The cluster could not be asked, or refused.
    #[error("cannot {doing}")]
    Cluster {
        /// What was being done, on what.
        doing: String,
        /// What the cluster said.
        #[source]
        source: Refusal,
    },
    /// Something in the cluster is not ours to change.
    #[error("{0}")]
    Refused(String),
    /// It did not come about in time.
    #[error("{waiting_for} (waited for {limit:?}); run it again to go on")]
    TimedOut {
        /// What was the matter last.
        waiting_for: String,
        /// How long all of it might have taken.
        limit: Duration,
    },
    /// A Deployment does not come up again.
    #[error(
        "Deployment `{deployment}` does not come up with the new certificate: {reason}; bundles still trust the old one, too"
    )]
    Rollout {
        /// The Deployment.
        deployment: String,
        /// Why.
        reason: String,
    },
    /// A certificate could not be made, or does not stand its own test.
    #[error("cannot make a certificate: {0}")]
    Make(String),
    /// Somebody else is at it.
    #[error("`{holder}` is at the same certificate and has not finished within {waited:?}")]
    Busy {
        /// Who.
        holder: String,
        /// How long was waited.
        waited: Duration,
    },
    /// Somebody else has taken over.
    #[error("the lease `{name}` was lost: somebody else goes on with this certificate")]
    LostLease {
        /// The Lease.
        name: String,
    },
    /// It was cancelled.
    #[error("cancelled; the next run goes on from here")]
    Cancelled,
}

impl Error {
    pub(super) fn cluster(doing: impl Into<String>, error: kube::Error) -> Self {
        Self::Cluster { doing: doing.into(), source: error.into() }
    }
}

impl From<jobwright_engine::Error> for Error {
    fn from(error: jobwright_engine::Error) -> Self {
        match error {
            jobwright_engine::Error::Busy { holder, waited } => Self::Busy { holder, waited },
            jobwright_engine::Error::Cluster { doing, source, .. } => Self::Cluster { doing, source },
            jobwright_engine::Error::LostLease { name } => Self::LostLease { name },
            other => Self::Refused(other.whole_message()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let is_final = matches!(error, Error::Options(_) | Error::Refused(_));
        let message = error.to_string();
        let failure = match error {
            Error::Cluster { source, .. } => Self::new(message).because(source),
            _ => Self::new(message),
        };
        if is_final { failure.for_good() } else { failure }
    }
}
