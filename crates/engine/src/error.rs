//! What can go wrong, besides jobs that fail.

use crate::guard::Violation;
use crate::ledger::FormatError;
use crate::registry::Problem;
use std::time::Duration;

/// Why the engine could not do its work. That a job has failed is no error but a result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The cluster could not be asked, or refused.
    #[error("cannot {doing}")]
    Cluster {
        /// What was being done, on what.
        doing: String,
        /// What the cluster said.
        #[source]
        source: Refusal,
    },
    /// A ledger cannot be read.
    #[error("ledger `{name}` cannot be used")]
    Ledger {
        /// The ConfigMap.
        name: String,
        /// Why.
        #[source]
        source: FormatError,
    },
    /// Somebody else has taken over.
    #[error("the lease `{name}` was lost: another runner has taken over, and this one has stopped")]
    LostLease {
        /// The Lease, or the ledger that shows it.
        name: String,
    },
    /// Something in the registry cannot work.
    #[error("the release cannot work: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Registry(Vec<Problem>),
    /// The release breaks rules.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Violations(Vec<Violation>),
    /// It was cancelled before it began.
    #[error("cancelled before anything was changed")]
    Cancelled,
    /// Somebody else is at it.
    #[error("`{holder}` is deploying this release and has not finished within {waited:?}")]
    Busy {
        /// Who.
        holder: String,
        /// How long was waited.
        waited: Duration,
    },
}

impl Error {
    pub(crate) fn cluster(doing: impl Into<String>, source: kube::Error) -> Self {
        Self::Cluster { doing: doing.into(), source: Refusal(source) }
    }

    /// Whether the cluster refused for want of rights, and what it said.
    pub fn forbidden(&self) -> Option<&str> {
        match self {
            Self::Cluster { source: Refusal(kube::Error::Api(status)), .. } if matches!(status.code, 401 | 403) => {
                Some(&status.message)
            }
            _ => None,
        }
    }

    /// The error with everything behind it, in one line.
    pub fn whole_message(&self) -> String {
        chain(self)
    }
}

/// What a cluster said, in its own words.
#[derive(Debug)]
pub struct Refusal(pub(crate) kube::Error);

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            kube::Error::Api(status) if !status.message.is_empty() => formatter.write_str(&status.message),
            kube::Error::Api(status) => write!(formatter, "the server answered {} {}", status.code, status.reason),
            kube::Error::Service(source) => write!(formatter, "{}", chain(&**source)),
            kube::Error::HyperError(source) => write!(formatter, "{}", chain(source)),
            other => write!(formatter, "{other}"),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<kube::Error> for Refusal {
    fn from(error: kube::Error) -> Self {
        Self(error)
    }
}

/// An error with everything behind it, each part once.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = describe(error);
    let mut source = error.source();
    while let Some(error) = source {
        let part = describe(error);
        if !text.ends_with(&part) {
            text = format!("{text}: {part}");
        }
        source = error.source();
    }
    text
}

fn describe(error: &(dyn std::error::Error + 'static)) -> String {
    // What kube says of a refusal repeats it whole, as Rust would print it.
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => status.message.clone(),
        _ => error.to_string(),
    }
}

/// How an answer of the API is to be taken.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The object is not there.
    NotFound,
    /// An object of this name is there.
    AlreadyExists,
    /// Somebody else wrote in between, or the object is another one.
    Conflict,
    /// It may do better, perhaps after this time; it may also have done it.
    TryAgain(Option<Duration>),
    /// It will not do it.
    Refused,
}

/// Says how an error of the API is to be taken.
pub fn classify(error: &kube::Error) -> Answer {
    let kube::Error::Api(status) = error else {
        return match error {
            kube::Error::BuildRequest(_) | kube::Error::SerdeError(_) | kube::Error::InferConfig(_) => Answer::Refused,
            _ => Answer::TryAgain(None),
        };
    };
    let after = status.details.as_ref().map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0);
    match (status.code, status.reason.as_str()) {
        (404, _) => Answer::NotFound,
        (409, "AlreadyExists") => Answer::AlreadyExists,
        (409, _) => Answer::Conflict,
        (408 | 429 | 500..=599, _) => Answer::TryAgain(after.map(|seconds| Duration::from_secs(u64::from(seconds)))),
        _ => Answer::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(code: u16, reason: &str) -> kube::Error {
        let status = kube::core::Status::failure("no", reason).with_code(code);
        kube::Error::Api(status.boxed())
    }

    #[test]
    fn answers_are_told_apart() {
        for (code, reason, expected) in [
            (404, "NotFound", Answer::NotFound),
            (409, "AlreadyExists", Answer::AlreadyExists),
            (409, "Conflict", Answer::Conflict),
            (429, "TooManyRequests", Answer::TryAgain(None)),
            (504, "Timeout", Answer::TryAgain(None)),
            (403, "Forbidden", Answer::Refused),
            (422, "Invalid", Answer::Refused),
        ] {
            assert_eq!(classify(&api(code, reason)), expected, "{code} {reason}");
        }
        assert_eq!(classify(&kube::Error::LinesCodecMaxLineLengthExceeded), Answer::TryAgain(None));
    }

    #[test]
    fn an_error_is_told_with_everything_behind_it() {
        let error = Error::cluster("write ledger `x`", api(403, "Forbidden"));
        assert_eq!(error.whole_message(), "cannot write ledger `x`: no");
        assert_eq!(error.forbidden(), Some("no"));
    }
}
