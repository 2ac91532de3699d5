//! Released tools, from package registries into a cache outside the tree: `DIRECTORY/NAME-VERSION/PROGRAM`.
//!
//! What is there already is left alone. A tool is made beside its place and moved there whole, by one process at a time.

pub mod catalogue;
pub mod debian;
mod go;
mod module;
mod python;
mod work;

use crate::clock;
use crate::error::Error;
use crate::lock::Lock;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Hears what is being done.
pub type Tell<'a> = &'a (dyn Fn(&str) + Sync);

/// How long one tool may take unless another time is given: three times what the slowest takes on two busy cores.
pub const PATIENCE: Duration = Duration::from_mins(30);

/// How something is installed: who hears of it, and how long it may take.
#[derive(Clone, Copy)]
pub struct Effort<'a> {
    /// Hears what is being done.
    pub tell: Tell<'a>,
    /// How long one tool may take, its downloads included.
    pub patience: Duration,
}

/// A tool in a version, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The name.
    pub name: &'static str,
    /// The version, without a `v`.
    pub version: Cow<'static, str>,
    source: Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A wheel that holds the program in `bin`.
    Python(&'static str),
    /// Programs of a Go module, and files of it that they need.
    Go(&'static go::Recipe),
}

impl Tool {
    /// The name of its place: `helm-3.17.3`.
    pub fn full_name(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    /// Where it is, if it is there.
    pub fn place(&self, directory: &Path) -> PathBuf {
        directory.join(self.full_name())
    }

    /// Whether it is there.
    pub fn is_there(&self, directory: &Path) -> bool {
        self.place(directory).is_dir()
    }

    /// Makes the tool if it is not there, and says where it is.
    pub fn install(&self, directory: &Path, effort: Effort<'_>) -> Result<PathBuf, Error> {
        let place = self.place(directory);
        if place.is_dir() {
            return Ok(place);
        }
        std::fs::create_dir_all(directory).map_err(Error::io(format!("create `{}`", directory.display())))?;
        let name = self.full_name();
        let lock = Lock::take(&directory.join(format!("{name}.lock")), || {
            (effort.tell)(&format!("{name}: another process makes it, waiting"));
        })?;
        if !place.is_dir() {
            remove_partial(directory, &name);
            // Of this process alone: what a killed one started may still be writing into its own.
            let work = directory.join(format!("{name}.{}.partial", std::process::id()));
            let start = clock::now();
            let made = self.make(&work, effort);
            let moved = made.and_then(|whole| {
                std::fs::rename(&whole, &place).map_err(Error::io(format!("move {name} to `{}`", place.display())))
            });
            // Half of a tool is of no use to anybody.
            let _ = std::fs::remove_dir_all(&work);
            moved?;
            (effort.tell)(&format!("{name}: made in {} s", start.elapsed().as_secs()));
        }
        lock.remove();
        Ok(place)
    }

    /// Makes the tool in a directory of its own and returns the part of it that is kept.
    fn make(&self, work: &Path, effort: Effort<'_>) -> Result<PathBuf, Error> {
        let whole = work.join("whole");
        std::fs::create_dir_all(&whole).map_err(Error::io(format!("create `{}`", whole.display())))?;
        match self.source {
            Source::Python(requirement) => python::install(requirement, self.name, work, &whole, effort)?,
            Source::Go(recipe) => recipe.build(&self.full_name(), &self.version, work, &whole, effort)?,
        }
        Ok(whole)
    }
}

/// Removes what processes left that were killed while they made a tool.
fn remove_partial(directory: &Path, name: &str) {
    let start = format!("{name}.");
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let file = entry.file_name();
        let file = file.to_string_lossy();
        if file.starts_with(&start) && file.ends_with(".partial") {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
