//! Every chart below a directory.

use crate::error::Error;
use crate::metadata::{File, Metadata, local_directory};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// More than any repository of charts has.
const MOST_DIRECTORIES: usize = 50_000;

/// Every chart below a directory.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    charts: Vec<Chart>,
    /// By their directories, without links and detours.
    places: BTreeMap<PathBuf, ChartId>,
}

/// A chart of a [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChartId(usize);

/// A chart.
#[derive(Debug)]
pub struct Chart {
    /// Its directory.
    pub directory: PathBuf,
    /// What it says of itself.
    pub metadata: Metadata,
    pub(crate) file: File,
    /// Where older charts say what they depend on.
    pub(crate) requirements: Option<File>,
}

impl Chart {
    /// The file that says what it depends on.
    pub(crate) fn dependency_file(&self) -> &File {
        self.requirements.as_ref().unwrap_or(&self.file)
    }
}

impl Tree {
    /// Reads every chart below a directory. Hidden directories, and what build tools fill, are left out.
    pub fn read(root: &Path) -> Result<Self, Error> {
        let mut tree = Self { root: root.to_owned(), charts: Vec::new(), places: BTreeMap::new() };
        let mut queue = vec![root.to_owned()];
        let mut seen = 0;
        while let Some(directory) = queue.pop() {
            seen += 1;
            if seen > MOST_DIRECTORIES {
                return Err(Error::TooLarge { root: root.to_owned(), limit: MOST_DIRECTORIES });
            }
            if directory.join("Chart.yaml").is_file() {
                tree.add(&directory)?;
            }
            queue.extend(directories_in(&directory)?);
        }
        tree.charts.sort_by(|one, other| one.directory.cmp(&other.directory));
        let place = |(index, chart): (usize, &Chart)| (canonical(&chart.directory), ChartId(index));
        tree.places = tree.charts.iter().enumerate().map(place).collect();
        Ok(tree)
    }

    fn add(&mut self, directory: &Path) -> Result<(), Error> {
        let file = File::read(directory.join("Chart.yaml"))?;
        let requirements = File::read_if_there(directory.join("requirements.yaml"))?;
        let metadata = Metadata::read(&file, requirements.as_ref())?;
        self.charts.push(Chart { directory: directory.to_owned(), metadata, file, requirements });
        Ok(())
    }

    /// The directory that everything is below.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// All charts, by their directories.
    pub fn charts(&self) -> impl Iterator<Item = (ChartId, &Chart)> {
        self.charts.iter().enumerate().map(|(index, chart)| (ChartId(index), chart))
    }

    /// A chart.
    pub fn chart(&self, id: ChartId) -> &Chart {
        &self.charts[id.0]
    }

    /// The chart that somebody means: its directory, seen from `here`, or its name.
    pub fn find(&self, name: &str, here: &Path) -> Result<ChartId, Error> {
        let path = here.join(name);
        let path = if path.is_file() { path.parent().map(Path::to_owned).unwrap_or_default() } else { path };
        if let Some(id) = self.at(&path) {
            return Ok(id);
        }
        match self.named(name).as_slice() {
            [id] => Ok(*id),
            [] => {
                let mut known: Vec<String> = self.charts.iter().map(|chart| chart.metadata.name.clone()).collect();
                known.sort();
                known.dedup();
                known.truncate(20);
                Err(Error::NoChart { name: name.to_owned(), root: self.root.clone(), known })
            }
            several => {
                let paths = several.iter().map(|id| self.chart(*id).directory.clone()).collect();
                Err(Error::Ambiguous { name: name.to_owned(), paths })
            }
        }
    }

    /// The chart of a directory.
    fn at(&self, directory: &Path) -> Option<ChartId> {
        self.places.get(&canonical(directory)).copied()
    }

    /// The charts of this tree that a chart depends on, each with the number of the dependency.
    ///
    /// A dependency is one of the tree if its repository is a directory of it, or if it has none and lies in `charts/`;
    /// with `by_name` also if it comes from elsewhere and has the name of exactly one chart here.
    pub(crate) fn dependencies(&self, id: ChartId, by_name: bool) -> Vec<(usize, ChartId)> {
        let chart = self.chart(id);
        let find = |dependency: &crate::Dependency| {
            if let Some(directory) = local_directory(&chart.directory, &dependency.repository) {
                return self.at(&directory);
            }
            if dependency.repository.is_empty() {
                return self.at(&chart.directory.join("charts").join(&dependency.name));
            }
            match self.named(&dependency.name).as_slice() {
                [id] if by_name => Some(*id),
                _ => None,
            }
        };
        let dependencies = chart.metadata.dependencies.iter().enumerate();
        dependencies.filter_map(|(index, dependency)| Some((index, find(dependency)?))).collect()
    }

    /// The charts of a name, without copies that lie in the `charts/` of others.
    fn named(&self, name: &str) -> Vec<ChartId> {
        let charts = self.charts().filter(|(_, chart)| chart.metadata.name == name && !self.is_copy(chart));
        charts.map(|(id, _)| id).collect()
    }

    fn is_copy(&self, chart: &Chart) -> bool {
        let above = chart.directory.parent().filter(|above| above.ends_with("charts")).and_then(Path::parent);
        above.is_some_and(|owner| self.at(owner).is_some())
    }
}

fn directories_in(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let refuse = |source| Error::Read { path: directory.to_owned(), source };
    let mut found = Vec::new();
    let entries = std::fs::read_dir(directory).map_err(refuse)?;
    for entry in entries {
        let entry = entry.map_err(refuse)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // A link would lead to what is seen anyway, or round in circles.
        let is_directory = entry.file_type().map_err(refuse)?.is_dir();
        if is_directory && !name.starts_with('.') && !matches!(&*name, "node_modules" | "target" | "vendor") {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// A directory without links and detours; as it is if it is not there.
fn canonical(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
