//! The promises of Jobwright, each with the test that guards it and a mutation that breaks it: docs/promises.md, and
//! `cargo xtask promises`, which applies every mutation to a copy of the sources and expects the test to fail.

mod breaking;

use anyhow::{Context as _, Result, bail, ensure};
use jobwright_e2e::cargo::workspace;
use serde::Deserialize;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

pub(crate) use breaking::run;

/// Where the promises are.
const FILE: &str = "xtask/promises.yaml";

/// What the page says around the tables.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Promises {
    introduction: String,
    sections: Vec<Section>,
    conclusion: String,
}

/// Promises that belong together.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    title: String,
    about: String,
    promises: Vec<Promise>,
}

/// A promise, the test that fails when it is broken, and how to break it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Promise {
    #[serde(rename = "promise")]
    text: String,
    test: Test,
    mutation: Mutation,
}

/// A test of the workspace.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    package: String,
    /// The name of an integration test; absent: a unit test of the library.
    target: Option<String>,
    /// Its full name, as `cargo test -- --list` prints it.
    name: String,
}

/// An edit that breaks the promise.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutation {
    file: String,
    /// A text that occurs in the file once.
    replace: String,
    with: String,
}

impl Promises {
    /// Reads the promises. Fails if a mutation does not fit the sources, or a test does not exist, so that neither goes
    /// stale.
    fn read() -> Result<Self> {
        let text = read(FILE)?;
        let documents = jobwright_yaml::parse(&text).with_context(|| format!("cannot parse {FILE}"))?;
        let document = documents.first().with_context(|| format!("{FILE} is empty"))?;
        let promises: Self = serde_json::from_value(document.root.to_json()).with_context(|| FILE.to_owned())?;
        for promise in promises.all() {
            promise.check().with_context(|| format!("{FILE}: {}", promise.text))?;
        }
        Ok(promises)
    }

    fn all(&self) -> impl Iterator<Item = &Promise> {
        self.sections.iter().flat_map(|section| &section.promises)
    }
}

impl Promise {
    fn check(&self) -> Result<()> {
        let Mutation { file, replace, with } = &self.mutation;
        let found = read(file)?.matches(replace.as_str()).count();
        ensure!(found == 1, "{file} has the text of the mutation {found} times, not once");
        ensure!(replace != with, "the mutation changes nothing");
        let function = self.test.name.rsplit("::").next().unwrap_or_default();
        let place = self.test.directory()?;
        ensure!(contains(&workspace().join(&place), &format!("fn {function}("))?, "{place} has no test `{function}`");
        Ok(())
    }
}

impl Test {
    /// The directory of its package.
    fn directory(&self) -> Result<String> {
        match self.package.strip_prefix("jobwright") {
            Some("") => Ok("crates/jobwright".to_owned()),
            Some(rest) => Ok(format!("crates/{}", rest.trim_start_matches('-'))),
            None => bail!("`{}` is no package of this workspace", self.package),
        }
    }

    /// How the page names it.
    fn title(&self) -> String {
        let crate_name = self.package.strip_prefix("jobwright-").unwrap_or(&self.package);
        format!("{crate_name}: `{}`", self.name.replace("::tests::", "::"))
    }
}

fn read(file: &str) -> Result<String> {
    fs::read_to_string(workspace().join(file)).with_context(|| format!("cannot read {file}"))
}

/// Whether a Rust source below a directory has this text.
fn contains(directory: &Path, text: &str) -> Result<bool> {
    for entry in fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))? {
        let path = entry?.path();
        let found = match path.extension().and_then(|extension| extension.to_str()) {
            _ if path.is_dir() => contains(&path, text)?,
            Some("rs") => fs::read_to_string(&path)?.contains(text),
            _ => false,
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// docs/promises.md.
pub(crate) fn page() -> Result<String> {
    let promises = Promises::read()?;
    let mut page = format!("{}\n", promises.introduction.trim_end());
    for section in &promises.sections {
        // Writing to a String cannot fail.
        let _ = write!(page, "\n## {}\n\n{}\n\n", section.title, section.about.trim_end());
        page.push_str("| promise | test | mutation that the test catches |\n|---|---|---|\n");
        for Promise { text, test, mutation } in &section.promises {
            let Mutation { file, replace, with } = mutation;
            let change = match with.trim() {
                "" => format!("remove {}", code(replace)),
                with => format!("{} becomes {}", code(replace), code(with)),
            };
            let _ = writeln!(page, "| {text} | {} | {file}: {change} |", test.title());
        }
    }
    let _ = write!(page, "\n{}\n", promises.conclusion.trim_end());
    Ok(page)
}

/// Code in a cell of a table: on one line, without a bar that would end the cell.
fn code(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.replace('|', "\\|");
    if line.contains('`') { format!("`` {line} ``") } else { format!("`{line}`") }
}
