//! A checkpoint in a ConfigMap, written by compare-and-swap.

use super::{Checkpoint, CheckpointError, CheckpointStore};
use jobwright_engine::{Refusal, async_trait};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::Mutex;

/// How much time there is between two writes: a cluster has others to serve.
const PACE: Duration = Duration::from_secs(5);
/// How often a write is tried that the cluster cannot take just now.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);
const KEY: &str = "checkpoint";

/// A checkpoint in a ConfigMap.
pub struct ConfigMapCheckpoint {
    maps: Api<ConfigMap>,
    name: String,
    /// The object as it was last seen.
    seen: Mutex<Option<ConfigMap>>,
}

impl ConfigMapCheckpoint {
    /// A checkpoint in this ConfigMap.
    pub fn new(client: &Client, namespace: &str, name: &str) -> Self {
        Self { maps: Api::namespaced(client.clone(), namespace), name: name.to_owned(), seen: Mutex::new(None) }
    }

    fn error(&self, doing: &'static str, problem: impl Into<String>) -> CheckpointError {
        CheckpointError { doing, place: format!("configmap:{}", self.name), problem: problem.into() }
    }

    async fn write(&self, seen: &mut Option<ConfigMap>, text: String) -> kube::Result<()> {
        let parameters = PostParams { field_manager: Some("jobwright".to_owned()), ..PostParams::default() };
        let mut map = seen.clone().unwrap_or_else(|| ConfigMap {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(BTreeMap::from([("jobwright.io/backfill".to_owned(), "1".to_owned())])),
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
        let found = self.maps.get_opt(&self.name).await;
        let found = found.map_err(|error| self.error("read", Refusal::from(error).to_string()))?;
        let checkpoint = found.as_ref().and_then(read);
        *self.seen.lock().await = found;
        Ok(checkpoint)
    }

    async fn save(&self, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
        let mut seen = self.seen.lock().await;
        let mut tried = 0;
        loop {
            tried += 1;
            let Err(error) = self.write(&mut seen, checkpoint.write()).await else { return Ok(()) };
            if !may_pass(&error) || tried == TRIES {
                return Err(self.error("write", Refusal::from(error).to_string()));
            }
            // A write may have come through though its answer was lost.
            if let Ok(found) = self.maps.get_opt(&self.name).await {
                let other = found.as_ref().and_then(read);
                if other.is_some_and(|other| other.run != checkpoint.run && !other.over && tried > 1) {
                    return Err(self.error("write", "another run has written it"));
                }
                *seen = found;
            }
            tokio::time::sleep(PAUSE * tried).await;
        }
    }

    fn pace(&self) -> Duration {
        PACE
    }
}

fn read(map: &ConfigMap) -> Option<Checkpoint> {
    Checkpoint::read(map.data.as_ref()?.get(KEY)?.as_bytes())
}

/// Whether the same write may succeed a moment later, perhaps on what is there by then.
fn may_pass(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => matches!(status.code, 409 | 429 | 500..=599),
        kube::Error::Service(_) | kube::Error::HyperError(_) => true,
        _ => false,
    }
}
