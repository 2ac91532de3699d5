//! The lookout: one watch on all Jobs and one on all pods of a release, which everybody shares.

use crate::error::{Answer, Error, classify};
use crate::names;
use futures::StreamExt as _;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{WatchStreamExt as _, watcher::Config};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What is seen of a release's Jobs and pods. Ends with its last clone.
#[derive(Clone)]
pub(crate) struct Lookout {
    state: Arc<Mutex<State>>,
    changed: watch::Receiver<u64>,
    _tasks: Arc<JoinSet<()>>,
}

#[derive(Default)]
struct State {
    jobs: Shelf<Job>,
    pods: Shelf<Pod>,
    /// Why nothing can be seen.
    blinded: Option<Arc<watcher::Error>>,
}

/// Objects of a kind, by the job they belong to and by name.
struct Shelf<K> {
    by_job: BTreeMap<String, BTreeMap<String, Arc<K>>>,
    /// What a new list has brought so far.
    coming: Option<BTreeMap<String, BTreeMap<String, Arc<K>>>>,
    /// How often all have been listed.
    lists: u64,
    /// The uids of what was deleted lately.
    gone: VecDeque<String>,
}

/// How many deletions are remembered: far more than happen between two looks.
const REMEMBERED: usize = 10_000;

impl<K> Default for Shelf<K> {
    fn default() -> Self {
        Self { by_job: BTreeMap::new(), coming: None, lists: 0, gone: VecDeque::new() }
    }
}

impl Lookout {
    /// Begins to look.
    pub(crate) fn open(client: &Client, namespace: &str, labels: &BTreeMap<String, String>) -> Self {
        let pairs = labels.iter().map(|(key, value)| format!("{key}={value}"));
        let selector = pairs.collect::<Vec<_>>().join(",");
        let state = Arc::new(Mutex::new(State::default()));
        let (sender, changed) = watch::channel(0);
        let sender = Arc::new(sender);
        let mut tasks = JoinSet::new();
        let config = Config::default().labels(&selector);
        let jobs = Api::<Job>::namespaced(client.clone(), namespace);
        tasks.spawn(look(jobs, config.clone(), Arc::clone(&state), Arc::clone(&sender), |state| &mut state.jobs));
        let pods = Api::<Pod>::namespaced(client.clone(), namespace);
        tasks.spawn(look(pods, config, Arc::clone(&state), sender, |state| &mut state.pods));
        Self { state, changed, _tasks: Arc::new(tasks) }
    }

    /// Waits until everything has been seen once.
    pub(crate) async fn ready(&mut self) -> Result<(), Error> {
        loop {
            {
                let state = self.lock();
                if let Some(error) = &state.blinded {
                    return Err(blinded(error));
                }
                if state.jobs.lists > 0 && state.pods.lists > 0 {
                    return Ok(());
                }
            }
            self.changed().await;
        }
    }

    /// Waits until something has changed since this was last asked.
    pub(crate) async fn changed(&mut self) {
        if self.changed.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The Jobs of a job, by name.
    pub(crate) fn jobs(&self, job: &str) -> Vec<Arc<Job>> {
        self.lock().jobs.of(job)
    }

    /// The pods of a job, by name.
    pub(crate) fn pods(&self, job: &str) -> Vec<Arc<Pod>> {
        self.lock().pods.of(job)
    }

    /// The jobs that have Jobs.
    pub(crate) fn job_ids(&self) -> Vec<String> {
        let state = self.lock();
        state.jobs.by_job.iter().filter(|(_, jobs)| !jobs.is_empty()).map(|(id, _)| id.clone()).collect()
    }

    /// How often all Jobs have been listed: what is older than a list and not in it is gone.
    pub(crate) fn lists(&self) -> u64 {
        self.lock().jobs.lists
    }

    /// Whether a Job was seen to go.
    pub(crate) fn has_gone(&self, uid: &str) -> bool {
        self.lock().jobs.gone.iter().rev().any(|gone| gone == uid)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Resource> Shelf<K> {
    fn of(&self, job: &str) -> Vec<Arc<K>> {
        self.by_job.get(job).map(|objects| objects.values().cloned().collect()).unwrap_or_default()
    }

    fn take(&mut self, event: Event<K>) {
        match event {
            Event::Init => self.coming = Some(BTreeMap::new()),
            Event::InitApply(object) => {
                if let Some(coming) = &mut self.coming {
                    put(coming, object);
                }
            }
            Event::InitDone => {
                self.by_job = self.coming.take().unwrap_or_default();
                self.lists += 1;
            }
            Event::Apply(object) => put(&mut self.by_job, object),
            Event::Delete(object) => {
                if let Some(objects) = self.by_job.get_mut(job_of(&object)) {
                    objects.remove(&object.name_any());
                }
                self.gone.extend(object.uid());
                if self.gone.len() > REMEMBERED {
                    self.gone.pop_front();
                }
            }
        }
    }
}

fn put<K: Resource>(shelf: &mut BTreeMap<String, BTreeMap<String, Arc<K>>>, object: K) {
    let objects = shelf.entry(job_of(&object).to_owned()).or_default();
    objects.insert(object.name_any(), Arc::new(object));
}

fn job_of<K: Resource>(object: &K) -> &str {
    object.labels().get(names::JOB).map(String::as_str).unwrap_or_default()
}

async fn look<K>(
    objects: Api<K>,
    config: Config,
    state: Arc<Mutex<State>>,
    changed: Arc<watch::Sender<u64>>,
    shelf: fn(&mut State) -> &mut Shelf<K>,
) where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut events = watcher(objects, config).default_backoff().boxed();
    while let Some(event) = events.next().await {
        {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            match event {
                Ok(event) => shelf(&mut state).take(event),
                Err(error) if is_final(&error) => state.blinded = Some(Arc::new(error)),
                Err(_) => {}
            }
        }
        changed.send_modify(|version| *version += 1);
    }
}

/// Whether a watch will not come back by itself.
fn is_final(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error) => {
            classify(error) == Answer::Refused
        }
        _ => false,
    }
}

fn blinded(error: &watcher::Error) -> Error {
    let status = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.clone(),
        other => kube::core::Status::failure(&other.to_string(), "Unknown").boxed(),
    };
    Error::cluster("watch the Jobs and pods of the release", kube::Error::Api(status))
}
