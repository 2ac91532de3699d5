//! What can go wrong with charts.

use std::path::PathBuf;

/// Why charts cannot be read, or their versions cannot go up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or a directory cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file does not say what it has to.
    #[error("{}:{line}:{column}: {message}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The line, from 1 on.
        line: usize,
        /// The column, from 1 on.
        column: usize,
        /// What is wrong, and what to do about it.
        message: String,
    },
    /// There is no such chart.
    #[error("there is no chart `{name}` below {}{}", root.display(), hint(known))]
    NoChart {
        /// What was looked for.
        name: String,
        /// Where.
        root: PathBuf,
        /// What is there.
        known: Vec<String>,
    },
    /// A name that several charts have.
    #[error("there are {} charts `{name}`: give the path of one ({})", paths.len(), show(paths))]
    Ambiguous {
        /// The name.
        name: String,
        /// Where they are.
        paths: Vec<PathBuf>,
    },
    /// Charts that depend on each other in a circle.
    #[error("charts depend on each other in a circle: {}", charts.join(" → "))]
    Cycle {
        /// Their names, the first one again at the end.
        charts: Vec<String>,
    },
    /// More than a tree of charts can be.
    #[error("{} has more than {limit} directories: name the directory with the charts by `--root`", root.display())]
    TooLarge {
        /// Where.
        root: PathBuf,
        /// How many directories are looked at.
        limit: usize,
    },
}

fn hint(known: &[String]) -> String {
    match known {
        [] => "; there are no charts at all".to_owned(),
        known => format!("; there are {}", known.join(", ")),
    }
}

fn show(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
