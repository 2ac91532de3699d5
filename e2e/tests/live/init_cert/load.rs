//! Asks for admissions again and again, and writes down what became of each.

use anyhow::{Context as _, Result};
use jobwright_e2e::live::Stage;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Who has this label is refused by the agent.
pub(crate) const REFUSED: &str = "jobwright.local/refused";
/// The time between two requests.
const PACE: Duration = Duration::from_millis(33);
/// So many of them ask for what is to be refused: proof that somebody was asked.
const EVERY: usize = 10;

/// What became of all requests.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) asked: usize,
    pub(crate) failed: Vec<String>,
    pub(crate) slowest: Duration,
    pub(crate) time: Duration,
    log: PathBuf,
}

impl Tally {
    pub(crate) fn rate(&self) -> f64 {
        let asked = u32::try_from(self.asked).unwrap_or(u32::MAX);
        f64::from(asked) / self.time.as_secs_f64()
    }

    pub(crate) fn say(&self) {
        let (asked, failed, time) = (self.asked, self.failed.len(), self.time);
        println!(
            "{asked} admissions in {time:.0?} ({:.1} a second), {failed} failed, the slowest took {:.0?}; each is in {}",
            self.rate(),
            self.slowest,
            self.log.display()
        );
    }
}

/// Requests that go on until they are stopped.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    log: Arc<Mutex<std::fs::File>>,
    start: Instant,
    thread: std::thread::JoinHandle<Result<Tally>>,
}

impl Load {
    /// Starts to ask; every request is a line in a file of this name.
    pub(crate) fn start(stage: &Stage<'_>, name: &str) -> Result<Self> {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("init-cert-{name}.ndjson"));
        let log = Arc::new(Mutex::new(std::fs::File::create(&path).context("cannot make the log of requests")?));
        let (stop, start) = (Arc::new(AtomicBool::new(false)), Instant::now());
        let (kubeconfig, namespace) = (stage.live().kubeconfig().to_owned(), stage.namespace().to_owned());
        let inside = (Arc::clone(&stop), Arc::clone(&log));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(ask(&kubeconfig, &namespace, inside.0, inside.1, start, path))
        });
        Ok(Self { stop, log, start, thread })
    }

    /// Writes down that something has happened.
    pub(crate) fn mark(&self, what: &str) {
        write(&self.log, &json!({"at": self.start.elapsed().as_millis(), "event": what}));
    }

    /// Stops to ask, and says what became of all of it.
    pub(crate) fn stop(self) -> Result<Tally> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow::anyhow!("the load has panicked"))?
    }
}

fn write(log: &Mutex<std::fs::File>, line: &serde_json::Value) {
    // A log that cannot be written is missed at the end.
    let _ = writeln!(log.lock().unwrap_or_else(PoisonError::into_inner), "{line}");
}

async fn ask(
    kubeconfig: &Path,
    namespace: &str,
    stop: Arc<AtomicBool>,
    log: Arc<Mutex<std::fs::File>>,
    start: Instant,
    path: PathBuf,
) -> Result<Tally> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let objects = Api::<ConfigMap>::namespaced(kube::Client::try_from(config)?, namespace);
    let mut ticks = tokio::time::interval(PACE);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut tasks = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        ticks.tick().await;
        let (objects, log, number) = (objects.clone(), Arc::clone(&log), tasks.len());
        tasks.push(tokio::spawn(async move {
            let is_refused = number.is_multiple_of(EVERY);
            let labels = if is_refused { json!({REFUSED: "not-today"}) } else { json!({}) };
            let object = json!({"metadata": {"name": format!("asked-{number}"), "labels": labels}});
            let object: ConfigMap = serde_json::from_value(object).unwrap_or_default();
            let began = Instant::now();
            // The server asks, and keeps nothing.
            let parameters = PostParams { dry_run: true, ..PostParams::default() };
            let answer = objects.create(&parameters, &object).await;
            let took = began.elapsed();
            let failure = match (&answer, is_refused) {
                (Ok(_), false) => None,
                (Ok(_), true) => Some("nobody was asked".to_owned()),
                (Err(kube::Error::Api(status)), true) if status.message.contains("not-today") => None,
                (Err(error), _) => Some(error.to_string()),
            };
            let (at, ms) = ((began - start).as_millis(), took.as_millis());
            write(&log, &json!({"at": at, "request": number, "ms": ms, "refused": is_refused, "failed": failure}));
            (took, failure)
        }));
    }
    let mut tally =
        Tally { asked: tasks.len(), failed: Vec::new(), slowest: Duration::ZERO, time: start.elapsed(), log: path };
    for task in tasks {
        let (took, failure) = task.await.context("a request has panicked")?;
        tally.slowest = tally.slowest.max(took);
        tally.failed.extend(failure);
    }
    Ok(tally)
}
