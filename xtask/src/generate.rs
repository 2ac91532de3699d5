//! Files that are generated from the code, each by one function.

mod charts;
mod cli;
mod helm;
mod kinds;
mod live;
mod plan;
mod transcripts;
mod upgrades;

use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// How a page comes about.
type Page = fn() -> Result<String>;

/// What is generated, and from what.
const FILES: &[(&str, Page)] = &[
    ("docs/reference/cli.md", || Ok(cli::page())),
    ("docs/reference/kinds.md", || Ok(kinds::page())),
    ("docs/reference/plan.schema.json", plan::schema),
    ("docs/conformance/helm.md", helm::page),
    ("docs/conformance/kubectl.md", transcripts::page),
    ("docs/conformance/real-cluster.md", live::page),
    ("docs/upgrades.md", upgrades::page),
    ("docs/promises.md", crate::promises::page),
];

/// What the last nightly run wrote down.
fn results(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/conformance/results").join(file)
}

/// Writes every generated file, or says which are out of date.
pub(crate) fn run(check: bool) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the repository")?;
    let mut stale = Vec::new();
    let mut files = FILES.iter().map(|(name, page)| Ok(((*name).to_owned(), page()?))).collect::<Result<Vec<_>>>()?;
    files.extend(charts::files(root)?);
    for (name, text) in files {
        let path = root.join(&name);
        if fs::read_to_string(&path).is_ok_and(|known| known == text) {
            continue;
        }
        if check {
            stale.push(name);
            continue;
        }
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        }
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("wrote {name}");
    }
    if !stale.is_empty() {
        bail!("out of date: {}; run `cargo xtask generate`", stale.join(", "));
    }
    Ok(())
}
