//! A new version of a chart, and of every chart that depends on it.
//!
//! What depends on a changed chart has changed, too: its version goes up by the same step, over as many levels as there
//! are. Everything is worked out before anything is written; a [`Cascade`] has the new text of every file.

mod edit;
mod lock;
mod readme;

use crate::error::Error;
use crate::metadata::File;
use crate::tree::{ChartId, Tree};
use crate::version::{Bump, Version};
use edit::Edits;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How versions go up.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// By which step, all of them.
    pub bump: Bump,
    /// Dependencies that come from elsewhere count as those of the tree that have their names.
    pub by_name: bool,
    /// What time it is, for locks.
    pub now: Timestamp,
}

/// What has to change.
#[derive(Debug)]
pub struct Cascade {
    /// The charts, each after what it depends on.
    pub charts: Vec<BumpedChart>,
    /// The files.
    pub files: Vec<Rewrite>,
    /// What somebody else has to do, or may want to know.
    pub notes: Vec<String>,
}

/// A chart that gets a new version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BumpedChart {
    /// Its name.
    pub name: String,
    /// Its directory.
    pub directory: PathBuf,
    /// The version that it has.
    pub old: Version,
    /// The version that it gets.
    pub new: Version,
    /// Because of these.
    pub because_of: Vec<String>,
}

/// A file that has to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// Which.
    pub path: PathBuf,
    /// Its new text.
    pub text: String,
}

/// Says what has to change when a chart gets a new version.
pub fn cascade(tree: &Tree, start: ChartId, options: Options) -> Result<Cascade, Error> {
    let graph: Graph = tree.charts().map(|(id, _)| (id, tree.dependencies(id, options.by_name))).collect();
    let order = order(tree, &graph, start)?;
    let new = |id: &ChartId| (*id, tree.chart(*id).metadata.version.bump(options.bump));
    let work = Work { tree, graph, versions: order.iter().map(new).collect(), now: options.now };
    let mut notes = Vec::new();
    let mut files = Vec::new();
    let mut pages = readme::Pages::new(tree.root());
    for id in &order {
        work.rewrite_chart(*id, &mut files, &mut pages, &mut notes)?;
    }
    files.extend(pages.rewritten());
    if !options.by_name {
        notes.extend(work.notes_on_others());
    }
    Ok(Cascade { charts: order.iter().map(|id| work.describe(*id)).collect(), files, notes })
}

/// For each chart the charts that it depends on, each with the number of the dependency.
type Graph = BTreeMap<ChartId, Vec<(usize, ChartId)>>;

/// The charts that get a new version, each after what it depends on.
fn order(tree: &Tree, graph: &Graph, start: ChartId) -> Result<Vec<ChartId>, Error> {
    let mut affected = BTreeSet::from([start]);
    loop {
        let more: Vec<ChartId> = graph
            .iter()
            .filter(|(id, dependencies)| {
                !affected.contains(id) && dependencies.iter().any(|(_, on)| affected.contains(on))
            })
            .map(|(id, _)| *id)
            .collect();
        if more.is_empty() {
            break;
        }
        affected.extend(more);
    }
    let mut order: Vec<ChartId> = Vec::new();
    while order.len() < affected.len() {
        let is_ready = |id: &&ChartId| {
            let waits = |on: &ChartId| affected.contains(on) && !order.contains(on);
            !order.contains(id) && !graph[*id].iter().any(|(_, on)| waits(on))
        };
        let Some(next) = affected.iter().find(is_ready) else {
            return Err(Error::Cycle { charts: find_cycle(tree, graph, &affected, &order) });
        };
        order.push(*next);
    }
    Ok(order)
}

/// A circle among charts none of which can be the first.
fn find_cycle(tree: &Tree, graph: &Graph, affected: &BTreeSet<ChartId>, done: &[ChartId]) -> Vec<String> {
    let waits = |on: &ChartId| affected.contains(on) && !done.contains(on);
    let mut path: Vec<ChartId> = affected.iter().filter(|id| !done.contains(id)).take(1).copied().collect();
    while let Some(next) = path.last().and_then(|id| graph[id].iter().map(|(_, on)| *on).find(|on| waits(on))) {
        if let Some(start) = path.iter().position(|id| *id == next) {
            path.drain(..start);
            path.push(next);
            break;
        }
        path.push(next);
    }
    path.iter().map(|id| tree.chart(*id).metadata.name.clone()).collect()
}

/// A cascade in the making.
struct Work<'a> {
    tree: &'a Tree,
    graph: Graph,
    /// The new versions of those that get one.
    versions: BTreeMap<ChartId, Version>,
    now: Timestamp,
}

