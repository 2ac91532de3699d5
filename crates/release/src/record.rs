//! The record of a release: which version is deployed, what each component was made of, and what an interrupted deploy
//! was doing. One ConfigMap, written by compare-and-swap under the fence of the lock.

use jiff::Timestamp;
use jobwright_engine::record_name;
use jobwright_engine::{
    Answer, Error, Failure, Fence, Known, Occasion, Outage, Past, Refusal, Retry, Version, classify,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Mutex;

/// What is known of a release.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The format; none for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<u32>,
    /// The holder of the lock that wrote it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
    /// Whether a deploy has ever succeeded.
    #[serde(default)]
    pub installed: bool,
    /// The version that was deployed last, completely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// The newest version that a deploy has begun with since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempted: Option<Version>,
    /// How many deploys have begun.
    #[serde(default)]
    pub deploys: u64,
    /// The deploy that has begun and not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deploying: Option<Deploying>,
    /// Jobs that were due and skipped on request, with the install or upgrade that they belong to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub owed: BTreeMap<String, Occasion>,
    /// The components.
    #[serde(default)]
    pub components: BTreeMap<String, Deployed>,
}

impl Record {
    /// What the engine has to know of it.
    pub fn past(&self) -> Past {
        // Records of earlier versions do not say whether a deploy succeeded, but have its version.
        let is_installed = self.installed || self.version.is_some();
        Past { is_installed, version: self.version.clone(), attempted: self.attempted.clone() }
    }
}

/// A deploy that has begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deploying {
    /// Its number.
    pub number: u64,
    /// What distinguishes it from all other deploys, also after the record was deleted.
    #[serde(default)]
    pub id: String,
    /// A hash of what is deployed: the same plan with the same files.
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
    /// What Jobwright owned of each object after it was applied, as a hash of its managed fields, by identity.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub owned: BTreeMap<String, String>,
    /// The Helm release that it was deployed as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helm_release: Option<String>,
    /// Whether it is deployed and its jobs have succeeded.
    #[serde(default)]
    pub complete: bool,
    /// Whether it was complete, or deployed by another client, before the deploy that has begun: an upgrade of it.
    #[serde(default)]
    pub installed: bool,
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
    /// The host.
    pub host: String,
    /// Where its processes can be seen: the boot and the PID namespace of the host; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The revision that was deployed before; 0 for none.
    pub revision: u64,
    /// When it must have ended.
    pub until: Timestamp,
    /// The label of the revisions that it creates; none where helm is too old for labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
}

/// The record of a release in its cluster. Clones share it.
#[derive(Clone)]
pub struct Records {
    client: Client,
    namespace: String,
    name: String,
    release: String,
    /// The lock under which it is written; none for those who only read.
    fence: Option<Fence>,
    retry: Retry,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    stored: Option<ConfigMap>,
    record: Record,
}

const KEY: &str = "record";
/// The newest format that is read, and the one that is written.
const FORMAT: u32 = 1;
const LABEL: &str = "jobwright.io/record";

impl Records {
    /// Reads the record of a release.
    pub async fn open(
        client: Client,
        namespace: &str,
        release: &str,
        fence: Option<Fence>,
        retry: Retry,
    ) -> Result<Self, Error> {
        let records = Self {
            client,
            namespace: namespace.to_owned(),
            // A ledger has three parts, so that no job can have the name of the record.
            name: record_name(release, &[namespace, release, "", "record"]),
            release: release.to_owned(),
            fence,
            retry,
            state: Arc::default(),
        };
        let mut state = records.read().await?;
        if state.stored.is_none() {
            state.record = records.read_former().await?;
        }
        records.check_fence(&state.record, Known::Nothing)?;
        *records.state.lock().await = state;
        Ok(records)
    }

