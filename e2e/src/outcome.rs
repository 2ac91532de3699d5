//! What is known after a step, in the same words whether it was expected or seen.

use std::fmt;
use std::str::FromStr;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(Signal),
    /// It had to be killed because it did not end in time.
    Hung,
}

/// A signal that scenarios send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT
    Interrupt,
    /// SIGKILL
    Kill,
    /// SIGTERM
    Terminate,
}

impl Signal {
    const ALL: [Self; 3] = [Self::Interrupt, Self::Kill, Self::Terminate];

    fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Kill => "SIGKILL",
            Self::Terminate => "SIGTERM",
        }
    }

    /// The number of the signal.
    pub fn number(self) -> i32 {
        self.unix().as_raw()
    }

    pub(crate) fn unix(self) -> rustix::process::Signal {
        match self {
            Self::Interrupt => rustix::process::Signal::INT,
            Self::Kill => rustix::process::Signal::KILL,
            Self::Terminate => rustix::process::Signal::TERM,
        }
    }

    /// The signal with this number, if scenarios know it.
    pub(crate) fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|signal| signal.number() == number)
    }
}

impl FromStr for Signal {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|signal| signal.name() == word)
            .ok_or_else(|| format!("`{word}` is no signal: expected SIGINT, SIGKILL or SIGTERM"))
    }
}

impl FromStr for Exit {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word.parse() {
            Ok(code) => Ok(Self::Code(code)),
            Err(_) => {
                word.parse().map(Self::Signal).map_err(|_| format!("`{word}` is neither an exit code nor a signal"))
            }
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "{code}"),
            Self::Signal(signal) => f.write_str(signal.name()),
            Self::Hung => f.write_str("hung"),
        }
    }
}

/// What a command of Helm said and how it ended, normalised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// How it ended.
    pub exit: Exit,
    /// What follows `Error: ` on stderr.
    pub error: String,
    /// What stands before that.
    pub stderr: String,
    /// What it printed beyond the usual lines.
    pub stdout: String,
}

impl Said {
    /// Nothing said, exit 0.
    pub fn nothing() -> Self {
        Self { exit: Exit::Code(0), error: String::new(), stderr: String::new(), stdout: String::new() }
    }
}

/// What is in the namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The stored revisions: `1 superseded; 2 deployed`, or `none`.
    pub release: String,
    /// The objects, sorted: `Job/x#1 owned Complete`.
    pub left: Vec<String>,
    /// Containers started so far: `d 1, x 2`, or `none`.
    pub runs: String,
}

impl State {
    /// A namespace in which nothing has happened yet.
    pub fn empty() -> Self {
        Self { release: "none".to_owned(), left: Vec::new(), runs: "none".to_owned() }
    }

    /// The objects on one line.
    pub fn left_line(&self) -> String {
        if self.left.is_empty() { "nothing".to_owned() } else { self.left.join("; ") }
    }
}

/// All that is known after a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What the command said.
    pub said: Said,
    /// What there is.
    pub state: State,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_is_a_code_or_a_signal() {
        assert_eq!("1".parse(), Ok(Exit::Code(1)));
        assert_eq!("SIGKILL".parse(), Ok(Exit::Signal(Signal::Kill)));
        assert_eq!(Exit::Signal(Signal::Terminate).to_string(), "SIGTERM");
        assert!("-9".parse::<Exit>().is_ok_and(|exit| exit == Exit::Code(-9)));
        assert!("soon".parse::<Exit>().is_err());
    }
}
