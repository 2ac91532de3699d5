//! What keeps a cluster going while nobody asks for anything.

use super::{Drydock, Shared};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use tokio::sync::Notify;

impl Drydock {
    /// Starts the driver, once: when the cluster is served, or with the first request, which is the first moment at which
    /// there is a runtime for sure to start it on.
    pub(crate) fn start_driver(&self) {
        if !self.shared.driven.swap(true, Ordering::AcqRel) {
            tokio::spawn(drive(Arc::downgrade(&self.shared), Arc::clone(&self.shared.changed)));
        }
    }
}

/// Wakes the cluster when something is due, until the last handle to it is gone.
async fn drive(shared: Weak<Shared>, changed: Arc<Notify>) {
    loop {
        let due = {
            let Some(shared) = shared.upgrade() else { return };
            let drydock = Drydock { shared };
            let mut cluster = drydock.lock();
            cluster.settle();
            cluster.next_due().map(|due| drydock.shared.clock.instant_of(due))
        };
        match due {
            None => changed.notified().await,
            Some(due) => tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                () = changed.notified() => {}
            },
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}
