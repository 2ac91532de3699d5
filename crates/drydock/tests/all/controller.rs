//! A real controller, written with `kube`, on drydock: finalizer, server-side apply, owned objects, events,
//! streaming lists; an hour of it in a moment, and the same every time.

use futures::StreamExt;
use jobwright_drydock::{Call, Drydock, Fault, Faults};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::events::{Event as Told, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{Event as Phase, finalizer};
use kube::runtime::watcher;
use kube::{Client, Resource, ResourceExt};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failed(String);

struct Context {
    client: Client,
    recorder: Recorder,
}

async fn reconcile(map: Arc<ConfigMap>, context: Arc<Context>) -> Result<Action, Failed> {
    let api = Api::<ConfigMap>::default_namespaced(context.client.clone());
    finalizer(&api, "example.com/jobs", map, |phase| async {
        match phase {
            Phase::Apply(map) => apply(&map, &context).await,
            Phase::Cleanup(map) => tell(&map, &context, "Cleaned").await,
        }
    })
    .await
    .map_err(|error| Failed(error.to_string()))
}

async fn apply(map: &ConfigMap, context: &Context) -> Result<Action, kube::Error> {
    let owner = map.controller_owner_ref(&());
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": map.name_any(), "ownerReferences": owner.as_slice()},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}},
    });
    let jobs = Api::<Job>::default_namespaced(context.client.clone());
    jobs.patch(&map.name_any(), &PatchParams::apply("example").force(), &Patch::Apply(&job)).await?;
    tell(map, context, "Applied").await?;
    Ok(Action::requeue(Duration::from_mins(10)))
}

async fn tell(map: &ConfigMap, context: &Context, reason: &str) -> Result<Action, kube::Error> {
    let event = Told {
        type_: EventType::Normal,
        reason: reason.to_owned(),
        note: Some(format!("{reason} {}", map.name_any())),
        action: "Reconcile".to_owned(),
        secondary: None,
    };
    context.recorder.publish(&event, &map.object_ref(&())).await?;
    Ok(Action::await_change())
}

/// Plays an hour and gives back what the cluster holds at the end, without what `kube` takes from the wall clock.
async fn play(client: Client) -> serde_json::Value {
    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    let jobs = Api::<Job>::default_namespaced(client.clone());
    let reporter = Reporter { controller: "example".to_owned(), instance: None };
    let context = Context { recorder: Recorder::new(client.clone(), reporter), client: client.clone() };
    let config = watcher::Config::default().streaming_lists();
    let running = Controller::new(maps.clone(), config.clone())
        .owns(jobs.clone(), config)
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(5)), Arc::new(context))
        .for_each(|_| std::future::ready(()));
    let running = tokio::spawn(running);

    for name in ["a", "b"] {
        let map = ConfigMap {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            ..ConfigMap::default()
        };
        create(&maps, &map).await;
        // What is due at the same moment comes in any order: kube keeps it in a hash set. So nothing is.
        tokio::time::sleep(Duration::from_secs(7)).await;
    }
    tokio::time::sleep(Duration::from_mins(20)).await;
    assert_eq!(list(&jobs).await.len(), 2);

    jobs.delete("a", &DeleteParams::background()).await.ok();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(list(&jobs).await.len(), 2, "a deleted job is made again");

    let mut deleted = maps.delete("b", &DeleteParams::background()).await;
    while deleted.is_err() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        deleted = maps.delete("b", &DeleteParams::background()).await;
    }
    tokio::time::sleep(Duration::from_mins(30)).await;
    let left: Vec<String> = list(&jobs).await.iter().map(ResourceExt::name_any).collect();
    assert_eq!(left, ["a"], "what the deleted map owned is gone");
    assert_eq!(list(&maps).await[0].finalizers(), ["example.com/jobs"]);

    running.abort();
    let mut events = list(&Api::<Event>::default_namespaced(client)).await;
    assert!(events.iter().any(|event| event.reason.as_deref() == Some("Cleaned")));
    for event in &mut events {
        event.event_time = None;
        event.metadata.name = None;
        if let Some(series) = &mut event.series {
            series.last_observed_time = None;
        }
    }
    json!({"maps": list(&maps).await, "jobs": list(&jobs).await, "events": events})
}

async fn create(maps: &Api<ConfigMap>, map: &ConfigMap) {
    while let Err(error) = maps.create(&PostParams::default(), map).await {
        if matches!(&error, kube::Error::Api(status) if status.reason == "AlreadyExists") {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn list<K>(api: &Api<K>) -> Vec<K>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    loop {
        match api.list(&ListParams::default()).await {
            Ok(list) => return list.items,
            Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
        }
    }
}

/// What a seed leads to: what the cluster holds at the end, and every call on the way.
async fn history(seed: u64) -> (serde_json::Value, Vec<String>) {
    let faults = Faults::new(0);
    let drydock = Drydock::builder().seed(seed).bare().build();
    let end = play(Client::new(faults.around(drydock), "default")).await;
    let calls = faults.calls().into_iter().map(|call| format!("{} {} {}", call.verb, call.resource, call.subresource));
    (end, calls.collect())
}

#[tokio::test(start_paused = true)]
async fn a_controller_runs_and_repeats_itself() {
    let (one, one_calls) = history(1).await;
    let (two, two_calls) = history(1).await;
    let (other, _) = history(2).await;
    assert_eq!(one_calls, two_calls);
    assert_eq!(one, two);
    assert_ne!(one, other);
}

#[tokio::test(start_paused = true)]
async fn a_controller_copes_with_faults() {
    let faults = Faults::new(7);
    faults.on(Call::writes).probability(0.2).fail(Fault::Internal);
    faults.on(Call::writes).probability(0.2).fail(Fault::Conflict);
    faults.on(|call| call.verb == "watch").probability(0.3).fail(Fault::DropWatch);
    faults.on(|call| call.verb == "list").probability(0.3).fail(Fault::Unavailable);
    play(Client::new(faults.around(Drydock::builder().bare().build()), "default")).await;
    assert!(faults.calls().len() > 20);
}
