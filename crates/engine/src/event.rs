//! What happens, while it happens: for a terminal, a log or a test to follow.

use crate::component::Decision;
use crate::job::{Occasion, Phase, Scope};
use crate::ledger::Outcome;
use crate::report::{Action, JobReport};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Another process holds the lease, and this one waits for it.
    Busy {
        /// The holder of the lease.
        holder: String,
    },
    /// An API call keeps failing and is retried.
    Retrying {
        /// What the call does, on what.
        doing: String,
        /// What the API server answered.
        error: String,
    },
    /// What becomes of a component was decided.
    Decided {
        /// The component.
        component: String,
        /// What becomes of it, and why.
        decision: Decision,
    },
    /// The jobs of a phase begin.
    PhaseStarted {
        /// What they belong to.
        scope: Scope,
        /// Before or after.
        phase: Phase,
    },
    /// A job is looked at.
    JobConsidered {
        /// The job.
        job: String,
        /// What it belongs to.
        scope: Scope,
        /// Before or after.
        phase: Phase,
    },
    /// An attempt starts.
    AttemptStarted {
        /// The job.
        job: String,
        /// The number of the run.
        run: u64,
        /// The number of the attempt.
        attempt: u32,
        /// The Job in the cluster; empty for a job in code.
        name: String,
    },
    /// Something keeps an attempt from running, or what kept it is gone.
    Trouble {
        /// The job.
        job: String,
        /// What, in a line; none if it is gone.
        trouble: Option<String>,
    },
    /// A job waits for something else than itself.
    Waiting {
        /// The job.
        job: String,
        /// For what.
        what: &'static str,
    },
    /// A job says something.
    Log {
        /// The job.
        job: String,
        /// What it says.
        line: String,
    },
    /// An attempt ended.
    AttemptEnded {
        /// The job.
        job: String,
        /// The number of the attempt.
        attempt: u32,
        /// How it ended.
        outcome: Outcome,
        /// Why.
        reason: String,
        /// When there is a further one.
        retry_in: Option<Duration>,
        /// The end of its log.
        log: Option<String>,
    },
    /// A job has its verdict.
    JobDone(JobReport),
    /// A component is being deployed.
    Deploying {
        /// The component.
        component: String,
        /// Whether it is new.
        occasion: Occasion,
    },
    /// A component says something.
    Progress {
        /// The component.
        component: String,
        /// What it says.
        line: String,
    },
    /// A component has its verdict.
    ComponentDone {
        /// The component.
        component: String,
        /// What became of it.
        action: Action,
        /// Why.
        reason: String,
        /// How long it took.
        took: Duration,
    },
    /// The deploy was cancelled.
    Cancelled,
}

/// Where events go. Clones send to the same place.
#[derive(Clone, Default)]
pub struct Events(Option<Arc<dyn Fn(Event) + Send + Sync>>);

impl Events {
    /// Events, and the end to follow them from.
    pub fn channel() -> (Self, mpsc::UnboundedReceiver<Event>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        // A follower may have ended; the work continues.
        (Self::to(move |event| drop(sender.send(event))), receiver)
    }

    /// Calls this for every event. It must not block.
    pub fn to(hear: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hear)))
    }

    /// Drops every event.
    pub fn nowhere() -> Self {
        Self(None)
    }

    /// Sends an event.
    pub fn send(&self, event: Event) {
        if let Some(hear) = &self.0 {
            hear(event);
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "Events" } else { "Events::nowhere" })
    }
}
