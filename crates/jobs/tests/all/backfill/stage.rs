//! A cluster with objects and secrets in it, a sink that misbehaves on demand, and the judge of what arrived.

use jobwright_drydock::{Builder, Drydock, Faults};
use jobwright_engine::{Clock, Events, Retry, async_trait};
use jobwright_jobs::backfill::{
    Backfill, Batch, BatchLimits, CheckpointStore, Listener, Note, Patience, Problem, Remedy, Sink, SinkError, Summary,
    Surroundings,
};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::client::Body;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// Part of everything that must never leave.
pub(crate) const PLANTED: &str = "pl4nted";

/// A cluster with some of everything.
pub(crate) struct Stage {
    pub(crate) drydock: Drydock,
    pub(crate) faults: Faults,
    /// Who asks; the administrator if nobody.
    pub(crate) user: Option<&'static str>,
    notes: Arc<Mutex<Vec<String>>>,
}

impl Stage {
    /// A cluster with this many ConfigMaps, a third as many pods and Secrets, and some custom resources.
    pub(crate) async fn new(maps: usize) -> Self {
        Self::on(Drydock::builder().bare(), maps).await
    }

    pub(crate) async fn on(builder: Builder, maps: usize) -> Self {
        let stage = Self { drydock: builder.build(), faults: Faults::new(7), user: None, notes: Arc::default() };
        stage.create("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition()).await;
        for index in 0..maps {
            stage.create_map(&format!("map-{index:03}")).await;
            if index % 3 == 0 {
                stage.create("v1", "Secret", secret(index)).await;
                stage.create("v1", "Pod", pod(index)).await;
                stage.create("example.com/v1", "Widget", widget(index)).await;
            }
        }
        stage
    }

    /// The same cluster for a new process, whose calls go well.
    pub(crate) fn restarted(&self) -> Self {
        Self { drydock: self.drydock.clone(), faults: Faults::new(7), user: self.user, notes: Arc::default() }
    }

    /// A client of somebody else, whose calls go well.
    pub(crate) fn stranger(&self) -> Client {
        Client::new(self.drydock.clone(), "default")
    }

    pub(crate) fn surroundings(&self) -> Surroundings {
        let user = self.user;
        let service = self.faults.around(self.drydock.clone()).map_request(move |mut request: http::Request<Body>| {
            if let Some(user) = user {
                request.headers_mut().insert("impersonate-user", http::HeaderValue::from_static(user));
            }
            request
        });
        let client = Client::new(service, "default");
        let (drydock, notes) = (self.drydock.clone(), Arc::clone(&self.notes));
        let mut surroundings = Surroundings::new(client, Clock::new(move || drydock.now()));
        surroundings.listener = Listener::new(move |note: Note| notes.lock().unwrap().push(note.to_string()));
        surroundings
    }

    /// Retries without reports.
    pub(crate) fn retry(&self) -> Retry {
        Retry::new(self.surroundings().clock, CancellationToken::new(), Events::nowhere())
    }

    pub(crate) async fn run(&self, backfill: &Backfill, sink: &Arc<Collector>) -> Summary {
        self.run_with(backfill, sink, None, CancellationToken::new()).await
    }

    pub(crate) async fn run_with(
        &self,
        backfill: &Backfill,
        sink: &Arc<Collector>,
        store: Option<Arc<dyn CheckpointStore>>,
        cancellation: CancellationToken,
    ) -> Summary {
        let sink: Arc<dyn Sink> = sink.clone();
        let summary = backfill.run(self.surroundings(), sink, store, cancellation).await.unwrap();
        let told = serde_json::to_string(&summary).unwrap();
        assert!(!told.contains(PLANTED), "the summary has a secret: {told}");
        summary
    }

    /// What was said.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap().clone()
    }

