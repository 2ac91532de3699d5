//! The lease: one process works on a release at a time.
//!
//! Three times keep two processes apart, whatever their clocks say. A holder renews the lease every [`RENEWAL`]. It stops
//! its own work [`VALIDITY`] after its last successful renewal *began*. Another process takes the lease over only after it
//! has watched the Lease for [`DURATION`] without seeing it change, which is longer. What the holder writes carries its
//! [`Fence`], so that a process that was frozen meanwhile cannot write any more.

mod renewal;
mod tenure;

pub use tenure::Tenure;

use crate::call;
use crate::clock::Clock;
use crate::error::{Answer, Error, classify};
use crate::event::{Event, Events};
use crate::fence::Fence;
use crate::names::FIELD_MANAGER;
use crate::retry::{Outage, Retry};
use jiff::{Timestamp, Unit};
use k8s_openapi::api::coordination::v1::{Lease as Object, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Client;
use kube::api::{Api, PostParams};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a Lease has to stay unchanged before another process takes it over.
pub const DURATION: Duration = Duration::from_secs(15);
/// How long after the beginning of its last renewal a holder works on. The rest is for stopping.
pub(crate) const VALIDITY: Duration = Duration::from_secs(10);
/// How often a holder renews its lease.
const RENEWAL: Duration = Duration::from_secs(3);
/// How often a waiting process reads the Lease.
const POLL: Duration = Duration::from_secs(2);
/// How long a release of the lease may take.
const RELEASE: Duration = Duration::from_secs(1);

/// The lease that a process wants.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The namespace.
    pub namespace: String,
    /// The Lease.
    pub name: String,
    /// The name of this process, for people. Two processes may have the same.
    pub holder: String,
    /// The labels of the Lease.
    pub labels: BTreeMap<String, String>,
    /// How long to wait for another holder.
    pub patience: Duration,
}

/// A lease that is held: renewed until it is released, dropped or lost.
pub struct Lease {
    fence: Fence,
    is_new: bool,
    tenure: Tenure,
    held: renewal::Held,
}

impl Lease {
    /// Acquires the lease, waiting up to `claim.patience` while another holder renews it; then fails with
    /// [`Error::Busy`]. Calls that keep failing, also with a conflict, are retried up to
    /// [`RETRY_LIMIT`](crate::RETRY_LIMIT).
    pub async fn take(client: &Client, claim: Claim, clock: &Clock, events: &Events) -> Result<Self, Error> {
        let leases = Api::<Object>::namespaced(call::bounded(client), &claim.namespace);
        let retry = Retry::new(clock.clone(), CancellationToken::new(), events.clone());
        let doing = format!("take the lease `{}`", claim.name);
        let begun = Instant::now();
        let mut outage = Outage::default();
        let mut watched = None;
        let mut reported = String::new();
        loop {
            let (asked, now) = (Instant::now(), clock.now());
            match attempt(&leases, &claim, now, &mut watched).await {
                Ok(Attempt::Taken { object, is_new }) => {
                    let fence = fence_of(&object);
                    let (tenure, term) = Tenure::begin(&claim.name, clock, asked, now);
                    let held = renewal::Held::start(leases, *object, claim.holder, term);
                    return Ok(Self { fence, is_new, tenure, held });
                }
                Ok(Attempt::Held { by }) => {
                    outage = Outage::default();
                    let left = claim.patience.saturating_sub(begun.elapsed());
                    if left.is_zero() {
                        return Err(Error::Busy { holder: by, waited: claim.patience });
                    }
                    if reported != by {
                        events.send(Event::Busy { holder: by.clone() });
                        reported = by;
                    }
                    tokio::time::sleep(POLL.min(left)).await;
                }
                // Another process was quicker, if it is a conflict. One that lasts is an outage like any other.
                Err(error) => match classify(&error) {
                    Answer::TryAgain(_) | Answer::Conflict | Answer::AlreadyExists => {
                        retry.pause(&mut outage, &doing, error).await?;
                    }
                    Answer::NotFound | Answer::Refused | Answer::LostLease => {
                        return Err(Error::cluster(doing, error));
                    }
                },
            }
        }
    }

    /// What distinguishes this holder from all others.
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// Whether the Lease did not exist before.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// How long the lease is held, for whatever depends on it.
    pub fn tenure(&self) -> &Tenure {
        &self.tenure
    }

    /// Waits until the lease is lost; indefinitely if it is not.
    pub async fn lost(&self) {
        self.tenure.lost().await;
    }

    /// Releases the lease, so that the next process need not wait.
    pub async fn release(self) {
        // If that fails, it expires.
        let _ = tokio::time::timeout(RELEASE, self.held.release()).await;
    }
}

/// The holder of a lease, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The name of the process.
    pub name: String,
    /// When it acquired the lease, by its own clock.
    pub since: Option<Timestamp>,
    /// When it renewed the lease last, by its own clock.
    pub renewed: Option<Timestamp>,
}

