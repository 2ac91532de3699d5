//! The shell, as far as jobs and servers in charts use it: enough that one chart plays the same here and on a node.
//!
//! `sleep`, `echo`, `seq`, `exit`, `true`, `false`, `test`, `touch`, `rm`, `cat`, `trap`, `wait`, `exec`, `kill`, `cd`, `set`,
//! assignments, `;`, `&&`, `||`, `!`, `&`, pipes, redirections, `if`, `while`, `until`, `for`, `{ … }`, `( … )`.
//! Programs that nobody here knows run for a second and succeed.

mod lexer;
mod parser;

pub(crate) use parser::parse;

/// A command that the shell runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// A program or builtin with its words, variables set for it, and the file its output goes to.
    Simple {
        assignments: Vec<(String, Word)>,
        words: Vec<Word>,
        output: Option<Output>,
    },
    /// One after the other.
    Sequence(Vec<Command>),
    /// The second runs if the first succeeds.
    And(Box<Command>, Box<Command>),
    /// The second runs if the first fails.
    Or(Box<Command>, Box<Command>),
    /// Success is failure and failure success.
    Not(Box<Command>),
    /// Started and not waited for.
    Background(Box<Command>),
    If {
        condition: Box<Command>,
        then: Box<Command>,
        otherwise: Option<Box<Command>>,
    },
    /// Repeats the body as long as the condition succeeds, or fails (`until`).
    Loop {
        condition: Box<Command>,
        until: bool,
        body: Box<Command>,
    },
    For {
        variable: String,
        words: Vec<Word>,
        body: Box<Command>,
    },
    /// A shell of its own: what it exits with is what it ends with.
    Subshell(Box<Command>),
    /// The commands of a pipe run one after the other here; the last one's code counts.
    Pipe(Vec<Command>),
}

/// Where a command's output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) file: Word,
    /// `>>`: behind what is there.
    pub(crate) append: bool,
}

/// A word, with the parts that become text only when it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) parts: Vec<Part>,
    /// Part of it was quoted: it is a word even when it comes out empty.
    pub(crate) quoted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    /// `$NAME`, `${NAME}`, `${NAME:-default}`.
    Variable {
        name: String,
        default: Option<String>,
    },
    /// What a command prints: `$(command)`.
    Substitution(Box<Command>),
    /// Arithmetic: `$((i + 1))`, as it stands.
    Arithmetic(String),
}

impl Word {
    /// The text of a word that has no variable parts.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }
}