    /// The record as it was read or written last.
    pub async fn get(&self) -> Record {
        self.state.lock().await.record.clone()
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn read(&self) -> Result<State, Error> {
        let stored = self.find(&self.name).await?;
        let record = stored.as_ref().map_or_else(|| Ok(Record::default()), |stored| self.parse(stored))?;
        Ok(State { stored, record })
    }

    /// The record under the name that it had before, which a ledger could have as well.
    async fn read_former(&self) -> Result<Record, Error> {
        let former = record_name(&self.release, &[&self.namespace, &self.release, "release"]);
        let found = self.find(&former).await?.filter(|stored| stored.labels().contains_key(LABEL));
        found.as_ref().map_or_else(|| Ok(Record::default()), |stored| self.parse(stored))
    }

    async fn find(&self, name: &str) -> Result<Option<ConfigMap>, Error> {
        let maps = self.maps();
        let doing = format!("read the record `{name}` of release `{}`", self.release);
        self.retry.call(&doing, || maps.get_opt(name)).await
    }

    fn parse(&self, stored: &ConfigMap) -> Result<Record, Error> {
        let text = stored.data.as_ref().and_then(|data| data.get(KEY)).map_or("", String::as_str);
        let unusable = |cause: serde_json::Error| {
            let doing = format!("read the record `{}` of release `{}`", stored.name_any(), self.release);
            Error::unusable(doing, cause)
        };
        let record: Record = serde_json::from_str(text).map_err(unusable)?;
        match record {
            Record { format: Some(format), .. } if format > FORMAT => Err(unusable(serde::de::Error::custom(format!(
                "it has format {format}, and this version reads formats up to {FORMAT}: use a newer jobwright"
            )))),
            // Each record has a holder of the lock that wrote it.
            Record { deploys: 0, fence: None, .. } => Err(unusable(serde::de::Error::custom(
                "it was emptied: restore the ConfigMap, or delete it to have everything deployed as new",
            ))),
            record => Ok(record),
        }
    }

    /// A record that another holder of the lock has written since is that holder's.
    fn check_fence(&self, written: &Record, known: Known<'_>) -> Result<(), Error> {
        if self.fence.as_ref().is_some_and(|ours| ours.is_broken_by(written.fence.as_ref(), known)) {
            return Err(Error::LostLease { name: self.name.clone() });
        }
        Ok(())
    }

    /// Changes the record by compare-and-swap.
    pub async fn change(&self, change: impl Fn(&mut Record) + Send) -> Result<Record, Failure> {
        Ok(self.write(change).await?)
    }

    pub(crate) async fn write(&self, change: impl Fn(&mut Record) + Send) -> Result<Record, Error> {
        let doing = format!("write the record `{}` of release `{}`", self.name, self.release);
        let mut state = self.state.lock().await;
        let mut outage = Outage::default();
        loop {
            let mut record = state.record.clone();
            change(&mut record);
            record.fence.clone_from(&self.fence);
            record.format = Some(FORMAT);
            if record == state.record && state.stored.is_some() {
                return Ok(record);
            }
            let written = match &state.stored {
                None => self.retry.attempt(self.maps().create(&parameters(), &self.object(&record))).await,
                Some(stored) => {
                    let mut changed = stored.clone();
                    changed.metadata.managed_fields = None;
                    changed.data = self.object(&record).data;
                    self.retry.attempt(self.maps().replace(&self.name, &parameters(), &changed)).await
                }
            };
            let error = match written {
                Ok(stored) => {
                    *state = State { stored: Some(stored), record: record.clone() };
                    return Ok(record);
                }
                Err(error) => error,
            };
            match classify(&error) {
                Answer::Refused | Answer::LostLease => return Err(Error::refused(doing, Refusal::from(error))),
                Answer::NotFound if state.stored.is_none() => return Err(Error::refused(doing, Refusal::from(error))),
                // Another client wrote, or the answer was lost: what is stored decides.
                Answer::NotFound | Answer::AlreadyExists | Answer::Conflict | Answer::TryAgain(_) => {
                    self.retry.pause(&mut outage, &doing, error).await?;
                }
            }
            let before = state.record.fence.clone();
            let read = self.read().await?;
            self.check_fence(&read.record, Known::Fence(before.as_ref()))?;
            *state = read;
        }
    }

    fn object(&self, record: &Record) -> ConfigMap {
        let text = serde_json::to_string(record).unwrap_or_default();
        serde_json::from_value(json!({
            "metadata": {"name": self.name, "labels": {
                "app.kubernetes.io/managed-by": "jobwright", "jobwright.io/release": self.release, LABEL: "1"}},
            "data": {KEY: text},
        }))
        .unwrap_or_default()
    }
}

fn parameters() -> PostParams {
    PostParams { field_manager: Some("jobwright".to_owned()), ..PostParams::default() }
}
