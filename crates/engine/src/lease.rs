//! The lease: one runner of a release at a time.
//!
//! Whoever takes the lease over gets a higher epoch, which every write to a ledger carries. So a runner that was paused
//! while another took over cannot write any more: its ledger has been written under a higher epoch meanwhile, or its
//! own write comes first and the new holder goes on from there.

use crate::clock::Clock;
use crate::error::{Answer, Error, Refusal, classify};
use crate::event::{Event, Events};
use crate::ledger::later;
use crate::names::FIELD_MANAGER;
use jiff::{Timestamp, Unit};
use k8s_openapi::api::coordination::v1::{Lease as Object, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Client;
use kube::api::{Api, PostParams};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

/// How long a lease holds without being renewed.
const DURATION: Duration = Duration::from_secs(15);
/// How often it is renewed, and looked at by who waits for it.
const RENEWAL: Duration = Duration::from_secs(5);
/// Clocks differ, but not by this much: a lease that old is nobody's.
const LONG_AGO: Duration = Duration::from_mins(5);

/// What is to be leased, and by whom.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The namespace.
    pub namespace: String,
    /// The Lease.
    pub name: String,
    /// Who: a text that nobody else has.
    pub holder: String,
    /// The labels of the Lease.
    pub labels: BTreeMap<String, String>,
    /// How long to wait for somebody else.
    pub patience: Duration,
    /// The epoch is higher than this, whatever has become of the Lease.
    pub epoch_above: u64,
}

/// A lease that is held: renewed until it is released, dropped or lost.
pub struct Lease {
    epoch: u64,
    lost: watch::Receiver<bool>,
    object: Arc<Mutex<Object>>,
    leases: Api<Object>,
    renewal: JoinHandle<()>,
}

impl Lease {
    /// Takes a lease: at once if nobody has it, later if its holder lets it go or is dead.
    pub async fn take(client: &Client, claim: Claim, clock: &Clock, events: &Events) -> Result<Self, Error> {
        let leases = Api::<Object>::namespaced(client.clone(), &claim.namespace);
        let started = clock.now();
        let mut watched: Option<(String, Timestamp)> = None;
        let mut told = String::new();
        loop {
            let object = match attempt(&leases, &claim, clock, &mut watched).await {
                Ok(Attempt::Taken(object)) => *object,
                Ok(Attempt::Again) => {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    continue;
                }
                Ok(Attempt::Held { by }) => {
                    if later(started, claim.patience) <= clock.now() {
                        return Err(Error::Busy { holder: by, waited: claim.patience });
                    }
                    if told != by {
                        events.send(Event::Busy { holder: by.clone() });
                        told = by;
                    }
                    tokio::time::sleep(RENEWAL.min(claim.patience)).await;
                    continue;
                }
                Err(error) => match classify(&error) {
                    Answer::TryAgain(after) if clock.now() < later(started, LONG_AGO) => {
                        tokio::time::sleep(after.unwrap_or(Duration::from_millis(500))).await;
                        continue;
                    }
                    _ => {
                        let doing = format!("take the lease `{}`", claim.name);
                        return Err(Error::Cluster { doing, source: Refusal(error) });
                    }
                },
            };
            return Ok(Self::hold(leases, object, claim.holder, clock.clone()));
        }
    }

    fn hold(leases: Api<Object>, object: Object, holder: String, clock: Clock) -> Self {
        let epoch = epoch_of(&object);
        let object = Arc::new(Mutex::new(object));
        let (sender, lost) = watch::channel(false);
        let renewal = tokio::spawn(renew(leases.clone(), Arc::clone(&object), holder, clock, sender));
        Self { epoch, lost, object, leases, renewal }
    }

