//! Random backfills of two clusters that change meanwhile, judged by what must have arrived.
//!
//! A case is a series of processes with one checkpoint. Each captures one of two clusters with some options, while objects come,
//! change and go and the cluster forgets its snapshots, and is killed at a batch or at a call, or comes to its end. The
//! receiver honours keys: it drops a request whose key it has seen. After `complete: true` it has every object that existed
//! throughout the run, and never a secret.
//!
//! `cargo test` plays 120 cases, always the same. `PROPTEST_CASES=10000` plays others, new ones each time (`.ci/nightly`);
//! `PROPTEST_RNG_SEED` plays those of a number again.

use super::plant::{NAMED, UNNAMED};
use super::stage::{Stage, backfill};
use jobwright_drydock::{Drydock, When};
use jobwright_engine::async_trait;
use jobwright_jobs::backfill::{
    Backfill, Batch, BatchLimits, CheckpointStore, ConfigMapCheckpoint, FileCheckpoint, Filters, Names, Sink,
    SinkError, Summary,
};
use kube::api::{DeleteParams, Patch, PatchParams};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed, TestCaseError, TestRunner};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const CASES: u32 = 120;
const SEED: u64 = 1;
/// What every secret begins with.
const SECRET: &str = "pl4nted";
/// The kinds of the objects that come and go.
const KINDS: [(&str, &str, &str); 2] =
    [("v1", "ConfigMap", "configmaps"), ("example.com/v1", "Widget", "widgets.example.com")];

/// What happens while a batch is on its way.
#[derive(Clone, Copy, Debug)]
enum Change {
    Create(usize),
    Delete(usize),
    Edit(usize),
    Forget,
}

/// How a process ends.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// At a batch, which has arrived or not.
    Batch(usize, bool),
    /// At a call to the cluster, which took effect or not.
    Call(usize, bool),
    /// By itself.
    None,
}

#[derive(Clone, Debug)]
struct Process {
    cluster: usize,
    options: usize,
    death: Death,
    /// By the number of the batch.
    changes: Vec<(usize, Change)>,
    /// What happens before the next process starts.
    after: Vec<Change>,
    pause: u64,
}

#[derive(Clone, Debug)]
struct Case {
    in_file: bool,
    objects: usize,
    places: BTreeSet<usize>,
    page_size: usize,
    records: usize,
    concurrency: usize,
    processes: Vec<Process>,
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (0..24_usize).prop_map(Change::Create),
        (0..24_usize).prop_map(Change::Delete),
        (0..24_usize).prop_map(Change::Edit),
        Just(Change::Forget),
    ]
}

fn any_process() -> impl Strategy<Value = Process> {
    let death = prop_oneof![
        3 => (1..8_usize, any::<bool>()).prop_map(|(batch, arrived)| Death::Batch(batch, arrived)),
        2 => (1..30_usize, any::<bool>()).prop_map(|(call, done)| Death::Call(call, done)),
        1 => Just(Death::None),
    ];
    let changes = prop::collection::vec((1..6_usize, any_change()), 0..4);
    let after = prop::collection::vec(any_change(), 0..3);
    let cluster = prop_oneof![4 => Just(0_usize), 1 => Just(1_usize)];
    let options = prop_oneof![4 => Just(0_usize), 1 => 1..4_usize];
    (cluster, options, death, changes, after, prop_oneof![3 => 0..30_u64, 1 => Just(7200_u64)]).prop_map(
        |(cluster, options, death, changes, after, pause)| Process { cluster, options, death, changes, after, pause },
    )
}

fn any_case() -> impl Strategy<Value = Case> {
    let numbers = (any::<bool>(), 0..16_usize, 1..7_usize, 1..5_usize, 1..4_usize);
    let places = prop::collection::btree_set(0..NAMED.len() + UNNAMED.len(), 3);
    (numbers, places, prop::collection::vec(any_process(), 1..6)).prop_map(
        |((in_file, objects, page_size, records, concurrency), places, processes)| Case {
            in_file,
            objects,
            places,
            page_size,
            records,
            concurrency,
            processes,
        },
    )
}

/// A cluster, and since when each of its objects has existed.
struct Cluster {
    stage: Stage,
    since: Mutex<BTreeMap<String, u64>>,
}

fn object(number: usize) -> (&'static str, &'static str, String) {
    let (version, kind, _) = KINDS[number % KINDS.len()];
    (version, kind, format!("object-{number:02}"))
}

/// Counts what happens.
type Time = Arc<Mutex<u64>>;

fn tick(time: &Time) -> u64 {
    let mut time = time.lock().unwrap();
    *time += 1;
    *time
}

