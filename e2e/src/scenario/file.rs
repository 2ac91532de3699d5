//! Scenario files as they are written. What they mean is decided in `resolve`.

use super::per_version::PerVersion;
use crate::chart::RawObject;
use serde::Deserialize;
use serde_saphyr::Spanned;
use std::collections::BTreeMap;

/// A file: scenarios that belong together.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    pub(super) about: String,
    pub(super) scenarios: Vec<Spanned<RawScenario>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawScenario {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) note: Option<String>,
    pub(super) only: Option<String>,
    #[serde(default)]
    pub(super) read: Read,
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) plugins: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) charts: BTreeMap<String, Vec<Spanned<RawObject>>>,
    pub(super) steps: Vec<Spanned<RawStep>>,
}

/// When state is read after a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Read {
    /// After the Jobs have come to rest.
    #[default]
    #[serde(rename = "at rest")]
    AtRest,
    /// Without delay.
    #[serde(rename = "at once")]
    AtOnce,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawStep {
    pub(super) helm: Option<PerVersion>,
    pub(super) kubectl: Option<PerVersion>,
    pub(super) hooks: Option<PerVersion>,
    pub(super) wait: Option<String>,

    pub(super) with: Option<String>,
    pub(super) first: Option<String>,
    pub(super) signal: Option<String>,
    pub(super) stdin: Option<String>,
    pub(super) read: Option<Read>,
    pub(super) prints: Option<PerVersion>,

    pub(super) exit: Option<PerVersion>,
    pub(super) error: Option<PerVersion>,
    pub(super) stderr: Option<PerVersion>,
    pub(super) stdout: Option<PerVersion>,
    pub(super) release: Option<PerVersion>,
    pub(super) left: Option<PerVersion>,
    pub(super) runs: Option<PerVersion>,

    pub(super) race: Option<String>,
    #[serde(default)]
    pub(super) either: BTreeMap<String, RawOutcome>,
}

/// One of the outcomes of a race: what it says goes before what its step says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawOutcome {
    pub(super) on: Option<String>,
    pub(super) exit: Option<PerVersion>,
    pub(super) error: Option<PerVersion>,
    pub(super) stderr: Option<PerVersion>,
    pub(super) stdout: Option<PerVersion>,
    pub(super) release: Option<PerVersion>,
    pub(super) left: Option<PerVersion>,
    pub(super) runs: Option<PerVersion>,
}

impl RawStep {
    /// What the step says for all outcomes.
    pub(super) fn common(&self) -> RawOutcome {
        RawOutcome {
            on: None,
            exit: self.exit.clone(),
            error: self.error.clone(),
            stderr: self.stderr.clone(),
            stdout: self.stdout.clone(),
            release: self.release.clone(),
            left: self.left.clone(),
            runs: self.runs.clone(),
        }
    }
}
