//! Chores of this repository. `cargo xtask generate` writes what is generated from the code; with `--check` it only
//! says what is out of date. `cargo xtask tools` installs what the end-to-end tests run.

#![expect(clippy::print_stdout, reason = "this is where the command prints")]

mod generate;
mod tools;

use anyhow::Result;
use clap::{Parser, Subcommand};

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
    /// Install the released tools that the end-to-end tests run
    Tools {
        /// Where to, as NAME-VERSION/NAME; a cache outside the tree unless told otherwise
        #[arg(long, value_name = "DIRECTORY", env = "JOBWRIGHT_TOOLS")]
        directory: Option<std::path::PathBuf>,
        /// Only these: helm-3.17.3; without any, Helm and kubectl
        names: Vec<String>,
    },
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Generate { check } => generate::run(check),
        Command::Tools { directory, names } => tools::run(directory, &names),
    }
}
