//! How a command fails: the kind of failure, its cause, and hints.

use serde_json::{Value, json};
use std::fmt::Display;

/// The kinds of failures, each with its own exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The arguments or an input file are wrong.
    Usage,
    /// A chart cannot be rendered.
    Render,
    /// The cluster cannot be reached, or refuses.
    Cluster,
    /// Something is unknown: the result of a run was not recorded.
    Partial,
    /// It was cancelled.
    Cancelled,
    /// The work was done, and its result is bad.
    Negative,
    /// A bug, or a machine that fails.
    Internal,
    /// A program that was run for the user failed; its exit code is passed on.
    Program(u8),
}

impl Kind {
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Internal | Self::Negative => 1,
            Self::Usage => 2,
            Self::Render => 3,
            Self::Cluster => 4,
            Self::Partial => 5,
            Self::Cancelled => 130,
            Self::Program(code) => code,
        }
    }
}

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) source: anyhow::Error,
    pub(crate) hints: Vec<String>,
    /// Whether the document of `-o json` that reports it has been printed.
    pub(crate) is_documented: bool,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Display) -> Self {
        Self::of(kind, anyhow::anyhow!("{message}"))
    }

    /// A failure that an error is the reason of.
    pub(crate) fn of(kind: Kind, error: impl Into<anyhow::Error>) -> Self {
        Self { kind, source: error.into(), hints: Vec::new(), is_documented: false }
    }

    /// A failure that the output has reported in full: only the exit code is left to set.
    pub(crate) fn reported(kind: Kind) -> Self {
        Self::new(kind, "").documented()
    }

    /// The document of `-o json` has been printed, and reports it.
    pub(crate) fn documented(self) -> Self {
        Self { is_documented: true, ..self }
    }

    /// The error with its causes, each once; empty where the output has reported it in full.
    pub(crate) fn message(&self) -> String {
        let mut text = String::new();
        for part in self.source.chain().map(ToString::to_string) {
            // Many errors repeat their cause.
            if text.is_empty() {
                text = part;
            } else if !text.ends_with(&part) {
                text = format!("{text}: {part}");
            }
        }
        text
    }

    /// The failure as the document of `-o json`.
    pub(crate) fn to_json(&self) -> Value {
        let outcome = if self.kind == Kind::Cancelled { "cancelled" } else { "failed" };
        json!({"outcome": outcome, "error": self.message(), "hints": self.hints})
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
        self.map_err(|error| Failure::of(kind, error))
    }
}