impl Cluster {
    async fn new(case: &Case, seed: u64, time: &Time) -> Self {
        let stage = Stage::on(Drydock::builder().bare().seed(seed), 0).await;
        let cluster = Self { stage, since: Mutex::default() };
        let unnamed = format!("{SECRET}-{seed}-unnamed");
        cluster.stage.create("v1", "Secret", json!({"metadata": {"name": "db"}, "stringData": {"foo": unnamed}})).await;
        for place in &case.places {
            let (plant, name, value) = match NAMED.get(*place) {
                Some((_, plant)) => (plant, "adminPassword", format!("{SECRET}{seed}named{place}")),
                None => (&UNNAMED[place - NAMED.len()].1, "foo", unnamed.clone()),
            };
            let mut planted = plant(name, &value);
            planted["metadata"]["name"] = json!(format!("planted-{place}"));
            let (version, kind) =
                if planted.get("data").is_some() { ("v1", "ConfigMap") } else { ("example.com/v1", "Widget") };
            cluster.stage.create(version, kind, planted).await;
            cluster.note(kind, &format!("planted-{place}"), Some(tick(time)));
        }
        for number in 0..case.objects {
            cluster.change(Change::Create(number), time).await;
        }
        cluster
    }

    fn note(&self, kind: &str, name: &str, since: Option<u64>) {
        let key = format!("{kind}/default/{name}");
        let mut known = self.since.lock().unwrap();
        match since {
            Some(since) => drop(known.insert(key, since)),
            None => drop(known.remove(&key)),
        }
    }

    async fn change(&self, change: Change, time: &Time) {
        match change {
            Change::Create(number) => {
                let (version, kind, name) = object(number);
                if self.stage.api(version, kind).get_opt(&name).await.unwrap().is_none() {
                    self.stage.create(version, kind, json!({"metadata": {"name": name}})).await;
                    self.note(kind, &name, Some(tick(time)));
                }
            }
            Change::Delete(number) => {
                let (version, kind, name) = object(number);
                self.note(kind, &name, None);
                let _ = self.stage.api(version, kind).delete(&name, &DeleteParams::default()).await;
            }
            Change::Edit(number) => {
                let (version, kind, name) = object(number);
                let patch = json!({"metadata": {"annotations": {"edited": tick(time).to_string()}}});
                let _ = self.stage.api(version, kind).patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
            }
            Change::Forget => {
                let metadata = json!({"generateName": "n-"});
                self.stage.create("v1", "Namespace", json!({"metadata": metadata})).await;
                self.stage.drydock.compact();
            }
        }
    }
}

/// What the receiver has.
#[derive(Default)]
struct Received {
    /// Bodies by their keys.
    bodies: BTreeMap<String, Vec<u8>>,
    /// Objects by run and cluster.
    objects: BTreeMap<String, BTreeSet<String>>,
    /// When the first process of a run began.
    began: BTreeMap<String, u64>,
    problems: Vec<String>,
}

/// A receiver that honours keys, as one process sees it.
struct Receiver {
    received: Arc<Mutex<Received>>,
    cluster: Arc<Cluster>,
    process: Process,
    time: Time,
    began: u64,
    asked: Mutex<usize>,
    died: tokio::sync::watch::Sender<bool>,
}

#[async_trait]
impl Sink for Receiver {
    fn describe(&self) -> String {
        "receiver".to_owned()
    }

    async fn send(&self, batch: &Batch) -> Result<(), SinkError> {
        let number = {
            let mut asked = self.asked.lock().unwrap();
            *asked += 1;
            *asked
        };
        self.received.lock().unwrap().began.entry(batch.id.run.clone()).or_insert(self.began);
        if matches!(self.process.death, Death::Batch(at, false) if at == number) {
            self.died.send_replace(true);
            return std::future::pending().await;
        }
        self.received.lock().unwrap().take(batch);
        if matches!(self.process.death, Death::Batch(at, true) if at == number) {
            self.died.send_replace(true);
            return std::future::pending().await;
        }
        for (_, change) in self.process.changes.iter().filter(|(at, _)| *at == number) {
            self.cluster.change(*change, &self.time).await;
        }
        Ok(())
    }
}

impl Received {
    fn take(&mut self, batch: &Batch) {
        let body = batch.body.to_vec();
        if let Some(known) = self.bodies.get(&batch.key) {
            if *known != body {
                self.problems.push(format!("{} has carried two contents", batch.key));
            }
            return;
        }
        let text = String::from_utf8(body.clone()).unwrap();
        for line in text.lines() {
            let object: Value = serde_json::from_str(line).unwrap();
            if line.contains(SECRET) {
                self.problems.push(format!("a secret has left: {line}"));
            }
            let part = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
            let key = format!("{}/{}/{}", object["kind"].as_str().unwrap(), part("namespace"), part("name"));
            self.objects.entry(batch.id.run.clone()).or_default().insert(key);
        }
        self.bodies.insert(batch.key.clone(), body);
    }
}

