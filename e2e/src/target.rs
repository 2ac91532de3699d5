//! What scenarios are played against: a cluster that is there, or a drydock of one's own.

use crate::clock;
use crate::cluster::{Name, Place, Record, Tier};
use crate::command::{Command, send};
use crate::error::Error;
use crate::outcome::Signal;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

/// How long a drydock may take to answer, and to stop.
const PROMPT: Duration = Duration::from_secs(20);

/// What scenarios are played against.
#[derive(Clone, Debug)]
pub enum Target {
    /// A cluster, by its kubeconfig.
    Cluster(PathBuf),
    /// `jobwright drydock`, one for each play.
    Drydock {
        /// The binary.
        binary: PathBuf,
    },
}

/// A target that answers.
#[derive(Debug)]
pub(crate) struct Opened {
    kubeconfig: PathBuf,
    drydock: Option<Child>,
}

impl Target {
    /// What a word means: `drydock`, the name of a cluster of `cluster up`, or the path of a kubeconfig.
    pub fn named(word: &str) -> Result<Self, Error> {
        if word == "drydock" {
            return Self::drydock();
        }
        let given = Path::new(word);
        let own = word.parse::<Name>().ok().map(|name| Place::of(&name).kubeconfig());
        let kubeconfig = own.filter(|kubeconfig| !given.exists() && kubeconfig.exists());
        let kubeconfig = kubeconfig.unwrap_or_else(|| given.to_owned());
        let found = kubeconfig.canonicalize().map_err(|error| Error::Tool {
            tool: format!("the target `{word}`"),
            reason: format!("{error}; it is `drydock`, a cluster of `cluster up`, or the path of a kubeconfig"),
        })?;
        Ok(Self::Cluster(found))
    }

    /// The drydock of the `jobwright` that was built with this program.
    pub fn drydock() -> Result<Self, Error> {
        Ok(Self::Drydock { binary: jobwright()? })
    }

    /// Whether containers run there: in drydock and in any cluster but a light one of ours.
    pub fn runs_containers(&self) -> bool {
        let Self::Cluster(kubeconfig) = self else { return true };
        let own = Place::all().into_iter().find(|place| place.kubeconfig() == *kubeconfig);
        let record = own.and_then(|place| Record::read(&place).ok().flatten());
        record.is_none_or(|record| record.tier == Tier::Full)
    }

    /// Makes the target answer; files that it needs go into the directory.
    pub(crate) fn open(&self, directory: &Path) -> Result<Opened, Error> {
        match self {
            Self::Cluster(kubeconfig) => Ok(Opened { kubeconfig: kubeconfig.clone(), drydock: None }),
            Self::Drydock { binary } => {
                let kubeconfig = directory.join("kubeconfig");
                let mut child = Command::new(binary)
                    .arguments(["drydock", "--rbac", "--kubeconfig"])
                    .arguments([&kubeconfig])
                    .start()?;
                let start = clock::now();
                while !kubeconfig.exists() {
                    if let Some(status) = child.try_wait().map_err(Error::io("wait for drydock"))? {
                        let command = format!("{} drydock", binary.display());
                        return Err(Error::Command { command, reason: status.to_string() });
                    }
                    if start.elapsed() > PROMPT {
                        // Dropping it ends the process.
                        drop(Opened { kubeconfig, drydock: Some(child) });
                        return Err(Error::Late { what: "the start of drydock".to_owned(), limit: PROMPT });
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
                Ok(Opened { kubeconfig, drydock: Some(child) })
            }
        }
    }
}

impl Opened {
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let Some(child) = self.drydock.as_mut() else { return };
        let start = clock::now();
        // It may be gone already; then there is nothing to end.
        let _ = send(child, Signal::Terminate);
        while start.elapsed() < PROMPT && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// The `jobwright` that was built with this program.
pub fn jobwright() -> Result<PathBuf, Error> {
    let own = std::env::current_exe().map_err(Error::io("find the place of this program"))?;
    let mut directory = own.parent().unwrap_or(Path::new("."));
    // Tests are one below.
    if directory.ends_with("deps") {
        directory = directory.parent().unwrap_or(directory);
    }
    let binary = directory.join("jobwright");
    if !binary.is_file() {
        let reason = format!("`{}` does not exist: build it with `cargo build`", binary.display());
        return Err(Error::Tool { tool: "jobwright".to_owned(), reason });
    }
    Ok(binary)
}
