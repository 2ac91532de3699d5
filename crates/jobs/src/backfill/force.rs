//! Finds out whether a forced deploy asks for another backfill.

use super::checkpoint::{Checkpoint, LABEL};
use super::note::Note;
use super::task::{CheckpointPlace, Task};
use super::{Backfill, Error, Once, Surroundings};
use crate::mark::{Cluster, Marking};
use tokio_util::sync::CancellationToken;

impl Task {
    /// The backfill, with the last forced deploy that it has to come after. Marks the ConfigMap of the release, if there
    /// is one. It needs no lock, so that a run that has nothing to do does not wait for another.
    pub(super) async fn after_forced_deploys(
        &self,
        surroundings: &Surroundings,
        namespace: &str,
        cancellation: &CancellationToken,
    ) -> Result<Backfill, Error> {
        let mut backfill = self.backfill.clone();
        let (Some(mark), Some(once)) = (&self.mark, &mut backfill.once) else { return Ok(backfill) };
        let Some(CheckpointPlace::ConfigMap(name)) = &self.checkpoint else { return Ok(backfill) };
        let retry = surroundings.retry(cancellation);
        let cluster = Cluster { client: &surroundings.client, clock: &surroundings.clock, retry };
        let marking = Marking::of_backfill(cluster, namespace, mark, (name, LABEL));
        let noticed = tokio::select! {
            noticed = marking.notice() => noticed?,
            () = cancellation.cancelled() => return Err(Error::Cancelled),
        };
        if !noticed.is_tracked {
            surroundings.listener.tell(Note::Untracked { config_map: mark.config_map.clone() });
        }
        once.forced = noticed.forced;
        Ok(backfill)
    }
}

/// Whether no complete run has answered the last forced deploy.
pub(super) fn is_owed(found: Option<&Checkpoint>, once: &Once) -> bool {
    let answered = found.and_then(|found| found.completed.as_ref()).and_then(|completed| completed.forced);
    answered < once.forced
}
