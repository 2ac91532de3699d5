//! A file of lines, complete or not there at all.
//!
//! It is written beside its place under another name, and moved when the run is over. A run that was stopped leaves it
//! there if there is a checkpoint, which knows its length: the next process cuts it back to that and resumes. What is no
//! regular file is written to in place, and never resumed.

mod partial;
mod stream;

use super::{Compression, Form, Remedy, Sink, SinkError};
use crate::backfill::batch::Batch;
use crate::backfill::summary::{Problem, Summary};
use crate::files::Place;
use jobwright_engine::async_trait;
use partial::Partial;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a process that reads a pipe is waited for, and how often it is looked for.
const READER: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(100);

/// Writes a file.
pub struct FileSink {
    path: PathBuf,
    compression: Compression,
    /// Whether what was written has to be on the disk before it counts.
    is_durable: bool,
    open: Arc<Mutex<Option<Open>>>,
}

/// What is written to.
#[derive(Debug)]
enum Open {
    Partial(Partial, PathBuf),
    Stream(File),
}

impl FileSink {
    /// Writes this file. With a checkpoint, every batch is on the disk before it counts.
    pub fn new(path: impl Into<PathBuf>, compression: Compression, has_checkpoint: bool) -> Self {
        Self { path: path.into(), compression, is_durable: has_checkpoint, open: Arc::default() }
    }

    fn error(&self, error: &io::Error) -> SinkError {
        let problem = Problem::of(format!("cannot write `{}`: {error}", self.path.display()));
        // Of a stream, half a batch may have been read: nothing that is written now would be understood.
        let is_stream = matches!(*self.lock(), Some(Open::Stream(_)));
        match error.kind() {
            _ if is_stream => SinkError { problem, remedy: Remedy::Closed },
            // A disk that is full may get room again.
            io::ErrorKind::StorageFull | io::ErrorKind::Interrupted => SinkError::passing(problem, None),
            _ => SinkError::refused(problem),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Option<Open>) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let open = Arc::clone(&self.open);
        let done = tokio::task::spawn_blocking(move || work(&mut open.lock().unwrap_or_else(PoisonError::into_inner)));
        done.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    /// Opens what the path leads to; whether a run can continue there after what it has sent.
    async fn open(&self, run: &str, state: Option<&Value>) -> io::Result<bool> {
        let (path, run) = (self.path.clone(), run.to_owned());
        let length = state.map(|state| state["length"].as_u64().unwrap_or(u64::MAX));
        let is_new = state.is_none();
        self.work(move |open| {
            // The file of a run before this one is no longer locked.
            *open = None;
            *open = match (Place::find(&path)?, length) {
                (Place::File(path), None) => {
                    partial::remove_dead(&path, &run);
                    Some(Open::Partial(Partial::create(partial::path_beside(&path, &run))?, path))
                }
                (Place::File(path), Some(length)) => {
                    let found = Partial::resume(partial::path_beside(&path, &run), length)?;
                    found.map(|partial| Open::Partial(partial, path))
                }
                (Place::Stream(path), None) => Some(Open::Stream(stream::open(&path)?)),
                (Place::Stream(_), Some(_)) => None,
            };
            Ok(open.is_some() || is_new)
        })
        .await
    }
}

impl Open {
    fn append(&mut self, body: &[u8], is_durable: bool) -> io::Result<()> {
        match self {
            Self::Partial(partial, _) => partial.append(body, is_durable),
            Self::Stream(file) => file.write_all(body),
        }
    }
}

#[async_trait]
impl Sink for FileSink {
    fn describe(&self) -> String {
        format!("file:{}", self.path.display())
    }

    fn form(&self) -> Form {
        Form::Lines(self.compression)
    }

    fn is_ordered(&self) -> bool {
        true
    }

    async fn begin(&self, run: &str, state: Option<&Value>) -> Result<bool, SinkError> {
        let begun = Instant::now();
        loop {
            match self.open(run, state).await {
                Err(error) if error.kind() == io::ErrorKind::NotConnected && begun.elapsed() < READER => {
                    tokio::time::sleep(LOOK).await;
                }
                opened => return opened.map_err(|error| self.error(&error)),
            }
        }
    }

