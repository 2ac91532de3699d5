//! The journal: every call that reached the API server, by whom, and who held the lease then.

use http::{Request, Response};
use http_body_util::BodyExt as _;
use jobwright_drydock::{Body as Answer, Call, Drydock};
use kube::client::Body;
use serde_json::Value;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tower::Service as _;

/// A call that reached the server.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) runner: String,
    /// The version that the runner deploys.
    pub(crate) version: String,
    pub(crate) call: Call,
    pub(crate) succeeded: bool,
    /// Whether the network delivered it late, after its caller gave it up.
    pub(crate) is_overdue: bool,
    /// Who was to work when the call arrived.
    pub(crate) holder: Option<String>,
}

/// Every call that reached the server, in order. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    /// Who holds the lease.
    leaseholder: Option<String>,
    /// Who is to work: the holder of the lease, or the one before it until that has begun.
    holder: Option<String>,
    /// A stranger deleted the Lease, and whoever holds the new one has not begun to work.
    is_deleted: bool,
    /// A write that the network delivered late has come already.
    is_excused: bool,
}

impl State {
    fn let_leaseholder_work(&mut self) {
        self.is_deleted = false;
        self.holder.clone_from(&self.leaseholder);
    }
}

impl Journal {
    /// The way of a runner to the server. `overdue` is a call of it that the network delivers late.
    pub(crate) fn around(&self, runner: &str, version: &str, overdue: Option<Call>, drydock: Drydock) -> Witnessed {
        let (runner, version) = (runner.to_owned(), version.to_owned());
        Witnessed { journal: self.clone(), runner, version, overdue, drydock }
    }

    /// The calls since this was asked last.
    pub(crate) fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut self.0.lock().unwrap().entries)
    }

    /// Who is to work: the holder of the lease. After a stranger has deleted the Lease, its holder cannot know that at once,
    /// so the holder of the new one has to wait: from its first write on nobody else may work.
    pub(crate) fn holder(&self) -> Option<String> {
        self.0.lock().unwrap().holder.clone()
    }

    /// Who holds the lease, whether or not it may work.
    #[allow(dead_code, reason = "one suite deletes Leases")]
    pub(crate) fn leaseholder(&self) -> Option<String> {
        self.0.lock().unwrap().leaseholder.clone()
    }

    /// A stranger has deleted the Lease.
    #[allow(dead_code, reason = "one suite deletes Leases")]
    pub(crate) fn note_deletion(&self) {
        let mut state = self.0.lock().unwrap();
        (state.leaseholder, state.is_deleted) = (None, true);
    }

    /// Who wrote without holding the lease. One write is excused, if the network delivered it late.
    pub(crate) fn trespasses(&self, entries: &[Entry]) -> Vec<String> {
        let is_excused = &mut self.0.lock().unwrap().is_excused;
        let mut excuse = |entry: &Entry| entry.is_overdue && !std::mem::replace(is_excused, true);
        entries.iter().filter_map(|entry| judge_write(entry).filter(|_| !excuse(entry))).collect()
    }

    /// Notes a call, and who holds the lease after it.
    fn note(&self, entry: Entry, now: Option<String>) {
        let mut state = self.0.lock().unwrap();
        let takes = entry.succeeded && takes(&entry.call);
        if entry.succeeded && is_work(&entry.call) && state.leaseholder.as_ref() == Some(&entry.runner) {
            state.let_leaseholder_work();
        }
        let holder = state.holder.clone();
        state.entries.push(Entry { holder, ..entry });
        if takes {
            state.leaseholder = now;
            if !state.is_deleted {
                state.let_leaseholder_work();
            }
        }
    }
}

/// A server whose callers are noted.
#[derive(Clone)]
pub(crate) struct Witnessed {
    journal: Journal,
    runner: String,
    version: String,
    overdue: Option<Call>,
    drydock: Drydock,
}

impl tower::Service<Request<Body>> for Witnessed {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { journal, runner, version, overdue, mut drydock } = self.clone();
        Box::pin(async move {
            let call = Call::of(&request);
            let answer = drydock.call(request).await?;
            let holder = if takes(&call) { read_holder(&mut drydock, &call.namespace).await? } else { None };
            let succeeded = answer.status().is_success();
            let is_overdue = overdue.as_ref() == Some(&call);
            journal.note(Entry { runner, version, call, succeeded, is_overdue, holder: None }, holder);
            Ok(answer)
        })
    }
}

/// Whether a call may change who holds the lease.
fn takes(call: &Call) -> bool {
    call.writes() && call.resource == "leases"
}

/// Who holds the lease in a namespace, read from the cluster.
async fn read_holder(drydock: &mut Drydock, namespace: &str) -> Result<Option<String>, Infallible> {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
    let request = Request::builder().uri(path).body(Body::empty()).unwrap();
    let body = drydock.call(request).await?.into_body().collect().await.unwrap().to_bytes();
    let leases: Value = serde_json::from_slice(&body).unwrap();
    let holders = leases["items"].as_array().unwrap().iter().map(|lease| &lease["spec"]["holderIdentity"]);
    Ok(holders.filter_map(Value::as_str).find(|holder| !holder.is_empty()).map(str::to_owned))
}

/// Whether a call is a part of a deploy.
fn is_work(call: &Call) -> bool {
    call.writes() && call.resource != "leases" && !call.resource.starts_with("selfsubject")
}

/// Only the holder of the lease writes.
fn judge_write(entry: &Entry) -> Option<String> {
    let Entry { call, runner, holder, .. } = entry;
    let is_held = holder.as_ref() == Some(runner);
    (is_work(call) && entry.succeeded && !is_held)
        .then(|| format!("`{runner}` wrote while {} held the lease: {call}", holder.as_deref().unwrap_or("nobody")))
}
