//! A checkpoint in a file.

use super::{Checkpoint, CheckpointError, CheckpointStore};
use jobwright_engine::async_trait;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A checkpoint in a file.
#[derive(Clone, Debug)]
pub struct FileCheckpoint {
    path: PathBuf,
}

/// The largest file that can be a checkpoint.
const LARGEST: u64 = 16 * 1024 * 1024;

impl FileCheckpoint {
    /// A checkpoint in this file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    fn error(&self, doing: &'static str) -> impl Fn(io::Error) -> CheckpointError {
        let place = self.path.display().to_string();
        move |error| CheckpointError { doing, place: place.clone(), problem: error.to_string() }
    }
}

#[async_trait]
impl CheckpointStore for FileCheckpoint {
    async fn load(&self) -> Result<Option<Checkpoint>, CheckpointError> {
        let read = |path: &Path| match std::fs::metadata(path) {
            Ok(found) if found.len() > LARGEST => Ok(None),
            Ok(_) => std::fs::read(path).map(|text| Checkpoint::read(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        read(&self.path).map_err(self.error("read"))
    }

    async fn save(&self, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
        let (path, text) = (self.path.clone(), checkpoint.write());
        let written = tokio::task::spawn_blocking(move || write_whole(&path, text.as_bytes())).await;
        written.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(self.error("write"))
    }
}

/// Writes a file so that nobody ever sees half of it, whatever happens to the machine.
fn write_whole(path: &Path, text: &[u8]) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text)?;
    file.as_file().sync_data()?;
    file.persist(path)?;
    std::fs::File::open(directory)?.sync_all()
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
