//! The page on real clusters: every test of deployers, how it ended on each that it was played on, and the tests of the
//! command that starts them.

use anyhow::Result;
use jobwright_e2e::results;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Where the results of each cluster are.
const CLUSTERS: &[&str] = &["live.full.jsonl", "live.argocd2.jsonl", "live.newest.jsonl"];

pub(super) fn page() -> Result<String> {
    Ok(format!(
        "# Real deployers on real clusters\n\n\
         Generated from the results of the last nightly run by `cargo xtask generate`. What each test expects, word for word,\n\
         is in [`e2e/tests`](../../e2e/tests); a dash is a test that the cluster lacks something for, or that was not played\n\
         there. Several are played at a time, and most of their time they wait.\n\n{}\n{}",
        table(CLUSTERS)?,
        table(&["harness.jsonl"])?
    ))
}

/// Tests by results that are beside each other.
fn table(files: &[&str]) -> Result<String> {
    let mut clusters = Vec::new();
    for file in files {
        clusters.push(results::read(&super::results(file))?);
    }
    // What was never played has no column.
    clusters.retain(|lines| !lines.is_empty());
    if clusters.is_empty() {
        return Ok("Not played yet.\n".to_owned());
    }
    let text = |line: &Value, field: &str| line[field].as_str().unwrap_or_default().to_owned();
    let names: BTreeSet<String> = clusters.iter().flatten().map(|line| text(line, "case")).collect();
    let titles: Vec<String> =
        clusters.iter().map(|lines| lines.first().map(|line| text(line, "on")).unwrap_or_default()).collect();
    let by_name: Vec<BTreeMap<String, &Value>> =
        clusters.iter().map(|lines| lines.iter().map(|line| (text(line, "case"), line)).collect()).collect();
    let mut page = format!("| | {} |\n|---|{}\n", titles.join(" | "), "---|".repeat(titles.len()));
    for name in names {
        let cells: Vec<String> = by_name.iter().map(|cluster| cell(cluster.get(&name).copied())).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(page, "| {} | {} |", name.replace('_', " "), cells.join(" | "));
    }
    Ok(page)
}

fn cell(line: Option<&Value>) -> String {
    let Some(line) = line else { return "–".to_owned() };
    match line["result"].as_str() {
        Some("skipped") => "–".to_owned(),
        Some(result) => format!("{result} in {} s", line["seconds"]),
        None => "not played".to_owned(),
    }
}
