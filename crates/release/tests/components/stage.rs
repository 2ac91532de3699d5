//! A cluster in memory, a directory with plans and manifests, and deploys of them.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use jobwright_drydock::{Drydock, Faults};
use jobwright_engine::{Action, Clock, DeployOutcome, Error, Event, Events, Preview, Report, Retry, Settings};
use jobwright_release::{Deployment, Driver, Environment, Helm, PlanFile, Record, Records};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How a plan is deployed.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) release: &'static str,
    pub(crate) namespace: &'static str,
    /// Empty for none.
    pub(crate) version: &'static str,
    pub(crate) redeploy: bool,
    pub(crate) unlock: bool,
    pub(crate) host: &'static str,
    /// Only this component; all if none.
    pub(crate) only: Option<&'static str>,
}

impl Default for Wish {
    fn default() -> Self {
        Self {
            release: "shop",
            namespace: "shop",
            version: "1.0.0",
            redeploy: false,
            unlock: false,
            host: "test",
            only: None,
        }
    }
}

pub(crate) struct Stage {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) drydock: Drydock,
    pub(crate) faults: Faults,
    pub(crate) helm: Option<Helm>,
    pub(crate) cancellation: CancellationToken,
    /// An API group whose server is down.
    pub(crate) outage: Option<&'static str>,
}

impl Stage {
    /// A cluster with the namespaces `shop` and `other`.
    pub(crate) async fn new() -> Self {
        let drydock = Drydock::new();
        let namespaces = Api::<Namespace>::all(Client::new(drydock.clone(), "shop"));
        for name in ["shop", "other"] {
            let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
            namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        }
        Self {
            directory: tempfile::tempdir().unwrap(),
            drydock,
            faults: Faults::new(0),
            helm: None,
            cancellation: CancellationToken::new(),
            outage: None,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Writes manifests as one file.
    pub(crate) fn manifests(&self, name: &str, objects: &[Value]) {
        let documents: Vec<String> = objects.iter().map(ToString::to_string).collect();
        self.write(name, &documents.join("\n---\n"));
    }

    /// A client whose calls meet no faults.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.drydock.clone(), "shop")
    }

    fn clock(&self) -> Clock {
        let drydock = self.drydock.clone();
        Clock::new(move || drydock.now())
    }

    fn retry(&self) -> Retry {
        Retry::new(self.clock(), self.cancellation.clone(), Events::nowhere())
    }

    pub(crate) fn parse(&self, wish: &Wish, rest: &str) -> PlanFile {
        let Wish { release, namespace, version, .. } = wish;
        let version = if version.is_empty() { String::new() } else { format!(", version: {version}") };
        let text = format!(
            "apiVersion: jobwright.io/v1alpha1\nkind: Plan\nrelease: {{name: {release}, namespace: {namespace}{version}}}\n{rest}"
        );
        PlanFile::parse(&self.path("jobwright.yaml"), &text)
            .unwrap_or_else(|findings| panic!("{:#?}", findings.findings))
    }

    pub(crate) fn deployment<'a>(&self, file: &'a PlanFile, wish: &Wish) -> Deployment<'a> {
        Deployment {
            file,
            client: Client::new(Outage { group: self.outage, inner: self.faults.around(self.drydock.clone()) }, "shop"),
            clock: self.clock(),
            helm: self.helm.clone(),
            driver: Driver::Secrets,
            host: wish.host.to_owned(),
            settings: Settings {
                holder: format!("{:p}", std::ptr::from_ref(file)),
                components: wish.only.map(|component| BTreeSet::from([component.to_owned()])),
                ..Settings::default()
            },
            redeploy: wish.redeploy,
            force: false,
            unlock: wish.unlock,
            environment: Environment::default(),
            dialling: jobwright_release::Dialling::Not("no servers".to_owned()),
        }
    }

    /// Deploys a plan, and gives the lines of progress, too.
    pub(crate) async fn deploy_loud(&self, wish: &Wish, rest: &str) -> (Report, Vec<String>) {
        let file = self.parse(wish, rest);
        let (events, mut receiver) = Events::channel();
        let report = self.deployment(&file, wish).deploy(self.cancellation.clone(), events).await.unwrap();
        let mut lines = Vec::new();
        while let Ok(event) = receiver.try_recv() {
            if let Event::Progress { line, .. } = event {
                lines.push(line);
            }
        }
        (report, lines)
    }

    /// Deploys a plan whose head is made of the wish.
    pub(crate) async fn try_deploy(&self, wish: &Wish, rest: &str) -> Result<Report, Error> {
        let file = self.parse(wish, rest);
        let deployment = self.deployment(&file, wish);
        let done = deployment.deploy(self.cancellation.clone(), Events::nowhere());
        tokio::time::timeout(Duration::from_hours(6), done).await.unwrap_or_else(|_| panic!("the deploy hangs"))
    }

    pub(crate) async fn deploy(&self, wish: &Wish, rest: &str) -> Report {
        self.try_deploy(wish, rest).await.unwrap()
    }

    /// Deploys a plan, which has to succeed; gives the components' results.
    pub(crate) async fn succeed(&self, wish: &Wish, rest: &str) -> Vec<(String, Action, String)> {
        let report = self.deploy(wish, rest).await;
        assert_eq!(report.outcome, DeployOutcome::Succeeded, "{report:#?}");
        results(&report)
    }

    /// Deploys a plan, which has to fail; gives the reasons.
    pub(crate) async fn fail(&self, wish: &Wish, rest: &str) -> String {
        let report = self.deploy(wish, rest).await;
        assert_eq!(report.outcome, DeployOutcome::Failed, "{report:#?}");
        results(&report).into_iter().map(|(name, _, reason)| format!("{name}: {reason}")).collect::<Vec<_>>().join("\n")
    }

    /// What a deploy would do.
    pub(crate) async fn preview(&self, wish: &Wish, rest: &str) -> Preview {
        let file = self.parse(wish, rest);
        let deployment = self.deployment(&file, wish);
        let (registry, records) = deployment.open(deployment.client.clone(), None, self.retry()).await.unwrap();
        let manager = deployment.manager(records.get().await.past(), Settings::default());
        manager.preview(&registry).await.unwrap()
    }

    pub(crate) async fn record(&self, wish: &Wish) -> Record {
        Records::open(self.client(), wish.namespace, wish.release, None, self.retry()).await.unwrap().get().await
    }

    /// An object, in namespace `shop`.
    pub(crate) async fn get(&self, api_version: &str, kind: &str, name: &str) -> Option<DynamicObject> {
        self.api(api_version, kind).get_opt(name).await.unwrap()
    }

    pub(crate) fn api(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client(), "shop", &resource)
    }

    /// The ConfigMaps of namespace `shop` that are no records of ours.
    pub(crate) async fn maps(&self) -> Vec<String> {
        let maps = Api::<ConfigMap>::namespaced(self.client(), "shop").list(&kube::api::ListParams::default()).await;
        let ours = |map: &ConfigMap| {
            map.name_any() == "kube-root-ca.crt" || map.labels().contains_key("app.kubernetes.io/managed-by")
        };
        maps.unwrap().iter().filter(|map| !ours(map)).map(kube::ResourceExt::name_any).collect()
    }
}