/// The same options with a number ask for the same thing.
fn options(case: &Case, number: usize) -> Backfill {
    let names = |without: &str| Names { only: Vec::new(), without: vec![without.parse().unwrap()] };
    let base = Backfill {
        kinds: KINDS.map(|(_, _, plural)| plural.into()).to_vec(),
        page_size: case.page_size,
        concurrency: case.concurrency,
        batches: BatchLimits { bytes: 100_000, records: case.records },
        ..backfill()
    };
    match number {
        0 => base,
        1 => Backfill { batches: BatchLimits { bytes: 300, ..base.batches }, ..base },
        2 => Backfill { filters: Filters { names: names("-03$"), ..Filters::default() }, ..base },
        _ => Backfill { kinds: vec!["configmaps".into()], ..base },
    }
}

/// Whether an object has to arrive with these options.
fn is_wanted(options: usize, key: &str) -> bool {
    match options {
        2 => !key.ends_with("-03"),
        3 => key.starts_with("ConfigMap/"),
        _ => true,
    }
}

/// Whether what was received is right after a process that came to its end, or did not.
fn judge(
    received: &Received,
    cluster: &Cluster,
    process: &Process,
    began: u64,
    summary: Option<&Summary>,
) -> Result<(), String> {
    if let Some(problem) = received.problems.first() {
        return Err(problem.clone());
    }
    let Some(summary) = summary else { return Ok(()) };
    if !summary.complete {
        return Err(format!("it is not complete: {summary:?}"));
    }
    let began = received.began.get(&summary.run).copied().unwrap_or(began);
    let nothing = BTreeSet::new();
    let arrived = received.objects.get(&summary.run).unwrap_or(&nothing);
    for (key, since) in &*cluster.since.lock().unwrap() {
        if *since < began && is_wanted(process.options, key) && !arrived.contains(key) {
            return Err(format!("{key} has not arrived: {summary:?}"));
        }
    }
    Ok(())
}

async fn play(case: &Case) -> Result<bool, String> {
    let time: Time = Arc::default();
    let mut clusters = Vec::new();
    for seed in [1, 2] {
        clusters.push(Arc::new(Cluster::new(case, seed, &time).await));
    }
    let directory = tempfile::tempdir().unwrap();
    let received: Arc<Mutex<Received>> = Arc::default();
    let mut is_complete = false;
    for process in &case.processes {
        let cluster = &clusters[process.cluster];
        let stage = cluster.stage.restarted();
        if let Death::Call(at, done) = process.death {
            stage.faults.stop_at(at, if done { When::After } else { When::Before });
        }
        let store: Arc<dyn CheckpointStore> = if case.in_file {
            Arc::new(FileCheckpoint::new(directory.path().join("checkpoint")))
        } else {
            let client = stage.surroundings().client;
            Arc::new(ConfigMapCheckpoint::new(&client, "default", "progress", stage.retry()))
        };
        let sink = Arc::new(Receiver {
            received: Arc::clone(&received),
            cluster: Arc::clone(cluster),
            process: process.clone(),
            time: Arc::clone(&time),
            began: tick(&time),
            asked: Mutex::default(),
            died: tokio::sync::watch::Sender::new(false),
        });
        let mut died = sink.died.subscribe();
        let backfill = options(case, process.options);
        let run = backfill.run(
            stage.surroundings(),
            Arc::clone(&sink) as Arc<dyn Sink>,
            Some(store),
            CancellationToken::new(),
        );
        let summary = tokio::select! {
            summary = run => Some(summary.map_err(|error| error.to_string())?),
            _ = died.wait_for(|died| *died) => None,
            () = stage.faults.stopped() => None,
        };
        is_complete |= summary.is_some();
        judge(&received.lock().unwrap(), cluster, process, sink.began, summary.as_ref())?;
        for change in &process.after {
            cluster.change(*change, &time).await;
        }
        tokio::time::sleep(Duration::from_secs(process.pause)).await;
    }
    Ok(is_complete)
}

/// How many cases are played, and from which seed on.
#[expect(clippy::disallowed_methods, reason = "switches for `.ci/nightly`")]
fn wanted() -> (u32, u64) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let cases = number("PROPTEST_CASES").map(|cases| u32::try_from(cases).unwrap());
    let new = || if cases.is_some() { fastrand::u64(..) } else { SEED };
    (cases.unwrap_or(CASES), number("PROPTEST_RNG_SEED").unwrap_or_else(new))
}

#[test]
fn complete_backfills_have_every_object_that_existed_throughout_and_no_secret() {
    let (cases, seed) = wanted();
    let config = Config {
        cases,
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 300,
        ..Config::default()
    };
    let complete = Mutex::new(0);
    let result = TestRunner::new(config).run(&any_case(), |case| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let is_complete = runtime.block_on(play(&case)).map_err(TestCaseError::fail)?;
        *complete.lock().unwrap() += u32::from(is_complete);
        Ok(())
    });
    if let Err(error) = result {
        panic!("PROPTEST_RNG_SEED={seed}: {error}");
    }
    let complete = *complete.lock().unwrap();
    assert!(complete * 3 >= cases, "only {complete} of {cases} cases came to an end");
}
