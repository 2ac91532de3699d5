//! What time it is. The program that uses the engine brings the clock; waiting is tokio's.

use jiff::Timestamp;
use std::sync::Arc;

/// A clock. Clones show the same time.
///
/// The engine compares it with times that the API server and other processes have written, so it has to show the cluster's
/// time, within a few seconds. `jobwright` corrects the clock of its machine by the `Date` header of the first answer.
/// Nothing depends on it that must not happen twice: the lease is judged by watching it, and waits are tokio's.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock that shows what `now` says.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// What it shows.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }

    /// Waits until the clock shows a time; for ever if there is none.
    pub(crate) async fn wait_until(&self, time: Option<Timestamp>) {
        match time {
            None => std::future::pending().await,
            Some(time) => {
                let wait = time.duration_since(self.now()).try_into().unwrap_or_default();
                // A timer may be a little early, and a clock that does not move must not make a tight loop.
                tokio::time::sleep(std::time::Duration::max(wait, std::time::Duration::from_millis(1))).await;
            }
        }
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Clock").field(&self.now()).finish()
    }
}
