//! The record of a release: which version is deployed, what each component was made of, and what an interrupted deploy
//! was at. One ConfigMap, written by compare-and-swap.

use crate::failure;
use crate::patience::patiently;
use jiff::Timestamp;
use jobwright_engine::{Failure, Version, record_name};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, PostParams};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Mutex;

/// What is known of a release.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The version that was deployed last, whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// How many deploys have begun.
    #[serde(default)]
    pub deploys: u64,
    /// The deploy that has begun and not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deploying: Option<Deploying>,
    /// The components.
    #[serde(default)]
    pub components: BTreeMap<String, Deployed>,
}

/// A deploy that has begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deploying {
    /// Its number.
    pub number: u64,
    /// What is deployed: the same text is the same plan.
    pub plan: String,
    /// When it began.
    pub since: Timestamp,
}

/// What a component was made of when it was deployed last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deployed {
    /// Its parts as hashes, by name: `chart`, `values`, `manifests`.
    #[serde(default)]
    pub parts: BTreeMap<String, String>,
    /// The version of the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// The revision of its Helm release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helm_revision: Option<u64>,
    /// What was applied, to be taken away when it is no longer wanted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectKey>,
    /// Whether it is deployed and its jobs are through.
    #[serde(default)]
    pub complete: bool,
    /// A helm that was started for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helm: Option<HelmProcess>,
}

/// An object that was applied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectKey {
    /// `apps/v1`.
    pub api_version: String,
    /// `Deployment`.
    pub kind: String,
    /// Its namespace; none if its kind has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl std::fmt::Display for ObjectKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} `{}`", self.kind, self.name)
    }
}

/// A helm that was started, so that whoever finds its traces knows whether it still runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HelmProcess {
    /// The machine.
    pub host: String,
    /// The revision that was deployed before; 0 for none.
    pub revision: u64,
    /// When it must have ended.
    pub until: Timestamp,
}

/// The record of a release in its cluster. Clones share it.
#[derive(Clone)]
pub struct Records {
    client: Client,
    namespace: String,
    name: String,
    release: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    stored: Option<ConfigMap>,
    record: Record,
}

const KEY: &str = "record";

impl Records {
    /// Reads the record of a release.
    pub async fn open(client: Client, namespace: &str, release: &str) -> Result<Self, Failure> {
        let records = Self {
            client,
            namespace: namespace.to_owned(),
            name: record_name(release, &[namespace, release, "release"]),
            release: release.to_owned(),
            state: Arc::default(),
        };
        *records.state.lock().await = records.read().await?;
        Ok(records)
    }

    /// The record as it was read or written last.
    pub async fn get(&self) -> Record {
        self.state.lock().await.record.clone()
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn read(&self) -> Result<State, Failure> {
        let doing = || format!("cannot read the record `{}` of release `{}`", self.name, self.release);
        let maps = self.maps();
        let stored = patiently(|| maps.get_opt(&self.name)).await.map_err(|error| failure(doing(), error))?;
        let text = stored.as_ref().and_then(|stored| stored.data.as_ref()?.get(KEY)).map(String::as_str);
        let record = text
            .map_or_else(|| Ok(Record::default()), serde_json::from_str)
            .map_err(|error| Failure::new(format!("{}: it cannot be understood", doing())).because(error).for_good())?;
        Ok(State { stored, record })
    }

    /// Changes the record, whoever else changes it meanwhile.
    pub async fn change(&self, change: impl Fn(&mut Record) + Send) -> Result<Record, Failure> {
        let mut state = self.state.lock().await;
        for _ in 0..20 {
            let mut record = state.record.clone();
            change(&mut record);
            if record == state.record && state.stored.is_some() {
                return Ok(record);
            }
            let written = match &state.stored {
                None => self.maps().create(&parameters(), &self.object(&record)).await,
                Some(stored) => {
                    let mut changed = stored.clone();
                    changed.metadata.managed_fields = None;
                    changed.data = self.object(&record).data;
                    self.maps().replace(&self.name, &parameters(), &changed).await
                }
            };
            match written {
                Ok(stored) => {
                    *state = State { stored: Some(stored), record: record.clone() };
                    return Ok(record);
                }
                Err(kube::Error::Api(status)) if matches!(status.code, 400 | 401 | 403 | 413 | 422) => {
                    return Err(failure(format!("cannot write the record `{}`", self.name), kube::Error::Api(status)));
                }
                // Somebody else wrote, or nobody knows whether we did: what is there decides.
                Err(_) => {
                    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
                    *state = self.read().await?;
                }
            }
        }
        Err(Failure::new(format!("cannot write the record `{}`: others keep changing it", self.name)))
    }

    fn object(&self, record: &Record) -> ConfigMap {
        let text = serde_json::to_string(record).unwrap_or_default();
        serde_json::from_value(json!({
            "metadata": {"name": self.name, "labels": {
                "app.kubernetes.io/managed-by": "jobwright", "jobwright.io/release": self.release, "jobwright.io/record": "1"}},
            "data": {KEY: text},
        }))
        .unwrap_or_default()
    }
}

fn parameters() -> PostParams {
    PostParams { field_manager: Some("jobwright".to_owned()), ..PostParams::default() }
}
