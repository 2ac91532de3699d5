//! Errors that last: every call of a backfill and of a marked certificate fails for good, in turn. Each run ends at its
//! documented limit, and says meanwhile what it retries.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot continue has failed")]

use crate::backfill::http_sink::{run, to};
use crate::backfill::stage::{Collector, Deed, Stage, backfill};
use crate::init_cert::force::{marking, tracked};
use crate::init_cert::world::World;
use crate::release::{Deploy, NAME, Tracked};
use jobwright_drydock::{Call, Drydock, Fault, Faults};
use jobwright_engine::{RETRY_LIMIT, async_trait};
use jobwright_jobs::Mark;
use jobwright_jobs::backfill::{
    Backfill, Batch, CheckpointPlace, Once, Patience, Problem, Remedy, Sink, SinkError, Summary, Task,
};
use jobwright_jobs::init_cert::Stage as Part;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

const LASTING: [Fault; 4] =
    [Fault::Conflict, Fault::TooManyRequests { retry_after: 1 }, Fault::Internal, Fault::Unavailable];
/// The retry limit, what a call may take, and what a lock may take to expire.
const LIMIT: Duration = Duration::from_mins(6);
/// How long something may be retried before that is reported.
const SILENT: Duration = Duration::from_secs(10);

/// A backfill with what calls the cluster: a mark, a lock, a checkpoint, discovery, lists.
fn task(directory: &tempfile::TempDir) -> Task {
    let once = Once { key: "k".to_owned(), holds: None, force: false, forced: None };
    let kinds = vec!["secrets".into()];
    Task {
        backfill: Backfill { kinds, once: Some(once), patience: Patience::default(), ..backfill() },
        checkpoint: Some(CheckpointPlace::ConfigMap("progress".to_owned())),
        mark: Some(Mark { config_map: NAME.to_owned() }),
        ..to(&format!("file:{}", directory.path().join("out").display()))
    }
}

/// What distinguishes a call from others.
fn kind(call: &Call) -> (String, String) {
    let name =
        if call.resource == "configmaps" { format!("{} {}", call.resource, call.name) } else { call.resource.clone() };
    (call.verb.to_owned(), name)
}

async fn stage() -> Stage {
    let stage = Stage::on(Drydock::builder().bare(), 6).await;
    Tracked::new(stage.stranger(), "default").deploy(Deploy::Patch, "1.a").await;
    stage
}

#[tokio::test(start_paused = true)]
async fn a_backfill_reports_every_call_that_keeps_failing_and_ends_at_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    let healthy = stage().await;
    assert!(run(&healthy, &task(&directory)).await.unwrap().complete);
    let calls: BTreeSet<_> = healthy.faults.calls().iter().map(kind).collect();
    assert!(calls.len() >= 11, "{calls:?}");
    for chosen in calls {
        for fault in LASTING {
            let _ = std::fs::remove_file(directory.path().join("out"));
            let (stage, failing) = (stage().await, chosen.clone());
            stage.faults.on(move |call| kind(call) == failing).fail(fault.clone());
            let begun = Instant::now();
            let task = task(&directory);
            let ended = timeout(2 * LIMIT, run(&stage, &task)).await;
            let (took, notes) = (begun.elapsed(), stage.notes());
            assert!(ended.is_ok() && took <= LIMIT, "{chosen:?} {fault:?}: it took {took:?}: {notes:?}");
            let reports = ["retrying", "again in"];
            let is_reported = notes.iter().any(|note| reports.iter().any(|report| note.contains(report)));
            assert!(is_reported || took <= SILENT, "{chosen:?} {fault:?}: silent for {took:?}: {notes:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_certificate_reports_a_mark_that_cannot_be_read_or_written() {
    for (verb, resource, fault) in [
        ("get", "configmaps", Fault::Internal),
        ("patch", "configmaps", Fault::Conflict),
        ("get", "secrets", Fault::Unavailable),
    ] {
        let world = World { faults: Faults::new(0), ..World::running().await };
        tracked(&world).deploy(Deploy::Patch, "1.a").await;
        world.faults.on(move |call| call.verb == verb && call.resource == resource).fail(fault);
        let begun = Instant::now();
        let options = marking(Part::Inject);
        let ended = timeout(4 * RETRY_LIMIT, world.run(&options)).await;
        let error = ended.expect("it never ends").unwrap_err().to_string();
        assert!(begun.elapsed() <= LIMIT, "{verb} {resource}: {:?}", begun.elapsed());
        let told = world.told.lock().unwrap().clone();
        assert!(told.iter().any(|line| line.ends_with("; retrying")), "{verb} {resource}: {error} {told:?}");
    }
}

/// A sink whose end cannot be written a few times.
struct Unfinished {
    inside: Arc<Collector>,
    left: AtomicU32,
}

#[async_trait]
impl Sink for Unfinished {
    fn describe(&self) -> String {
        self.inside.describe()
    }

    async fn send(&self, batch: &Batch) -> Result<(), SinkError> {
        self.inside.send(batch).await
    }

    async fn finish(&self, _: &Summary) -> Result<(), SinkError> {
        let problem = Problem { status: Some(503), message: "the sink is full".to_owned() };
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) {
            Ok(_) => Err(SinkError { problem, remedy: Remedy::Again(None) }),
            Err(_) => Ok(()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_that_cannot_be_written_is_reported_and_retried() {
    let stage = Stage::new(3).await;
    let sink = Arc::new(Unfinished { inside: Collector::new(|_| Deed::Take), left: AtomicU32::new(3) });
    let summary = backfill().run(stage.surroundings(), sink, None, CancellationToken::new()).await.unwrap();
    assert!(summary.complete, "{summary:?}");
    let notes = stage.notes();
    let reports =
        notes.iter().filter(|note| note.starts_with("cannot write the end: 503: the sink is full; retrying in "));
    assert_eq!(reports.count(), 3, "{notes:?}");
}
