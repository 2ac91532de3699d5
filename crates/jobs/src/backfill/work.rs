//! One kind, from its first page to its last: pages are cut into objects, objects go into batches, batches go out.

use super::batch::{Added, Batcher, Full, Writer};
use super::book::Mark;
use super::checkpoint::{Position, State};
use super::cut::Cutter;
use super::deliver::{Outbox, Stopped};
use super::kind::Kind;
use super::list::Query;
use super::meter::{KindMeter, Stage};
use super::note::Note;
use super::page::Page;
use super::pages::{Pages, Retry, Step};
use super::restarts::Restarts;
use super::run::Shared;
use super::sinks::Form;
use super::sinks::remote_write::Series;
use super::summary::{Counts, Problem};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Works a kind off. What became of it is in the book afterwards.
pub(crate) async fn work(shared: Arc<Shared>, kind: Arc<Kind>, meter: KindMeter) {
    let name: Arc<str> = kind.full_name().into();
    let progress = shared.book.progress(&name);
    let options = Arc::clone(&shared.options);
    let cutter =
        Cutter::new(&kind, &options.filters, options.selection.metadata_only).without(Arc::clone(&shared.known.values));
    let writer = match shared.sink.form() {
        Form::Lines(_) => Writer::Lines(cutter),
        Form::Series(naming) => {
            let is_ambiguous = shared.ambiguous.contains(&*name);
            Writer::Series(cutter, Series::new(&kind, &naming, is_ambiguous, shared.clock.clone()))
        }
    };
    meter.enter(&shared.meter, Stage::Running);
    let mut worker = Worker {
        outbox: Outbox::new(Arc::clone(&shared), Arc::clone(&name), meter.sent.clone()),
        batcher: Batcher::new(writer, options.batches),
        retried: Arc::new(AtomicU64::new(progress.counts.retried)),
        batch: progress.batches,
        place: progress.position,
        counts: progress.counts,
        before: progress.before,
        shared: Arc::clone(&shared),
        kind,
        name,
        meter,
    };
    let end = match worker.run().await {
        Ok(()) => End::Done,
        Err(end) => end,
    };
    worker.close(end).await;
}

/// How a kind ended.
enum End {
    /// At its end.
    Done,
    /// It cannot be listed any further.
    Failed(Problem),
    /// The run has stopped.
    Stopped,
}

impl From<Stopped> for End {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

struct Worker<'r> {
    shared: Arc<Shared>,
    kind: Arc<Kind>,
    name: Arc<str>,
    meter: KindMeter,
    batcher: Batcher<'r>,
    outbox: Outbox,
    /// The number of the last batch.
    batch: u64,
    /// Where we are: behind the last object that is in a batch, or was left out.
    place: Position,
    /// What was counted up to there, but for what has arrived: that is in the book.
    counts: Counts,
    /// What was counted before the namespace that is being listed.
    before: Counts,
    retried: Arc<AtomicU64>,
}

