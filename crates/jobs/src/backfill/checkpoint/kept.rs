//! A checkpoint, and which cluster it is used for: what was written about another one is not resumed.

use super::{Checkpoint, CheckpointError, CheckpointStore};
use crate::backfill::{Error, Note, Surroundings};
use jobwright_engine::{Answer, Retry, bounded, classify};
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::Api;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The namespace whose uid identifies a cluster: it is created with the cluster and cannot be deleted.
pub(crate) const IDENTITY: &str = "kube-system";
/// How long the cluster may take to identify itself.
const LIMIT: Duration = Duration::from_mins(1);

/// A checkpoint, and the cluster that is captured.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) store: Arc<dyn CheckpointStore>,
    /// Its uid; none if it may not be read.
    pub(crate) cluster: Option<String>,
}

impl Kept {
    /// Asks which cluster it is. Without an answer, a checkpoint outside of the cluster is not resumed, and the listener
    /// hears so.
    pub(crate) async fn open(store: Arc<dyn CheckpointStore>, surroundings: &Surroundings) -> Result<Self, Error> {
        let retry = surroundings.retry(&CancellationToken::new()).within(LIMIT);
        let cluster = identify(&surroundings.client, &retry).await?;
        if cluster.is_none() && !store.is_in_cluster() {
            surroundings.listener.tell(Note::Unidentified);
        }
        Ok(Self { store, cluster })
    }

    /// What was written down. That a run was complete counts only for its own cluster.
    pub(crate) async fn load(&self) -> Result<Option<Checkpoint>, CheckpointError> {
        let mut found = self.store.load().await?;
        if let Some(found) = found.as_mut().filter(|found| !self.is_about(found)) {
            found.completed = None;
        }
        Ok(found)
    }

    /// Whether a checkpoint was written by a run on this cluster.
    pub(crate) fn is_about(&self, found: &Checkpoint) -> bool {
        found.cluster == self.cluster && (self.cluster.is_some() || self.store.is_in_cluster())
    }
}

/// The uid of a cluster; none if it may not be read.
async fn identify(client: &Client, retry: &Retry) -> Result<Option<String>, Error> {
    let namespaces = Api::<Namespace>::all(bounded(client));
    let doing = format!("read namespace `{IDENTITY}`, which identifies the cluster");
    let answer = retry.answer(&doing, || namespaces.get_metadata(IDENTITY)).await;
    match answer.map_err(|error| Error::Identity(error.whole_message()))? {
        Ok(found) => Ok(found.metadata.uid.filter(|uid| !uid.is_empty())),
        Err(error) if matches!(classify(&error), Answer::Refused | Answer::NotFound) => Ok(None),
        Err(error) => Err(Error::Identity(format!("cannot {doing}: {}", jobwright_engine::Refusal::from(error)))),
    }
}
