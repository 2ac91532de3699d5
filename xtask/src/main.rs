//! Chores of this repository. `cargo xtask generate` writes what is generated from the code; with `--check` it only
//! says what is out of date.

#![expect(clippy::print_stdout, reason = "this is where the command prints")]

mod generate;

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
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Generate { check } => generate::run(check),
    }
}
