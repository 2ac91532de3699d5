//! A checkpoint in a ConfigMap, written by compare-and-swap.

use super::{Checkpoint, CheckpointError, CheckpointStore};
use jobwright_engine::{Answer, Outage, Refusal, Retry, async_trait, bounded, classify};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::Mutex;

/// How much time there is between two writes: a cluster has others to serve.
const PACE: Duration = Duration::from_secs(5);
/// How long a call is retried: batches wait for it.
const RETRIED: Duration = Duration::from_secs(30);
const KEY: &str = "checkpoint";
/// On every checkpoint.
pub(crate) const LABEL: (&str, &str) = ("jobwright.io/backfill", "1");

/// A checkpoint in a ConfigMap.
pub struct ConfigMapCheckpoint {
    maps: Api<ConfigMap>,
    name: String,
    retry: Retry,
    /// The object as it was last seen.
    seen: Mutex<Option<ConfigMap>>,
}

impl ConfigMapCheckpoint {
    /// A checkpoint in this ConfigMap. Calls are retried for at most 30 s, because batches wait for them.
    pub fn new(client: &Client, namespace: &str, name: &str, retry: Retry) -> Self {
        let maps = Api::namespaced(bounded(client), namespace);
        Self { maps, name: name.to_owned(), retry: retry.within(RETRIED), seen: Mutex::new(None) }
    }

    fn error(&self, doing: &'static str, problem: impl Into<String>) -> CheckpointError {
        CheckpointError { doing, place: format!("configmap:{}", self.name), problem: problem.into() }
    }

    async fn write(&self, seen: &mut Option<ConfigMap>, text: String) -> kube::Result<()> {
        let parameters = PostParams { field_manager: Some("jobwright".to_owned()), ..PostParams::default() };
        let mut map = seen.clone().unwrap_or_else(|| ConfigMap {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(BTreeMap::from([(LABEL.0.to_owned(), LABEL.1.to_owned())])),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        });
        map.data.get_or_insert_default().insert(KEY.to_owned(), text);
        let written = match seen {
            Some(_) => self.maps.replace(&self.name, &parameters, &map).await,
            None => self.maps.create(&parameters, &map).await,
        };
        *seen = Some(written?);
        Ok(())
    }
}

#[async_trait]
impl CheckpointStore for ConfigMapCheckpoint {
    async fn load(&self) -> Result<Option<Checkpoint>, CheckpointError> {
        let doing = format!("read the checkpoint `{}`", self.name);
        let found = self.retry.call(&doing, || self.maps.get_opt(&self.name)).await;
        let found = found.map_err(|error| self.error("read", error.whole_message()))?;
        let checkpoint = found.as_ref().and_then(read);
        *self.seen.lock().await = found;
        Ok(checkpoint)
    }

    async fn save(&self, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
        let mut seen = self.seen.lock().await;
        let mut outage = Outage::default();
        let mut is_repeated = false;
        loop {
            let Err(error) = self.write(&mut seen, checkpoint.write()).await else { return Ok(()) };
            if !may_pass(&error, seen.is_some()) {
                return Err(self.error("write", Refusal::from(error).to_string()));
            }
            // A write may have come through though its answer was lost.
            if let Ok(found) = self.maps.get_opt(&self.name).await {
                let other = found.as_ref().and_then(read);
                if other.is_some_and(|other| other.run != checkpoint.run && !other.over && is_repeated) {
                    return Err(self.error("write", "another run has written it"));
                }
                *seen = found;
            }
            is_repeated = true;
            let doing = format!("write the checkpoint `{}`", self.name);
            let paused = self.retry.pause(&mut outage, &doing, error).await;
            paused.map_err(|error| self.error("write", error.whole_message()))?;
        }
    }

    fn is_in_cluster(&self) -> bool {
        true
    }

    fn pace(&self) -> Duration {
        PACE
    }
}

fn read(map: &ConfigMap) -> Option<Checkpoint> {
    Checkpoint::read(map.data.as_ref()?.get(KEY)?.as_bytes())
}

/// Whether the same write may succeed a moment later, perhaps over another object.
fn may_pass(error: &kube::Error, was_there: bool) -> bool {
    match classify(error) {
        Answer::Conflict | Answer::AlreadyExists | Answer::TryAgain(_) => true,
        // It was deleted, and can be created again; otherwise there is no namespace for it.
        Answer::NotFound => was_there,
        Answer::Refused | Answer::LostLease => false,
    }
}
