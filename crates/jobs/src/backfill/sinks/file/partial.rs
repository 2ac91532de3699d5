//! A file in the making: beside its place, locked by the process that writes it, and moved when it is whole.

use crate::files::{self, directory, is_same, prefix};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file in the making.
#[derive(Debug)]
pub(super) struct Partial {
    path: PathBuf,
    file: File,
    pub(super) length: u64,
}

/// How often, and after which pauses, a lock is tried: that of a process that has just ended is free in a moment.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Where the file of a run is in the making.
pub(super) fn path_beside(place: &Path, run: &str) -> PathBuf {
    place.with_file_name(format!("{}{run}{SUFFIX}", prefix(place)))
}

const SUFFIX: &str = ".partial";

impl Partial {
    pub(super) fn create(path: PathBuf) -> io::Result<Self> {
        for _ in 0..TRIES {
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
            lock(&file)?;
            // Another process may have removed it before it was locked.
            if is_same(&file, &path) {
                file.set_len(0)?;
                return Ok(Self { path, file, length: 0 });
            }
        }
        Err(io::Error::other("another process keeps removing it"))
    }

    /// Continues after a length; none if that much does not exist.
    pub(super) fn resume(path: PathBuf, length: u64) -> io::Result<Option<Self>> {
        let mut file = match OpenOptions::new().write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        lock(&file)?;
        if !is_same(&file, &path) || file.metadata()?.len() < length {
            return Ok(None);
        }
        file.set_len(length)?;
        file.seek(SeekFrom::Start(length))?;
        Ok(Some(Self { path, file, length }))
    }

    pub(super) fn append(&mut self, body: &[u8], is_durable: bool) -> io::Result<()> {
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

    pub(super) fn publish(&self, to: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.path, to)?;
        File::open(directory(to))?.sync_all()
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }
}

/// Locks a file, where the file system can.
fn lock(file: &File) -> io::Result<()> {
    for _ in 0..TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(()),
        }
    }
    Err(io::Error::other("another process is writing it"))
}

/// Removes what runs have left that no process writes any more.
pub(super) fn remove_dead(place: &Path, run: &str) {
    files::remove_dead(place, SUFFIX, Some(&path_beside(place, run)));
}
