//! Maintenance tasks. `cargo xtask generate` writes what is generated from the code; with `--check` it only reports what is
//! out of date. `cargo xtask tools` installs what the end-to-end tests run, `cargo xtask bench` measures, and `cargo xtask
//! promises` breaks each promise on purpose and expects its test to fail.

#![expect(clippy::print_stdout, reason = "this is where the command prints")]

mod bench;
mod generate;
mod promises;
mod tools;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::time::Duration;

#[derive(Parser)]
#[command(name = "xtask", about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write the references that are generated from the code
    Generate {
        /// Write nothing; fail if anything is out of date
        #[arg(long)]
        check: bool,
    },
    /// Measure, and write docs/benchmarks.md
    Bench {
        /// Measure a tenth of it and only show the page
        #[arg(long)]
        quick: bool,
        /// Measure only the sections with this in their title; the others stay as they are
        #[arg(long, value_name = "TEXT")]
        only: Option<String>,
    },
    /// Break each promise of docs/promises.md in a copy of the sources, and expect its test to fail
    Promises {
        /// Break only the promises whose text contains this
        #[arg(long, value_name = "TEXT")]
        only: Option<String>,
    },
    /// Install the released tools that the end-to-end tests run
    Tools {
        /// Where to, as NAME-VERSION/NAME; a cache outside the tree unless told otherwise
        #[arg(long, value_name = "DIRECTORY", env = "JOBWRIGHT_TOOLS")]
        directory: Option<std::path::PathBuf>,
        /// How many minutes making one of them may take
        #[arg(long, value_name = "MINUTES", default_value_t = 30)]
        patience: u64,
        /// Only these: helm-3.17.3; without any, Helm and kubectl
        names: Vec<String>,
    },
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Generate { check } => generate::run(check),
        Command::Bench { quick, only } => bench::run(quick, only.as_deref()),
        Command::Promises { only } => promises::run(only.as_deref()),
        Command::Tools { directory, patience, names } => tools::run(directory, Duration::from_mins(patience), &names),
    }
}
