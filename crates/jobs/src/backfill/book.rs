//! What has arrived, in memory and in the checkpoint: everything that is said in the end is read from here.

use super::Once;
use super::checkpoint::{Checkpoint, CheckpointError, CheckpointStore, Completed, Position, Progress, State};
use super::summary::{Counts, Problem};
use jobwright_engine::Clock;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// What has arrived.
pub(crate) struct Book {
    checkpoint: Mutex<Checkpoint>,
    store: Option<Arc<dyn CheckpointStore>>,
    clock: Clock,
    /// When it was last written; whoever holds this writes.
    written: tokio::sync::Mutex<Option<Instant>>,
}

/// Where a kind stands when a batch has arrived.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mark {
    pub(crate) position: Position,
    /// The number of the batch.
    pub(crate) batch: u64,
    /// Objects that were listed and skipped up to here.
    pub(crate) counts: Counts,
    pub(crate) before: Counts,
}

/// What became of a batch.
#[derive(Clone, Debug)]
pub(crate) enum Arrival {
    /// It arrived.
    Sent { records: u64, bytes: u64, sink: Option<Value> },
    /// It was refused for good.
    Refused(Problem),
}

impl Book {
    pub(crate) fn new(checkpoint: Checkpoint, store: Option<Arc<dyn CheckpointStore>>, clock: Clock) -> Self {
        Self { checkpoint: Mutex::new(checkpoint), store, clock, written: tokio::sync::Mutex::new(None) }
    }

    fn lock(&self) -> MutexGuard<'_, Checkpoint> {
        self.checkpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has arrived so far.
    pub(crate) fn read(&self) -> Checkpoint {
        self.lock().clone()
    }

    /// How far a kind has come.
    pub(crate) fn progress(&self, kind: &str) -> Progress {
        self.lock().kinds.get(kind).cloned().unwrap_or_default()
    }

    /// Notes what became of a batch.
    pub(crate) fn note(&self, kind: &str, mark: Mark, arrival: &Arrival) {
        let mut checkpoint = self.lock();
        let batches = &mut checkpoint.batches;
        let mut sent = 0;
        match arrival {
            Arrival::Sent { records, bytes, sink } => {
                sent = *records;
                batches.sent += 1;
                batches.bytes += bytes;
                if sink.is_some() {
                    checkpoint.sink.clone_from(sink);
                }
            }
            Arrival::Refused(_) => batches.failed += 1,
        }
        let progress = checkpoint.kinds.entry(kind.to_owned()).or_default();
        let Mark { position, batch, counts, before } = mark;
        let (retried, pages) = (progress.counts.retried.max(counts.retried), progress.counts.pages.max(counts.pages));
        progress.counts = Counts { sent: progress.counts.sent + sent, retried, pages, ..counts };
        progress.before = before;
        progress.position = position;
        progress.batches = batch;
        if let Arrival::Refused(problem) = arrival {
            add(&mut progress.errors, problem.clone());
        }
    }

    /// Notes that a delivery was made again.
    pub(crate) fn note_retry(&self) {
        self.lock().batches.retried += 1;
    }

    /// Notes how a kind ended, or how far it got.
    pub(crate) fn close(&self, kind: &str, state: State, counts: Counts, problem: Option<Problem>) {
        let mut checkpoint = self.lock();
        let progress = checkpoint.kinds.entry(kind.to_owned()).or_default();
        progress.state = state;
        // What was listed and not sent comes again in the next run.
        let known = progress.counts;
        progress.counts = match state {
            State::Open => Counts { retried: counts.retried, pages: counts.pages, ..known },
            State::Done | State::Failed => Counts { sent: known.sent, ..counts },
        };
        if let Some(problem) = problem {
            add(&mut progress.errors, problem);
        }
    }

    /// Nobody goes on with this run.
    pub(crate) fn end(&self) {
        self.lock().over = true;
    }

    /// Notes that all of it has arrived, for which key and after which forced deploy.
    pub(crate) fn complete(&self, once: &Once) {
        let mut checkpoint = self.lock();
        let run = checkpoint.run.clone();
        let Once { key, forced, .. } = once.clone();
        // A run that does not look for forced deploys answers those that were answered before.
        let forced = forced.max(checkpoint.completed.take().and_then(|completed| completed.forced));
        checkpoint.completed = Some(Completed { key, since: self.clock.now(), run, forced });
    }

