//! The scenario as its file says it.

use crate::support::pod;
use jobwright_engine::{OnSupersede, OnUnknown, Registry, Retries, RunPolicy};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) parts: Vec<Part>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) acts: Vec<Act>,
    pub(crate) starts: BTreeMap<String, usize>,
    pub(crate) outcomes: BTreeMap<String, String>,
    pub(crate) unknown: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Act {
    pub(crate) name: String,
    #[serde(default)]
    after: Option<String>,
    #[serde(default, rename = "cancelled after")]
    cancelled_after: Option<String>,
    #[serde(default)]
    pub(crate) nonce: String,
    jobs: BTreeMap<String, Job>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Job {
    line: String,
    #[serde(default)]
    run: RunPolicy,
    #[serde(default)]
    retries: u32,
    #[serde(default)]
    on_supersede: OnSupersede,
    #[serde(default)]
    on_unknown: OnUnknown,
    #[serde(default)]
    stranger: Option<String>,
}

impl Scenario {
    pub(crate) fn load() -> Self {
        serde_saphyr::from_str(include_str!("scenario.yaml")).unwrap()
    }
}

impl Act {
    /// The jobs that a stranger deletes.
    pub(crate) fn doomed(&self) -> impl Iterator<Item = &str> {
        self.jobs.iter().filter(|(_, job)| job.stranger.is_some()).map(|(id, _)| id.as_str())
    }

    pub(crate) fn after(&self) -> Duration {
        self.after.as_deref().map(duration).unwrap_or_default()
    }

    pub(crate) fn cancelled_after(&self) -> Option<Duration> {
        self.cancelled_after.as_deref().map(duration)
    }

    pub(crate) fn registry(&self) -> Registry {
        let mut registry = Registry::new();
        for (id, job) in &self.jobs {
            let mut pod = pod(id, &job.line);
            pod.run = job.run;
            pod.retries = Retries { limit: job.retries, backoff: Duration::from_secs(10) };
            pod.on_supersede = job.on_supersede;
            pod.on_unknown = job.on_unknown;
            pod.timeout = Duration::from_mins(30);
            pod.keep.finished = Duration::from_mins(2);
            registry.pod(pod);
        }
        registry
    }
}

fn duration(text: &str) -> Duration {
    let (number, unit) = text.split_at(text.len() - 1);
    let number: u64 = number.parse().unwrap();
    match unit {
        "s" => Duration::from_secs(number),
        "m" => Duration::from_mins(number),
        other => panic!("{other}"),
    }
}
