//! A witness of one namespace: it watches the Pods and Jobs from the beginning and forgets no container that ran.
//!
//! Helm and the state reads look at the API now and then; a Pod may come and go between two looks. The witness follows
//! every change in order, so that it knows each container that was ever started, by its id.

mod seen;
mod watch;

use crate::clock;
use crate::error::Error;
use crate::kubectl::Kubectl;
use crate::object::Object;
use seen::Seen;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use watch::Watch;

/// How long the witness may lag behind a state read.
const LAG: Duration = Duration::from_secs(3);

/// What the watches share with whoever asks.
#[derive(Debug, Default)]
pub(crate) struct Board {
    seen: Mutex<Seen>,
    changed: Condvar,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits until what was seen is as asked for; says whether it came to be in time.
    fn wait(&self, limit: Duration, condition: impl Fn(&Seen) -> bool) -> bool {
        let start = clock::now();
        let mut seen = self.lock();
        loop {
            if condition(&seen) {
                return true;
            }
            let Some(left) = limit.checked_sub(start.elapsed()) else { return false };
            seen = self.changed.wait_timeout(seen, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Watches a namespace until it is dropped.
#[derive(Debug)]
pub(crate) struct Witness {
    board: Arc<Board>,
    _watches: [Watch; 2],
}

impl Witness {
    /// Starts to watch a namespace in which nothing has happened yet.
    pub(crate) fn new(kubectl: &Kubectl) -> Result<Self, Error> {
        let board = Arc::new(Board::default());
        let pods = format!("/api/v1/namespaces/{}/pods", kubectl.namespace());
        let jobs = format!("/apis/batch/v1/namespaces/{}/jobs", kubectl.namespace());
        let watches = [
            Watch::start(kubectl.clone(), pods, board.clone(), Seen::pod)?,
            Watch::start(kubectl.clone(), jobs, board.clone(), Seen::job)?,
        ];
        Ok(Self { board, _watches: watches })
    }

    /// Waits until no Job is known that will change by itself; says whether it came to that in time.
    pub(crate) fn wait_for_rest(&self, limit: Duration) -> bool {
        self.board.wait(limit, Seen::jobs_at_rest)
    }

    /// The containers that were started so far, by Job, Pod or Deployment, counting those of these Pods too.
    pub(crate) fn runs(&self, pods: &[&Object]) -> String {
        self.catch_up(pods).runs()
    }

    /// How many containers of a Job were started so far, counting those of these Pods too.
    pub(crate) fn runs_of(&self, job: &str, pods: &[&Object]) -> usize {
        self.catch_up(pods).runs_of(job)
    }

    /// The same of all Jobs whose names start so.
    pub(crate) fn runs_like(&self, start: &str, pods: &[&Object]) -> usize {
        self.catch_up(pods).runs_like(start)
    }

    fn catch_up(&self, pods: &[&Object]) -> MutexGuard<'_, Seen> {
        // A witness that lags for longer is behind a broken watch; the Pods that were read count all the same.
        self.board.wait(LAG, |seen| seen.has_caught_up(pods));
        let mut seen = self.board.lock();
        for pod in pods {
            seen.count(pod);
        }
        seen
    }
}
