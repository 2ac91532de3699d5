//! What is written down about a cluster once all of it has started.

use super::deployer::Deployer;
use super::place::Place;
use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// How much of a node there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// A kubelet and real containers
    Full,
    /// The control plane alone; pods only pretend (kwok)
    Light,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::Light => "light",
        })
    }
}

/// A deployer that was asked for and is not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Which.
    pub deployer: Deployer,
    /// Why.
    pub reason: String,
}

/// A cluster that has started. Without a record it has not, or not wholly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// How much of a node there is.
    pub tier: Tier,
    /// The version of Kubernetes.
    pub kubernetes: String,
    /// Deployers that are there.
    pub deployers: Vec<Deployer>,
    /// Deployers that are not.
    pub skipped: Vec<Skipped>,
    /// When each part had come up, from the beginning of the command that started it.
    pub parts: Vec<(String, Duration)>,
}

impl Record {
    /// Reads the record of a cluster; `None` if it has not wholly started.
    pub fn read(place: &Place) -> Result<Option<Self>, Error> {
        let path = place.record();
        match std::fs::read(&path) {
            Ok(bytes) => {
                let record = serde_json::from_slice(&bytes);
                record.map(Some).map_err(Error::json(format!("`{}`", path.display())))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(format!("read `{}`", path.display()))(error)),
        }
    }

    /// Writes the record whole.
    pub(super) fn write(&self, place: &Place) -> Result<(), Error> {
        let path = place.record();
        let text = serde_json::to_vec_pretty(self).map_err(Error::json("a record"))?;
        let new = path.with_extension("new");
        std::fs::write(&new, text)
            .and_then(|()| std::fs::rename(&new, &path))
            .map_err(Error::io(format!("write `{}`", path.display())))
    }
}