/// The process that holds a lease.
pub async fn read_holder(client: &Client, namespace: &str, name: &str, retry: &Retry) -> Result<Option<Holder>, Error> {
    let leases = Api::<Object>::namespaced(call::bounded(client), namespace);
    let found = retry.call(&format!("read the lease `{name}`"), || leases.get_opt(name)).await?;
    Ok(found.as_ref().and_then(holder_of))
}

/// Takes the lease away from its holder, which stops within 10 s. The next process starts after 15 s.
pub async fn break_lease(
    client: &Client,
    namespace: &str,
    name: &str,
    breaker: &str,
    retry: &Retry,
) -> Result<Option<Holder>, Error> {
    let leases = Api::<Object>::namespaced(call::bounded(client), namespace);
    let doing = format!("break the lease `{name}`");
    let attempt = || async {
        let Some(mut object) = leases.get_opt(name).await? else { return Ok(None) };
        let Some(holder) = holder_of(&object) else { return Ok(None) };
        let epoch = fence_of(&object).epoch + 1;
        if let Some(spec) = &mut object.spec {
            // Not empty: the old holder may still be working, so the next one has to watch the Lease first.
            spec.holder_identity = Some(format!("none (broken by {breaker})"));
            spec.lease_transitions = Some(transitions(epoch));
        }
        leases.replace(name, &parameters(), &object).await?;
        Ok(Some(holder))
    };
    retry.call(&doing, attempt).await
}

enum Attempt {
    Taken { object: Box<Object>, is_new: bool },
    Held { by: String },
}

/// A version of the Lease that somebody holds, and since when it is watched. A Lease that is missing has no version.
struct Watched {
    version: String,
    holder: String,
    since: Instant,
}

async fn attempt(
    leases: &Api<Object>,
    claim: &Claim,
    now: Timestamp,
    watched: &mut Option<Watched>,
) -> kube::Result<Attempt> {
    let found = leases.get_opt(&claim.name).await?;
    let is_new = found.is_none();
    let seen = watched.as_ref().map(|known| known.holder.clone());
    let object = match (found, seen) {
        // It was deleted while it was held: its holder may still work.
        (None, Some(by)) if may_be_alive(&Object::default(), &by, watched) => return Ok(Attempt::Held { by }),
        (None, _) => leases.create(&parameters(), &fill(Object::default(), claim, 1, now)).await?,
        (Some(object), _) => {
            if let Some(holder) = holder_of(&object)
                && may_be_alive(&object, &holder.name, watched)
            {
                return Ok(Attempt::Held { by: holder.name });
            }
            let epoch = fence_of(&object).epoch + 1;
            leases.replace(&claim.name, &parameters(), &fill(object, claim, epoch, now)).await?
        }
    };
    Ok(Attempt::Taken { object: Box::new(object), is_new })
}

/// Whether the Lease has changed while it was watched, or was not watched long enough. Times in it come from another
/// machine's clock, so they say nothing.
fn may_be_alive(object: &Object, holder: &str, watched: &mut Option<Watched>) -> bool {
    let version = object.metadata.resource_version.clone().unwrap_or_default();
    let seconds = object.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    let duration = seconds.and_then(|seconds| u64::try_from(seconds).ok()).map_or(DURATION, Duration::from_secs);
    match watched {
        Some(known) if known.version == version => known.since.elapsed() < duration.max(DURATION),
        _ => {
            *watched = Some(Watched { version, holder: holder.to_owned(), since: Instant::now() });
            true
        }
    }
}

fn holder_of(object: &Object) -> Option<Holder> {
    let spec = object.spec.as_ref()?;
    let name = spec.holder_identity.clone().filter(|name| !name.is_empty())?;
    let time = |time: &Option<MicroTime>| time.as_ref().map(|time| time.0);
    Some(Holder { name, since: time(&spec.acquire_time), renewed: time(&spec.renew_time) })
}

fn fill(mut object: Object, claim: &Claim, epoch: u64, now: Timestamp) -> Object {
    object.metadata = ObjectMeta {
        name: Some(claim.name.clone()),
        namespace: Some(claim.namespace.clone()),
        labels: Some(claim.labels.clone()),
        ..object.metadata
    };
    object.spec = Some(LeaseSpec {
        holder_identity: Some(claim.holder.clone()),
        lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
        lease_transitions: Some(transitions(epoch)),
        acquire_time: Some(micro(now)),
        renew_time: Some(micro(now)),
        ..LeaseSpec::default()
    });
    object
}

fn transitions(epoch: u64) -> i32 {
    i32::try_from(epoch).unwrap_or(i32::MAX)
}

fn fence_of(object: &Object) -> Fence {
    let transitions = object.spec.as_ref().and_then(|spec| spec.lease_transitions).unwrap_or_default();
    let lease = object.metadata.uid.clone().unwrap_or_default();
    Fence { lease, epoch: u64::try_from(transitions).unwrap_or_default() }
}

fn name(object: &Object) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

fn micro(time: Timestamp) -> MicroTime {
    MicroTime(time.round(Unit::Microsecond).unwrap_or(time))
}

fn parameters() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

#[cfg(test)]
mod tests;
