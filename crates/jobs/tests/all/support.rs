//! A cluster in memory, and a release with one job on it.

#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, reason = "clippy takes only what is marked as a test for one")]

use jobwright_drydock::Drydock;
use jobwright_engine::{Clock, Event, Events, Job, JobReport, Manager, Registry, Release, Retires, Settings, When};
use jobwright_jobs::Place;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::sync::CancellationToken;

pub(crate) struct Lab {
    pub(crate) drydock: Drydock,
    pub(crate) cancellation: CancellationToken,
    deploys: AtomicUsize,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self { drydock: Drydock::new(), cancellation: CancellationToken::new(), deploys: AtomicUsize::new(0) }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.drydock.clone(), "default")
    }

    /// Deploys a release with this job. Gives what became of it, and what it said.
    pub(crate) async fn run(&self, job: impl Job + 'static) -> (JobReport, Vec<String>) {
        let drydock = self.drydock.clone();
        let release = Release { name: "shop".to_owned(), namespace: "default".to_owned(), ..Release::default() };
        let settings =
            Settings { revision: self.deploys.fetch_add(1, Ordering::Relaxed).to_string(), ..Settings::default() };
        let manager = Manager::new(self.client(), release, Clock::new(move || drydock.now()), settings);
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

pub(crate) fn place(id: &str) -> Place {
    Place::new(id, When::before_all(), Retires::never("test"))
}

pub(crate) fn deployment(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "shop/api:1"}]}}}})
}
