//! A run: kinds are worked off some at a time, and what became of them is summed up.

use super::book::Book;
use super::checkpoint::{self, Checkpoint, CheckpointError, CheckpointStore, Kept, Resume, State};
use super::cut;
use super::discover::Catalogue;
use super::kind::Kind;
use super::list::Lister;
use super::meter::{Meter, Stage};
use super::note::{Listener, Note};
use super::patience::Patience;
use super::secrets::Known;
use super::sinks::Sink;
use super::stopping::Stop;
use super::summary::{KindSummary, Problem, Summary, seconds};
use super::work::work;
use super::{Backfill, Error, Surroundings};
use futures::StreamExt as _;
use jobwright_engine::{Clock, Retry, bounded};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// How long the cluster may take to say which kinds it has.
const DISCOVERY: Duration = Duration::from_mins(1);
/// How long a sink may take to leave what is half done.
const LEAVE: Duration = Duration::from_secs(5);

/// What all kinds of a run share.
pub(crate) struct Shared {
    pub(crate) options: Arc<Backfill>,
    pub(crate) run: String,
    pub(crate) lister: Lister,
    pub(crate) sink: Arc<dyn Sink>,
    /// The values of Secrets.
    pub(crate) known: Known,
    /// The full names of kinds whose series need their API group.
    pub(crate) ambiguous: BTreeSet<String>,
    /// Whose turn it is with a sink that takes one batch after the other.
    pub(crate) turn: tokio::sync::Mutex<()>,
    pub(crate) book: Book,
    pub(crate) meter: Meter,
    pub(crate) listener: Listener,
    pub(crate) clock: Clock,
    pub(crate) patience: Patience,
    /// No more pages.
    pub(crate) stopping: CancellationToken,
    /// No more batches.
    pub(crate) hurry: CancellationToken,
    pub(crate) arrived: AtomicU64,
    pub(crate) refused: AtomicU64,
    stop: Stop,
    stopped: Mutex<Option<String>>,
}

impl Shared {
    /// Ends the run: nothing would do better.
    pub(crate) fn stop(&self, why: String) {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        if stopped.is_none() {
            self.listener.tell(Note::Stopping(why.clone()));
            *stopped = Some(why);
        }
        self.stopping.cancel();
        self.hurry.cancel();
    }

    /// Saves the checkpoint now and then, unless there is no more time. If that fails, what has arrived has arrived anyway.
    pub(crate) async fn save(&self) {
        tokio::select! {
            biased;
            () = self.hurry.cancelled() => {}
            saved = self.book.save(false) => self.report(saved),
        }
    }

    /// Saves the checkpoint for the last time.
    async fn save_last(&self) {
        match self.stop.end(self.book.save(true)).await {
            Some(saved) => self.report(saved),
            None => self.listener.tell(Note::Unwritten("the checkpoint was not saved in time".to_owned())),
        }
    }

    fn report(&self, saved: Result<(), CheckpointError>) {
        if let Err(error) = saved {
            self.listener.tell(Note::Unwritten(error.to_string()));
        }
    }

    pub(crate) fn summarise(&self, kind: &Kind) -> KindSummary {
        let progress = self.book.progress(&kind.full_name());
        let finished = progress.state == State::Done;
        KindSummary { finished, counts: progress.counts, errors: progress.errors, ..KindSummary::new(kind) }
    }
}

/// What a run begins with.
struct Start {
    checkpoint: Checkpoint,
    resumed: bool,
}

impl Backfill {
    /// Carries it out: lists what there is and sends it, and says what became of it.
    pub async fn run(
        &self,
        surroundings: Surroundings,
        sink: Arc<dyn Sink>,
        store: Option<Arc<dyn CheckpointStore>>,
        cancellation: CancellationToken,
    ) -> Result<Summary, Error> {
        let stop = Stop::new(cancellation, CancellationToken::new());
        let kept = match store {
            Some(store) => Some(stop.begin(Kept::open(store, &surroundings)).await?),
            None => None,
        };
        Box::pin(self.run_until(surroundings, sink, kept, stop)).await
    }

