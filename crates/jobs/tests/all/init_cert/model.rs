//! A model of servers that load the Secret when their container starts, kept by a layer that sees every call. It knows
//! nothing of the code under test: what a server shows is judged as a TLS client would.

use http::{Request, Response};
use jiff::{SignedDuration, Timestamp};
use jobwright_drydock::{Body, Drydock};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use serde_json::Value;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

pub(crate) const NAMESPACE: &str = "shop";
pub(crate) const SECRET: &str = "hook-tls";
/// How late an API server may see what another has written.
const LAG: SignedDuration = SignedDuration::from_secs(9);

/// What is in the Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loaded {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

/// The model, and what has been wrong so far.
#[derive(Clone)]
pub(crate) struct Model {
    drydock: Drydock,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// What the Secret has held, from when on.
    secret: Vec<(Timestamp, Option<Loaded>)>,
    /// What each bundle has held, from when on.
    bundles: BTreeMap<String, Vec<(Timestamp, String)>>,
    /// Whether what is served has to be covered now.
    is_judging: bool,
    /// How long after a change servers load the Secret again; never if none.
    reloads_after: Option<SignedDuration>,
    /// How many kinds of targets are looked at.
    kinds: usize,
    gaps: Vec<String>,
    checks: usize,
}

/// Kinds of targets.
const KINDS: [(&str, &str); 4] = [
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
];

impl Model {
    /// A model that looks at one kind of targets.
    pub(crate) fn new(drydock: &Drydock) -> Self {
        let state = State { kinds: 1, ..State::default() };
        Self { drydock: drydock.clone(), state: Arc::new(Mutex::new(state)) }
    }

    /// Looks at all kinds of targets.
    pub(crate) fn look_at_all_kinds(&self) {
        self.state.lock().unwrap().kinds = KINDS.len();
    }

    /// From now on every pair that is served has to be covered by every bundle.
    pub(crate) fn judge(&self) {
        self.state.lock().unwrap().is_judging = true;
    }

    /// Servers load the Secret again after a change of it.
    pub(crate) fn reload_after(&self, duration: Duration) {
        self.state.lock().unwrap().reloads_after = SignedDuration::try_from(duration).ok();
    }

    /// What has been wrong, and how often was looked.
    pub(crate) fn verdict(&self) -> (Vec<String>, usize) {
        let state = self.state.lock().unwrap();
        (state.gaps.clone(), state.checks)
    }

    /// A service that the model sees every call to.
    pub(crate) fn around(&self, drydock: &Drydock) -> Watched {
        Watched { inside: drydock.clone(), model: self.clone() }
    }

    fn client(&self) -> Client {
        Client::new(self.drydock.clone(), NAMESPACE)
    }

    /// What a pod shows now, if it runs.
    pub(crate) fn shown_by(&self, pod: &str) -> Option<Loaded> {
        let started = self.drydock.witness().into_iter().rfind(|start| start.pod == pod)?;
        self.state.lock().unwrap().at(started.at, self.drydock.now())
    }

    /// Notes what is there, and says where a pair that is served is not covered.
    pub(crate) async fn look(&self) {
        let now = self.drydock.now();
        let secrets = Api::<Secret>::namespaced(self.client(), NAMESPACE);
        let loaded = secrets.get_opt(SECRET).await.unwrap().and_then(|secret| {
            let data = secret.data.unwrap_or_default();
            let part = |key: &str| data.get(key).map(|value| value.0.clone()).filter(|bytes| !bytes.is_empty());
            Some(Loaded { certificate: part("tls.crt")?, key: part("tls.key")? })
        });
        let mut bundles = Vec::new();
        let kinds = self.state.lock().unwrap().kinds;
        for (group, kind) in &KINDS[..kinds] {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
            let objects = Api::<DynamicObject>::all_with(self.client(), &resource);
            for object in objects.list(&ListParams::default()).await.unwrap() {
                bundles.extend(bundles_of(kind, &object));
            }
        }
        let pods = Api::<Pod>::namespaced(self.client(), NAMESPACE).list(&ListParams::default()).await.unwrap();
        let running: Vec<String> = pods.iter().filter(|pod| is_running(pod)).map(ResourceExt::name_any).collect();
        let starts = self.drydock.witness();
        let mut state = self.state.lock().unwrap();
        if state.secret.last().is_none_or(|(_, last)| *last != loaded) {
            state.secret.push((now, loaded));
        }
        for (name, bundle) in bundles {
            let history = state.bundles.entry(name).or_default();
            if history.last().is_none_or(|(_, last)| *last != bundle) {
                history.push((now, bundle));
            }
        }
        if !state.is_judging {
            return;
        }
        state.checks += 1;
        for pod in running {
            let Some(start) = starts.iter().rfind(|start| start.pod == pod) else { continue };
            let Some(shown) = state.at(start.at, now) else { continue };
            let gaps: Vec<String> = state
                .visible(now)
                .filter(|(_, bundle)| !covers(bundle, &shown, now))
                .map(|(name, _)| format!("at {now} {name} does not cover what pod {pod} shows"))
                .collect();
            state.gaps.extend(gaps);
        }
    }
}