impl Work<'_> {
    /// The dependencies of a chart that get a new version.
    fn bumped_dependencies(&self, id: ChartId) -> impl Iterator<Item = (usize, ChartId, &Version)> {
        let dependencies = self.graph.get(&id).into_iter().flatten();
        dependencies.filter_map(|(index, on)| Some((*index, *on, self.versions.get(on)?)))
    }

    fn describe(&self, id: ChartId) -> BumpedChart {
        let chart = self.tree.chart(id);
        let because_of = self.bumped_dependencies(id).map(|(_, on, _)| self.tree.chart(on).metadata.name.clone());
        BumpedChart {
            name: chart.metadata.name.clone(),
            directory: chart.directory.clone(),
            old: chart.metadata.version.clone(),
            new: self.versions[&id].clone(),
            because_of: because_of.collect(),
        }
    }

    fn rewrite_chart(
        &self,
        id: ChartId,
        files: &mut Vec<Rewrite>,
        pages: &mut readme::Pages,
        notes: &mut Vec<String>,
    ) -> Result<(), Error> {
        let chart = self.tree.chart(id);
        let (old, new) = (&chart.metadata.version, &self.versions[&id]);
        let mut edits = Edits::of(&chart.file);
        edits.replace_scalar(chart.metadata.version_span.clone(), new.as_str());
        let mut dependency_edits = chart.requirements.as_ref().map(Edits::of);
        for (index, on, version) in self.bumped_dependencies(id) {
            let dependency = &chart.metadata.dependencies[index];
            let Some((constraint, span)) = dependency.constraint.as_ref().zip(dependency.constraint_span.clone())
            else {
                continue;
            };
            let exact =
                constraint.as_str().parse::<Version>().is_ok_and(|exact| exact == self.tree.chart(on).metadata.version);
            if !exact && constraint.takes(version) {
                continue;
            }
            let file = chart.dependency_file();
            let followed = constraint.follow(version).ok_or_else(|| {
                let message = format!(
                    "`{constraint}` does not take {} {version}, and its form cannot be carried on: write one that does",
                    dependency.name
                );
                file.error(span.start, message)
            })?;
            pages.replace_row(&chart.directory, &dependency.name, constraint.as_str(), &followed)?;
            dependency_edits.as_mut().unwrap_or(&mut edits).replace_scalar(span, &followed);
        }
        let rewritten = edits.finish();
        let requirements = dependency_edits.map(Edits::finish);
        let dependency_text = requirements.as_ref().unwrap_or(&rewritten).clone();
        if let Some(file) = &chart.requirements {
            files.extend(changed(file, requirements.unwrap_or_default()));
        }
        files.extend(changed(&chart.file, rewritten));
        self.rewrite_lock(id, dependency_text, files)?;
        self.note_archives(id, notes);
        pages.replace_version(&chart.directory, &chart.metadata.name, old.as_str(), new.as_str())
    }

    /// The lock of a chart, if it has one.
    fn rewrite_lock(&self, id: ChartId, dependency_text: String, files: &mut Vec<Rewrite>) -> Result<(), Error> {
        let chart = self.tree.chart(id);
        let name = if chart.requirements.is_some() { "requirements.lock" } else { "Chart.lock" };
        let Some(file) = File::read_if_there(chart.directory.join(name))? else { return Ok(()) };
        let wanted = File { path: chart.dependency_file().path.clone(), text: dependency_text };
        let bumped: Vec<(String, &Version)> = self
            .bumped_dependencies(id)
            .map(|(index, _, version)| (chart.metadata.dependencies[index].name.clone(), version))
            .collect();
        files.extend(changed(&file, lock::rewrite(&file, &wanted, &bumped, self.now)?));
        Ok(())
    }

    /// Archives of old versions that lie beside a chart.
    fn note_archives(&self, id: ChartId, notes: &mut Vec<String>) {
        let chart = self.tree.chart(id);
        for (_, on, _) in self.bumped_dependencies(id) {
            let other = &self.tree.chart(on).metadata;
            let archive = chart.directory.join("charts").join(format!("{}-{}.tgz", other.name, other.version));
            if archive.is_file() {
                let directory = show(self.tree.root(), &chart.directory);
                notes.push(format!(
                    "{} is of the old version: run `helm dependency update {directory}`",
                    show(self.tree.root(), &archive)
                ));
            }
        }
    }

    /// Dependencies that have the name of a bumped chart, and come from elsewhere.
    fn notes_on_others(&self) -> Vec<String> {
        let bumped: BTreeSet<&str> =
            self.versions.keys().map(|id| self.tree.chart(*id).metadata.name.as_str()).collect();
        let mut notes = Vec::new();
        for (id, chart) in self.tree.charts() {
            for (index, dependency) in chart.metadata.dependencies.iter().enumerate() {
                let is_ours = self.graph[&id].iter().any(|(own, _)| *own == index);
                if !is_ours && bumped.contains(dependency.name.as_str()) {
                    notes.push(format!(
                        "{} takes {} from {}, which is left as it is; `--by-name` counts it as the one here",
                        chart.metadata.name, dependency.name, dependency.repository
                    ));
                }
            }
        }
        notes
    }
}

/// A file, if its text is another one.
fn changed(file: &File, text: String) -> Option<Rewrite> {
    (file.text != text).then(|| Rewrite { path: file.path.clone(), text })
}

/// A path as people see it from a root.
fn show(root: &Path, path: &Path) -> String {
    let short = path.strip_prefix(root).unwrap_or(path);
    if short.as_os_str().is_empty() { ".".to_owned() } else { short.display().to_string() }
}

#[cfg(test)]
mod tests;
