//! A checkpoint in a file.

use super::{Checkpoint, CheckpointError, CheckpointStore};
use crate::files::{self, Access, Place};
use jobwright_engine::async_trait;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A checkpoint in a file.
#[derive(Debug)]
pub struct FileCheckpoint {
    path: PathBuf,
    /// How many times it was saved, and the last save that was written.
    saves: AtomicU64,
    last: Arc<Mutex<u64>>,
}

/// The largest file that can be a checkpoint.
const LARGEST: u64 = 16 * 1024 * 1024;
/// How long the file system may take.
const LIMIT: Duration = Duration::from_secs(30);

impl FileCheckpoint {
    /// A checkpoint in this file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), saves: AtomicU64::new(0), last: Arc::default() }
    }

    fn error(&self, doing: &'static str) -> impl Fn(io::Error) -> CheckpointError {
        let place = self.path.display().to_string();
        move |error| CheckpointError { doing, place: place.clone(), problem: error.to_string() }
    }
}

#[async_trait]
impl CheckpointStore for FileCheckpoint {
    async fn load(&self) -> Result<Option<Checkpoint>, CheckpointError> {
        let path = self.path.clone();
        let found = move || {
            files::clean(&path);
            read(&path)
        };
        work(found).await.map_err(self.error("read"))
    }

    async fn save(&self, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
        let (path, text, last) = (self.path.clone(), checkpoint.write(), Arc::clone(&self.last));
        let number = self.saves.fetch_add(1, Ordering::Relaxed) + 1;
        let write = move || {
            // A write that was given up may come late: it must not replace a newer one.
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if number > *last {
                write(&path, text.as_bytes())?;
                *last = number;
            }
            Ok(())
        };
        work(write).await.map_err(self.error("write"))
    }
}

/// Reads or writes where it keeps nobody waiting, and gives up on a file system that does not answer.
async fn work<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    match tokio::time::timeout(LIMIT, tokio::task::spawn_blocking(work)).await {
        Ok(done) => done.unwrap_or_else(|error| Err(io::Error::other(error))),
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {}s", LIMIT.as_secs()))),
    }
}

fn read(path: &Path) -> io::Result<Option<Checkpoint>> {
    match std::fs::metadata(path) {
        // A pipe would be waited for.
        Ok(found) if !found.is_file() => Err(io::Error::other("it is not a regular file")),
        Ok(found) if found.len() > LARGEST => Ok(None),
        Ok(_) => std::fs::read(path).map(|text| Checkpoint::read(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a file that can be read again.
fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    match Place::find(path)? {
        Place::File(path) => files::write_whole(&path, text, Access::Private),
        Place::Stream(_) => Err(io::Error::other("it is not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    #[tokio::test]
    async fn a_file_holds_what_was_written_last() {
        let directory = tempfile::tempdir().unwrap();
        let store = FileCheckpoint::new(directory.path().join("checkpoint"));
        assert_eq!(store.load().await.unwrap(), None);
        for run in ["one", "two"] {
            let checkpoint = Checkpoint::new(run.to_owned(), String::new(), Timestamp::UNIX_EPOCH);
            store.save(&checkpoint).await.unwrap();
            assert_eq!(store.load().await.unwrap(), Some(checkpoint));
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[tokio::test]
    async fn a_place_that_cannot_be_written_is_named() {
        let store = FileCheckpoint::new("/nowhere/checkpoint");
        let checkpoint = Checkpoint::new(String::new(), String::new(), Timestamp::UNIX_EPOCH);
        let error = store.save(&checkpoint).await.unwrap_err().to_string();
        assert!(error.starts_with("cannot write the checkpoint `/nowhere/checkpoint`: "), "{error}");
    }
}
