//! The lookout: one watch on all Jobs and one on all pods of a release, shared by all its jobs.

use crate::error::{Answer, Error, classify};
use crate::names;
use crate::retry::{Outage, Retry};
use futures::StreamExt as _;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::core::Status;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

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
    /// Why nothing could be seen when that was last tried.
    failing: Option<Failing>,
}

/// A watch that fails.
struct Failing {
    doing: &'static str,
    error: kube::Error,
    retried: Duration,
    is_final: bool,
}

/// How long a watch lasts before it is opened again: shorter than the retry limit, so that a dead one is noticed.
const WATCH_SECONDS: u32 = 240;
/// Failures of a watch that are further apart than this: it worked in between. More than a deadline and a backoff.
const APART: Duration = Duration::from_secs(90);
/// How many deletions are remembered: far more than happen between two looks.
const REMEMBERED: usize = 10_000;

impl<K> Default for Shelf<K> {
    fn default() -> Self {
        Self { by_job: BTreeMap::new(), coming: None, lists: 0, gone: VecDeque::new(), failing: None }
    }
}

impl Lookout {
    /// Begins to look. Watches that fail are retried.
    pub(crate) fn open(client: &Client, namespace: &str, labels: &BTreeMap<String, String>, retry: &Retry) -> Self {
        let pairs = labels.iter().map(|(key, value)| format!("{key}={value}"));
        let selector = pairs.collect::<Vec<_>>().join(",");
        let state = Arc::new(Mutex::new(State::default()));
        let (sender, changed) = watch::channel(0);
        let view = View { state: Arc::clone(&state), changed: Arc::new(sender), retry: retry.clone() };
        let mut tasks = JoinSet::new();
        let config = Config::default().labels(&selector).timeout(WATCH_SECONDS);
        let jobs = Api::<Job>::namespaced(client.clone(), namespace);
        tasks.spawn(view.clone().look(jobs, config.clone(), "watch the Jobs of the release", |state| &mut state.jobs));
        let pods = Api::<Pod>::namespaced(client.clone(), namespace);
        tasks.spawn(view.look(pods, config, "watch the pods of the release", |state| &mut state.pods));
        Self { state, changed, _tasks: Arc::new(tasks) }
    }

    /// Waits until everything has been listed once. Fails where the watches cannot start, or have failed for too long.
    pub(crate) async fn ready(&mut self, retry: &Retry) -> Result<(), Error> {
        let listed = async {
            loop {
                {
                    let state = self.lock();
                    state.check()?;
                    if state.jobs.lists > 0 && state.pods.lists > 0 {
                        return Ok(());
                    }
                }
                self.changed().await;
            }
        };
        match retry.wait(listed).await {
            Some(listed) => listed,
            None => Err(self.lock().failing().map_or(Error::Cancelled, Failing::tell)),
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

impl State {
    /// Fails where nothing can be seen any more.
    fn check(&self) -> Result<(), Error> {
        let failing = self.jobs.failing.iter().chain(&self.pods.failing).find(|failing| failing.is_final);
        failing.map_or(Ok(()), |failing| Err(failing.tell()))
    }

    fn failing(&self) -> Option<&Failing> {
        self.jobs.failing.as_ref().or(self.pods.failing.as_ref())
    }
}

impl Failing {
    fn tell(&self) -> Error {
        Error::retried(self.doing, crate::error::repeat(&self.error), self.retried)
    }
}

impl<K: Resource> Shelf<K> {
    fn of(&self, job: &str) -> Vec<Arc<K>> {
        self.by_job.get(job).map(|objects| objects.values().cloned().collect()).unwrap_or_default()
    }

    fn take(&mut self, event: Event<K>) {
        if !matches!(event, Event::Init) {
            self.failing = None;
        }
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

/// What the watches share.
#[derive(Clone)]
struct View {
    state: Arc<Mutex<State>>,
    changed: Arc<watch::Sender<u64>>,
    retry: Retry,
}

impl View {
    async fn look<K>(self, objects: Api<K>, config: Config, doing: &'static str, shelf: fn(&mut State) -> &mut Shelf<K>)
    where
        K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let mut events = watcher(objects, config).boxed();
        let mut outage = Outage::default();
        let (mut since, mut last): (Instant, Option<Instant>) = (Instant::now(), None);
        while let Some(event) = events.next().await {
            let error = match event {
                Ok(event) => {
                    // A list that begins has not been answered yet.
                    if !matches!(event, Event::Init) {
                        last = None;
                    }
                    self.change(|state| shelf(state).take(event));
                    continue;
                }
                Err(error) => error,
            };
            let now = Instant::now();
            // A watch that works again and has nothing to tell says nothing.
            if last.replace(now).is_none_or(|last| now - last >= APART) {
                (since, outage) = (now, Outage::default());
            }
            let is_refused = is_refused(&error);
            let error = unwrap(error);
            let failing = |error, is_final| Failing { doing, error, retried: since.elapsed(), is_final };
            let known = crate::error::repeat(&error);
            self.change(|state| shelf(state).failing = Some(failing(known, is_refused)));
            if is_refused {
                return;
            }
            let known = crate::error::repeat(&error);
            if self.retry.pause(&mut outage, doing, error).await.is_err() {
                self.change(|state| shelf(state).failing = Some(failing(known, true)));
                return;
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.send_modify(|version| *version += 1);
    }
}

/// Whether a watch will never start.
fn is_refused(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error) => {
            matches!(classify(error), Answer::Refused | Answer::LostLease)
        }
        _ => false,
    }
}

/// What the API server answered to a watch, or why it could not be read.
fn unwrap(error: watcher::Error) -> kube::Error {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => error,
        watcher::Error::WatchError(status) => kube::Error::Api(status),
        watcher::Error::NoResourceVersion => kube::Error::Api(Status::failure(&error.to_string(), "Unknown").boxed()),
    }
}