    /// The same, until it is told to stop or loses its lock.
    pub(crate) async fn run_until(
        &self,
        surroundings: Surroundings,
        sink: Arc<dyn Sink>,
        kept: Option<Kept>,
        stop: Stop,
    ) -> Result<Summary, Error> {
        let began = Instant::now();
        // What stops a run decides how long it waits.
        let retry = surroundings.retry(&CancellationToken::new());
        let Surroundings { client, clock, meter, listener } = surroundings.clone();
        let found = stop.begin(load(kept.as_ref())).await?;
        if let Some(completed) = checkpoint::find_completed(found.as_ref(), self.once.as_ref(), clock.now()) {
            return Ok(Summary::keep(completed, sink.describe()));
        }
        let (catalogue, kinds) = Box::pin(stop.begin(self.discover(&client, &retry))).await?;
        let known = Box::pin(stop.begin(self.read_secrets(&surroundings))).await?;
        let start = stop.begin(self.start(&*sink, kept.as_ref(), found, &clock, &listener)).await?;
        let store = kept.map(|kept| kept.store);
        let options = Arc::new(self.clone());
        let selection = super::Selection {
            metadata_only: self.selection.metadata_only || matches!(sink.form(), super::Form::Series(_)),
            ..self.selection.clone()
        };
        let shared = Arc::new(Shared {
            run: start.checkpoint.run.clone(),
            lister: Lister { client, clock: clock.clone(), selection, patience: self.patience },
            sink,
            known,
            ambiguous: super::sinks::remote_write::find_ambiguous(catalogue.kinds()),
            turn: tokio::sync::Mutex::default(),
            book: Book::new(start.checkpoint, store.clone(), clock.clone()),
            meter,
            listener,
            clock,
            patience: self.patience,
            stopping: CancellationToken::new(),
            hurry: CancellationToken::new(),
            arrived: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            stop: stop.clone(),
            stopped: Mutex::new(None),
            options,
        });
        // A place that cannot be written to is noticed before anything is sent.
        stop.begin(async { Ok(shared.book.save(true).await?) }).await?;
        if stop.is_asked() || stop.is_lost() {
            shared.stopping.cancel();
        }
        let (no_pages, no_batches) = (shared.stopping.clone(), shared.hurry.clone());
        let stopping = AbortOnDropHandle::new(tokio::spawn(stop.clone().pass_on(no_pages, no_batches)));
        work_all(&shared, &kinds).await;
        drop(stopping);
        let summary = shared.conclude(&catalogue, &kinds, start.resumed, began);
        let is_over = kinds.iter().all(|kind| shared.book.progress(&kind.full_name()).state != State::Open);
        let ended = if is_over { shared.finish(summary).await } else { shared.leave(summary, store.is_some()).await };
        shared.save_last().await;
        Ok(ended)
    }

    /// What there is to list.
    pub async fn discover(&self, client: &kube::Client, retry: &Retry) -> Result<(Catalogue, Vec<Kind>), Error> {
        let (client, retry) = (bounded(client), retry.clone().within(DISCOVERY.min(self.patience.total)));
        let reading = retry.call("list the kinds of the cluster", || Catalogue::read(&client));
        let catalogue = match tokio::time::timeout(DISCOVERY, reading).await {
            Ok(Ok(catalogue)) => catalogue,
            Ok(Err(jobwright_engine::Error::Cluster { source, .. })) => {
                return Err(Error::Discovery(source.to_string()));
            }
            Ok(Err(error)) => return Err(Error::Discovery(error.whole_message())),
            Err(_) => return Err(Error::Discovery("it does not answer".to_owned())),
        };
        if catalogue.is_empty() {
            let why = "it tells no kinds at once, as Kubernetes 1.27 and newer ones do".to_owned();
            return Err(Error::Discovery(why));
        }
        let mut kinds = catalogue.choose(&self.kinds, &self.exclude_kinds)?;
        if !self.namespaces.is_empty() && self.kinds.is_empty() {
            // Whoever names namespaces wants what is in them.
            kinds.retain(|kind| kind.namespaced);
        }
        Ok((catalogue, kinds))
    }

    /// Goes on with a run that was not finished, or begins a new one.
    async fn start(
        &self,
        sink: &dyn Sink,
        kept: Option<&Kept>,
        found: Option<Checkpoint>,
        clock: &Clock,
        listener: &Listener,
    ) -> Result<Start, Error> {
        let options = self.fingerprint(sink);
        let now = clock.now();
        let completed = found.as_ref().and_then(|found| found.completed.clone());
        let found = found.map(|found| {
            let is_about = kept.is_some_and(|kept| kept.is_about(&found));
            (found, is_about)
        });
        match checkpoint::decide(found, &options, now, self.resume_within) {
            Resume::GoOn(checkpoint) => {
                if sink.begin(&checkpoint.run, checkpoint.sink.as_ref()).await.map_err(Error::Sink)? {
                    return Ok(Start { checkpoint: *checkpoint, resumed: true });
                }
                let why = "what the last run has sent is no longer there";
                listener.tell(Note::BeganAnew(why.to_owned()));
            }
            Resume::Anew(Some(why)) => listener.tell(Note::BeganAnew(why.to_owned())),
            Resume::Anew(None) => {}
        }
        let run = self.run.clone().unwrap_or_else(|| name_run(now));
        sink.begin(&run, None).await.map_err(Error::Sink)?;
        let mut checkpoint = Checkpoint::new(run, options, now);
        checkpoint.completed = completed;
        checkpoint.cluster = kept.and_then(|kept| kept.cluster.clone());
        Ok(Start { checkpoint, resumed: false })
    }