impl Worker<'_> {
    async fn run(&mut self) -> Result<(), End> {
        let namespaces = match &self.shared.options.namespaces {
            names if names.is_empty() || !self.kind.namespaced => vec![None],
            names => names.iter().cloned().map(Some).collect(),
        };
        for (index, namespace) in namespaces.iter().enumerate().skip(self.place.namespace) {
            self.list(namespace.as_deref()).await?;
            self.place = Position { namespace: index + 1, ..Position::default() };
            self.settle().await?;
            self.before = self.counts;
            self.before.sent = self.shared.book.progress(&self.name).counts.sent;
        }
        Ok(())
    }

    /// Lists one namespace, or all of them at once, from where we are.
    async fn list(&mut self, namespace: Option<&str>) -> Result<(), End> {
        let start = Query::start(&self.kind, namespace, self.shared.options.page_size);
        let mut pages = Pages::new(self.shared.lister.clone(), start, &self.place, self.hear_retries());
        let mut restarts = Restarts::new(self.shared.patience, &self.shared.clock);
        let mut skip = self.place.skip;
        loop {
            let step = tokio::select! {
                biased;
                // Whoever is told to stop asks for no more.
                () = self.shared.stopping.cancelled() => return Err(End::Stopped),
                step = pages.next() => step.map_err(End::Failed)?,
            };
            match step {
                Step::End => return Ok(()),
                Step::Page(page, start) => {
                    self.place = Position { namespace: self.place.namespace, ..start };
                    self.take(&page, &mut skip).await?;
                    pages.give_back(page);
                }
                Step::WentOn(problem) => {
                    self.pause(&mut restarts, problem).await?;
                    self.counts.expired += 1;
                    self.shared.listener.tell(Note::WentOn { kind: self.name.to_string() });
                    // The page is another one now, so what has arrived of it cannot be left out of it.
                    let again = std::mem::take(&mut skip) as u64;
                    self.counts.listed = self.counts.listed.saturating_sub(again);
                    self.counts.repeated += again;
                }
                Step::Restarted(problem) => {
                    self.pause(&mut restarts, problem).await?;
                    skip = 0;
                    self.restart().await?;
                }
            }
        }
    }

    /// Waits after a list was interrupted, unless it got further than ever before. Gives up at the retry limit.
    async fn pause(&self, restarts: &mut Restarts, problem: Problem) -> Result<(), End> {
        let reached = self.counts.listed.saturating_sub(self.before.listed);
        let Some(pause) = restarts.pause(reached) else { return Err(End::Failed(problem)) };
        if !pause.is_zero() {
            self.hear_retries()(&problem, pause);
        }
        tokio::select! {
            biased;
            () = self.shared.stopping.cancelled() => Err(End::Stopped),
            () = tokio::time::sleep(pause) => Ok(()),
        }
    }

    /// Puts the objects of a page into batches. `skip` is how many have arrived before.
    async fn take(&mut self, page: &Page, skip: &mut usize) -> Result<(), End> {
        self.meter.pages.inc();
        self.counts.pages += 1;
        let here = page.items().len();
        let left_out = here.min(*skip);
        *skip -= left_out;
        self.place.skip = left_out;
        self.meter.expect(self.meter.listed.get() + (here - left_out) as u64 + page.remaining.unwrap_or_default());
        for (index, object) in page.items().enumerate().skip(left_out) {
            let added = self.batcher.add(object).map_err(|error| End::Failed(Problem::of(error.to_string())))?;
            let full = match added {
                Added::Overflowed(full) => {
                    self.put(full).await?;
                    None
                }
                Added::Filled(full) => Some(full),
                Added::Yes => None,
                Added::Skipped => {
                    self.counts.skipped += 1;
                    self.meter.skipped.inc();
                    None
                }
            };
            self.place.skip = index + 1;
            self.counts.listed += 1;
            self.meter.listed.inc();
            if let Some(full) = full {
                self.put(full).await?;
            }
        }
        Ok(())
    }

    /// The list of this namespace begins again.
    async fn restart(&mut self) -> Result<(), End> {
        self.settle().await?;
        let sent = self.shared.book.progress(&self.name).counts.sent - self.before.sent;
        self.counts.listed = self.before.listed;
        self.counts.skipped = self.before.skipped;
        self.counts.repeated = self.before.repeated + sent;
        self.counts.expired += 1;
        self.place = Position { namespace: self.place.namespace, ..Position::default() };
        self.shared.listener.tell(Note::Restarted { kind: self.name.to_string(), repeated: sent });
        Ok(())
    }

    /// Sends a batch, which ends where we are.
    async fn put(&mut self, full: Full) -> Result<(), Stopped> {
        self.batch += 1;
        self.counts.retried = self.retried.load(Ordering::Relaxed);
        let position = self.place.clone();
        let mark = Mark { position, batch: self.batch, counts: self.counts, before: self.before };
        let room = self.outbox.put(full, mark).await?;
        self.batcher.give_back(room);
        Ok(())
    }

    /// Sends what is left over, and waits until everything has arrived.
    async fn settle(&mut self) -> Result<(), Stopped> {
        if let Some(full) = self.batcher.take() {
            self.put(full).await?;
        }
        self.outbox.settle().await.map(drop)
    }

    /// Notes how it ended. What was read is sent, however that was.
    async fn close(&mut self, end: End) {
        let end = match (self.settle().await, end) {
            (Ok(()), end) => end,
            (Err(Stopped), _) => End::Stopped,
        };
        self.counts.retried = self.retried.load(Ordering::Relaxed);
        let (state, stage, problem) = match end {
            End::Done => (State::Done, Stage::Done, None),
            End::Failed(problem) => (State::Failed, Stage::Failed, Some(problem)),
            End::Stopped => (State::Open, Stage::Failed, None),
        };
        self.meter.enter(&self.shared.meter, stage);
        self.shared.book.close(&self.name, state, self.counts, problem);
        self.shared.listener.tell(Note::KindDone(self.shared.summarise(&self.kind)));
        self.shared.save().await;
    }

    fn hear_retries(&self) -> Retry {
        let (listener, name) = (self.shared.listener.clone(), Arc::clone(&self.name));
        let (retried, counter) = (Arc::clone(&self.retried), self.meter.retries.clone());
        Arc::new(move |problem, pause| {
            retried.fetch_add(1, Ordering::Relaxed);
            counter.inc();
            listener.tell(Note::Retrying { kind: name.to_string(), problem: problem.clone(), pause });
        })
    }
}
