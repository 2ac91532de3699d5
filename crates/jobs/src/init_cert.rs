//! `init-cert`: the certificate by which the Kubernetes API reaches a webhook.
//!
//! A pair in a Secret that the server mounts, a CA in a Secret that nobody mounts, and everybody who calls the webhook
//! trusts the CA: webhook configurations, conversion webhooks, APIServices. [`init_cert`] looks at what is there, says
//! what is wrong with it, and makes what is missing; a pair that is good is kept.
//!
//! ```
//! use jobwright_engine::Clock;
//! use jobwright_jobs::init_cert::{Action, Dialling, Options, Surroundings, check, init_cert};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let drydock = jobwright_drydock::Drydock::new();
//! let client = kube::Client::new(drydock.clone(), "default");
//! let clock = Clock::new(move || drydock.now());
//! let around = Surroundings::new(client, clock, Dialling::Not("nobody serves in this example".into()));
//! let options = Options::new("default", "hook", "hook-tls");
//!
//! let report = init_cert(&around, &options).await?;
//! assert_eq!((report.action, report.reason.as_str()), (Action::Created, "there is no Secret `hook-tls`"));
//! assert!(report.days_left() >= Some(364));
//!
//! let again = init_cert(&around, &options).await?;
//! assert_eq!(again.action, Action::Kept);
//! assert!(check(&around, &options).await?.is_good());
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(example()).unwrap();
//! ```
//!
//! # What is promised
//!
//! At no moment does a bundle lack the CA of a pair that is being served, however often it is rotated, wherever a run is
//! interrupted, and whoever else runs at the same time. Nothing is remembered but what is in the cluster, and every write
//! is one over exactly what was read.
//!
//! # The order of a rotation
//!
//! 1. The CA's Secret gets the new CA, and keeps the certificate of the old one.
//! 2. Every bundle trusts the new CA besides what it has trusted.
//! 3. All API servers have had the time to see that.
//! 4. The Secret gets the new pair, and the mark that it is unfinished.
//! 5. Deployments that may have loaded the pair before are restarted, and no pod of before is left.
//! 6. Every server shows the new pair in a handshake that trusts the new CA alone.
//! 7. Bundles trust the new CA alone; the mark and the old CA go.
//!
//! A certificate that is renewed keeps its CA, so that only 4 to 6 happen.

mod certificate;
mod chain;
mod check;
mod decide;
mod dial;
mod error;
mod force;
mod handshake;
mod inspect;
mod issue;
mod job;
mod key;
mod objects;
mod observe;
mod options;
mod permissions;
mod report;
mod rollout;
mod rotate;
mod secrets;
mod servers;
mod target;
#[cfg(test)]
mod tests;

pub use check::check;
pub use dial::{Dialler, Dialling, Direct, Peer, PortForward, Stream};
pub use error::Error;
pub use job::InitCert;
pub use options::{Options, RenewBefore, Stage, Targets};
pub use permissions::permissions;
pub use report::{Action, Report, TargetReport, metrics};

use force::Prepared;
use jobwright_engine::{Claim, Clock, Event, Events, Lease, Retry, bounded, record_name};
use kube::Client;
use rotate::Rotation;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What a run works with.
#[derive(Clone)]
pub struct Surroundings {
    /// The cluster.
    pub client: Client,
    /// Its time.
    pub clock: Clock,
    /// How servers are asked what they show.
    pub dialling: Dialling,
    /// Who runs it: a text that nobody else has. One at a time is at a certificate; without a name nobody waits.
    pub holder: Option<String>,
    /// Hears what happens.
    pub tell: Arc<dyn Fn(&str) + Send + Sync>,
    /// Ends it.
    pub cancellation: CancellationToken,
}

impl Surroundings {
    /// A run that waits for nobody and tells nobody.
    pub fn new(client: Client, clock: Clock, dialling: Dialling) -> Self {
        let tell = Arc::new(|_: &str| ());
        Self { client, clock, dialling, holder: None, tell, cancellation: CancellationToken::new() }
    }

    /// Retries API calls up to the engine's limit, and reports outages.
    fn retry(&self) -> Retry {
        Retry::new(self.clock.clone(), self.cancellation.clone(), self.events())
    }

    /// Where the engine reports what a run waits for.
    fn events(&self) -> Events {
        let tell = Arc::clone(&self.tell);
        Events::to(move |event| match event {
            Event::Busy { holder } => tell(&format!("`{holder}` is at the same certificate: waiting for it")),
            Event::Retrying { doing, error } => tell(&format!("cannot {doing}: {error}; retrying")),
            _ => {}
        })
    }

    /// The same, with a deadline for every call.
    fn bounded(&self) -> Self {
        Self { client: bounded(&self.client), ..self.clone() }
    }
}

/// Sees to a certificate: keeps it, makes it, or renews it, and brings it where it belongs.
pub async fn init_cert(around: &Surroundings, options: &Options) -> Result<Report, Error> {
    options.check()?;
    let around = &around.bounded();
    let started = around.clock.now();
    let prepared = tokio::select! {
        prepared = tokio::time::timeout(options.timeout, force::prepare(around, options, true)) => prepared,
        () = around.cancellation.cancelled() => return Err(Error::Cancelled),
    };
    let late = |_| Error::TimedOut { waiting_for: "the cluster does not answer".to_owned(), limit: options.timeout };
    let (memory, options) = match prepared.map_err(late)?? {
        Prepared::Needless(report) => return Ok(*report),
        Prepared::Wanted(noticed) => (noticed.unsaved, options.clone()),
        Prepared::Wiped => (None, options.for_bundles()),
    };
    let options = &options;
    let lease = match &around.holder {
        Some(holder) => Some(take_lease(around, options, holder).await?),
        None => None,
    };
    let waited: Duration = around.clock.now().duration_since(started).try_into().unwrap_or_default();
    let waiting_for = Mutex::new("it does not get on".to_owned());
    let rotation = Box::pin(Rotation::new(around, options, &waiting_for).remembering(memory).run());
    let result = tokio::select! {
        result = tokio::time::timeout(options.timeout.saturating_sub(waited), rotation) => result.unwrap_or_else(|_| {
            let waiting_for = waiting_for.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Err(Error::TimedOut { waiting_for, limit: options.timeout })
        }),
        () = lost(lease.as_ref()) => Err(Error::LostLease { name: lease_name(options) }),
        () = around.cancellation.cancelled() => Err(Error::Cancelled),
    };
    if let Some(lease) = lease {
        lease.release().await;
    }
    result
}

/// The Lease that keeps two runs from being at the same certificate.
fn lease_name(options: &Options) -> String {
    let own = || record_name(&options.secret, &[&options.namespace, &options.secret, "init-cert"]);
    options.lock.clone().unwrap_or_else(own)
}

async fn lost(lease: Option<&Lease>) {
    match lease {
        Some(lease) => lease.lost().await,
        None => std::future::pending().await,
    }
}

async fn take_lease(around: &Surroundings, options: &Options, holder: &str) -> Result<Lease, Error> {
    let claim = Claim {
        namespace: options.namespace.clone(),
        name: lease_name(options),
        holder: holder.to_owned(),
        labels: BTreeMap::from([("app.kubernetes.io/managed-by".to_owned(), "jobwright".to_owned())]),
        patience: options.timeout,
    };
    let events = around.events();
    tokio::select! {
        taken = Lease::take(&around.client, claim, &around.clock, &events) => Ok(taken?),
        () = around.cancellation.cancelled() => Err(Error::Cancelled),
    }
}
