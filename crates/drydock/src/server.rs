//! The server: a cluster, a clock, and HTTP requests as `tower` passes them.

mod builder;
mod driver;
mod respond;
mod stream;

pub use builder::Builder;
pub use stream::Body;

use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::containers::witness::Started;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::Notify;

/// The largest request body that is taken, as in a real server.
pub(crate) const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// A Kubernetes API in memory. Clones share one cluster.
///
/// It is a [`tower::Service`], so a `kube::Client` runs on it unchanged:
///
/// ```
/// # async fn example() -> Result<(), kube::Error> {
/// use jobwright_drydock::Drydock;
/// use k8s_openapi::api::core::v1::Namespace;
///
/// let client = kube::Client::new(Drydock::new(), "default");
/// let namespaces = kube::Api::<Namespace>::all(client).list(&Default::default()).await?;
/// assert_eq!(namespaces.items.len(), 4);
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone)]
pub struct Drydock {
    shared: Arc<Shared>,
}

struct Shared {
    cluster: Mutex<Cluster>,
    clock: Clock,
    /// Requests without a known token are refused.
    requires_token: bool,
    /// Where clients reach the server, for discovery.
    address: Mutex<String>,
    /// Whether the driver runs.
    driven: AtomicBool,
    /// Tells the driver that something may be due earlier than it thinks.
    changed: Arc<Notify>,
}

impl Drydock {
    /// A cluster like every other one: virtual time from a fixed date on, a fixed seed, no access control.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A cluster with settings of its own.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// What time it is in the cluster.
    pub fn now(&self) -> jiff::Timestamp {
        self.shared.clock.now()
    }

    /// Every container that has started so far and how it ended, recorded by the node only.
    pub fn witness(&self) -> Vec<Started> {
        self.lock().witness.all().to_vec()
    }

    /// Lets a node stop reporting, as if its network had gone: what runs there runs on, but nobody hears of it or can
    /// stop it. The cluster notices after most of a minute. Says whether there is such a node.
    pub fn lose_node(&self, name: &str) -> bool {
        self.change_outages(name, |cluster| cluster.outages.begin(name, cluster.now))
    }

    /// Lets a lost node report again. Says whether there is such a node.
    pub fn restore_node(&self, name: &str) -> bool {
        self.change_outages(name, |cluster| cluster.outages.end(name))
    }

    fn change_outages(&self, node: &str, change: impl FnOnce(&mut Cluster)) -> bool {
        let mut cluster = self.lock();
        let exists = cluster.find("", "nodes", "", node).is_some();
        if exists {
            change(&mut cluster);
            cluster.settle();
            self.shared.changed.notify_one();
        }
        exists
    }

    /// Forgets the past: watches and pages that would go on from there are told that it is gone (410).
    pub fn compact(&self) {
        self.lock().store.compact();
    }

    fn address(&self) -> String {
        self.shared.address.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[cfg(feature = "http")]
    pub(crate) fn set_address(&self, address: &str) {
        address.clone_into(&mut self.shared.address.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The cluster, at the time it is now.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Cluster> {
        // A panic while the lock was held would be a bug of this crate; the state is still the last whole write.
        let mut cluster = self.shared.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        cluster.now = self.shared.clock.now();
        cluster
    }
}

impl Default for Drydock {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Drydock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Drydock").finish_non_exhaustive()
    }
}

impl<B> tower::Service<Request<B>> for Drydock
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let drydock = self.clone();
        Box::pin(async move {
            drydock.start_driver();
            let (parts, body) = request.into_parts();
            let limited = http_body_util::Limited::new(body, BODY_LIMIT);
            let body = limited.collect().await.map(http_body_util::Collected::to_bytes);
            let mut response = drydock.respond(&parts, body.map_err(|error| Self::refuse_body(&*error)));
            // By the cluster's clock, as that of an API server is.
            if let Some(date) = date(drydock.now()) {
                response.headers_mut().insert(http::header::DATE, date);
            }
            Ok(response)
        })
    }
}

/// A time as HTTP writes it.
fn date(now: jiff::Timestamp) -> Option<http::HeaderValue> {
    let text = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&now).ok()?;
    http::HeaderValue::from_maybe_shared(Bytes::from(text)).ok()
}
