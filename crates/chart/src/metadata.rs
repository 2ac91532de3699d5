//! What a chart says of itself, and where in its files it does.

use crate::error::Error;
use crate::version::{Constraint, Version};
use jobwright_yaml::{Node, position};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What a chart says of itself.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// What it depends on.
    pub dependencies: Vec<Dependency>,
    /// Where its version stands in its `Chart.yaml`.
    pub(crate) version_span: Range<usize>,
}

/// A chart that another one depends on.
#[derive(Clone, Debug)]
pub struct Dependency {
    /// Its name.
    pub name: String,
    /// Which versions of it are taken; any if none.
    pub constraint: Option<Constraint>,
    /// Where it comes from: `file://../core`, `oci://…`, `https://…`, or nothing for what lies in `charts/`.
    pub repository: String,
    /// Where the constraint stands in the file.
    pub(crate) constraint_span: Option<Range<usize>>,
}

/// A text of a file, with what is needed to say where in it something is wrong.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn read(path: PathBuf) -> Result<Self, Error> {
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Self { path, text }),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    /// Reads it if it is there.
    pub(crate) fn read_if_there(path: PathBuf) -> Result<Option<Self>, Error> {
        if path.is_file() { Self::read(path).map(Some) } else { Ok(None) }
    }

    pub(crate) fn error(&self, offset: usize, message: impl Into<String>) -> Error {
        let place = position(&self.text, offset);
        Error::File { path: self.path.clone(), line: place.line, column: place.column, message: message.into() }
    }

    /// The document in it.
    pub(crate) fn parse(&self) -> Result<Node, Error> {
        let documents =
            jobwright_yaml::parse(&self.text).map_err(|error| self.error(error.offset, error.message.clone()))?;
        documents.into_iter().next().map(|document| document.root).ok_or_else(|| self.error(0, "the file is empty"))
    }
}

impl Metadata {
    /// Reads a `Chart.yaml`, and the `requirements.yaml` that older charts have beside it.
    pub(crate) fn read(chart: &File, requirements: Option<&File>) -> Result<Self, Error> {
        let root = chart.parse()?;
        let text = |key: &str| {
            let node = root.get(key).ok_or_else(|| chart.error(0, format!("the chart has no {key}")))?;
            // `version: 1.0` is a number in YAML, and what stands there in Helm.
            let written = node.as_str().map_or_else(|| chart.text[node.span.clone()].to_owned(), str::to_owned);
            Ok::<_, Error>((written, node.span.clone()))
        };
        let (name, _) = text("name")?;
        let (version, version_span) = text("version")?;
        let version = version.parse().map_err(|error| chart.error(version_span.start, format!("{error}")))?;
        let mut dependencies = read_dependencies(chart, &root)?;
        if let Some(file) = requirements {
            dependencies.extend(read_dependencies(file, &file.parse()?)?);
        }
        Ok(Self { name, version, dependencies, version_span })
    }
}

fn read_dependencies(file: &File, root: &Node) -> Result<Vec<Dependency>, Error> {
    let items = root.get("dependencies").map(Node::items).unwrap_or_default();
    items.iter().map(|node| read_dependency(file, node)).collect()
}

fn read_dependency(file: &File, node: &Node) -> Result<Dependency, Error> {
    let text = |key: &str| {
        let value = node.get(key)?;
        Some(value.as_str().map_or_else(|| file.text[value.span.clone()].to_owned(), str::to_owned))
    };
    let name = text("name").ok_or_else(|| file.error(node.span.start, "a dependency has no name"))?;
    let version = node.get("version").filter(|_| text("version").is_some_and(|text| !text.is_empty()));
    let constraint = version.map(|value| {
        let written = text("version").unwrap_or_default();
        written.parse().map_err(|error| file.error(value.span.start, format!("{error}")))
    });
    Ok(Dependency {
        name,
        constraint: constraint.transpose()?,
        repository: text("repository").unwrap_or_default(),
        constraint_span: version.map(|value| value.span.clone()),
    })
}

/// The directory that a `file://` repository names, seen from a chart.
pub(crate) fn local_directory(chart: &Path, repository: &str) -> Option<PathBuf> {
    let path = repository.strip_prefix("file://")?;
    Some(chart.join(path))
}
