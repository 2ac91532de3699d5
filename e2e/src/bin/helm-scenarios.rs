//! `helm-scenarios`: plays the scenarios of Helm against a cluster or a drydock, and compares with reality.

#![expect(clippy::print_stdout, reason = "this is where the command prints")]

use anyhow::{Context as _, bail};
use clap::Parser;
use jobwright_e2e::play::Stage;
use jobwright_e2e::run::{Choice, Played, run};
use jobwright_e2e::scenario::load;
use jobwright_e2e::target::Target;
use jobwright_e2e::tools::Tools;
use jobwright_e2e::version::{HelmVersion, Versions};
use jobwright_e2e::{report, report::Summary};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Play the scenarios of Helm and compare with reality
#[derive(Debug, Parser)]
struct Arguments {
    /// `drydock`, the name of a cluster of `cluster up`, or a kubeconfig
    #[arg(long, value_name = "TARGET", default_value = "drydock")]
    target: String,
    /// Versions of Helm, with commas between
    #[arg(long, value_name = "VERSIONS", default_value = "all")]
    helm: Versions,
    /// Only scenarios whose name starts like this
    #[arg(long, value_name = "NAME", num_args = 1..)]
    only: Vec<String>,
    /// Do not play what needs this
    #[arg(long, value_name = "WHAT", value_enum)]
    without: Vec<Without>,
    /// How many to play at a time
    #[arg(long, value_name = "N", default_value_t = 4)]
    jobs: usize,
    /// How many times to play each
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeat: usize,
    /// Play what differs again, up to this many times, few at a time: on a busy machine a race may end as never before
    #[arg(long, value_name = "N", default_value_t = 0)]
    again: usize,
    /// Seconds that a command without a time-out of its own may run
    #[arg(long, value_name = "SECONDS", default_value_t = 150)]
    patience: u64,
    /// Play on after a step that differs
    #[arg(long)]
    keep_going: bool,
    /// An image that has `sh`
    #[arg(long, value_name = "IMAGE", default_value = "busybox:1")]
    image: String,
    /// Write the results here, one line of JSON for each play
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    /// List the plays that are asked for instead of playing them
    #[arg(long)]
    list: bool,
    /// The directory of the tools
    #[arg(long, value_name = "DIRECTORY", env = "JOBWRIGHT_TOOLS")]
    tools: Option<PathBuf>,
    /// The directory of the scenarios
    #[arg(long, value_name = "DIRECTORY", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/helm"))]
    scenarios: PathBuf,
}

/// What a target may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Without {
    /// Running containers
    Containers,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let scenarios = load(&arguments.scenarios)?;
    let choice = Choice {
        versions: arguments.helm.clone(),
        only: arguments.only.clone(),
        containers: !arguments.without.contains(&Without::Containers)
            && Target::named(&arguments.target)?.runs_containers(),
    };
    let plays = choice.plays(&scenarios).repeat(arguments.repeat.max(1));
    if plays.is_empty() {
        bail!("no scenario is called like that");
    }
    if arguments.list {
        for (scenario, version) in &plays {
            let needs = if scenario.needs_containers(*version) { " (needs containers)" } else { "" };
            println!("{} {version}{needs}: {}", scenario.name, scenario.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let helms: BTreeSet<HelmVersion> = plays.iter().flat_map(|(scenario, version)| scenario.helms(*version)).collect();
    let stage = stage(&arguments, helms)?;
    let total = plays.len();
    let mut played = run(&stage, &choice, &plays, arguments.jobs, &|ended, played| tell(ended, total, played));
    for _ in 0..arguments.again {
        let differ: Vec<usize> = (0..played.len()).filter(|index| played[*index].differs()).collect();
        let plays: Vec<_> = differ.iter().map(|index| plays[*index]).collect();
        let replayed = run(&stage, &choice, &plays, 2, &|ended, played| tell(ended, differ.len(), played));
        for (index, again) in differ.into_iter().zip(replayed) {
            played[index] = again;
        }
    }
    let summary = Summary::new(&played);
    println!("{}", summary.line());
    if let Some(file) = &arguments.results {
        write(file, &report::lines(&played))?;
    }
    Ok(if summary.different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tell(ended: usize, total: usize, played: &Played<'_>) {
    println!("[{ended:>3}/{total}] {}", report::line(played));
    let details = report::details(played);
    if !details.is_empty() {
        println!("{details}");
    }
}

fn stage(arguments: &Arguments, helms: BTreeSet<HelmVersion>) -> anyhow::Result<Stage> {
    let directory = Tools::directory(arguments.tools.clone())?;
    let tools = Tools::find(&directory, helms)?;
    let target = Target::named(&arguments.target)?;
    Ok(Stage {
        tools,
        target,
        image: arguments.image.clone(),
        patience: Duration::from_secs(arguments.patience),
        keep_going: arguments.keep_going,
    })
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(file, text).with_context(|| format!("cannot write `{}`", file.display()))
}