impl State {
    /// What a server that started then shows now.
    fn at(&self, started: Timestamp, now: Timestamp) -> Option<Loaded> {
        let loads = self.reloads_after.map_or(started, |after| started.max(now - after));
        let held = self.secret.iter().rfind(|(since, _)| *since <= loads);
        held.and_then(|(_, loaded)| loaded.clone())
    }

    /// Every bundle that some API server may still see.
    fn visible(&self, now: Timestamp) -> impl Iterator<Item = (&str, &str)> {
        self.bundles.iter().flat_map(move |(name, history)| {
            let ends = |index: usize| history.get(index + 1).map_or(Timestamp::MAX, |(since, _)| *since);
            let seen = move |(index, _): &(usize, &(Timestamp, String))| ends(*index) > now - LAG;
            history.iter().enumerate().filter(seen).map(move |(_, (_, bundle))| (name.as_str(), bundle.as_str()))
        })
    }
}

fn is_running(pod: &Pod) -> bool {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    statuses.iter().any(|status| status.state.as_ref().is_some_and(|state| state.running.is_some()))
}

fn bundles_of(kind: &str, object: &DynamicObject) -> Vec<(String, String)> {
    use base64::Engine as _;
    let decode = |value: &Value| {
        let bytes = base64::engine::general_purpose::STANDARD.decode(value.as_str().unwrap_or_default()).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let name = object.name_any();
    let ours = |service: &Value| service["name"] == "hook" && service["namespace"] == NAMESPACE;
    let data = &object.data;
    match kind {
        "CustomResourceDefinition" => {
            let client = &data["spec"]["conversion"]["webhook"]["clientConfig"];
            ours(&client["service"]).then(|| (name, decode(&client["caBundle"]))).into_iter().collect()
        }
        "APIService" => {
            let spec = &data["spec"];
            ours(&spec["service"]).then(|| (name, decode(&spec["caBundle"]))).into_iter().collect()
        }
        _ => {
            let webhooks = data["webhooks"].as_array().into_iter().flatten();
            let ours = webhooks.filter(|webhook| ours(&webhook["clientConfig"]["service"]));
            ours.map(|webhook| (format!("{name} {}", webhook["name"]), decode(&webhook["clientConfig"]["caBundle"])))
                .collect()
        }
    }
}

/// Whether a client with this bundle talks to a server that shows this.
pub(crate) fn covers(bundle: &str, shown: &Loaded, now: Timestamp) -> bool {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(bundle.as_bytes()).flatten());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let Ok(verifier) = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build() else {
        return false;
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&shown.certificate).flatten().collect();
    let time = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now.as_second()).unwrap()));
    let name = ServerName::try_from("hook.shop.svc").unwrap();
    verifier.verify_server_cert(&chain[0], &chain[1..], &name, &[], time).is_ok()
}

/// A drydock whose every call the model sees.
#[derive(Clone)]
pub(crate) struct Watched {
    inside: Drydock,
    model: Model,
}

impl tower::Service<Request<kube::client::Body>> for Watched {
    type Response = Response<Body>;
    type Error = std::convert::Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let Self { mut inside, model } = self.clone();
        Box::pin(async move {
            let writes = request.method() != http::Method::GET;
            if writes {
                model.look().await;
            }
            let response = inside.call(request).await;
            if writes {
                model.look().await;
            }
            response
        })
    }
}
