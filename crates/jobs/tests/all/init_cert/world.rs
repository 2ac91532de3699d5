//! A shop with a webhook: its Service, its Deployment, its configuration, and who runs init-cert on it.

use super::model::{Loaded, Model, NAMESPACE, SECRET};
use jobwright_drydock::{Drydock, Faults};
use jobwright_engine::Clock;
use jobwright_engine::async_trait;
use jobwright_jobs::init_cert::{
    Dialler, Dialling, Error, Options, Peer, Report, Stream, Surroundings, Targets, init_cert,
};
use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) struct World {
    pub(crate) drydock: Drydock,
    pub(crate) model: Model,
    pub(crate) faults: Faults,
    pub(crate) dialling: Dialling,
    pub(crate) told: Arc<Mutex<Vec<String>>>,
}

impl World {
    /// A namespace with the Service, and nothing else.
    pub(crate) async fn empty() -> Self {
        let drydock = Drydock::new();
        let model = Model::new(&drydock);
        let dialling = Dialling::With(Arc::new(Wires { drydock: drydock.clone(), model: model.clone() }));
        let world = Self { drydock, model, faults: Faults::new(0), dialling, told: Arc::default() };
        world.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})).await;
        world
            .apply(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"}, "spec": {
                "selector": {"app": "hook"}, "ports": [{"port": 443, "targetPort": 8443}]}}))
            .await;
        world
    }

    /// The same with a webhook configuration and a Deployment that waits for the Secret.
    pub(crate) async fn new() -> Self {
        let world = Self::empty().await;
        world.apply(webhooks("ValidatingWebhookConfiguration", "shop", &[("one.shop.example", "hook")])).await;
        world.apply(deployment()).await;
        world
    }

    /// The same when everything was set up an hour ago and runs.
    pub(crate) async fn running() -> Self {
        Self::running_with(&options()).await
    }

    /// The same, set up in another way.
    pub(crate) async fn running_with(options: &Options) -> Self {
        let world = Self::new().await;
        world.run(options).await.unwrap();
        world.pass(Duration::from_hours(1)).await;
        world.begin().await;
        world
    }

    /// What was done so far is of no interest, but from now on everything has to be right.
    pub(crate) async fn begin(&self) {
        assert_eq!(self.servers().await.len(), 2);
        self.model.look().await;
        self.model.judge();
        self.told.lock().unwrap().clear();
    }

    /// A client that sees no faults, and that nobody watches.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.drydock.clone(), NAMESPACE)
    }

    /// What the code under test works with.
    pub(crate) fn surroundings(&self, holder: Option<&str>) -> Surroundings {
        let drydock = self.drydock.clone();
        let service = self.faults.around(self.model.around(&self.drydock));
        let told = Arc::clone(&self.told);
        Surroundings {
            holder: holder.map(str::to_owned),
            tell: Arc::new(move |line| told.lock().unwrap().push(line.to_owned())),
            ..Surroundings::new(
                Client::new(service, NAMESPACE),
                Clock::new(move || drydock.now()),
                self.dialling.clone(),
            )
        }
    }

    pub(crate) async fn run(&self, options: &Options) -> Result<Report, Error> {
        init_cert(&self.surroundings(Some("test")), options).await
    }

    pub(crate) async fn pass(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn api(&self, version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match kind {
            "Service" | "Deployment" | "Secret" | "Job" | "EndpointSlice" => {
                Api::namespaced_with(self.client(), NAMESPACE, &resource)
            }
            _ => Api::all_with(self.client(), &resource),
        }
    }

    pub(crate) async fn apply(&self, object: Value) {
        self.apply_as("test", object).await;
    }

    pub(crate) async fn apply_as(&self, manager: &str, object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap();
        let api = self.api(object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        api.patch(name, &PatchParams::apply(manager).force(), &Patch::Apply(&object)).await.unwrap();
    }

    /// Applies an object as a deployer does that takes nothing away from others.
    pub(crate) async fn deploy(&self, object: Value) -> Result<(), kube::Error> {
        let name = object["metadata"]["name"].as_str().unwrap();
        let api = self.api(object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        api.patch(name, &PatchParams::apply("helm"), &Patch::Apply(&object)).await.map(|_| ())
    }

    pub(crate) async fn get(&self, version: &str, kind: &str, name: &str) -> Value {
        serde_json::to_value(self.api(version, kind).get(name).await.unwrap()).unwrap()
    }

    /// Writes an object over, whole.
    pub(crate) async fn replace(&self, object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let api = self.api(object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        api.replace(&name, &PostParams::default(), &object).await.unwrap();
    }

    /// Writes the only bundle, as a person does.
    pub(crate) async fn write_bundle(&self, text: &str) {
        use base64::Engine as _;
        let kind = "ValidatingWebhookConfiguration";
        let mut object = self.get("admissionregistration.k8s.io/v1", kind, "shop").await;
        let text = base64::engine::general_purpose::STANDARD.encode(text);
        object["webhooks"][0]["clientConfig"]["caBundle"] = json!(text);
        object["metadata"].as_object_mut().unwrap().remove("managedFields");
        self.replace(object).await;
    }

    pub(crate) async fn delete(&self, version: &str, kind: &str, name: &str) {
        self.api(version, kind).delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn secret(&self, name: &str) -> Option<Secret> {
        Api::<Secret>::namespaced(self.client(), NAMESPACE).get_opt(name).await.unwrap()
    }

    pub(crate) async fn secret_text(&self, name: &str, key: &str) -> String {
        let data = self.secret(name).await.unwrap().data.unwrap_or_default();
        String::from_utf8(data.get(key).cloned().unwrap_or(ByteString(Vec::new())).0).unwrap()
    }

    /// Puts these into the Secret of the pair, as somebody else.
    pub(crate) async fn fill(&self, kind: &str, fields: &[(&str, &str)]) {
        let data: serde_json::Map<String, Value> =
            fields.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        self.apply(json!({"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": {"name": SECRET},
            "stringData": data}))
            .await;
        self.model.look().await;
    }

    /// The certificates of a bundle of the webhook configuration.
    pub(crate) async fn bundle(&self, kind: &str, name: &str, index: usize) -> Vec<CertificateDer<'static>> {
        use base64::Engine as _;
        let object = self.get("admissionregistration.k8s.io/v1", kind, name).await;
        let text = object["webhooks"][index]["clientConfig"]["caBundle"].as_str().unwrap_or_default().to_owned();
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
        CertificateDer::pem_slice_iter(&bytes).collect::<Result<_, _>>().unwrap()
    }

    /// The certificates of the only bundle.
    pub(crate) async fn trusted(&self) -> Vec<CertificateDer<'static>> {
        self.bundle("ValidatingWebhookConfiguration", "shop", 0).await
    }

    /// The pods that run.
    pub(crate) async fn servers(&self) -> Vec<String> {
        let pods = Api::<Pod>::namespaced(self.client(), NAMESPACE).list(&ListParams::default()).await.unwrap();
        let running = |pod: &&Pod| pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"));
        pods.iter().filter(running).map(ResourceExt::name_any).collect()
    }

    /// How often pods of the Deployment have started.
    pub(crate) fn starts(&self) -> usize {
        self.drydock.witness().len()
    }

    pub(crate) async fn deployment(&self) -> Deployment {
        Api::<Deployment>::namespaced(self.client(), NAMESPACE).get("hook").await.unwrap()
    }

    /// Nothing that was served was ever not covered.
    pub(crate) async fn expect_no_gap(&self) {
        self.model.look().await;
        let (gaps, checks) = self.model.verdict();
        assert!(gaps.is_empty(), "{}", gaps.join("\n"));
        assert!(checks > 0, "nobody has looked");
    }
}

/// What is usually wanted.
pub(crate) fn options() -> Options {
    let targets = Targets { validating_webhooks: vec!["shop".to_owned()], ..Targets::default() };
    Options { targets, deployments: vec!["hook".to_owned()], ..Options::new(NAMESPACE, "hook", SECRET) }
}

/// A webhook configuration whose entries lead to these Services.
pub(crate) fn webhooks(kind: &str, name: &str, entries: &[(&str, &str)]) -> Value {
    let webhook = |(name, service): &(&str, &str)| {
        json!({"name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"service": {"name": service, "namespace": NAMESPACE}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]})
    };
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": name, "labels": {"app": "shop"}}, "webhooks": entries.iter().map(webhook).collect::<Vec<_>>()})
}

pub(crate) fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "hook"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": "hook"}},
        "template": {"metadata": {"labels": {"app": "hook"}}, "spec": {
            "containers": [{"name": "c", "image": "shop/hook:1", "ports": [{"containerPort": 8443}],
                "volumeMounts": [{"name": "tls", "mountPath": "/tls"}]}],
            "volumes": [{"name": "tls", "secret": {"secretName": SECRET}}]}}}})
}

