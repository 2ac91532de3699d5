//! A device or a pipe that is written to in place.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens it. A pipe that no process reads is [`NotConnected`](io::ErrorKind::NotConnected), instead of waited for.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new().append(true).custom_flags(flags).open(path).map_err(|error| {
        match rustix::io::Errno::from_io_error(&error) {
            Some(rustix::io::Errno::NXIO) => io::Error::new(io::ErrorKind::NotConnected, "no process reads it"),
            _ => error,
        }
    })?;
    // A reader may be slow.
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - rustix::fs::OFlags::NONBLOCK)?;
    Ok(file)
}
