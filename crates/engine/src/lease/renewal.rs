//! Renews a lease that is held, and notices when it is lost.

use super::tenure::Term;
use super::{Object, RENEWAL, fence_of, micro, name, parameters};
use crate::error::{Answer, classify};
use kube::api::Api;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How long a renewal may take before it is tried again.
const RENEWAL_CALL: Duration = Duration::from_secs(3);
/// How long after a failed renewal the next one is tried.
const AGAIN: Duration = Duration::from_millis(500);

/// A lease in the hands of its holder.
pub(super) struct Held {
    leases: Api<Object>,
    object: Arc<Mutex<Object>>,
    holder: String,
    renewal: JoinHandle<()>,
}

impl Held {
    /// Holds a lease that was just acquired.
    pub(super) fn start(leases: Api<Object>, object: Object, holder: String, term: Term) -> Self {
        let object = Arc::new(Mutex::new(object));
        let renewal = Renewal { leases: leases.clone(), object: Arc::clone(&object), holder: holder.clone(), term };
        Self { leases, object, holder, renewal: tokio::spawn(renewal.run()) }
    }

    /// Gives the lease back.
    pub(super) async fn release(self) {
        self.renewal.abort();
        let mut object = self.object.lock().await.clone();
        loop {
            if let Some(spec) = &mut object.spec {
                spec.holder_identity = None;
            }
            match self.leases.replace(name(&object), &parameters(), &object).await {
                Err(error) if classify(&error) == Answer::Conflict => {}
                _ => return,
            }
            // A renewal that was not waited for may have come first.
            match self.leases.get_opt(name(&object)).await {
                Ok(Some(found)) if is_same(&found, &object, &self.holder) => object = found,
                _ => return,
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

struct Renewal {
    leases: Api<Object>,
    object: Arc<Mutex<Object>>,
    holder: String,
    term: Term,
}

enum Renewed {
    Yes,
    /// The answer was an error, and what is known of the Lease is up to date.
    NotYet,
    /// Another process holds it, or it is gone.
    Lost,
}

impl Renewal {
    async fn run(self) {
        let mut next = Instant::now() + RENEWAL;
        loop {
            tokio::time::sleep_until(next.min(self.term.end())).await;
            if self.term.end() <= Instant::now() || self.term.is_over() {
                break;
            }
            let (sent, time) = (Instant::now(), self.term.clock.now());
            let deadline = (sent + RENEWAL_CALL).min(self.term.end());
            // A renewal that is not answered may still come through; it does no harm.
            let renewed = tokio::time::timeout_at(deadline, self.renew()).await.unwrap_or(Renewed::NotYet);
            next = match renewed {
                Renewed::Yes => {
                    self.term.prolong(sent, time);
                    sent + RENEWAL
                }
                Renewed::NotYet => Instant::now() + AGAIN,
                Renewed::Lost => break,
            };
        }
        self.term.lose();
    }

    async fn renew(&self) -> Renewed {
        let mut next = self.object.lock().await.clone();
        if let Some(spec) = &mut next.spec {
            spec.renew_time = Some(micro(self.term.clock.now()));
        }
        if let Ok(written) = self.leases.replace(name(&next), &parameters(), &next).await {
            *self.object.lock().await = written;
            return Renewed::Yes;
        }
        // Perhaps only an answer was lost: the holder that the Lease names decides.
        match self.leases.get_opt(name(&next)).await {
            Ok(Some(found)) if is_same(&found, &next, &self.holder) => {
                *self.object.lock().await = found;
                Renewed::NotYet
            }
            Ok(_) => Renewed::Lost,
            Err(_) => Renewed::NotYet,
        }
    }
}

/// Whether a Lease is still in the hands of the same holder. Its name alone does not say that.
fn is_same(found: &Object, known: &Object, holder: &str) -> bool {
    let named = found.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()) == Some(holder);
    named && fence_of(found) == fence_of(known)
}
