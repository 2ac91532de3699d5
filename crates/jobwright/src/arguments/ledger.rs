//! Arguments of the commands that read what was recorded.

use super::cluster::Cluster;
use super::deploy::Output;
use clap::Args;
use std::path::PathBuf;

/// The release that is meant.
#[derive(Args, Clone, Debug)]
pub(crate) struct Whose {
    /// Plan of the release; defaults to ./jobwright.yaml if it exists
    #[arg(long, value_name = "PLAN")]
    pub(crate) plan: Option<PathBuf>,
    /// Name of the release, instead of a plan
    #[arg(long, value_name = "NAME", conflicts_with = "plan")]
    pub(crate) release: Option<String>,
}

/// The ledgers that are meant.
#[derive(Args, Clone, Debug)]
pub(crate) struct Ledgers {
    /// Only this job
    #[arg(value_name = "JOB")]
    pub(crate) job: Option<String>,
    #[command(flatten)]
    pub(crate) whose: Whose,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) cluster: Cluster,
}

#[derive(Args, Debug)]
pub(crate) struct History {
    #[command(flatten)]
    pub(crate) ledgers: Ledgers,
    /// List only the newest N runs
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

#[derive(Args, Debug)]
pub(crate) struct Logs {
    #[command(flatten)]
    pub(crate) ledgers: Ledgers,
    /// Number of the run; defaults to the last one
    #[arg(long, value_name = "N")]
    pub(crate) run: Option<u64>,
    /// Number of the attempt; defaults to the last one
    #[arg(long, value_name = "N")]
    pub(crate) attempt: Option<u32>,
    /// Follow the log until the run ends; wait for a run that a deploy is about to start
    #[arg(short, long)]
    pub(crate) follow: bool,
}
