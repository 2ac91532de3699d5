//! Charts in directories.

use super::ignore::Rules;
use super::{LoadError, MOST_BYTES, MOST_BYTES_OF_FILE, MOST_FILES, PackageFile, without_mark};
use std::path::{Path, PathBuf};

/// Directories within directories; links may lead round in circles.
const MOST_DEPTH: usize = 64;

/// Reads the files of a chart's directory, without what `.helmignore` names.
pub(super) fn read(root: &Path) -> Result<Vec<PackageFile>, LoadError> {
    let rules_file = root.join(".helmignore");
    let mut rules = Rules::default();
    if rules_file.is_file() {
        let text = std::fs::read(&rules_file).map_err(|source| LoadError::Read { path: rules_file, source })?;
        rules = Rules::parse(&String::from_utf8_lossy(without_mark(&text))).map_err(LoadError::Invalid)?;
    }
    rules.add_defaults();
    let mut walk = Walk { rules, files: Vec::new(), bytes: 0 };
    walk.directory(root, "", 0)?;
    Ok(walk.files)
}

struct Walk {
    rules: Rules,
    files: Vec<PackageFile>,
    bytes: u64,
}

impl Walk {
    fn directory(&mut self, directory: &Path, prefix: &str, depth: usize) -> Result<(), LoadError> {
        if depth > MOST_DEPTH {
            let message = format!("{} is more than {MOST_DEPTH} directories deep", directory.display());
            return Err(LoadError::Invalid(message));
        }
        let refuse = |source| LoadError::Read { path: directory.to_owned(), source };
        let entries = std::fs::read_dir(directory).map_err(refuse)?;
        let mut names: Vec<(String, PathBuf)> = Vec::new();
        for entry in entries {
            let entry = entry.map_err(refuse)?;
            names.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
        }
        names.sort();
        for (name, path) in names {
            let name = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            let kind = std::fs::metadata(&path).map_err(|source| LoadError::Read { path: path.clone(), source })?;
            if self.rules.ignores(&name, kind.is_dir()) {
                continue;
            }
            if kind.is_dir() {
                self.directory(&path, &name, depth + 1)?;
                continue;
            }
            if !kind.is_file() {
                let message =
                    format!("cannot load irregular file {} as it has file mode type bits set", path.display());
                return Err(LoadError::Invalid(message));
            }
            if kind.len() > MOST_BYTES_OF_FILE {
                let base = name.rsplit('/').next().unwrap_or_default();
                let message = format!("chart file {base:?} is larger than the maximum file size {MOST_BYTES_OF_FILE}");
                return Err(LoadError::Invalid(message));
            }
            self.bytes += kind.len();
            if self.bytes > MOST_BYTES || self.files.len() >= MOST_FILES {
                let message = format!(
                    "the chart has more than {MOST_FILES} files or {MOST_BYTES} bytes: exclude files by .helmignore"
                );
                return Err(LoadError::Invalid(message));
            }
            let data = std::fs::read(&path).map_err(|source| LoadError::Read { path, source })?;
            self.files.push(PackageFile { name, data: without_mark(&data).to_vec() });
        }
        Ok(())
    }
}
