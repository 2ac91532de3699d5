//! Arguments of `lock`.

use super::Format;
use super::cluster::Cluster;
use super::ledger::Whose;
use clap::{Args, Subcommand};
use jobwright_release::Period;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum Lock {
    /// Show which process holds the lock, and when it renewed it
    Show(Show),
    /// Take the lock away from the process that holds it
    Break(Break),
    /// Run a program while holding a lock, so that two never run at the same time
    Run(LockedProgram),
    /// Copy this program into a directory, for containers whose image lacks it
    Install(Install),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Show {
    #[command(flatten)]
    pub(crate) whose: Whose,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text, alias = "format")]
    pub(crate) output: Format,
    #[command(flatten)]
    pub(crate) cluster: Cluster,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Break {
    #[command(flatten)]
    pub(crate) show: Show,
    /// Break it; without this, only print what would be done
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct LockedProgram {
    /// Name of the lock, a Lease in the namespace
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
    /// How long to wait for another holder
    #[arg(long, value_name = "DURATION", default_value = "10m")]
    pub(crate) wait: Period,
    #[command(flatten)]
    pub(crate) cluster: Cluster,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Install {
    /// The directory
    #[arg(value_name = "DIRECTORY")]
    pub(crate) directory: PathBuf,
}
