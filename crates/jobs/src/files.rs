//! Files that are written whole or not at all, and what is left of processes that died meanwhile.

mod place;

pub(crate) use place::Place;

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// Who may read a file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Its owner.
    Private,
    /// Everybody.
    Public,
    /// Whoever may read what was there before; its owner if nothing was.
    Kept,
}

/// What files are called that are about to replace another.
const SUFFIX: &str = ".tmp";

/// Writes a file so that no process ever sees half of it, whatever happens to the machine. A link to it stays. A device or a
/// pipe is written in place; a directory is refused.
pub fn write_whole(path: &Path, text: &[u8], access: Access) -> io::Result<()> {
    let path = match Place::find(path)? {
        Place::File(path) => path,
        Place::Stream(path) => return OpenOptions::new().append(true).open(path)?.write_all(text),
    };
    let permissions = match access {
        Access::Private => Some(0o600),
        Access::Public => Some(0o644),
        Access::Kept => std::fs::metadata(&path).ok().map(|found| found.mode() & 0o7777),
    };
    let mut file = tempfile::Builder::new().prefix(&prefix(&path)).suffix(SUFFIX).tempfile_in(directory(&path))?;
    // Who removes what dead processes have left spares what is locked. Where nothing can be locked, nothing is removed.
    let _ = file.as_file().try_lock();
    file.write_all(text)?;
    if let Some(mode) = permissions {
        file.as_file().set_permissions(Permissions::from_mode(mode))?;
    }
    file.as_file().sync_data()?;
    file.persist(&path)?;
    File::open(directory(&path))?.sync_all()
}

/// Removes what processes have left that died before they had written this file.
pub(crate) fn clean(path: &Path) {
    if let Ok(Place::File(path)) = Place::find(path) {
        remove_dead(&path, SUFFIX, None);
    }
}

/// What the names of files begin with that are going to be this one.
pub(crate) fn prefix(place: &Path) -> String {
    format!(".{}.", place.file_name().unwrap_or_default().to_string_lossy())
}

/// Where a file is.
pub(crate) fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether a path still leads to an open file.
pub(crate) fn is_same(file: &File, path: &Path) -> bool {
    let identity = |found: io::Result<std::fs::Metadata>| found.map(|found| (found.dev(), found.ino())).ok();
    let open = identity(file.metadata());
    open.is_some() && open == identity(std::fs::symlink_metadata(path))
}

/// Removes files beside a place that no process writes any more, but for one. What cannot be removed is in no one's way.
pub(crate) fn remove_dead(place: &Path, suffix: &str, spared: Option<&Path>) {
    let Ok(entries) = std::fs::read_dir(directory(place)) else { return };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| Some(path.as_path()) != spared) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let own = name.strip_prefix(&prefix(place)).and_then(|rest| rest.strip_suffix(suffix));
        // A dot is in no name that we make up: it belongs to another file.
        if own.is_none_or(|own| own.is_empty() || own.contains('.')) {
            continue;
        }
        let Ok(file) = OpenOptions::new().write(true).open(&path) else { continue };
        if file.try_lock().is_ok() && is_same(&file, &path) {
            let _ = std::fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn links_and_devices_stay_and_permissions_are_as_asked() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        std::os::unix::fs::symlink("file", &link).unwrap();
        for (access, mode) in [(Access::Public, 0o644), (Access::Private, 0o600), (Access::Kept, 0o600)] {
            write_whole(&link, b"text", access).unwrap();
            assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink(), "{access:?}");
            assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, mode, "{access:?}");
        }
        write_whole(Path::new("/dev/null"), b"text", Access::Public).unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
        assert_eq!(write_whole(directory.path(), b"", Access::Public).unwrap_err().to_string(), "it is a directory");
        assert_eq!(names(directory.path()), ["file", "link"]);
    }

    #[test]
    fn what_dead_processes_left_is_removed_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        for name in
            [".file.abc.tmp", ".file.tmp", ".file.b.abc.tmp", "file.abc.tmp", ".other.abc.tmp", ".file.live.tmp"]
        {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        let live = File::options().write(true).open(directory.path().join(".file.live.tmp")).unwrap();
        live.try_lock().unwrap();
        clean(&directory.path().join("file"));
        let left = [".file.b.abc.tmp", ".file.live.tmp", ".file.tmp", ".other.abc.tmp", "file.abc.tmp"];
        assert_eq!(names(directory.path()), left);
    }
}
