//! A file of lines, there whole or not at all.
//!
//! It is written beside its place under another name, and moved when the run is over. A run that was stopped leaves it
//! there if there is a checkpoint, which knows its length: the next process cuts it back to that and goes on.

use super::{Compression, Form, Sink, SinkError};
use crate::backfill::batch::Batch;
use crate::backfill::summary::{Problem, Summary};
use jobwright_engine::async_trait;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Writes a file.
pub struct FileSink {
    path: PathBuf,
    compression: Compression,
    /// Whether what was written has to be on the disk before it counts.
    is_durable: bool,
    open: Arc<Mutex<Option<Partial>>>,
}

/// A file in the making.
#[derive(Debug)]
struct Partial {
    path: PathBuf,
    file: File,
    length: u64,
}

impl FileSink {
    /// Writes this file. With a checkpoint, every batch is on the disk before it counts.
    pub fn new(path: impl Into<PathBuf>, compression: Compression, has_checkpoint: bool) -> Self {
        Self { path: path.into(), compression, is_durable: has_checkpoint, open: Arc::default() }
    }

    fn error(&self, error: &io::Error) -> SinkError {
        let problem = Problem::of(format!("cannot write `{}`: {error}", self.path.display()));
        // A disk that is full may get room again.
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::Interrupted => SinkError::passing(problem, None),
            _ => SinkError::refused(problem),
        }
    }

    fn partial_path(&self, run: &str) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.path.with_file_name(format!(".{name}.{run}.partial"))
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Option<Partial>) -> io::Result<T> + Send + 'static,
    ) -> Result<T, SinkError> {
        let open = Arc::clone(&self.open);
        let done = tokio::task::spawn_blocking(move || work(&mut open.lock().unwrap_or_else(PoisonError::into_inner)));
        done.await.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(|error| self.error(&error))
    }
}

impl Partial {
    fn create(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).write(true).truncate(true).open(&path)?;
        Ok(Self { path, file, length: 0 })
    }

    /// Goes on after a length; none if that is no longer there.
    fn resume(path: PathBuf, length: u64) -> io::Result<Option<Self>> {
        let mut file = match OpenOptions::new().write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if file.metadata()?.len() < length {
            return Ok(None);
        }
        file.set_len(length)?;
        file.seek(SeekFrom::Start(length))?;
        Ok(Some(Self { path, file, length }))
    }

    fn append(&mut self, body: &[u8], is_durable: bool) -> io::Result<()> {
        let written = self.file.write_all(body).and_then(|()| if is_durable { self.file.sync_data() } else { Ok(()) });
        if let Err(error) = written {
            // Half a batch must not stay in front of the next.
            self.file.set_len(self.length)?;
            self.file.seek(SeekFrom::Start(self.length))?;
            return Err(error);
        }
        self.length += body.len() as u64;
        Ok(())
    }

    fn publish(self, to: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.path, to)?;
        let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(directory)?.sync_all()
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
        let path = self.partial_path(run);
        let length = state.map(|state| state["length"].as_u64().unwrap_or(u64::MAX));
        self.work(move |open| {
            *open = match length {
                None => Some(Partial::create(path)?),
                Some(length) => Partial::resume(path, length)?,
            };
            Ok(open.is_some())
        })
        .await
    }

    async fn send(&self, batch: &Batch) -> Result<(), SinkError> {
        let (body, is_durable) = (batch.body.clone(), self.is_durable);
        self.work(move |open| match open {
            Some(partial) => partial.append(&body, is_durable),
            None => Err(io::Error::other("it is not open")),
        })
        .await
    }

    fn state(&self) -> Option<Value> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.as_ref().map(|partial| json!({"length": partial.length}))
    }

    async fn finish(&self, _: &Summary) -> Result<(), SinkError> {
        let path = self.path.clone();
        self.work(move |open| open.take().map_or(Ok(()), |partial| partial.publish(&path))).await
    }

    async fn leave(&self, goes_on: bool) {
        if !goes_on {
            // If it cannot be taken away, nobody will take it for a whole one.
            let _ = self.work(|open| open.take().map_or(Ok(()), |partial| std::fs::remove_file(&partial.path))).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backfill::batch::BatchId;

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
        std::fs::write(second.partial_path("r"), "on").unwrap();
        assert!(!second.begin("r", Some(&state)).await.unwrap(), "it is too short");
    }

    #[tokio::test]
    async fn a_place_that_cannot_be_written_is_named() {
        let sink = FileSink::new("/nowhere/out", Compression::None, false);
        let error = sink.begin("r", None).await.unwrap_err().to_string();
        assert!(error.starts_with("cannot write `/nowhere/out`: "), "{error}");
    }
}