    /// Writes the checkpoint, unless that was done a moment ago and need not be done now.
    pub(crate) async fn save(&self, now: bool) -> Result<(), CheckpointError> {
        let Some(store) = &self.store else { return Ok(()) };
        let mut written = self.written.lock().await;
        if !now && written.is_some_and(|written| written.elapsed() < store.pace()) {
            return Ok(());
        }
        let checkpoint = {
            let mut checkpoint = self.lock();
            checkpoint.updated_at = self.clock.now();
            checkpoint.clone()
        };
        store.save(&checkpoint).await?;
        *written = Some(Instant::now());
        Ok(())
    }
}

/// The most problems of a kind that are told one by one.
const MOST: usize = 20;

/// Adds a problem; what has been told already is not told again.
fn add(problems: &mut Vec<Problem>, problem: Problem) {
    if !problems.contains(&problem) && problems.len() < MOST {
        problems.push(problem);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use jobwright_engine::async_trait;
    use std::time::Duration;

    fn book(store: Option<Arc<dyn CheckpointStore>>) -> Book {
        let checkpoint = Checkpoint::new("r".to_owned(), String::new(), Timestamp::UNIX_EPOCH);
        Book::new(checkpoint, store, Clock::new(|| Timestamp::UNIX_EPOCH))
    }

    fn mark(batch: u64, listed: u64) -> Mark {
        let position = Position { skip: usize::try_from(listed).unwrap(), ..Position::default() };
        let counts = Counts { listed, pages: 1, ..Counts::default() };
        Mark { position, batch, counts, before: Counts::default() }
    }

    #[test]
    fn what_arrived_is_what_is_written_down() {
        let book = book(None);
        book.note("pods", mark(1, 10), &Arrival::Sent { records: 10, bytes: 100, sink: Some(Value::from(7)) });
        book.note("pods", mark(2, 20), &Arrival::Refused(Problem::of("no")));
        book.note("pods", mark(3, 30), &Arrival::Sent { records: 10, bytes: 100, sink: None });
        let seen = book.read();
        assert_eq!((seen.batches.sent, seen.batches.failed, seen.batches.bytes), (2, 1, 200));
        assert_eq!(seen.sink, Some(Value::from(7)));
        let pods = book.progress("pods");
        assert_eq!((pods.batches, pods.position.skip), (3, 30));
        assert_eq!((pods.counts.listed, pods.counts.sent, pods.errors.len()), (30, 20, 1));
    }

    #[test]
    fn what_was_read_and_has_not_arrived_is_not_counted() {
        let book = book(None);
        book.note("pods", mark(1, 10), &Arrival::Sent { records: 10, bytes: 1, sink: None });
        let read = Counts { listed: 15, pages: 2, ..Counts::default() };
        book.close("pods", State::Open, read, None);
        assert_eq!((book.progress("pods").counts.listed, book.progress("pods").counts.pages), (10, 2));
        book.close("pods", State::Done, read, None);
        assert_eq!((book.progress("pods").counts.listed, book.progress("pods").counts.sent), (15, 10));
    }

    #[test]
    fn problems_are_told_once_and_not_without_end() {
        let mut problems = Vec::new();
        for number in 0..100 {
            add(&mut problems, Problem::of(format!("{}", number % 50)));
        }
        assert_eq!(problems.len(), MOST);
    }

    struct Slow(Mutex<usize>);

    #[async_trait]
    impl CheckpointStore for Slow {
        async fn load(&self) -> Result<Option<Checkpoint>, CheckpointError> {
            Ok(None)
        }
        async fn save(&self, _: &Checkpoint) -> Result<(), CheckpointError> {
            *self.0.lock().unwrap() += 1;
            Ok(())
        }
        fn pace(&self) -> Duration {
            Duration::from_secs(5)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_is_not_written_too_often() {
        let slow = Arc::new(Slow(Mutex::new(0)));
        let book = book(Some(slow.clone()));
        for _ in 0..12 {
            book.save(false).await.unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(*slow.0.lock().unwrap(), 3);
        book.save(true).await.unwrap();
        assert_eq!(*slow.0.lock().unwrap(), 4);
    }
}