    pub(crate) fn api(&self, version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(group, version, kind));
        match kind {
            "CustomResourceDefinition" | "Namespace" | "ClusterRole" | "ClusterRoleBinding" => {
                Api::all_with(self.stranger(), &resource)
            }
            _ => Api::default_namespaced_with(self.stranger(), &resource),
        }
    }

    pub(crate) async fn create(&self, version: &str, kind: &str, object: Value) {
        let mut object = object;
        object["apiVersion"] = json!(version);
        object["kind"] = json!(kind);
        let object = serde_json::from_value(object).unwrap();
        self.api(version, kind).create(&PostParams::default(), &object).await.unwrap();
    }

    /// Lets whoever asks do something everywhere.
    pub(crate) async fn allow(&self, name: &str, rules: &Value) {
        let version = "rbac.authorization.k8s.io/v1";
        self.create(version, "ClusterRole", json!({"metadata": {"name": name}, "rules": rules})).await;
        let subject = json!({"kind": "User", "name": self.user, "apiGroup": "rbac.authorization.k8s.io"});
        let role = json!({"kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io"});
        let binding = json!({"metadata": {"name": name}, "subjects": [subject], "roleRef": role});
        self.create(version, "ClusterRoleBinding", binding).await;
    }

    pub(crate) async fn create_map(&self, name: &str) {
        let applied = format!("{{\"data\":\"{PLANTED}-applied\"}}");
        let annotations = json!({"note": "é \"n\"", "kubectl.kubernetes.io/last-applied-configuration": applied});
        let data =
            json!({"text": format!("of {name}"), "DB_PASSWORD": format!("{PLANTED}-data"), "plain": "line\nbreak"});
        let metadata = json!({"name": name, "labels": {"app": "shop"}, "annotations": annotations});
        self.create("v1", "ConfigMap", json!({"metadata": metadata, "data": data})).await;
    }

    pub(crate) async fn delete_map(&self, name: &str) {
        self.api("v1", "ConfigMap").delete(name, &kube::api::DeleteParams::default()).await.unwrap();
    }

    /// What is there of some kinds, as it should arrive: by kind, namespace and name.
    pub(crate) async fn expected(&self, paths: &[&str]) -> BTreeMap<String, Value> {
        let mut expected = BTreeMap::new();
        for path in paths {
            let request = http::Request::get(*path).body(Vec::new()).unwrap();
            let list: Value = self.stranger().request(request).await.unwrap();
            let kind = list["kind"].as_str().unwrap().trim_end_matches("List").to_owned();
            for item in list["items"].as_array().unwrap() {
                let mut item = item.clone();
                item["apiVersion"] = list["apiVersion"].clone();
                item["kind"] = json!(kind);
                clean(&mut item);
                expected.insert(key(&item), item);
            }
        }
        expected
    }
}

/// Kinds that stages have objects of.
pub(crate) const KINDS: [&str; 4] = ["configmaps", "secrets", "pods", "widgets.example.com"];
/// Where they are listed.
pub(crate) const PATHS: [&str; 4] =
    ["/api/v1/configmaps", "/api/v1/secrets", "/api/v1/pods", "/apis/example.com/v1/widgets"];

/// A backfill of these kinds, in small pages and batches, that loses patience late.
pub(crate) fn backfill() -> Backfill {
    Backfill {
        kinds: KINDS.map(Into::into).to_vec(),
        page_size: 10,
        batches: BatchLimits { bytes: 100_000, records: 7 },
        patience: Patience { total: Duration::from_hours(1), ..Patience::default() },
        ..Backfill::default()
    }
}