/// A cluster one of whose API groups is served by a server that is down: discovery lists the group, as the aggregator
/// does, but not what is in it.
struct Outage<S> {
    group: Option<&'static str>,
    inner: S,
}

impl<S, B> tower::Service<Request<kube::client::Body>> for Outage<S>
where
    S: tower::Service<Request<kube::client::Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<UnsyncBoxBody<Bytes, BoxError>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let path = request.uri().path().to_owned();
        let group = self.group;
        let answer = self.inner.call(request);
        Box::pin(async move {
            if let Some(group) = group.filter(|group| path.starts_with(&format!("/apis/{group}/"))) {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 503,
                    "reason": "ServiceUnavailable", "message": format!("{group} is unavailable")});
                return Ok(Response::builder().status(503).body(whole(&status))?);
            }
            let answer = answer.await.map_err(Into::into)?;
            let (parts, body) = answer.into_parts();
            if path != "/apis" || group.is_none() {
                return Ok(Response::from_parts(parts, body.map_err(Into::into).boxed_unsync()));
            }
            let text = body.collect().await.map_err(Into::into)?.to_bytes();
            let mut value: Value = serde_json::from_slice(&text)?;
            for item in value["items"].as_array_mut().into_iter().flatten() {
                if item["metadata"]["name"].as_str() == group {
                    for version in item["versions"].as_array_mut().into_iter().flatten() {
                        version["resources"] = json!([]);
                        version["freshness"] = json!("Stale");
                    }
                }
            }
            Ok(Response::from_parts(parts, whole(&value)))
        })
    }
}

fn whole(value: &Value) -> UnsyncBoxBody<Bytes, BoxError> {
    Full::new(Bytes::from(value.to_string())).map_err(|never| match never {}).boxed_unsync()
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What became of the components.
pub(crate) fn results(report: &Report) -> Vec<(String, Action, String)> {
    let row = |component: &jobwright_engine::ComponentReport| {
        (component.name.clone(), component.action, component.reason.clone())
    };
    report.components.iter().map(row).collect()
}

/// A ConfigMap.
pub(crate) fn map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}})
}

/// A component that is manifests.
pub(crate) fn component(name: &str, path: &str) -> String {
    format!("- {{name: {name}, manifests: {{path: {path}}}}}\n")
}
