//! What can go wrong, besides jobs that fail.

use crate::call::Lost;
use crate::guard::Violation;
use crate::ledger::FormatError;
use crate::registry::Problem;
use std::time::Duration;

/// Why the engine could not do its work. That a job has failed is no error but a result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The API server refused a call, or did not answer it.
    #[error("cannot {doing}{}", if .retried.is_zero() { String::new() } else { format!(", retried for {}", short(*.retried)) })]
    Cluster {
        /// What was being done, on what.
        doing: String,
        /// How long the call was retried.
        retried: Duration,
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
    /// The lease ran out or was taken over, so this process has stopped its work.
    #[error("lost the lease `{name}`: it could not be renewed in time, or another process took it over")]
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
    /// It was cancelled while it waited for another process.
    #[error("cancelled while waiting for `{holder}`, which is deploying this release; nothing was changed")]
    CancelledWaiting {
        /// The holder of the lease.
        holder: String,
    },
    /// It was abandoned: its work was dropped where it stood.
    #[error("stopped without waiting: running pods continue, and the next deploy waits for them")]
    Abandoned,
    /// Another process holds the lease.
    #[error("`{holder}` is deploying this release and has not finished within {}", short(*.waited))]
    Busy {
        /// Who.
        holder: String,
        /// How long this process waited.
        waited: Duration,
    },
}

impl Error {
    pub(crate) fn cluster(doing: impl Into<String>, source: kube::Error) -> Self {
        Self::retried(doing, source, Duration::ZERO)
    }

    pub(crate) fn retried(doing: impl Into<String>, source: kube::Error, retried: Duration) -> Self {
        if let Some(lost) = lost_lease(&source) {
            return Self::LostLease { name: lost.name.clone() };
        }
        Self::Cluster { doing: doing.into(), retried, source: Refusal(source) }
    }

    /// A call that the API server refused.
    pub fn refused(doing: impl Into<String>, refusal: Refusal) -> Self {
        Self::cluster(doing, refusal.0)
    }

    /// Something that was read and cannot be parsed.
    pub fn unusable(doing: impl Into<String>, error: serde_json::Error) -> Self {
        Self::cluster(doing, kube::Error::SerdeError(error))
    }

    /// Whether the API server refused for want of permissions, and what it said.
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
        formatter.write_str(&plain(&self.0))
    }
}

impl std::error::Error for Refusal {}

impl From<kube::Error> for Refusal {
    fn from(error: kube::Error) -> Self {
        Self(error)
    }
}

impl From<Refusal> for kube::Error {
    fn from(refusal: Refusal) -> Self {
        refusal.0
    }
}

/// What the API server said, without what stood before it.
pub(crate) fn plain(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.message.is_empty() => {
            format!("the server answered {} {}", status.code, status.reason)
        }
        kube::Error::Api(status) => status.message.clone(),
        kube::Error::Service(source) => chain(&**source),
        kube::Error::HyperError(source) => chain(source),
        other => other.to_string(),
    }
}

/// A duration in whole units: `5m`, `90s`.
fn short(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds >= 60 && seconds.is_multiple_of(60) { format!("{}m", seconds / 60) } else { format!("{seconds}s") }
}

fn lost_lease(error: &kube::Error) -> Option<&Lost> {
    match error {
        kube::Error::Service(source) => source.downcast_ref(),
        _ => None,
    }
}

/// The same error once more, for a second reader.
pub(crate) fn repeat(error: &kube::Error) -> kube::Error {
    match (error, lost_lease(error)) {
        (kube::Error::Api(status), _) => kube::Error::Api(status.clone()),
        (_, Some(lost)) => kube::Error::Service(Box::new(Lost { name: lost.name.clone() })),
        (other, None) => kube::Error::Api(kube::core::Status::failure(&plain(other), "Unknown").boxed()),
    }
}

/// The error of an API call behind another error, unless that call was retried already.
pub(crate) fn unretried<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e kube::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(Error::Cluster { retried, .. }) = error.downcast_ref()
            && !retried.is_zero()
        {
            return None;
        }
        if let Some(Refusal(error)) = error.downcast_ref() {
            return Some(error);
        }
        if let Some(error) = error.downcast_ref() {
            return Some(error);
        }
        next = error.source();
    }
    None
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

/// What an error of the API means for the caller.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The object does not exist.
    NotFound,
    /// An object of this name exists.
    AlreadyExists,
    /// Another client wrote in between, or the object is another one.
    Conflict,
    /// A repetition may succeed, perhaps after this time. The call may also have taken effect.
    TryAgain(Option<Duration>),
    /// A repetition cannot succeed.
    Refused,
    /// The call was not sent, or not waited for: the lease is lost.
    LostLease,
}

/// Says what an error of the API means for the caller.
pub fn classify(error: &kube::Error) -> Answer {
    let kube::Error::Api(status) = error else {
        return match error {
            _ if lost_lease(error).is_some() => Answer::LostLease,
            // What did not go over the network stays as it is.
            kube::Error::Service(_)
            | kube::Error::HyperError(_)
            | kube::Error::ReadEvents(_)
            | kube::Error::UpgradeConnection(_)
            | kube::Error::LinesCodecMaxLineLengthExceeded => Answer::TryAgain(None),
            _ => Answer::Refused,
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
    fn errors_are_classified_by_code_and_reason() {
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