    /// What a run was asked to do, as a hash: another one cannot go on with it.
    fn fingerprint(&self, sink: &dyn Sink) -> String {
        let mut asked = serde_json::json!({
            "kinds": self.kinds, "excludeKinds": self.exclude_kinds, "namespaces": self.namespaces,
            "selection": self.selection, "filters": self.filters, "batches": self.batches, "sink": sink.identity(),
            "secretValues": self.secret_values, "rules": cut::RULES, "key": self.once.as_ref().map(|once| &once.key),
        });
        // What began before a deploy was forced does not answer it.
        if let Some(time) = self.once.as_ref().and_then(|once| once.forced) {
            asked["forced"] = time.to_string().into();
        }
        let digest = Sha256::digest(asked.to_string());
        digest.iter().take(16).fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    }
}

/// What was written down, if anything is.
async fn load(kept: Option<&Kept>) -> Result<Option<Checkpoint>, Error> {
    match kept {
        Some(kept) => Ok(kept.load().await?),
        None => Ok(None),
    }
}

/// A name that no other run has: when it began, and chance.
fn name_run(now: jiff::Timestamp) -> String {
    let chance: String = std::iter::repeat_with(|| fastrand::char('a'..='z')).take(6).collect();
    format!("{}-{chance}", now.strftime("%Y%m%dT%H%M%SZ"))
}

async fn work_all(shared: &Arc<Shared>, kinds: &[Kind]) {
    let mut tasks = Vec::new();
    let mut done = 0;
    for kind in kinds {
        let name = kind.full_name();
        let meter = shared.meter.kind(&name);
        match shared.book.progress(&name).state {
            State::Open => tasks.push((Arc::new(kind.clone()), meter)),
            State::Done | State::Failed => {
                meter.enter(&shared.meter, Stage::Done);
                done += 1;
            }
        }
    }
    shared.listener.tell(Note::Began { run: shared.run.clone(), kinds: kinds.len(), done });
    let at_once = shared.options.concurrency.max(1);
    let works = futures::stream::iter(tasks).map(|(kind, meter)| {
        let shared = Arc::clone(shared);
        async move {
            if shared.stopping.is_cancelled() {
                return;
            }
            let name = kind.full_name();
            let ended = AbortOnDropHandle::new(tokio::spawn(work(Arc::clone(&shared), kind, meter))).await;
            if let Err(error) = ended {
                shared.stop(format!("{name}: {error}"));
            }
        }
    });
    works.buffer_unordered(at_once).for_each(|()| async {}).await;
}

impl Shared {
    fn conclude(&self, catalogue: &Catalogue, kinds: &[Kind], resumed: bool, began: Instant) -> Summary {
        let mut summaries: Vec<KindSummary> = kinds.iter().map(|kind| self.summarise(kind)).collect();
        if self.options.kinds.is_empty() {
            summaries.extend(catalogue.missed().map(missed));
        }
        Summary {
            complete: summaries.iter().all(KindSummary::is_complete),
            kinds: summaries,
            batches: self.book.read().batches,
            run: self.run.clone(),
            resumed,
            cancelled: self.stop.is_asked(),
            sink: self.sink.describe(),
            stopped: self.stopped.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            seconds: seconds(began.elapsed()),
            kept: None,
            names_only: self.known.names_only.clone(),
            skipped: None,
        }
    }

    /// The run came to its end, good or bad.
    async fn finish(&self, mut summary: Summary) -> Summary {
        let mut trying = self.patience.begin(&self.clock);
        let finished = self.stop.end(async {
            loop {
                let Err(error) = self.sink.finish(&summary).await else { break Ok(()) };
                let pause = match error.remedy {
                    super::sinks::Remedy::Again(asked) => trying.pause(asked),
                    super::sinks::Remedy::None | super::sinks::Remedy::Closed => None,
                };
                let Some(pause) = pause else { break Err(error) };
                self.listener.tell(Note::Ending { problem: error.problem, pause });
                tokio::time::sleep(pause).await;
            }
        });
        match finished.await {
            // All of it has arrived, so nothing is left to be cancelled.
            Some(Ok(())) => summary.cancelled = summary.cancelled && !summary.complete,
            Some(Err(error)) => {
                summary.complete = false;
                summary.stopped = Some(format!("the end could not be written: {}", error.problem));
            }
            // The next process writes the end.
            None => {
                summary.complete = false;
                summary.stopped.get_or_insert("the end was not written in time".to_owned());
                return summary;
            }
        }
        self.book.end();
        if let Some(once) = self.options.once.as_ref().filter(|_| summary.complete) {
            self.book.complete(once);
        }
        summary
    }

    /// The run stops before its end.
    async fn leave(&self, summary: Summary, goes_on: bool) -> Summary {
        // A process that has taken over needs what is half done.
        if !self.stop.is_lost() {
            // What a sink could not leave in time stays as it is, and counts for nothing.
            let _ = tokio::time::timeout(LEAVE, self.sink.leave(goes_on)).await;
        }
        summary
    }
}

/// A group that does not answer, as if it were a kind.
fn missed(name: &str) -> KindSummary {
    let message = "the server of this group does not answer, so its kinds are not known".to_owned();
    KindSummary {
        kind: "*".to_owned(),
        api_version: name.to_owned(),
        finished: false,
        counts: super::summary::Counts::default(),
        errors: vec![Problem { status: Some(503), message }],
    }
}
