//! How a run stops. Told to, it has some time to send what was read and to save its progress. Without its lock it has none:
//! another process may be working already.

use super::Error;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long batches that are on their way may take when a run is told to stop.
const BATCHES: Duration = Duration::from_secs(15);
/// How long a first or last step may take then. Together this is less than a pod has.
const STEP: Duration = Duration::from_secs(5);

/// What stops a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop {
    /// It was told to stop.
    asked: CancellationToken,
    /// Its lock was lost.
    lost: CancellationToken,
}

impl Stop {
    pub(crate) fn new(asked: CancellationToken, lost: CancellationToken) -> Self {
        Self { asked, lost }
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.asked.is_cancelled()
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    /// Does what comes before anything is sent.
    pub(crate) async fn begin<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        self.end(work).await.unwrap_or(Err(Error::Cancelled))
    }

    /// Does a last step; none if there was no time for it.
    pub(crate) async fn end<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.lost.cancelled() => None,
            done = work => Some(done),
            () = self.late(STEP) => None,
        }
    }

    /// Cancels `no_pages` as soon as the run has to stop, and `no_batches` when the time for batches has passed.
    pub(crate) async fn pass_on(self, no_pages: CancellationToken, no_batches: CancellationToken) {
        tokio::select! {
            () = self.lost.cancelled() => {}
            () = async { self.asked.cancelled().await; no_pages.cancel(); tokio::time::sleep(BATCHES).await } => {}
        }
        no_pages.cancel();
        no_batches.cancel();
    }

    async fn late(&self, after: Duration) {
        self.asked.cancelled().await;
        tokio::time::sleep(after).await;
    }
}
