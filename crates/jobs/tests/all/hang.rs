//! Calls, servers, sinks and files that never answer: every job ends at its limit, and soon after it is told to stop.
//!
//! Time is virtual: a job that hangs runs into the limit of the test at once.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use crate::backfill::http_sink::to;
use crate::backfill::stage::{Collector, Deed, Stage, backfill};
use crate::init_cert::world::{World, options};
use crate::support::{Instead, Lab, deployment, place};
use jobwright_drydock::Fault;
use jobwright_engine::{Job, JobOutcome, Retry, async_trait, break_lease};
use jobwright_jobs::backfill::{
    Backfill, CheckpointPlace, Compression, Error, ObjectStorageSink, Patience, Setting, Summary, Task,
};
use jobwright_jobs::init_cert::{Dialler, Dialling, Options, Peer, Stream, check, init_cert};
use jobwright_jobs::{Adopt, GrowVolume, ObjectReference, Workload};
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use serde_json::json;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const NEVER: Duration = Duration::from_hours(24 * 365);
/// Longer than any job retries.
const LIMIT: Duration = Duration::from_mins(30);
/// Longer than any job may take to stop.
const STOPS: Duration = Duration::from_secs(25);

/// A backfill with everything that calls the cluster: a wait, a lock, a checkpoint, lists.
fn task(directory: &tempfile::TempDir) -> Task {
    let backfill = Backfill { patience: Patience::default(), ..backfill() };
    Task {
        backfill,
        waits: vec!["crd/widgets.example.com=Established".parse().unwrap()],
        checkpoint: Some(CheckpointPlace::ConfigMap("progress".to_owned())),
        ..to(&format!("file:{}", directory.path().join("out").display()))
    }
}

async fn carry_out(stage: &Stage, task: &Task, cancellation: CancellationToken) -> Result<Summary, Error> {
    let setting = Setting {
        surroundings: stage.surroundings(),
        namespace: "default".to_owned(),
        holder: "test".to_owned(),
        stdout: Box::new(io::sink()),
        cancellation,
    };
    task.run(setting).await
}

