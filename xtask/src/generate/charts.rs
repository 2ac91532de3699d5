//! What is generated in charts: tables of values in their READMEs, and copies of the library in charts that use it, so
//! that they can be installed from a checkout.

use anyhow::{Context as _, Result, bail, ensure};
use jobwright_yaml::{Comment, Node, Value, position};
use std::fs;
use std::path::Path;

const LIBRARY: &str = "charts/release-hooks";
/// Charts that use the library.
const USERS: &[&str] = &["examples/migration"];
/// Where the table of values is in a README.
const BEGIN: &str = "<!-- generated from values.yaml -->\n";
const END: &str = "<!-- end -->";

/// The files, by their names in the repository.
pub(super) fn files(root: &Path) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for chart in USERS.iter().chain([&LIBRARY]) {
        files.push(readme(root, chart)?);
    }
    let library = list(&root.join(LIBRARY))?;
    for chart in USERS {
        let copy = format!("{chart}/{LIBRARY}");
        for name in list(&root.join(&copy)).unwrap_or_default() {
            ensure!(library.contains(&name), "{copy}/{name} is not in {LIBRARY}: remove it");
        }
        for name in library.iter().filter(|name| *name != "README.md") {
            files.push((format!("{copy}/{name}"), read(&root.join(LIBRARY).join(name))?));
        }
    }
    Ok(files)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The files of a chart, by their names in it.
fn list(chart: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for directory in ["", "templates"] {
        for entry in fs::read_dir(chart.join(directory)).with_context(|| format!("cannot list {}", chart.display()))? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.push(Path::new(directory).join(entry.file_name()).display().to_string());
            }
        }
    }
    names.sort();
    Ok(names)
}

/// A README with the table of the chart's values.
fn readme(root: &Path, chart: &str) -> Result<(String, String)> {
    let name = format!("{chart}/README.md");
    let text = read(&root.join(&name))?;
    let values = read(&root.join(chart).join("values.yaml"))?;
    let Some((before, rest)) = text.split_once(BEGIN) else { bail!("{name} has no line `{}`", BEGIN.trim()) };
    let Some((_, after)) = rest.split_once(END) else { bail!("{name} has no line `{END}`") };
    let table = table(&values).with_context(|| format!("{chart}/values.yaml"))?;
    Ok((name, format!("{before}{BEGIN}{table}{END}{after}")))
}

/// The values of a chart as a table: every key with a comment above it, its default, and the comment.
fn table(text: &str) -> Result<String> {
    let documents = jobwright_yaml::parse(text)?;
    let document = documents.first().context("it is empty")?;
    let mut table = String::from("| value | default | what it is |\n|---|---|---|\n");
    rows(text, &document.root, "", &document.comments, &mut table)?;
    Ok(table)
}

fn rows(text: &str, node: &Node, path: &str, comments: &[Comment], table: &mut String) -> Result<()> {
    for entry in node.entries() {
        let path = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
        let about = above(text, entry.key_span.start, comments);
        if matches!(&entry.value.value, Value::Map(entries) if !entries.is_empty()) {
            rows(text, &entry.value, &path, comments, table)?;
            continue;
        }
        let Some(about) = about else { bail!("`{path}` has no comment above it") };
        let default = entry.value.to_json();
        table.push_str(&format!("| `{path}` | `{default}` | {about} |\n"));
    }
    Ok(())
}

/// What the comments right above a key say.
fn above(text: &str, offset: usize, comments: &[Comment]) -> Option<String> {
    let mut line = position(text, offset).line;
    let mut lines = Vec::new();
    for comment in comments.iter().rev() {
        if position(text, comment.span.start).line + 1 == line {
            line -= 1;
            lines.insert(0, comment.text.trim());
        }
    }
    (!lines.is_empty()).then(|| lines.join(" ").replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_a_table() {
        let values = "# Not about a key.\n\na:\n  # One,\n  # in two lines.\n  b: [1]\n# Another.\nc: \"\"\n";
        assert_eq!(
            table(values).unwrap(),
            "| value | default | what it is |\n|---|---|---|\n| `a.b` | `[1]` | One, in two lines. |\n| `c` | `\"\"` | Another. |\n"
        );
        assert!(table("a: 1\n").unwrap_err().to_string().contains("`a` has no comment"));
    }
}
