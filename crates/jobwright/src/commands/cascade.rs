//! `jobwright cascade`: a new version of a chart, and of every chart that depends on it.

use crate::arguments::{self, Format};
use crate::failure::{ErrorExt as _, Failure, Kind};
use crate::output::{self, table::Table};
use anyhow::Context as _;
use jobwright_chart::{Bump, Cascade, Error, Options, Rewrite, Tree};
use jobwright_jobs::files::{Access, write_whole};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub(super) fn run(arguments: &arguments::Cascade) -> Result<(), Failure> {
    let here = std::env::current_dir().context("cannot tell where this is run").or_fail(Kind::Internal)?;
    let root =
        arguments.root.as_ref().map_or_else(|| find_root(&here.join(&arguments.chart), &here), |root| here.join(root));
    let tree = Tree::read(&root).map_err(refused)?;
    let start = tree.find(&arguments.chart, &here).map_err(refused)?;
    #[expect(clippy::disallowed_methods, reason = "the wall clock comes in here")]
    let now = jiff::Timestamp::now();
    let bump = match arguments.bump {
        arguments::Step::Major => Bump::Major,
        arguments::Step::Minor => Bump::Minor,
        arguments::Step::Patch => Bump::Patch,
    };
    let cascade =
        jobwright_chart::cascade(&tree, start, Options { bump, by_name: arguments.by_name, now }).map_err(refused)?;
    if !arguments.dry_run {
        for file in &cascade.files {
            write(file).or_fail(Kind::Usage)?;
        }
    }
    match arguments.output {
        Format::Json => output::line(&to_json(&cascade, &root, arguments.dry_run).to_string()),
        Format::Text => show(&cascade, &root, arguments.dry_run),
    }
    Ok(())
}

fn refused(error: Error) -> Failure {
    Failure::of(Kind::Usage, error)
}

/// The repository that a chart is in; where the command is run, if it is in none.
fn find_root(chart: &Path, here: &Path) -> PathBuf {
    let repository = |path: &Path| path.ancestors().find(|above| above.join(".git").exists()).map(Path::to_owned);
    let inside = if chart.exists() { repository(chart) } else { None };
    inside.or_else(|| repository(here)).unwrap_or_else(|| here.to_owned())
}

/// Puts a new text in the place of an old one, whole or not at all.
fn write(file: &Rewrite) -> anyhow::Result<()> {
    let doing = || format!("cannot write {}", file.path.display());
    write_whole(&file.path, file.text.as_bytes(), Access::Kept).with_context(doing)
}

fn show(cascade: &Cascade, root: &Path, is_dry: bool) {
    let mut table = Table::new(&["chart", "old", "new", "because of"]);
    for chart in &cascade.charts {
        let because =
            if chart.because_of.is_empty() { "it was asked for".to_owned() } else { chart.because_of.join(", ") };
        table.row(vec![
            chart.name.as_str().into(),
            chart.old.as_str().into(),
            chart.new.as_str().into(),
            because.into(),
        ]);
    }
    table.lines(output::width()).iter().for_each(|line| output::line(line));
    let verb = if is_dry { "would change" } else { "changed" };
    let files: Vec<String> = cascade.files.iter().map(|file| shorten(root, &file.path)).collect();
    output::note(&format!("\n{verb} {} files: {}", files.len(), files.join(", ")));
    for note in &cascade.notes {
        output::note(&format!("note: {note}"));
    }
}

fn to_json(cascade: &Cascade, root: &Path, is_dry: bool) -> Value {
    let chart = |chart: &jobwright_chart::BumpedChart| {
        json!({
            "name": chart.name,
            "path": shorten(root, &chart.directory),
            "old": chart.old.as_str(),
            "new": chart.new.as_str(),
            "becauseOf": chart.because_of,
        })
    };
    json!({
        "dryRun": is_dry,
        "charts": cascade.charts.iter().map(chart).collect::<Vec<_>>(),
        "files": cascade.files.iter().map(|file| shorten(root, &file.path)).collect::<Vec<_>>(),
        "notes": cascade.notes,
    })
}

fn shorten(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
