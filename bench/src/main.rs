//! Does what is measured, once, and says what it took. `cargo xtask bench` starts it, also under a tool that counts
//! instructions, and makes a page of what it says.

#![expect(clippy::print_stdout, reason = "this is where the command prints")]

mod deploy;
mod engine;
mod fill;
mod jobs;
mod usage;
mod watching;
mod workload;

use anyhow::Result;
use clap::{Parser, Subcommand};
use jobwright_drydock::Drydock;
use kube::Client;
use std::path::PathBuf;
use usage::Usage;

#[derive(Parser)]
#[command(name = "bench", about)]
struct Arguments {
    #[command(subcommand)]
    measurement: Measurement,
}

#[derive(Subcommand)]
enum Measurement {
    /// Nothing: what the process costs by itself
    Nothing,
    /// Start a cluster and get its first answer
    Start,
    /// Create objects
    Create { count: usize },
    /// Create objects, then list them some times
    List { count: usize, times: usize },
    /// Watch objects while they are created
    Watch { count: usize },
    /// Let Jobs finish and stay, then let more come, run and expire
    Jobs { finished: usize, more: usize },
    /// Carry out jobs in code that do nothing, without a cluster
    Engine { components: usize, jobs: usize },
    /// Deploy components with jobs that are pods; with `--again`, once more when nothing has changed
    Deploy {
        components: usize,
        jobs: usize,
        #[arg(long)]
        again: bool,
    },
    /// Do something on a server
    On {
        /// Where it is
        kubeconfig: PathBuf,
        #[command(subcommand)]
        what: What,
    },
}

#[derive(Subcommand)]
enum What {
    /// Ask for a page
    Ask { path: String },
    /// Create objects
    Create { count: usize },
    /// List objects that are there, some times
    List { count: usize, times: usize },
    /// Watch objects that are there
    Watch { count: usize },
    /// Create objects of several kinds, those with these numbers
    Fill { from: usize, to: usize },
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all();
    // A served cluster has the time of the wall; one in process has its own.
    builder.start_paused(!matches!(arguments.measurement, Measurement::On { .. }));
    let usage = builder.build()?.block_on(measure(arguments.measurement))?;
    println!("{usage}");
    Ok(())
}

async fn measure(measurement: Measurement) -> Result<Usage> {
    let cluster = || Client::new(Drydock::builder().bare().build(), "default");
    Ok(match measurement {
        Measurement::Nothing => Usage::default(),
        Measurement::Start => {
            Usage::of(async { Client::new(Drydock::new(), "default").apiserver_version().await.map(drop) }).await?
        }
        Measurement::Create { count } => {
            let client = cluster();
            Usage::of(workload::create(&client, count)).await?
        }
        Measurement::List { count, times } => {
            let client = cluster();
            workload::create(&client, count).await?;
            Usage::of(workload::list(&client, count, times)).await?
        }
        Measurement::Watch { count } => {
            let client = cluster();
            Usage::of(watching::watch(&client, count)).await?
        }
        Measurement::Jobs { finished, more } => jobs::measure(finished, more).await?,
        Measurement::Engine { components, jobs } => engine::measure(components, jobs).await?,
        Measurement::Deploy { components, jobs, again } => Box::pin(deploy::measure(components, jobs, again)).await?,
        Measurement::On { kubeconfig, what } => {
            let client = watching::connect(&kubeconfig).await?;
            match what {
                What::Ask { path } => Usage::of(watching::ask(&client, &path)).await?,
                What::Create { count } => Usage::of(workload::create(&client, count)).await?,
                What::List { count, times } => Usage::of(workload::list(&client, count, times)).await?,
                What::Watch { count } => Usage::of(watching::follow(&client, count)).await?,
                What::Fill { from, to } => Usage::of(fill::fill(&client, from, to)).await?,
            }
        }
    })
}
