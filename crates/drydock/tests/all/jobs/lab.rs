//! A cluster in which Jobs run, with a log of what changed when.

use futures::TryStreamExt as _;
use jobwright_drydock::{Builder, Drydock};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::core::NamespaceResourceScope;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

pub(crate) struct Lab {
    pub(crate) drydock: Drydock,
    pub(crate) client: kube::Client,
    log: Arc<Mutex<Vec<String>>>,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self::from(Drydock::builder())
    }

    pub(crate) fn from(builder: Builder) -> Self {
        let lab = Self::unwatched(builder);
        tokio::spawn(watch::<Job>("job", lab.client.clone(), Arc::clone(&lab.log)));
        tokio::spawn(watch::<Pod>("pod", lab.client.clone(), Arc::clone(&lab.log)));
        lab
    }

    /// A lab without a log.
    pub(crate) fn unwatched(builder: Builder) -> Self {
        let drydock = builder.build();
        let client = kube::Client::new(drydock.clone(), "default");
        Self { drydock, client, log: Arc::default() }
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::default_namespaced(self.client.clone())
    }

    /// Makes a Job whose pods run a shell line, with more in its spec.
    pub(crate) async fn job(&self, name: &str, line: &str, more: Value) {
        self.try_job(name, line, more).await.unwrap();
    }

    pub(crate) async fn try_job(&self, name: &str, line: &str, more: Value) -> kube::Result<Job> {
        let mut spec = json!({"template": template(line)});
        merge(&mut spec, &more);
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec});
        let job = serde_json::from_value(job).unwrap();
        self.api::<Job>().create(&PostParams::default(), &job).await
    }

    pub(crate) async fn cron(&self, name: &str, schedule: &str, line: &str, more: Value) {
        let mut spec = json!({"schedule": schedule, "jobTemplate": {"spec": {"template": template(line)}}});
        merge(&mut spec, &more);
        let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec});
        let cron = serde_json::from_value(cron).unwrap();
        self.api::<CronJob>().create(&PostParams::default(), &cron).await.unwrap();
    }

    pub(crate) async fn patch<K>(&self, name: &str, patch: Value)
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn delete<K>(&self, name: &str, how: DeleteParams)
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        self.api::<K>().delete(name, &how).await.unwrap();
    }

    pub(crate) async fn wait(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    pub(crate) async fn list<K>(&self) -> Vec<Value>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned
            + serde::Serialize,
    {
        let list = self.api::<K>().list(&ListParams::default()).await.unwrap();
        list.items.iter().map(|item| serde_json::to_value(item).unwrap()).collect()
    }

    pub(crate) async fn status(&self, job: &str) -> Value {
        let job = self.api::<Job>().get(job).await.unwrap();
        serde_json::to_value(job.status.unwrap_or_default()).unwrap()
    }

    /// The conditions of a Job: `Type=Status Reason: message`.
    pub(crate) async fn conditions(&self, job: &str) -> Vec<String> {
        let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        let conditions = self.status(job).await["conditions"].as_array().cloned().unwrap_or_default();
        let line = |condition: &Value| {
            let [kind, status, reason, message] =
                ["type", "status", "reason", "message"].map(|field| text(condition, field));
            format!("{kind}={status} {reason}: {message}")
        };
        conditions.iter().map(line).collect()
    }

    /// The events about Jobs and CronJobs, in order: `Reason: message (count)`, with generated names cut.
    pub(crate) async fn events(&self) -> Vec<String> {
        let mut events = self.api::<Event>().list(&ListParams::default()).await.unwrap().items;
        events.retain(|event| matches!(event.involved_object.kind.as_deref(), Some("Job" | "CronJob")));
        events.sort_by_key(|event| event.metadata.resource_version.clone().unwrap().parse::<u64>().unwrap());
        let line = |event: &Event| {
            let message = event.message.clone().unwrap_or_default();
            let message = match message.split_once(" pod: ") {
                Some((what, name)) => format!("{what} pod: {}", cut(name)),
                None => message,
            };
            let count = match event.count {
                Some(1) | None => String::new(),
                Some(count) => format!(" ×{count}"),
            };
            format!("{}: {message}{count}", event.reason.clone().unwrap_or_default())
        };
        events.iter().map(line).collect()
    }

    /// What changed, each with its second: how Jobs' statuses and pods' phases went.
    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// When pods were made, in seconds.
    pub(crate) fn pods_made(&self) -> Vec<String> {
        let made = self.log().into_iter().filter(|line| line.contains(" pod ") && line.ends_with("ADDED"));
        made.map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect()
    }
}

