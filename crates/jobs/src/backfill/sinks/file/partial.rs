//! A file in the making: beside its place, locked by the process that writes it, and moved when it is whole.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
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

fn prefix(place: &Path) -> String {
    format!(".{}.", place.file_name().unwrap_or_default().to_string_lossy())
}

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

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
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

fn is_same(file: &File, path: &Path) -> bool {
    let identity = |found: io::Result<std::fs::Metadata>| found.map(|found| (found.dev(), found.ino())).ok();
    let open = identity(file.metadata());
    open.is_some() && open == identity(std::fs::symlink_metadata(path))
}

/// Removes what runs have left that no process writes any more. What cannot be removed is in no one's way.
pub(super) fn remove_dead(place: &Path, run: &str) {
    let own = path_beside(place, run);
    let Ok(entries) = std::fs::read_dir(directory(place)) else { return };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| *path != own) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let run = name.strip_prefix(&prefix(place)).and_then(|rest| rest.strip_suffix(SUFFIX));
        // A dot is in no name that we make up: it is a run of another file.
        if run.is_none_or(|run| run.is_empty() || run.contains('.')) {
            continue;
        }
        let Ok(file) = OpenOptions::new().write(true).open(&path) else { continue };
        if file.try_lock().is_ok() && is_same(&file, &path) {
            let _ = std::fs::remove_file(&path);
        }
    }
}
