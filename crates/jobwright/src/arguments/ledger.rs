//! Arguments of the commands that read what was written down.

use super::cluster::Cluster;
use super::deploy::Output;
use clap::Args;
use std::path::PathBuf;

/// Whose ledgers.
#[derive(Args, Clone, Debug)]
pub(crate) struct Ledgers {
    /// Only this job
    #[arg(value_name = "JOB")]
    pub(crate) job: Option<String>,
    /// The plan whose release is meant; that of ./jobwright.yaml if it is there
    #[arg(long, value_name = "PLAN")]
    pub(crate) plan: Option<PathBuf>,
    /// The release, where there is no plan
    #[arg(long, value_name = "NAME", conflicts_with = "plan")]
    pub(crate) release: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) cluster: Cluster,
}

#[derive(Args, Debug)]
pub(crate) struct History {
    #[command(flatten)]
    pub(crate) ledgers: Ledgers,
    /// Only this many, the newest
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

#[derive(Args, Debug)]
pub(crate) struct Logs {
    #[command(flatten)]
    pub(crate) ledgers: Ledgers,
    /// The number of the run; the last one if not given
    #[arg(long, value_name = "N")]
    pub(crate) run: Option<u64>,
    /// The number of the attempt; the last one if not given
    #[arg(long, value_name = "N")]
    pub(crate) attempt: Option<u32>,
}
