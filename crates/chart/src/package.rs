//! Charts as Helm loads them: from a directory or an archive, with the charts in them.

mod archive;
mod directory;
mod ignore;
pub(crate) mod metadata;

pub(crate) use ignore::matches;
pub use metadata::{Maintainer, PackageMetadata, Requirement};

use crate::values::{Values, read_values};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Bytes that a chart has unpacked, as in Helm.
pub(crate) const MOST_BYTES: u64 = 100 << 20;
/// Bytes that a file of a chart has, as in Helm.
pub(crate) const MOST_BYTES_OF_FILE: u64 = 5 << 20;
/// Files that a chart has.
pub(crate) const MOST_FILES: usize = 20_000;
/// Charts within charts.
const MOST_DEPTH: usize = 16;

/// A file of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageFile {
    /// Its path in the chart, with slashes.
    pub name: String,
    /// What is in it.
    pub data: Vec<u8>,
}

/// A chart that can be rendered.
#[derive(Clone, Debug)]
pub struct Package {
    /// What it says of itself.
    pub metadata: PackageMetadata,
    /// Its values, without those of anyone else.
    pub values: Values,
    /// The schema of its values.
    pub schema: Option<Vec<u8>>,
    /// What is below `templates/`.
    pub templates: Vec<PackageFile>,
    /// Everything else, which templates see as `.Files`.
    pub files: Vec<PackageFile>,
    /// The charts in it.
    pub dependencies: Vec<Package>,
}

/// Why a chart cannot be loaded, in Helm's words.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A file or a directory cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// There is no chart.
    #[error("path \"{}\" not found: name a chart's directory or its .tgz", path.display())]
    Missing {
        /// Where.
        path: PathBuf,
    },
    /// Something is wrong with what is in it.
    #[error("{0}")]
    Invalid(String),
}

impl Package {
    /// Loads a chart from its directory or its archive.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let refuse = |source| LoadError::Read { path: path.to_owned(), source };
        let kind = match std::fs::metadata(path) {
            Ok(kind) => kind,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(LoadError::Missing { path: path.to_owned() });
            }
            Err(error) => return Err(refuse(error)),
        };
        let files = if kind.is_dir() {
            directory::read(path)?
        } else {
            archive::read(&path.display().to_string(), &std::fs::read(path).map_err(refuse)?)?
        };
        Self::from_files(files, 0)
    }

    /// Puts a chart together from its files.
    fn from_files(files: Vec<PackageFile>, depth: usize) -> Result<Self, LoadError> {
        if depth > MOST_DEPTH {
            return Err(LoadError::Invalid(format!("charts are nested more than {MOST_DEPTH} deep")));
        }
        let invalid = |what: &str, error: &str| LoadError::Invalid(format!("cannot load {what}: {error}"));
        let chart_file = files.iter().find(|file| file.name == "Chart.yaml");
        let chart_file = chart_file.ok_or_else(|| LoadError::Invalid("Chart.yaml file is missing".to_owned()))?;
        let mut metadata = PackageMetadata::read(&chart_file.data).map_err(|error| invalid("Chart.yaml", &error))?;
        let mut package = Self {
            metadata: PackageMetadata::default(),
            values: Values::new(),
            schema: None,
            templates: Vec::new(),
            files: Vec::new(),
            dependencies: Vec::new(),
        };
        let mut subcharts: BTreeMap<String, Vec<PackageFile>> = BTreeMap::new();
        for file in files {
            match file.name.as_str() {
                "Chart.yaml" | "Chart.lock" => {}
                "values.yaml" => {
                    package.values = read_values(&file.data).map_err(|error| invalid("values.yaml", &error))?;
                }
                "values.schema.json" => package.schema = Some(file.data),
                "requirements.yaml" | "requirements.lock" => {
                    if file.name == "requirements.yaml" {
                        let read = metadata::requirements(&file.data);
                        metadata.dependencies = read.map_err(|error| invalid("requirements.yaml", &error))?;
                    }
                    if metadata.api_version == "v1" {
                        package.files.push(file);
                    }
                }
                name if name.starts_with("templates/") => package.templates.push(file),
                name if name.starts_with("charts/") && !has_extension(name, "prov") => {
                    let inner = name["charts/".len()..].to_owned();
                    let chart = inner.split('/').next().unwrap_or_default().to_owned();
                    subcharts.entry(chart).or_default().push(PackageFile { name: inner, data: file.data });
                }
                _ => package.files.push(file),
            }
        }
        metadata.validate().map_err(LoadError::Invalid)?;
        for (name, files) in subcharts {
            if name.starts_with(['_', '.']) {
                continue;
            }
            let wrap = |error: LoadError| {
                LoadError::Invalid(format!("error unpacking subchart {name} in {}: {error}", metadata.name))
            };
            let chart = if has_extension(&name, "tgz") {
                let Some(file) = files.first().filter(|file| file.name == name) else {
                    let got = files.first().map_or("", |file| file.name.as_str());
                    let message =
                        format!("error unpacking subchart tar in {}: expected {name}, got {got}", metadata.name);
                    return Err(LoadError::Invalid(message));
                };
                archive::read(&name, &file.data).and_then(|files| Self::from_files(files, depth + 1)).map_err(wrap)?
            } else {
                let inner = files.into_iter().filter_map(|file| {
                    let (_, name) = file.name.split_once('/')?;
                    Some(PackageFile { name: name.to_owned(), data: file.data })
                });
                Self::from_files(inner.collect(), depth + 1).map_err(wrap)?
            };
            package.dependencies.push(chart);
        }
        package.metadata = metadata;
        Ok(package)
    }

    /// Its name; that of its alias if it has one.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Whether it only defines templates for others.
    pub fn is_library(&self) -> bool {
        self.metadata.kind.eq_ignore_ascii_case("library")
    }
}

pub(crate) fn has_extension(name: &str, extension: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, found)| found == extension)
}

/// Data without the mark of byte order that some editors put in front.
pub(crate) fn without_mark(data: &[u8]) -> &[u8] {
    data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data)
}
