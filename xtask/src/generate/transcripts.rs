//! The page on kubectl: every command of every transcript, and how drydock and real clusters answered it.

use anyhow::{Context as _, Result};
use jobwright_e2e::results;
use jobwright_e2e::transcript::{Exchange, Transcript};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Targets by what the page calls them, and where their results are.
const TARGETS: [(&str, &str); 3] =
    [("drydock", "kubectl.drydock.jsonl"), ("full tier", "kubectl.full.jsonl"), ("light tier", "kubectl.light.jsonl")];

/// What was written down, by transcript.
type Played = BTreeMap<String, Value>;

pub(super) fn page() -> Result<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/transcripts/kubectl");
    let files = std::fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut paths = files.map(|file| Ok(file?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    let mut targets = Vec::new();
    for (target, file) in TARGETS {
        targets.push((target, read(file)?));
    }
    let (mut summary, mut commands, mut total) = (String::new(), String::new(), 0);
    for path in &paths {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let transcript = Transcript::parse(&text);
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let about = transcript.title();
        let count = transcript.exchanges.len();
        total += count;
        let answered: Vec<String> = targets.iter().map(|(_, played)| answered(played, &name, count)).collect();
        let link = format!("[`{name}.txt`](../../e2e/transcripts/kubectl/{name}.txt)");
        // Writing to a String cannot fail.
        let _ = writeln!(summary, "| {link} | {about} | {} |", answered.join(" | "));
        let _ = write!(commands, "\n## {about}\n\n| line | command | answers |\n|---|---|---|\n");
        for exchange in &transcript.exchanges {
            let answers = answers(&targets, &name, count, exchange);
            let _ = writeln!(commands, "| {} | {} | {answers} |", exchange.line, code(&exchange.command));
        }
    }
    let heads: Vec<&str> = TARGETS.iter().map(|(target, _)| *target).collect();
    Ok(format!(
        "# kubectl on drydock and on real clusters\n\n\
         Generated from the transcripts and the results of the last nightly run by `cargo xtask generate`.\n\n\
         {total} commands of kubectl 1.34.10 with the answers of a real Kubernetes 1.34.10. Each has to be answered to the\n\
         letter, but for what a cluster makes up: names, times, addresses. On the light tier no container runs: what asks\n\
         for logs, exit codes and restarts is not played there.\n\n\
         | transcript | about | {} |\n|---|---|---|---|---|\n{summary}{commands}",
        heads.join(" | ")
    ))
}

fn read(file: &str) -> Result<Played> {
    let lines = results::read(&super::results(file))?;
    let entry = |line: Value| (line["case"].as_str().unwrap_or_default().to_owned(), line);
    Ok(lines.into_iter().map(entry).collect())
}

/// The lines that were answered otherwise, or why it was not played as it is now.
fn differing<'a>(played: &'a Played, name: &str, count: usize) -> Result<Vec<u64>, &'a str> {
    let Some(line) = played.get(name) else { return Err("not played") };
    if let Some(why) = line["skipped"].as_str() {
        return Err(why);
    }
    if line["commands"] != count {
        return Err("not played");
    }
    Ok(line["differ"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect())
}

fn answered(played: &Played, name: &str, count: usize) -> String {
    differing(played, name, count)
        .map_or_else(str::to_owned, |lines| format!("{} of {count}", count.saturating_sub(lines.len())))
}

fn answers(targets: &[(&str, Played)], name: &str, count: usize, exchange: &Exchange) -> String {
    let result = |played| match differing(played, name, count) {
        Err(why) => why,
        Ok(lines) if lines.contains(&(exchange.line as u64)) => "otherwise",
        Ok(_) => "as recorded",
    };
    let results: Vec<(&str, &str)> = targets.iter().map(|(target, played)| (*target, result(played))).collect();
    match results.first() {
        Some((_, first)) if results.iter().all(|(_, result)| result == first) => format!("all {first}"),
        _ => results.iter().map(|(target, result)| format!("{target}: {result}")).collect::<Vec<_>>().join("; "),
    }
}

/// The first line of a command, as code in a table.
fn code(command: &str) -> String {
    let mut lines = command.lines();
    let first = lines.next().unwrap_or_default().replace('|', "\\|");
    let more = if lines.next().is_some() { " …" } else { "" };
    if first.contains('`') { format!("`` {first} ``{more}") } else { format!("`{first}`{more}") }
}
