//! Files that components are made of, and what they are recognised by.

use jobwright_engine::Failure;
use sha2::{Digest as _, Sha256};
use std::path::{Path, PathBuf};

/// The most files that a chart or a directory of manifests has.
const MOST_FILES: usize = 10_000;
/// The most that they take together.
const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// All files of a directory, or the one file, in order.
pub(crate) fn list(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed =
        |path: &Path, error| Failure::new(format!("cannot read `{}`", path.display())).because(error).for_good();
    let mut found = Vec::new();
    let mut queue = vec![root.to_owned()];
    let mut bytes = 0;
    while let Some(path) = queue.pop() {
        // Through links, as helm and kubectl do; a link to its own directory ends at the bound.
        let about = std::fs::metadata(&path).map_err(|error| failed(&path, error))?;
        if about.is_dir() {
            let entries = std::fs::read_dir(&path).map_err(|error| failed(&path, error))?;
            for entry in entries {
                let entry = entry.map_err(|error| failed(&path, error))?;
                if !entry.file_name().to_string_lossy().starts_with(".git") {
                    queue.push(entry.path());
                }
            }
        } else {
            bytes += about.len();
            found.push(path);
        }
        if found.len() + queue.len() > MOST_FILES || bytes > MOST_BYTES {
            let message = format!("`{}` holds more than {MOST_FILES} files or {MOST_BYTES} bytes", root.display());
            return Err(Failure::new(message).for_good());
        }
    }
    found.sort();
    Ok(found)
}

/// A hash over files: their names below a root, and what is in them.
pub(crate) fn hash(root: &Path, files: &[PathBuf]) -> Result<String, Failure> {
    let mut hasher = Sha256::new();
    for file in files {
        let content = std::fs::read(file)
            .map_err(|error| Failure::new(format!("cannot read `{}`", file.display())).because(error).for_good())?;
        let name = file.strip_prefix(root).unwrap_or(file).to_string_lossy().into_owned();
        for part in [name.as_bytes(), &content] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
    }
    Ok(short(hasher))
}

/// A hash over texts.
pub(crate) fn hash_of(texts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        hasher.update((text.len() as u64).to_be_bytes());
        hasher.update(text.as_bytes());
    }
    short(hasher)
}

fn short(hasher: Sha256) -> String {
    hasher.finalize().iter().take(12).fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_changes_with_names_and_content_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        let now = || hash(directory.path(), &list(directory.path()).unwrap()).unwrap();
        write("a", "1");
        let first = now();
        assert_eq!(now(), first);
        write("b", "2");
        let second = now();
        assert_ne!(second, first);
        std::fs::rename(directory.path().join("b"), directory.path().join("c")).unwrap();
        assert_ne!(now(), second);
        let missing = list(Path::new("/nowhere")).unwrap_err();
        assert!(missing.to_string().contains("/nowhere"), "{missing}");
    }
}