/// Cancels as soon as a call has been made.
async fn cancel_at(faults: &jobwright_drydock::Faults, call: usize, token: &CancellationToken) {
    while faults.calls().len() < call {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    token.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_backfill_survives_a_call_that_is_never_answered_and_stops_when_told_to() {
    let directory = tempfile::tempdir().unwrap();
    let stage = Stage::new(9).await;
    assert!(carry_out(&stage, &task(&directory), CancellationToken::new()).await.unwrap().complete);
    let calls = stage.faults.calls();
    assert!(calls.len() >= 14, "{calls:?}");
    for (index, call) in calls.iter().enumerate() {
        let silent = |stage: &Stage| stage.faults.on(|_| true).skip(index).times(1).fail(Fault::Slow(NEVER));
        let stage = Stage::new(9).await;
        silent(&stage);
        let run = timeout(LIMIT, carry_out(&stage, &task(&directory), CancellationToken::new())).await;
        let summary = run.unwrap_or_else(|_| panic!("hangs at {call}")).unwrap();
        assert!(summary.complete, "{call}: {summary:?}");

        let stage = Stage::new(9).await;
        silent(&stage);
        let token = CancellationToken::new();
        let task = task(&directory);
        let stopped = async {
            cancel_at(&stage.faults, index + 1, &token).await;
            tokio::time::sleep(STOPS).await;
        };
        tokio::select! {
            biased;
            result = carry_out(&stage, &task, token.clone()) => match result {
                Ok(summary) => assert!(summary.cancelled || summary.complete, "{call}: {summary:?}"),
                Err(error) => assert!(matches!(error, Error::Cancelled), "{call}: {error}"),
            },
            () = stopped => panic!("does not stop at {call}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_backfill_gives_up_on_object_storage_that_never_answers() {
    let stage = Stage::new(9).await;
    let config = ThrottleConfig { wait_put_per_call: NEVER, ..ThrottleConfig::default() };
    let store = Arc::new(ThrottledStore::new(InMemory::new(), config));
    let sink = Arc::new(ObjectStorageSink::new(store, "s3://b", "", Compression::None));
    let backfill = Backfill { patience: Patience::default(), ..backfill() };
    let run = backfill.run(stage.surroundings(), sink, None, CancellationToken::new());
    let summary = timeout(LIMIT, run).await.expect("it hangs").unwrap();
    assert!(summary.stopped.as_ref().unwrap().contains("no answer within 120 s"), "{summary:?}");
}

#[tokio::test(start_paused = true)]
async fn a_backfill_that_loses_its_lock_stops_immediately_and_writes_nothing_more() {
    let stage = Arc::new(Stage::new(60).await);
    let directory = tempfile::tempdir().unwrap();
    let task = Task { waits: Vec::new(), ..task(&directory) };
    // Each page takes a while, and soon nothing can be renewed any more.
    stage.faults.on(|call| call.verb == "list").fail(Fault::Slow(Duration::from_secs(4)));
    let name = task.needs(&stage.stranger(), "default", &stage.retry()).await.unwrap().lock.unwrap();
    let clock = stage.surroundings().clock;
    let retry = Retry::new(clock, CancellationToken::new(), jobwright_engine::Events::nowhere());
    let broken = async {
        tokio::time::sleep(Duration::from_secs(9)).await;
        break_lease(&stage.stranger(), "default", &name, "test", &retry).await.unwrap().expect("it is held");
        // The holder notices when it renews.
        tokio::time::sleep(Duration::from_secs(4)).await;
        stage.faults.calls().len()
    };
    let (summary, calls) = tokio::join!(carry_out(&stage, &task, CancellationToken::new()), broken);
    let summary = summary.unwrap();
    assert!(!summary.complete && !summary.cancelled, "{summary:?}");
    assert!(summary.stopped.as_ref().unwrap().starts_with("the lock was lost"), "{summary:?}");
    assert_eq!(stage.faults.calls().len(), calls, "nothing is asked or written afterwards");
}

#[tokio::test(start_paused = true)]
async fn a_stopped_backfill_does_not_wait_for_its_checkpoint_or_the_end_of_its_sink() {
    let stage = Stage::new(30).await;
    let directory = tempfile::tempdir().unwrap();
    let task = Task { waits: Vec::new(), ..task(&directory) };
    // The checkpoint is created, and then cannot be written any more.
    stage.faults.on(|call| call.resource == "configmaps" && call.verb == "update").fail(Fault::Slow(NEVER));
    let token = CancellationToken::new();
    let stopped = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        token.cancel();
        tokio::time::sleep(STOPS).await;
    };
    tokio::select! {
        biased;
        summary = carry_out(&stage, &task, token.clone()) => drop(summary),
        () = stopped => panic!("it does not stop"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_never_answers_is_given_up_when_the_run_is_told_to_stop() {
    let stage = Stage::new(30).await;
    let (sink, backfill) = (Collector::new(|_| Deed::Die), backfill());
    let token = CancellationToken::new();
    let stopped = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        token.cancel();
        tokio::time::sleep(STOPS).await;
    };
    tokio::select! {
        biased;
        summary = backfill.run(stage.surroundings(), sink, None, token.clone()) => assert!(summary.unwrap().cancelled),
        () = stopped => panic!("it does not stop"),
    }
}

#[tokio::test(start_paused = true)]
async fn init_cert_survives_a_call_that_is_never_answered_and_stops_when_told_to() {
    let forced = Options { force: true, ..options() };
    let world = World { faults: jobwright_drydock::Faults::new(0), ..World::running().await };
    world.run(&forced).await.unwrap();
    let calls = world.faults.calls();
    assert!(calls.len() >= 60, "{}", calls.len());
    // Every write, and the first of each kind of read.
    let mut seen = std::collections::BTreeSet::new();
    let chosen: Vec<usize> =
        (0..calls.len()).filter(|index| seen.insert(calls[*index].to_string()) || calls[*index].writes()).collect();
    assert!(chosen.len() >= 12, "{}", chosen.len());
    for index in chosen {
        let call = &calls[index];
        let silent = |world: &World| world.faults.on(|_| true).skip(index).times(1).fail(Fault::Slow(NEVER));
        let world = World::running().await;
        let world = World { faults: jobwright_drydock::Faults::new(0), ..world };
        silent(&world);
        let run = timeout(LIMIT, world.run(&forced)).await;
        run.unwrap_or_else(|_| panic!("hangs at {call}")).unwrap_or_else(|error| panic!("{call}: {error}"));
        world.expect_no_gap().await;

        let world = World { faults: jobwright_drydock::Faults::new(0), ..World::running().await };
        silent(&world);
        let around = world.surroundings(Some("test"));
        let stopped = async {
            cancel_at(&world.faults, index + 1, &around.cancellation).await;
            tokio::time::sleep(Duration::from_secs(5)).await;
        };
        tokio::select! {
            biased;
            _ = init_cert(&around, &forced) => {}
            () = stopped => panic!("does not stop at {call}"),
        }
        world.expect_no_gap().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_of_a_certificate_ends_though_a_call_is_never_answered() {
    let world = World { faults: jobwright_drydock::Faults::new(0), ..World::running().await };
    check(&world.surroundings(None), &options()).await.unwrap();
    let calls = world.faults.calls();
    assert!(calls.len() >= 5, "{calls:?}");
    for (index, call) in calls.iter().enumerate() {
        let world = World { faults: jobwright_drydock::Faults::new(0), ..World::running().await };
        world.faults.on(|_| true).skip(index).times(1).fail(Fault::Slow(NEVER));
        let around = world.surroundings(None);
        let seen = timeout(Duration::from_mins(2), check(&around, &options())).await;
        let error = seen.unwrap_or_else(|_| panic!("hangs at {call}")).unwrap_err();
        assert!(error.to_string().starts_with("cannot "), "{call}: {error}");
    }
}

/// Reaches nobody, ever; or reaches servers that never say a word.
struct Silent {
    connects: bool,
}

#[async_trait]
impl Dialler for Silent {
    async fn dial(&self, _: &Peer) -> io::Result<Box<dyn Stream>> {
        if !self.connects {
            return std::future::pending().await;
        }
        let (near, far) = tokio::io::duplex(1024);
        std::mem::forget(far);
        Ok(Box::new(near))
    }

    fn reaches_services(&self) -> bool {
        true
    }
}

#[tokio::test(start_paused = true)]
async fn servers_that_never_answer_a_handshake_are_reported_at_the_limit() {
    for connects in [false, true] {
        let world = World::running().await;
        let world = World { dialling: Dialling::With(Arc::new(Silent { connects })), ..world };
        let wanted = Options { timeout: Duration::from_mins(3), ..options() };
        let error = timeout(LIMIT, world.run(&wanted)).await.expect("it hangs").unwrap_err().to_string();
        assert!(error.contains("it says nothing for 5s"), "{error}");
        let seen = timeout(LIMIT, check(&world.surroundings(None), &wanted)).await.expect("it hangs").unwrap();
        assert!(!seen.is_good(), "{seen:?}");
    }
}

/// A cluster with something to adopt and a volume to grow, and somebody who expands it.
async fn lab() -> Lab {
    let lab = Lab::new();
    lab.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}})).await;
    lab.apply(json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"},
        "provisioner": "test/fast", "allowVolumeExpansion": true}))
        .await;
    lab.apply(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {
        "storageClassName": "fast", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}))
        .await;
    lab.apply(deployment("db")).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    lab
}

/// A job, and what expands volumes meanwhile.
async fn run_job(lab: &Lab, which: usize) -> jobwright_engine::JobReport {
    let expander = crate::grow_volume::expander(lab);
    let (report, _) = match which {
        0 => lab.run(adopt()).await,
        _ => lab.run(grow()).await,
    };
    expander.abort();
    report
}

fn adopt() -> impl Job + 'static {
    let object = ObjectReference {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name: "settings".to_owned(),
        namespace: None,
    };
    Adopt { place: place("adopt"), objects: vec![object], release: "api".to_owned(), namespace: None, force: false }
}

