//! How a command fails: what kind of failure it is, why, and what to do about it.

use std::fmt::Display;

/// What kind of failure it is; each has an exit code of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The arguments or an input file are wrong.
    Usage,
    /// The cluster cannot be reached, or refuses.
    Cluster,
    /// Nobody knows all of it: a run whose end nobody saw.
    Partial,
    /// It was cancelled.
    Cancelled,
    /// What was asked for did not come out well; it has been told.
    Negative,
    /// Something that should not happen happened.
    Internal,
}

impl Kind {
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Internal | Self::Negative => 1,
            Self::Usage => 2,
            Self::Cluster => 4,
            Self::Partial => 5,
            Self::Cancelled => 130,
        }
    }
}

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) source: anyhow::Error,
    pub(crate) hints: Vec<String>,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Display) -> Self {
        Self { kind, source: anyhow::anyhow!("{message}"), hints: Vec::new() }
    }

    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }
}

/// Says what kind of failure an error is.
pub(crate) trait ErrorExt<T> {
    fn or_fail(self, kind: Kind) -> Result<T, Failure>;
}

impl<T, E: Into<anyhow::Error>> ErrorExt<T> for Result<T, E> {
    fn or_fail(self, kind: Kind) -> Result<T, Failure> {
        self.map_err(|error| Failure { kind, source: error.into(), hints: Vec::new() })
    }
}
