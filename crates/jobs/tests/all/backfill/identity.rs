//! A checkpoint belongs to one cluster, one destination and one content: a run resumes nothing else.

use super::http_sink::{run, to};
use super::receiver::Receiver;
use super::stage::{Collector, Deed, PATHS, Stage, backfill, compare, read_lines};
use jobwright_drydock::{Drydock, When};
use jobwright_jobs::backfill::{
    Auth, Backfill, CheckpointPlace, CheckpointStore, Compression, ConfigMapCheckpoint, FileCheckpoint, Once, Place,
    Summary, Task,
};
use serde_json::json;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What is changed, the task before, and the task after.
type Change = (&'static str, Box<dyn Fn(&Task) -> Task>, Box<dyn Fn(&Task) -> Task>);

async fn cluster(seed: u64) -> Stage {
    Stage::on(Drydock::builder().bare().seed(seed), 30).await
}

fn file(directory: &Path) -> Arc<dyn CheckpointStore> {
    Arc::new(FileCheckpoint::new(directory.join("checkpoint")))
}

/// Runs until its sink stops answering at the fourth batch.
async fn die(stage: &Stage, backfill: &Backfill, store: Arc<dyn CheckpointStore>) {
    let sink = Collector::new(|number| if number == 4 { Deed::Die } else { Deed::Take });
    tokio::select! {
        _ = stage.run_with(backfill, &sink, Some(store), CancellationToken::new()) => panic!("it ended"),
        () = sink.died() => {}
    }
}

async fn continue_on(stage: &Stage, backfill: &Backfill, store: Arc<dyn CheckpointStore>) -> (Summary, Arc<Collector>) {
    let sink = Collector::new(|_| Deed::Take);
    let summary = stage.run_with(backfill, &sink, Some(store), CancellationToken::new()).await;
    (summary, sink)
}

#[tokio::test(start_paused = true)]
async fn run_killed_on_one_cluster_sends_everything_of_another() {
    let directory = tempfile::tempdir().unwrap();
    die(&cluster(1).await, &backfill(), file(directory.path())).await;
    let other = cluster(2).await;
    let (summary, sink) = continue_on(&other, &backfill(), file(directory.path())).await;
    compare(&sink.objects().0, &other.expected(&PATHS).await, "the other cluster");
    assert!(summary.complete && !summary.resumed, "{summary:?}");
    assert!(other.notes().iter().any(|note| note.contains("another cluster")), "{:?}", other.notes());
}

#[tokio::test(start_paused = true)]
async fn key_that_is_complete_on_one_cluster_is_not_complete_on_another() {
    let directory = tempfile::tempdir().unwrap();
    let once = Once { key: "k".to_owned(), holds: None, force: false, forced: None };
    let task = |seed: u64| {
        let backfill = Backfill { once: Some(once.clone()), ..backfill() };
        let checkpoint = Some(CheckpointPlace::File(directory.path().join("checkpoint")));
        let path = directory.path().join(format!("out-{seed}"));
        (Task { backfill, checkpoint, ..to(&format!("file:{}", path.display())) }, path)
    };
    for seed in [1, 2] {
        let stage = cluster(seed).await;
        let (task, path) = task(seed);
        let summary = run(&stage, &task).await.unwrap();
        assert_eq!(summary.kept, None, "cluster {seed}");
        let arrived = read_lines(&std::fs::read_to_string(&path).unwrap());
        compare(&arrived, &stage.expected(&PATHS).await, "what exists");
        let again = run(&stage.restarted(), &task).await.unwrap();
        assert!(again.kept.is_some(), "cluster {seed} is complete now: {again:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn file_that_was_half_written_with_zstd_is_never_continued_with_gzip() {
    for after in [12, 16, 20] {
        let stage = cluster(1).await;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let task = |compression| Task {
            backfill: Backfill { page_size: 4, ..to("stdout").backfill },
            compression: Some(compression),
            checkpoint: Some(CheckpointPlace::File(directory.path().join("checkpoint"))),
            ..to(&format!("file:{}", path.display()))
        };
        stage.faults.stop_at(after, When::After);
        let begun = task(Compression::Zstd);
        tokio::select! {
            _ = run(&stage, &begun) => panic!("it ended"),
            () = stage.faults.stopped() => {}
        }
        let stage = stage.restarted();
        let summary = run(&stage, &task(Compression::Gzip)).await.unwrap();
        assert!(summary.complete && !summary.resumed, "{summary:?}");
        let mut text = String::new();
        let packed = std::fs::read(&path).unwrap();
        flate2::read::MultiGzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
        compare(&read_lines(&text), &stage.expected(&PATHS).await, "in the end");
    }
}

#[tokio::test]
async fn run_with_another_destination_or_content_begins_anew() {
    let header = |name: &str| Some(name.parse().unwrap());
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "t0ken").unwrap();
    let auth = |name: &str| Some(Auth { header: header(name), secret: Place::File(secret.path().to_owned()) });
    let once = |key: &str| Some(Once { key: key.to_owned(), holds: None, force: false, forced: None });
    let base = |task: &Task| task.clone();
    let series = |task: &Task, prefix: &str, is_legal: bool| {
        let address = task.sink.to_string();
        let mut task = Task { sink: format!("remote-write:{address}").parse().unwrap(), ..task.clone() };
        task.naming.prefix = prefix.to_owned();
        task.naming.is_legal = is_legal;
        task
    };
    let with = |task: &Task, change: &dyn Fn(&mut Task)| {
        let mut task = task.clone();
        change(&mut task);
        task
    };
    let changes: Vec<Change> = vec![
        (
            "query",
            Box::new(base),
            Box::new(|task| Task { sink: format!("{}?tenant=7", task.sink).parse().unwrap(), ..task.clone() }),
        ),
        (
            "compression",
            Box::new(base),
            Box::new(move |task| with(task, &|task| task.compression = Some(Compression::Gzip))),
        ),
        (
            "header",
            Box::new({
                let auth = auth("x-one");
                move |task| Task { auth: auth.clone(), ..task.clone() }
            }),
            Box::new({
                let auth = auth("x-two");
                move |task| Task { auth: auth.clone(), ..task.clone() }
            }),
        ),
        (
            "key",
            Box::new(move |task| with(task, &|task| task.backfill.once = once("one"))),
            Box::new(move |task| with(task, &|task| task.backfill.once = once("two"))),
        ),
        ("prefix", Box::new(move |task| series(task, "one", true)), Box::new(move |task| series(task, "two", true))),
        ("names", Box::new(move |task| series(task, "one", true)), Box::new(move |task| series(task, "one", false))),
    ];
    for (name, first, second) in changes {
        let stage = Stage::new(60).await;
        let directory = tempfile::tempdir().unwrap();
        let receiver = Receiver::start(|_| None).await;
        let mut task = to(&receiver.address());
        task.backfill.kinds = vec!["pods".into()];
        task.backfill.batches.records = 2;
        task.checkpoint = Some(CheckpointPlace::File(directory.path().join("checkpoint")));
        let begun = first(&task);
        tokio::select! {
            _ = run(&stage, &begun) => panic!("{name}: it ended before it was killed"),
            () = receiver.reaches(3) => {}
        }
        let stage = stage.restarted();
        let summary = run(&stage, &second(&task)).await.unwrap();
        assert!(summary.complete && !summary.resumed, "{name}: {summary:?}");
        assert_eq!(summary.batches.sent, 10, "{name}: all of it went to the second destination");
    }
}

/// May list what is captured and keep a checkpoint, and nothing else.
async fn restrict(stage: &mut Stage) {
    stage.user = Some("visitor");
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let rules =
        json!([rule("", &["configmaps", "secrets", "pods"], &["list"]), rule("example.com", &["widgets"], &["list"]),]);
    stage.allow("visitor", &rules).await;
}

#[tokio::test(start_paused = true)]
async fn cluster_that_cannot_be_identified_resumes_no_checkpoint_in_a_file_and_says_so() {
    let mut stage = Stage::on(Drydock::builder().bare().rbac(true), 30).await;
    restrict(&mut stage).await;
    let directory = tempfile::tempdir().unwrap();
    die(&stage, &backfill(), file(directory.path())).await;
    let stage = stage.restarted();
    let (summary, sink) = continue_on(&stage, &backfill(), file(directory.path())).await;
    assert!(summary.complete && !summary.resumed, "{summary:?}");
    compare(&sink.objects().0, &stage.expected(&PATHS).await, "all of it, again");
    let told = stage.notes().join("\n");
    assert!(told.contains("`kube-system`") && told.contains("--print-rbac"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn cluster_that_cannot_be_identified_resumes_its_own_checkpoint() {
    let mut stage = Stage::on(Drydock::builder().bare().rbac(true), 30).await;
    restrict(&mut stage).await;
    let store = |stage: &Stage| -> Arc<dyn CheckpointStore> {
        Arc::new(ConfigMapCheckpoint::new(&stage.stranger(), "default", "progress", stage.retry()))
    };
    let backfill =
        Backfill { kinds: ["secrets", "pods", "widgets.example.com"].map(Into::into).to_vec(), ..backfill() };
    die(&stage, &backfill, store(&stage)).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let stage = stage.restarted();
    let (summary, _) = continue_on(&stage, &backfill, store(&stage)).await;
    assert!(summary.complete && summary.resumed, "{summary:?}");
}
