//! Versions of charts in README files: badges, and rows of tables that name a chart.

use super::Rewrite;
use crate::error::Error;
use crate::metadata::File;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The README files that were looked at.
pub(super) struct Pages<'a> {
    root: &'a Path,
    pages: BTreeMap<PathBuf, Page>,
}

struct Page {
    old: String,
    new: String,
}

impl<'a> Pages<'a> {
    pub(super) fn new(root: &'a Path) -> Self {
        Self { root, pages: BTreeMap::new() }
    }

    fn page(&mut self, directory: &Path) -> Result<Option<&mut Page>, Error> {
        let path = directory.join("README.md");
        if !self.pages.contains_key(&path)
            && let Some(file) = File::read_if_there(path.clone())?
        {
            self.pages.insert(path.clone(), Page { new: file.text.clone(), old: file.text });
        }
        Ok(self.pages.get_mut(&path))
    }

    /// A chart has a new version: its own badges, and rows that name it, in its directory and in those above.
    pub(super) fn replace_version(&mut self, chart: &Path, name: &str, old: &str, new: &str) -> Result<(), Error> {
        if let Some(page) = self.page(chart)? {
            page.new = replace_badges(&page.new, old, new);
        }
        let root = self.root.to_owned();
        for directory in chart.ancestors().take_while(|directory| directory.starts_with(&root)) {
            self.replace_row(directory, name, old, new)?;
        }
        Ok(())
    }

    /// In rows that name a chart, a cell that is a version becomes another one.
    pub(super) fn replace_row(&mut self, directory: &Path, name: &str, old: &str, new: &str) -> Result<(), Error> {
        if let Some(page) = self.page(directory)? {
            page.new = replace_rows(&page.new, name, old, new);
        }
        Ok(())
    }

    pub(super) fn rewritten(self) -> Vec<Rewrite> {
        let changed = self.pages.into_iter().filter(|(_, page)| page.old != page.new);
        changed.map(|(path, page)| Rewrite { path, text: page.new }).collect()
    }
}

/// Badges as helm-docs makes them: `![Version: 1.5.1](https://…/badge/Version-1.5.1-informational…)`.
fn replace_badges(text: &str, old: &str, new: &str) -> String {
    // A dash separates the parts of a badge, so one in a version is written twice.
    let double = |version: &str| version.replace('-', "--");
    text.replace(&format!("![Version: {old}]"), &format!("![Version: {new}]"))
        .replace(&format!("/badge/Version-{}-", double(old)), &format!("/badge/Version-{}-", double(new)))
}

fn replace_rows(text: &str, name: &str, old: &str, new: &str) -> String {
    text.split_inclusive('\n').map(|line| replace_row(line, name, old, new)).collect()
}

fn replace_row(line: &str, name: &str, old: &str, new: &str) -> String {
    if !line.trim_start().starts_with('|') {
        return line.to_owned();
    }
    let cells: Vec<&str> = line.split('|').collect();
    if !cells.iter().any(|cell| cell_text(cell) == name) {
        return line.to_owned();
    }
    let cells: Vec<String> = cells.iter().map(|cell| replace_cell(cell, old, new)).collect();
    cells.join("|")
}

/// What a cell says, without links, code and emphasis.
fn cell_text(cell: &str) -> &str {
    let text = cell.trim().trim_matches(['`', '*', '_']);
    let linked = text.strip_prefix('[').and_then(|text| text.split_once("](")).map(|(text, _)| text);
    linked.unwrap_or(text).trim_matches(['`', '*', '_'])
}

/// A cell that is a version gets another one, and is as wide as before if it can be.
fn replace_cell(cell: &str, old: &str, new: &str) -> String {
    let text = cell.trim();
    let bare = text.trim_matches(['`', '*']);
    if bare != old && bare.strip_prefix('v') != Some(old) {
        return cell.to_owned();
    }
    let replaced = cell.replacen(old, new, 1);
    let kept = replaced.trim_end_matches(' ');
    let spaces = cell.len() - cell.trim_end_matches(' ').len();
    // More than one space is there to align columns.
    if spaces > 1 { format!("{kept:width$}", width = cell.len().max(kept.len() + 1)) } else { replaced }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn badges_follow() {
        let text = "![Version: 1.5.1](https://img.shields.io/badge/Version-1.5.1-informational?style=flat-square) ![AppVersion: 1.5.1](https://img.shields.io/badge/AppVersion-1.5.1-informational)\n";
        let new = replace_badges(text, "1.5.1", "1.6.0");
        assert_eq!(
            new,
            "![Version: 1.6.0](https://img.shields.io/badge/Version-1.6.0-informational?style=flat-square) ![AppVersion: 1.5.1](https://img.shields.io/badge/AppVersion-1.5.1-informational)\n"
        );
    }

    #[test]
    fn rows_that_name_the_chart_follow_and_others_do_not() {
        let text = "core 1.5.1\n| [core](charts/core/README.md) | 1.5.1  | a |\n| agent | 1.5.1 | b |\n| file://../core | core | `1.5.1` |\n";
        let new = replace_rows(text, "core", "1.5.1", "1.16.0");
        assert_eq!(
            new,
            "core 1.5.1\n| [core](charts/core/README.md) | 1.16.0 | a |\n| agent | 1.5.1 | b |\n| file://../core | core | `1.16.0` |\n"
        );
    }
}
