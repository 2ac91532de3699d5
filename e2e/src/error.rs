//! What can go wrong while scenarios are read or played, apart from their outcome.

use std::path::PathBuf;
use std::time::Duration;

/// Why scenarios could not be read, or one of them not be played to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A scenario file says something that cannot be.
    #[error("{}:{line}: {message}", file.display())]
    Scenario {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong there.
        message: String,
    },
    /// A tool is not where it should be, or is not what its place says.
    #[error("{tool} is missing: {reason}")]
    Tool {
        /// The name and version.
        tool: String,
        /// Where it was looked for, or what is wrong with it.
        reason: String,
    },
    /// The file system or a process failed.
    #[error("cannot {doing}")]
    Io {
        /// What was being done, on what.
        doing: String,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// Something that should be JSON is not, or lacks a part.
    #[error("cannot understand {what}")]
    Json {
        /// What was being read.
        what: String,
        /// Why it failed.
        #[source]
        source: serde_json::Error,
    },
    /// A stored release cannot be read.
    #[error("cannot decode the release in Secret `{secret}`: {reason}")]
    Release {
        /// The Secret.
        secret: String,
        /// Which layer does not decode.
        reason: String,
    },
    /// A command of the suite itself (not of a scenario) failed.
    #[error("`{command}` failed: {reason}")]
    Command {
        /// The command line.
        command: String,
        /// Its exit and what it wrote.
        reason: String,
    },
    /// A cluster of ours cannot be what it is asked to be.
    #[error("cluster {name}: {problem}")]
    Cluster {
        /// Its name.
        name: String,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// Something did not happen in time.
    #[error("{what} took longer than {} s", limit.as_secs())]
    Late {
        /// What was awaited.
        what: String,
        /// How long.
        limit: Duration,
    },
}

impl Error {
    /// The error with its causes, in one line.
    pub fn explain(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            text.push_str(": ");
            text.push_str(&error.to_string());
            source = error.source();
        }
        text
    }

    /// Wraps an I/O error with what was being done.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }

    /// Wraps a JSON error with what was being read.
    pub(crate) fn json(what: impl Into<String>) -> impl FnOnce(serde_json::Error) -> Self {
        let what = what.into();
        move |source| Self::Json { what, source }
    }
}
