//! What is deployed: a component knows whether it has to be, and how.

use crate::clock::Clock;
use crate::context::{Release, Watchdog};
use crate::event::{Event, Events};
use crate::job::{Failure, Occasion};
use crate::lease::Tenure;
use crate::mask::Mask;
use crate::retry::Retry;
use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// One deployable thing.
#[async_trait]
pub trait Component: Send + Sync {
    /// What it is called; `global` is taken.
    fn name(&self) -> &str;

    /// Components that have to be deployed before it.
    fn depends_on(&self) -> Vec<String> {
        Vec::new()
    }

    /// What its jobs in code may want to know.
    fn configuration(&self) -> Value {
        Value::Null
    }

    /// Whether it has to be installed or upgraded. Asked of all components before anything is changed.
    async fn decide(&self, context: &DeployContext) -> Result<Decision, Failure>;

    /// Fails where its deploy would fail before it changes anything. Only a preview asks, and nothing may be changed for the
    /// answer.
    async fn foresee(&self, _context: &DeployContext) -> Result<(), Failure> {
        Ok(())
    }

    /// Installs or upgrades it, and waits until it is there.
    async fn deploy(&self, context: &DeployContext, occasion: Occasion) -> Result<(), Failure>;

    /// It is deployed, and all its jobs are through. A component that records this has to record what it owes as well
    /// ([`DeployContext::owed`]), in the same write: the next deploy may find it unchanged.
    async fn complete(&self, _context: &DeployContext) -> Result<(), Failure> {
        Ok(())
    }
}

/// What becomes of a component, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is new.
    Install(String),
    /// It has changed.
    Upgrade(String),
    /// It is no longer wanted.
    Remove(String),
    /// It is as it should be.
    Unchanged(String),
}

impl Decision {
    /// Whether it is installed or upgraded.
    pub fn occasion(&self) -> Option<Occasion> {
        match self {
            Self::Install(_) => Some(Occasion::Install),
            Self::Upgrade(_) | Self::Remove(_) => Some(Occasion::Upgrade),
            Self::Unchanged(_) => None,
        }
    }

    /// Why.
    pub fn reason(&self) -> &str {
        let (Self::Install(reason) | Self::Upgrade(reason) | Self::Remove(reason) | Self::Unchanged(reason)) = self;
        reason
    }
}

/// What a component gets to work with.
#[derive(Clone)]
pub struct DeployContext {
    pub(crate) client: kube::Client,
    pub(crate) release: Arc<Release>,
    pub(crate) component: String,
    pub(crate) cancellation: CancellationToken,
    pub(crate) tenure: Option<Tenure>,
    pub(crate) clock: Clock,
    pub(crate) events: Events,
    pub(crate) mask: Mask,
    pub(crate) watchdog: Option<Watchdog>,
    pub(crate) owed: BTreeMap<String, Occasion>,
    pub(crate) retry: Retry,
}

impl DeployContext {
    /// The cluster. Each call has a deadline, and none is sent once the lease is lost.
    pub fn client(&self) -> &kube::Client {
        &self.client
    }

    /// The release that is being deployed.
    pub fn release(&self) -> &Release {
        &self.release
    }

    /// Is cancelled when the deploy is.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// What ends the programs that a component starts if this process is killed or stopped.
    pub fn watchdog(&self) -> Option<&Watchdog> {
        self.watchdog.as_ref()
    }

    /// Waits until the lease is lost: whatever a component has started outside of this process has to end within
    /// seconds, before another process may start.
    pub async fn lost(&self) {
        match &self.tenure {
            Some(tenure) => tenure.lost().await,
            None => std::future::pending().await,
        }
    }

    /// Retries API calls until the retry limit or shortly after a cancellation.
    pub fn retry(&self) -> Retry {
        self.retry.clone()
    }

    /// Values that are hidden in what the component reports.
    pub fn mask(&self) -> &Mask {
        &self.mask
    }

    /// Jobs of the component that are due and were skipped on request, once its jobs are through.
    pub fn owed(&self) -> &BTreeMap<String, Occasion> {
        &self.owed
    }

    /// What time it is.
    pub fn now(&self) -> jiff::Timestamp {
        self.clock.now()
    }

    /// Tells whoever follows how it is going.
    pub fn progress(&self, line: impl Into<String>) {
        let line = self.mask.apply(&line.into());
        self.events.send(Event::Progress { component: self.component.clone(), line });
    }
}
