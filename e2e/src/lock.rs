//! Locks between processes, which a killed process gives up.

use crate::error::Error;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Held until dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock; if another process has it, says so and waits.
    pub(crate) fn take(path: &Path, waiting: impl FnOnce()) -> Result<Self, Error> {
        let mut waiting = Some(waiting);
        loop {
            let doing = || format!("lock `{}`", path.display());
            let open = OpenOptions::new().create(true).truncate(false).write(true).open(path);
            let file = open.map_err(Error::io(doing()))?;
            if file.try_lock().is_err() {
                if let Some(waiting) = waiting.take() {
                    waiting();
                }
                file.lock().map_err(Error::io(doing()))?;
            }
            // Whoever had it before may have removed the file; then this is a lock of nothing.
            let own = file.metadata().map_err(Error::io(doing()))?;
            if std::fs::metadata(path).is_ok_and(|there| there.ino() == own.ino()) {
                return Ok(Self { file, path: path.to_owned() });
            }
        }
    }

    /// Gives it up and leaves no file.
    pub(crate) fn remove(self) {
        // A file that stays is a lock that nobody holds.
        let _ = std::fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_second_one_waits_for_the_first() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let first = Lock::take(&path, || panic!("nobody has it")).unwrap();
        let waited = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| Lock::take(&path, || waited.store(true, Ordering::SeqCst)).unwrap());
            while !waited.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            first.remove();
            second.join().unwrap().remove();
        });
        assert!(!path.exists());
    }
}
