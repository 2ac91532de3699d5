//! A cluster in memory, and a release with one job on it.

#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, reason = "clippy takes only what is marked as a test for one")]

use http::{Request, Response};
use http_body_util::{Either, Full};
use jobwright_drydock::Drydock;
use jobwright_engine::{Clock, Event, Events, Job, JobReport, Manager, Registry, Release, Retires, Settings, When};
use jobwright_jobs::Place;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::client::Body;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio_util::sync::CancellationToken;

pub(crate) struct Lab {
    pub(crate) drydock: Drydock,
    pub(crate) cancellation: CancellationToken,
    pub(crate) interceptor: Interceptor,
    deploys: AtomicUsize,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self {
            drydock: Drydock::new(),
            cancellation: CancellationToken::new(),
            interceptor: Interceptor::default(),
            deploys: AtomicUsize::new(0),
        }
    }

    /// A client whose calls go well.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.drydock.clone(), "default")
    }

    /// The client of the code under test.
    pub(crate) fn watched_client(&self) -> Client {
        Client::new(self.interceptor.around(&self.drydock), "default")
    }

    /// Deploys a release with this job. Gives what became of it, and what it said.
    pub(crate) async fn run(&self, job: impl Job + 'static) -> (JobReport, Vec<String>) {
        let drydock = self.drydock.clone();
        let release = Release { name: "shop".to_owned(), namespace: "default".to_owned(), ..Release::default() };
        let settings =
            Settings { revision: self.deploys.fetch_add(1, Ordering::Relaxed).to_string(), ..Settings::default() };
        let manager = Manager::new(self.watched_client(), release, Clock::new(move || drydock.now()), settings);
        let mut registry = Registry::new();
        registry.job(job);
        let (events, mut heard) = Events::channel();
        let report = manager.deploy(&registry, self.cancellation.clone(), events).await.unwrap();
        let mut lines = Vec::new();
        while let Ok(event) = heard.try_recv() {
            if let Event::Log { line, .. } = event {
                lines.push(line);
            }
        }
        (report.jobs[0].clone(), lines)
    }

    /// An object's kind in the cluster.
    pub(crate) fn api(&self, version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(group, version, kind));
        match kind {
            "StorageClass" | "ClusterRole" => Api::all_with(self.client(), &resource),
            _ => Api::default_namespaced_with(self.client(), &resource),
        }
    }

    pub(crate) async fn apply(&self, object: Value) -> DynamicObject {
        let (version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let name = object["metadata"]["name"].as_str().unwrap();
        let parameters = PatchParams::apply("test").force();
        self.api(version, kind).patch(name, &parameters, &Patch::Apply(&object)).await.unwrap()
    }

    pub(crate) async fn get(&self, version: &str, kind: &str, name: &str) -> Value {
        serde_json::to_value(self.api(version, kind).get(name).await.unwrap()).unwrap()
    }
}

/// What a call gets instead of the cluster's answer.
#[derive(Clone, Debug)]
pub(crate) enum Instead {
    /// A status and a body.
    Answer(u16, Value),
    /// Nothing, ever.
    Silence,
}

/// Decides about a call by its method and path.
type Rule = Box<dyn FnMut(&str, &str) -> Option<Instead> + Send>;

/// Answers calls in place of a cluster, and counts those that it has kept waiting. Clones share their rule.
#[derive(Clone, Default)]
pub(crate) struct Interceptor {
    rule: Arc<Mutex<Option<Rule>>>,
    silenced: Arc<Mutex<Vec<String>>>,
}

impl Interceptor {
    pub(crate) fn set(&self, rule: impl FnMut(&str, &str) -> Option<Instead> + Send + 'static) {
        *self.rule.lock().unwrap() = Some(Box::new(rule));
    }

    /// The calls that got no answer.
    pub(crate) fn silenced(&self) -> Vec<String> {
        self.silenced.lock().unwrap().clone()
    }

    pub(crate) fn around(&self, drydock: &Drydock) -> Intercepted {
        Intercepted { inside: drydock.clone(), interceptor: self.clone() }
    }

    fn decide(&self, method: &str, path: &str) -> Option<Instead> {
        let instead = self.rule.lock().unwrap().as_mut().and_then(|rule| rule(method, path));
        if matches!(instead, Some(Instead::Silence)) {
            self.silenced.lock().unwrap().push(format!("{method} {path}"));
        }
        instead
    }
}

/// A cluster some of whose calls are intercepted.
#[derive(Clone)]
pub(crate) struct Intercepted {
    inside: Drydock,
    interceptor: Interceptor,
}

impl tower::Service<Request<Body>> for Intercepted {
    type Response = Response<Either<jobwright_drydock::Body, Full<bytes::Bytes>>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut inside = self.inside.clone();
        let instead = self.interceptor.decide(request.method().as_str(), request.uri().path());
        Box::pin(async move {
            match instead {
                None => inside.call(request).await.map(|response| response.map(Either::Left)),
                Some(Instead::Silence) => std::future::pending().await,
                Some(Instead::Answer(status, body)) => {
                    let response = Response::builder().status(status).header("content-type", "application/json");
                    Ok(response.body(Either::Right(Full::from(body.to_string()))).unwrap())
                }
            }
        })
    }
}

/// What an API server answers that refuses.
pub(crate) fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": reason, "code": code})
}

pub(crate) fn place(id: &str) -> Place {
    Place::new(id, When::before_all(), Retires::never("test"))
}

pub(crate) fn deployment(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "shop/api:1"}]}}}})
}
