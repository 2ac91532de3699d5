//! What goes wrong while templates are executed.

use crate::format::Overflow;
use std::fmt;

/// A template that cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecError {
    /// What Go prints, with the chain of templates in front.
    message: String,
    /// The templates on the way to what failed, the innermost last.
    frames: Vec<Frame>,
    cause: Cause,
}

/// Where in a template something failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The template that was executed: the file, or the name of what it defines.
    pub template: String,
    /// `FILE:LINE:COLUMN`, as Go counts: columns from 0 on, in bytes.
    pub location: String,
    /// The part of the template, as Go prints it.
    pub context: String,
}

/// Why a template cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A chart that refuses its values by `fail` or `required`, with its message.
    Refused(String),
    /// Anything that Go refuses, too.
    Failed,
    /// A limit of ours, by its description.
    Limit(String),
}

impl ExecError {
    /// An error that Go does not wrap.
    pub(crate) fn bare(message: String) -> Box<Self> {
        Box::new(Self { message, frames: Vec::new(), cause: Cause::Failed })
    }

    pub(crate) fn at(frame: Frame, message: &str) -> Box<Self> {
        let message = frame.prefix() + message;
        Box::new(Self { message, frames: vec![frame], cause: Cause::Failed })
    }

    pub(crate) fn limit(frame: Frame, description: String) -> Box<Self> {
        let message = frame.prefix() + &description;
        Box::new(Self { message, frames: vec![frame], cause: Cause::Limit(description) })
    }

    /// The error of a function that was called at a place.
    pub(crate) fn of_call(frame: Frame, name: &str, failure: Failure) -> Box<Self> {
        let prefix = format!("{}error calling {name}: ", frame.prefix());
        match failure {
            Failure::Message(message) => {
                Box::new(Self { message: prefix + &message, frames: vec![frame], cause: Cause::Failed })
            }
            Failure::Refused(message) => Box::new(Self {
                message: format!("{prefix}{message}"),
                frames: vec![frame],
                cause: Cause::Refused(message),
            }),
            Failure::Limit(description) => Self::limit(frame, description),
            Failure::Nested(before, mut inner) => {
                inner.message = format!("{prefix}{before}{}", inner.message);
                inner.frames.insert(0, frame);
                inner
            }
        }
    }

    /// What Go prints, with the chain of templates in front.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What Helm 3 prints: of `fail` and `required` only the place in the file and the message.
    pub fn helm_message(&self) -> String {
        match (&self.cause, self.frames.first()) {
            (Cause::Refused(message), Some(frame)) => format!("execution error at ({}): {message}", frame.location),
            _ => self.message.clone(),
        }
    }

    /// The templates on the way to what failed, the innermost last.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Why it cannot be executed.
    pub fn cause(&self) -> &Cause {
        &self.cause
    }
}

impl Frame {
    fn prefix(&self) -> String {
        let name = crate::quote::quote(self.template.as_bytes(), false);
        format!("template: {}: executing {name} at <{}>: ", self.location, self.context)
    }
}

impl fmt::Display for ExecError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for ExecError {}

/// Why a function fails.
#[derive(Debug)]
pub(crate) enum Failure {
    Message(String),
    /// What a chart says by `fail` or `required`.
    Refused(String),
    Limit(String),
    /// A template that the function executed, and what stands before its error.
    Nested(String, Box<ExecError>),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Message(message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Self::Message(message.to_owned())
    }
}

impl From<Overflow> for Failure {
    fn from(_: Overflow) -> Self {
        Self::Limit("a value is too large or too deep to be printed".to_owned())
    }
}