fn definition() -> Value {
    json!({"metadata": {"name": "widgets.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

fn secret(index: usize) -> Value {
    let data = json!({"password": format!("{PLANTED}-{index}")});
    json!({"metadata": {"name": format!("secret-{index:03}")}, "stringData": data, "type": "Opaque"})
}

fn pod(index: usize) -> Value {
    let environment =
        json!([{"name": "API_TOKEN", "value": format!("{PLANTED}-{index}")}, {"name": "LEVEL", "value": "3"}]);
    json!({"metadata": {"name": format!("pod-{index:03}")}, "spec": {"containers": [{"name": "c", "image": "shop/api:1",
        "env": environment, "args": [format!("--password={PLANTED}"), "--level=3"]}]}})
}

fn widget(index: usize) -> Value {
    json!({"metadata": {"name": format!("widget-{index:03}")}, "spec": {"size": index, "url": format!("amqp://u:{PLANTED}@h/v"),
        "nested": {"kind": "Secret", "data": {"a": PLANTED}}}})
}

/// Takes out what a backfill takes out, of what stages have.
fn clean(object: &mut Value) {
    let removed = json!("(removed)");
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.remove("managedFields");
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
    match object["kind"].as_str().unwrap() {
        "Secret" => drop(object.as_object_mut().unwrap().remove("data")),
        "ConfigMap" if object["data"].get("DB_PASSWORD").is_some() => object["data"]["DB_PASSWORD"] = removed,
        "Pod" => {
            let container = &mut object["spec"]["containers"][0];
            container["env"][0]["value"] = removed;
            container["args"][0] = json!("--password=(removed)");
        }
        "Widget" => {
            object["spec"]["url"] = json!("amqp://u:(removed)@h/v");
            object["spec"]["nested"].as_object_mut().unwrap().remove("data");
        }
        _ => {}
    }
}

/// Objects of lines, by kind, namespace and name. None of it is secret.
pub(crate) fn read_lines(text: &str) -> BTreeMap<String, Value> {
    assert!(!text.contains(PLANTED), "a secret has left: {text}");
    let objects = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    objects.map(|object| (key(&object), object)).collect()
}

/// Says in which objects two sets differ, if they do.
pub(crate) fn compare(arrived: &BTreeMap<String, Value>, expected: &BTreeMap<String, Value>, context: &str) {
    let keys: BTreeSet<&String> = arrived.keys().chain(expected.keys()).collect();
    let differ = |key: &&&String| arrived.get(**key) != expected.get(**key);
    let show = |key: &String| format!("{key}:\n  arrived {:?}\n  is {:?}", arrived.get(key), expected.get(key));
    let wrong: Vec<String> = keys.iter().filter(differ).map(|key| show(key)).collect();
    assert!(wrong.is_empty(), "{context}: {} of {} differ: {}", wrong.len(), keys.len(), wrong[0]);
}

fn key(object: &Value) -> String {
    let part = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
    format!("{}/{}/{}", object["kind"].as_str().unwrap_or_default(), part("namespace"), part("name"))
}

/// What a sink does with a batch, counted from 1.
pub(crate) type Mood = Box<dyn Fn(usize) -> Deed + Send + Sync>;

/// What becomes of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Take,
    /// It is taken, but that is never told.
    TakeAndDie,
    /// It is neither taken nor answered.
    Die,
    /// It is refused, and can be sent again.
    Fail(Option<Duration>),
    /// It is refused for good.
    Refuse,
    /// Something happens meanwhile.
    Meanwhile(Happening),
}

/// What happens meanwhile, while a batch is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    Create(String),
    Delete(String),
    /// The cluster forgets what was.
    Forget,
}

/// A sink that keeps what it gets.
pub(crate) struct Collector {
    mood: Mood,
    stage: Option<Arc<Stage>>,
    state: Mutex<State>,
    died: tokio::sync::watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    asked: usize,
    batches: Vec<(String, String)>,
}

impl Collector {
    pub(crate) fn new(mood: impl Fn(usize) -> Deed + Send + Sync + 'static) -> Arc<Self> {
        Self::in_stage(None, mood)
    }

    /// A sink during whose work things happen in a cluster.
    pub(crate) fn in_stage(
        stage: Option<Arc<Stage>>,
        mood: impl Fn(usize) -> Deed + Send + Sync + 'static,
    ) -> Arc<Self> {
        let died = tokio::sync::watch::Sender::new(false);
        Arc::new(Self { mood: Box::new(mood), stage, state: Mutex::default(), died })
    }

    /// Waits until it has stopped answering.
    pub(crate) async fn died(&self) {
        self.died.subscribe().wait_for(|died| *died).await.unwrap();
    }

    /// Ids of the batches that arrived, in order.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.state.lock().unwrap().batches.iter().map(|(id, _)| id.clone()).collect()
    }

    /// What arrived, and how many objects came more than once. None of it is secret.
    pub(crate) fn objects(&self) -> (BTreeMap<String, Value>, usize) {
        let mut objects = BTreeMap::new();
        let mut again = 0;
        for (_, body) in &self.state.lock().unwrap().batches {
            let count = objects.len() + body.lines().count();
            objects.extend(read_lines(body));
            again += count - objects.len();
        }
        (objects, again)
    }

    async fn happen(&self, happening: Happening) {
        let stage = self.stage.as_ref().unwrap();
        match happening {
            Happening::Create(name) => stage.create_map(&name).await,
            Happening::Delete(name) => stage.delete_map(&name).await,
            Happening::Forget => {
                // What shows the present is not forgotten.
                stage.create("v1", "Namespace", json!({"metadata": {"generateName": "n-"}})).await;
                stage.drydock.compact();
            }
        }
    }
}

#[async_trait]
impl Sink for Collector {
    fn describe(&self) -> String {
        "collector".to_owned()
    }

    async fn send(&self, batch: &Batch) -> Result<(), SinkError> {
        let deed = {
            let mut state = self.state.lock().unwrap();
            state.asked += 1;
            (self.mood)(state.asked)
        };
        let problem = |status| Problem { status: Some(status), message: "the sink is in a bad mood".to_owned() };
        match &deed {
            Deed::Fail(after) => return Err(SinkError { problem: problem(503), remedy: Remedy::Again(*after) }),
            Deed::Refuse => return Err(SinkError { problem: problem(400), remedy: Remedy::None }),
            Deed::Die => {
                self.died.send_replace(true);
                return std::future::pending().await;
            }
            Deed::Meanwhile(happening) => self.happen(happening.clone()).await,
            Deed::Take | Deed::TakeAndDie => {}
        }
        let body = String::from_utf8(batch.body.to_vec()).unwrap();
        assert_eq!(body.lines().count(), batch.records);
        self.state.lock().unwrap().batches.push((batch.id.to_string(), body));
        if deed == Deed::TakeAndDie {
            self.died.send_replace(true);
            return std::future::pending().await;
        }
        Ok(())
    }
}