    /// Higher than that of every earlier holder.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Waits until the lease is lost; for ever if it is not.
    pub async fn lost(&self) {
        if self.lost.clone().wait_for(|lost| *lost).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Lets the lease go, so that the next one need not wait.
    pub async fn release(self) {
        self.renewal.abort();
        let mut object = self.object.lock().await.clone();
        if let Some(spec) = &mut object.spec {
            spec.holder_identity = None;
        }
        // If that fails, it runs out by itself.
        let _ = self.leases.replace(&name(&object), &parameters(), &object).await;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

enum Attempt {
    Taken(Box<Object>),
    Held {
        by: String,
    },
    /// Somebody was quicker.
    Again,
}

async fn attempt(
    leases: &Api<Object>,
    claim: &Claim,
    clock: &Clock,
    watched: &mut Option<(String, Timestamp)>,
) -> kube::Result<Attempt> {
    let now = clock.now();
    let result = match leases.get_opt(&claim.name).await? {
        None => {
            let object = fill(Object::default(), claim, claim.epoch_above + 1, now);
            leases.create(&parameters(), &object).await
        }
        Some(object) => {
            let spec = object.spec.clone().unwrap_or_default();
            let holder = spec.holder_identity.clone().filter(|holder| !holder.is_empty());
            if let Some(holder) = holder.filter(|holder| *holder != claim.holder)
                && is_alive(&spec, &object, now, watched)
            {
                return Ok(Attempt::Held { by: holder });
            }
            let epoch = epoch_of(&object).max(claim.epoch_above) + 1;
            let object = fill(object, claim, epoch, now);
            leases.replace(&claim.name, &parameters(), &object).await
        }
    };
    match result {
        Ok(object) => Ok(Attempt::Taken(Box::new(object))),
        Err(error) => match classify(&error) {
            Answer::Conflict | Answer::AlreadyExists => Ok(Attempt::Again),
            _ => Err(error),
        },
    }
}

/// Whether a holder has renewed its lease while we looked, or lately by its own clock.
fn is_alive(spec: &LeaseSpec, object: &Object, now: Timestamp, watched: &mut Option<(String, Timestamp)>) -> bool {
    let renewed = spec.renew_time.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    if later(renewed, LONG_AGO) < now {
        return false;
    }
    let version = object.metadata.resource_version.clone().unwrap_or_default();
    let duration = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let duration = duration.map_or(DURATION, Duration::from_secs);
    match watched {
        Some((seen, since)) if *seen == version => later(*since, duration) > now,
        _ => {
            *watched = Some((version, now));
            true
        }
    }
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
        lease_transitions: Some(i32::try_from(epoch).unwrap_or(i32::MAX)),
        acquire_time: Some(micro(now)),
        renew_time: Some(micro(now)),
        ..LeaseSpec::default()
    });
    object
}

async fn renew(
    leases: Api<Object>,
    object: Arc<Mutex<Object>>,
    holder: String,
    clock: Clock,
    lost: watch::Sender<bool>,
) {
    let mut renewed = clock.now();
    loop {
        tokio::time::sleep(RENEWAL).await;
        let mut next = object.lock().await.clone();
        if let Some(spec) = &mut next.spec {
            spec.renew_time = Some(micro(clock.now()));
        }
        match leases.replace(&name(&next), &parameters(), &next).await {
            Ok(written) => {
                renewed = clock.now();
                *object.lock().await = written;
            }
            Err(error) => {
                // Perhaps only the answer was lost: what counts is who holds it now.
                if let Ok(Some(found)) = leases.get_opt(&name(&next)).await {
                    let spec = found.spec.clone().unwrap_or_default();
                    if spec.holder_identity.as_deref() != Some(holder.as_str()) {
                        break;
                    }
                    *object.lock().await = found;
                } else if matches!(classify(&error), Answer::NotFound | Answer::Refused) {
                    break;
                }
                if later(renewed, DURATION) <= clock.now() {
                    break;
                }
            }
        }
    }
    lost.send_replace(true);
}

fn epoch_of(object: &Object) -> u64 {
    let transitions = object.spec.as_ref().and_then(|spec| spec.lease_transitions).unwrap_or_default();
    u64::try_from(transitions).unwrap_or_default()
}

fn name(object: &Object) -> String {
    object.metadata.name.clone().unwrap_or_default()
}

fn micro(time: Timestamp) -> MicroTime {
    MicroTime(time.round(Unit::Microsecond).unwrap_or(time))
}

fn parameters() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}