/// Wires to the servers of the model, at whose ends real TLS is spoken.
struct Wires {
    drydock: Drydock,
    model: Model,
}

#[async_trait]
impl Dialler for Wires {
    async fn dial(&self, peer: &Peer) -> io::Result<Box<dyn Stream>> {
        let client = Client::new(self.drydock.clone(), NAMESPACE);
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let pod = match peer {
            Peer::Server { pod, .. } => pod.clone().ok_or_else(refused)?,
            Peer::Service(_) => {
                let pods = Api::<Pod>::namespaced(client, NAMESPACE).list(&ListParams::default()).await.unwrap();
                pods.iter()
                    .map(ResourceExt::name_any)
                    .find(|pod| self.model.shown_by(pod).is_some())
                    .ok_or_else(refused)?
            }
        };
        let loaded = self.model.shown_by(&pod).ok_or_else(refused)?;
        let (near, far) = tokio::io::duplex(16 * 1024);
        tokio::spawn(async move {
            // Whoever has seen the certificate hangs up.
            let _ = tokio_rustls::TlsAcceptor::from(Arc::new(server(&loaded))).accept(far).await;
        });
        Ok(Box::new(near))
    }

    fn reaches_services(&self) -> bool {
        true
    }
}

fn server(loaded: &Loaded) -> rustls::ServerConfig {
    let chain = CertificateDer::pem_slice_iter(&loaded.certificate).collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(&loaded.key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    builder.with_no_client_auth().with_single_cert(chain, key).unwrap()
}
