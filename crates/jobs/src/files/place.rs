//! What a path leads to: a file that can be replaced as a whole, or something that is only written to.

use std::io;
use std::path::{Path, PathBuf};

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A regular file, which may not exist yet. No part of the path is a link, so that replacing it replaces no link.
    File(PathBuf),
    /// A device, a pipe or a socket, or what is open already as a file of the process.
    Stream(PathBuf),
}

/// How many links lead to a file at most.
const LINKS: usize = 40;
/// What the process has open already, by its name.
const OPEN: [&str; 3] = ["/dev/stdin", "/dev/stdout", "/dev/stderr"];

impl Place {
    /// Finds out. A directory is no place.
    pub(crate) fn find(path: &Path) -> io::Result<Self> {
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")),
            Ok(found) if found.is_file() && !is_open(path) => std::fs::canonicalize(path).map(Self::File),
            Ok(_) => Ok(Self::Stream(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => follow(path).map(Self::File),
            Err(error) => Err(error),
        }
    }
}

/// Whether a path is the name of an open file, or a link to one: such a file stays the same one for the process that has it
/// open.
fn is_open(path: &Path) -> bool {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let parent = path.parent().and_then(|parent| std::fs::canonicalize(parent).ok());
        let is_in_fd = parent.is_some_and(|parent| parent.starts_with("/proc") && parent.ends_with("fd"));
        if is_in_fd || path.starts_with("/dev/fd") || OPEN.iter().any(|open| path == Path::new(open)) {
            return true;
        }
        match std::fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return false,
        }
    }
    false
}

/// Where a path leads whose last link leads to nothing yet.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        match std::fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many links lead to it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_and_what_is_no_file_is_a_stream() {
        let directory = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(directory.path()).unwrap();
        let file = root.join("file");
        assert_eq!(Place::find(&file).unwrap(), Place::File(file.clone()), "it does not exist yet");
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink("file", root.join("link")).unwrap();
        std::os::unix::fs::symlink("nothing", root.join("dangling")).unwrap();
        std::os::unix::fs::symlink("circle", root.join("circle")).unwrap();
        assert_eq!(Place::find(&root.join("link")).unwrap(), Place::File(file));
        assert_eq!(Place::find(&root.join("dangling")).unwrap(), Place::File(root.join("nothing")));
        assert_eq!(Place::find(Path::new("/dev/null")).unwrap(), Place::Stream("/dev/null".into()));
        assert_eq!(Place::find(&root).unwrap_err().to_string(), "it is a directory");
        assert!(Place::find(&root.join("circle")).is_err());
    }

    #[test]
    fn files_below_dev_are_files_and_open_ones_are_streams() {
        let shared = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        assert_eq!(Place::find(shared.path()).unwrap(), Place::File(shared.path().to_owned()));
        let directory = tempfile::tempdir().unwrap();
        let open = std::fs::File::create(directory.path().join("open")).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&open);
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(format!("/dev/fd/{number}"), &link).unwrap();
        for path in [format!("/dev/fd/{number}"), format!("/proc/self/fd/{number}")].map(PathBuf::from) {
            assert_eq!(Place::find(&path).unwrap(), Place::Stream(path));
        }
        assert_eq!(Place::find(&link).unwrap(), Place::Stream(link));
    }
}