fn template(line: &str) -> Value {
    json!({"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 2,
        "containers": [{"name": "main", "image": "busybox", "command": ["sh", "-c", line]}]}})
}

fn merge(value: &mut Value, more: &Value) {
    match (value, more) {
        (Value::Object(map), Value::Object(more)) => {
            for (field, more) in more {
                merge(map.entry(field).or_insert(Value::Null), more);
            }
        }
        (value, more) => *value = more.clone(),
    }
}

/// A name without its generated end.
fn cut(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(base, _)| base)
}

async fn watch<K>(what: &str, client: kube::Client, log: Arc<Mutex<Vec<String>>>)
where
    K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + DeserializeOwned
        + serde::Serialize,
{
    let start = Instant::now();
    let api = Api::<K>::default_namespaced(client);
    let mut version = "0".to_owned();
    let mut stream = Box::pin(api.watch(&WatchParams::default(), &version).await.unwrap());
    let mut known: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    loop {
        let Ok(Some(event)) = stream.try_next().await else {
            // A watch ends after some minutes.
            stream = Box::pin(api.watch(&WatchParams::default(), &version).await.unwrap());
            continue;
        };
        let (object, how) = match event {
            WatchEvent::Added(object) => (object, "ADDED"),
            WatchEvent::Modified(object) => (object, ""),
            WatchEvent::Deleted(object) => (object, "DELETED"),
            _ => continue,
        };
        let object = serde_json::to_value(object).unwrap();
        object["metadata"]["resourceVersion"].as_str().unwrap().clone_into(&mut version);
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let shown = show(&object);
        let before = known.insert(name.clone(), shown.clone()).unwrap_or_default();
        let mut words: Vec<String> = Vec::new();
        for field in before.keys().chain(shown.keys().filter(|field| !before.contains_key(*field))) {
            match shown.get(field) {
                None => words.push(format!("-{field}")),
                Some(value) if before.get(field) != Some(value) => words.push(match value {
                    Value::String(text) => format!("{field}={text}"),
                    value => format!("{field}={value}"),
                }),
                Some(_) => {}
            }
        }
        words.sort();
        if !how.is_empty() {
            words = vec![how.to_owned()];
        }
        if !words.is_empty() {
            let name = if what == "pod" { cut(&name) } else { &name };
            let line = format!("{:.2} {what} {name} {}", start.elapsed().as_secs_f64(), words.join(" "));
            log.lock().unwrap().push(line);
        }
    }
}

/// The part of an object that the log is about.
fn show(object: &Value) -> Map<String, Value> {
    let mut shown = object["status"].as_object().cloned().unwrap_or_default();
    shown.retain(|field, _| {
        let dull = ["startTime", "completionTime", "observedGeneration", "qosClass", "containerStatuses"];
        !dull.contains(&field.as_str()) && !field.ends_with("IP") && !field.ends_with("IPs")
    });
    if let Some(conditions) = shown.get_mut("conditions") {
        let is_pod = object["spec"]["containers"].is_array();
        let shorten = |condition: &Value| {
            let mark = if condition["status"] == "True" { "" } else { "!" };
            format!("{mark}{}", condition["type"].as_str().unwrap_or_default())
        };
        let list = conditions.as_array().cloned().unwrap_or_default();
        *conditions = json!(list.iter().map(shorten).collect::<Vec<_>>().join(","));
        if is_pod {
            shown.remove("conditions");
        }
    }
    if let Some(uncounted) = shown.get_mut("uncountedTerminatedPods") {
        let count = |field: &str| uncounted[field].as_array().map_or(0, Vec::len);
        *uncounted = json!(format!("{}+{}", count("succeeded"), count("failed")));
    }
    if object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty()) {
        shown.insert("held".to_owned(), json!(true));
    }
    if object["metadata"]["deletionTimestamp"].is_string() {
        shown.insert("deleting".to_owned(), json!(true));
    }
    shown
}