fn grow() -> impl Job + 'static {
    let workload = Workload { kind: "Deployment".to_owned(), name: "db".to_owned() };
    let (claim, to) = ("data".to_owned(), "3Gi".parse().unwrap());
    GrowVolume { place: place("grow"), claim, to, detach: Some(workload), patience: GrowVolume::PATIENCE }
}

/// Lets a call of the job itself go unanswered, counted from 1; gives how many there were.
fn silence(lab: &Lab, silent: usize) -> Arc<std::sync::atomic::AtomicUsize> {
    let calls = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    lab.interceptor.set(move |_, path| {
        let is_engine = path.contains("/leases") || path.contains("jobwright-") || path.ends_with("/configmaps");
        if is_engine {
            return None;
        }
        let call = counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        (call == silent).then_some(Instead::Silence)
    });
    calls
}

#[tokio::test(start_paused = true)]
async fn jobs_end_though_a_call_is_never_answered_and_stop_with_the_deploy() {
    for (which, least) in [(0, 5), (1, 12)] {
        let lab_of_good = lab().await;
        let calls = silence(&lab_of_good, 0);
        assert_eq!(run_job(&lab_of_good, which).await.outcome, JobOutcome::Succeeded);
        let calls = calls.load(std::sync::atomic::Ordering::Relaxed);
        assert!(calls >= least, "{calls}");
        for silent in 1..=calls {
            let lab = lab().await;
            silence(&lab, silent);
            let report = timeout(LIMIT, run_job(&lab, which)).await;
            let report = report.unwrap_or_else(|_| panic!("job {which} hangs at {:?}", lab.interceptor.silenced()));
            assert!(!lab.interceptor.silenced().is_empty(), "call {silent} of {calls}: {}", report.reason);

            let lab = self::lab().await;
            silence(&lab, silent);
            let (interceptor, token) = (lab.interceptor.clone(), lab.cancellation.clone());
            let stopped = async {
                while interceptor.silenced().is_empty() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                token.cancel();
                tokio::time::sleep(Duration::from_mins(1)).await;
            };
            tokio::select! {
                biased;
                _ = run_job(&lab, which) => {}
                () = stopped => panic!("job {which} does not stop at {:?}", interceptor.silenced()),
            }
        }
    }
}
