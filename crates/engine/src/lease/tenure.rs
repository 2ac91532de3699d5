//! How long a lease is held: what every call and every piece of work asks before it goes on.

use super::VALIDITY;
use crate::call::Lost;
use crate::clock::Clock;
use crate::ledger::later;
use jiff::Timestamp;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Instant;

/// Whether a lease is still held. Clones ask the same lease.
#[derive(Clone)]
pub struct Tenure {
    name: Arc<str>,
    clock: Clock,
    until: watch::Receiver<Until>,
}

/// The end of a tenure, on two clocks: one of them stands still while a machine sleeps, the other may be set.
#[derive(Clone, Copy)]
struct Until {
    instant: Instant,
    time: Timestamp,
    is_lost: bool,
}

/// The side that prolongs a tenure or ends it.
pub(super) struct Term {
    pub(super) clock: Clock,
    until: watch::Sender<Until>,
}

impl Tenure {
    /// Begins a tenure with a call that was sent at this time.
    pub(super) fn begin(name: &str, clock: &Clock, instant: Instant, time: Timestamp) -> (Self, Term) {
        let (sender, until) = watch::channel(Until::after(instant, time));
        let tenure = Self { name: name.into(), clock: clock.clone(), until };
        (tenure, Term { clock: clock.clone(), until: sender })
    }

    /// Whether work may go on.
    pub fn is_valid(&self) -> bool {
        let until = *self.until.borrow();
        self.is_within(until)
    }

    fn is_within(&self, until: Until) -> bool {
        !until.is_lost && Instant::now() < until.instant && self.clock.now() < until.time
    }

    /// Waits until the lease is lost; indefinitely if it is released before. It counts as lost at the end of its tenure,
    /// whether or not the task that renews it has come to notice: a process that was frozen wakes up in any order.
    pub async fn lost(&self) {
        let mut receiver = self.until.clone();
        loop {
            let until = *receiver.borrow_and_update();
            if !self.is_within(until) {
                return;
            }
            tokio::select! {
                changed = receiver.changed() => if changed.is_err() {
                    // Nothing renews it any more: it was lost, or released.
                    if !receiver.borrow().is_lost {
                        std::future::pending::<()>().await;
                    }
                },
                () = tokio::time::sleep_until(until.instant) => {}
            }
        }
    }

    pub(crate) fn lost_error(&self) -> Lost {
        Lost { name: self.name.as_ref().to_owned() }
    }
}

impl Term {
    /// When the tenure ends unless it is prolonged.
    pub(super) fn end(&self) -> Instant {
        self.until.borrow().instant
    }

    /// Whether it has ended by the clock that is not tokio's.
    pub(super) fn is_over(&self) -> bool {
        self.until.borrow().time <= self.clock.now()
    }

    /// Prolongs the tenure with a renewal that was sent at this time.
    pub(super) fn prolong(&self, instant: Instant, time: Timestamp) {
        self.until.send_replace(Until::after(instant, time));
    }

    pub(super) fn lose(&self) {
        self.until.send_modify(|until| until.is_lost = true);
    }
}

impl Until {
    fn after(instant: Instant, time: Timestamp) -> Self {
        Self { instant: instant + VALIDITY, time: later(time, VALIDITY), is_lost: false }
    }
}