    async fn send(&self, batch: &Batch) -> Result<(), SinkError> {
        let (body, is_durable) = (batch.body.clone(), self.is_durable);
        let sent = self.work(move |open| match open {
            Some(open) => open.append(&body, is_durable),
            None => Err(io::Error::other("it is not open")),
        });
        sent.await.map_err(|error| self.error(&error))
    }

    fn state(&self) -> Option<Value> {
        self.lock().as_ref().map(|open| match open {
            Open::Partial(partial, _) => json!({"length": partial.length}),
            Open::Stream(_) => json!({"stream": true}),
        })
    }

    async fn finish(&self, _: &Summary) -> Result<(), SinkError> {
        let finished = self.work(|open| {
            if let Some(Open::Partial(partial, path)) = open {
                partial.publish(path)?;
            }
            *open = None;
            Ok(())
        });
        finished.await.map_err(|error| self.error(&error))
    }

    async fn leave(&self, goes_on: bool) {
        if !goes_on {
            // If it cannot be removed, its name still tells that it is not complete.
            let left = self.work(|open| match open.take() {
                Some(Open::Partial(partial, _)) => partial.remove(),
                Some(Open::Stream(_)) | None => Ok(()),
            });
            let _ = left.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backfill::batch::BatchId;
    use std::path::Path;

    fn batch(number: u64, text: &str) -> Batch {
        let id = BatchId { run: "r".to_owned(), kind: "pods".to_owned(), number };
        Batch { key: id.key(text.as_bytes()), id, records: 1, size: text.len(), body: text.to_owned().into() }
    }

    fn summary() -> Summary {
        Summary {
            complete: true,
            kinds: Vec::new(),
            batches: crate::backfill::summary::Batches::default(),
            run: "r".to_owned(),
            resumed: false,
            cancelled: false,
            sink: String::new(),
            stopped: None,
            seconds: 0.0,
            kept: None,
            names_only: None,
            skipped: None,
        }
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[tokio::test]
    async fn a_file_is_there_whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        std::fs::write(&path, "old").unwrap();
        let sink = FileSink::new(&path, Compression::None, false);
        assert!(sink.begin("r", None).await.unwrap());
        sink.send(&batch(1, "one\n")).await.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        sink.finish(&summary()).await.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n");
        assert_eq!(names(directory.path()), ["out"]);
    }

    #[tokio::test]
    async fn a_run_that_stops_takes_away_what_is_half_done_unless_somebody_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        for goes_on in [false, true] {
            let sink = FileSink::new(directory.path().join("out"), Compression::None, goes_on);
            sink.begin("r", None).await.unwrap();
            sink.leave(goes_on).await;
            assert_eq!(names(directory.path()).len(), usize::from(goes_on));
        }
    }

    #[tokio::test]
    async fn a_half_done_file_is_cut_back_to_what_counted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let first = FileSink::new(&path, Compression::None, true);
        first.begin("r", None).await.unwrap();
        first.send(&batch(1, "one\n")).await.unwrap();
        let state = first.state().unwrap();
        first.send(&batch(2, "lost\n")).await.unwrap();
        drop(first);
        let second = FileSink::new(&path, Compression::None, true);
        assert!(second.begin("r", Some(&state)).await.unwrap());
        second.send(&batch(2, "two\n")).await.unwrap();
        second.finish(&summary()).await.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert!(!second.begin("r", Some(&state)).await.unwrap(), "it is gone");
        std::fs::write(partial::path_beside(&path, "r"), "on").unwrap();
        assert!(!second.begin("r", Some(&state)).await.unwrap(), "it is too short");
    }

    #[tokio::test]
    async fn a_place_that_cannot_be_written_is_named() {
        let sink = FileSink::new("/nowhere/out", Compression::None, false);
        let error = sink.begin("r", None).await.unwrap_err().to_string();
        assert!(error.starts_with("cannot write `/nowhere/out`: "), "{error}");
    }
}
