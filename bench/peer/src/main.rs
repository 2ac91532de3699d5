//! What `jobwright-bench` does with drydock, with kube-fake-client.

#[path = "../../src/usage.rs"]
mod usage;
#[path = "../../src/workload.rs"]
mod workload;

use anyhow::Result;
use clap::{Parser, Subcommand};
use kube_fake_client::ClientBuilder;
use usage::Usage;

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    measurement: Measurement,
}

#[derive(Subcommand)]
enum Measurement {
    /// Nothing: what the process costs by itself
    Nothing,
    /// Make a client and get its first answer
    Start,
    /// Create objects
    Create { count: usize },
    /// Create objects, then list them some times
    List { count: usize, times: usize },
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    let usage = runtime.block_on(measure(arguments.measurement))?;
    println!("{usage}");
    Ok(())
}

async fn measure(measurement: Measurement) -> Result<Usage> {
    Ok(match measurement {
        Measurement::Nothing => Usage::default(),
        Measurement::Start => {
            Usage::of(async { anyhow::Ok(workload::list(&ClientBuilder::new().build().await?, 0, 1).await?) }).await?
        }
        Measurement::Create { count } => {
            let client = ClientBuilder::new().build().await?;
            Usage::of(workload::create(&client, count)).await?
        }
        Measurement::List { count, times } => {
            let client = ClientBuilder::new().build().await?;
            workload::create(&client, count).await?;
            Usage::of(workload::list(&client, count, times)).await?
        }
    })
}
