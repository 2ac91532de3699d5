//! Arguments of the commands that work on a plan.

#![allow(clippy::struct_excessive_bools, clippy::struct_field_names, reason = "a flag is a bool, named as it is typed")]

use super::Format;
use super::cluster::Cluster;
use clap::Args;
use jobwright_release::Period;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Deploy {
    /// Plan file, or a directory with a jobwright.yaml
    #[arg(value_name = "PLAN", default_value = "jobwright.yaml")]
    pub(crate) plan: PathBuf,
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Run every selected job again, even if it has succeeded
    #[arg(long)]
    pub(crate) force: bool,
    /// Deploy components even if they are unchanged
    #[arg(long)]
    pub(crate) redeploy: bool,
    /// Cancel the deploy after this time, counted from the start of the command
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<Period>,
    /// Recover pending Helm releases; make sure that no helm is running
    #[arg(long)]
    pub(crate) unlock: bool,
    /// Show what would be done and why, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) guards: Guards,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) cluster: Cluster,
}

#[derive(Args, Debug)]
pub(crate) struct Plan {
    /// Plan file, or a directory with a jobwright.yaml
    #[arg(value_name = "PLAN", default_value = "jobwright.yaml")]
    pub(crate) plan: PathBuf,
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Fail on retired jobs, jobs without `retires`, broken version rules and unused values files
    #[arg(long)]
    pub(crate) check: bool,
    /// Preview `deploy --force`
    #[arg(long)]
    pub(crate) force: bool,
    /// Preview `deploy --redeploy`
    #[arg(long)]
    pub(crate) redeploy: bool,
    /// Preview `deploy --unlock`
    #[arg(long)]
    pub(crate) unlock: bool,
    #[command(flatten)]
    pub(crate) guards: Guards,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) cluster: Cluster,
}

#[derive(Args, Debug)]
pub(crate) struct Run {
    /// Id of a job in the plan
    #[arg(value_name = "JOB")]
    pub(crate) job: String,
    /// Plan file, or a directory with a jobwright.yaml
    #[arg(long, value_name = "PLAN", default_value = "jobwright.yaml")]
    pub(crate) plan: PathBuf,
    /// Run it again, even if it has succeeded
    #[arg(long, visible_alias = "force")]
    pub(crate) again: bool,
    /// Cancel the run after this time, counted from the start of the command
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<Period>,
    /// Show what would be done and why, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) guards: Guards,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) cluster: Cluster,
}

/// The jobs and components that are selected.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Selection")]
pub(crate) struct Selection {
    /// Deploy only these components, with their jobs (comma-separated)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', alias = "only-components")]
    pub(crate) component: Vec<String>,
    /// Run only these jobs (comma-separated); components still deploy
    #[arg(long, value_name = "JOBS", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Skip these jobs (comma-separated); the next deploy runs them
    #[arg(long, value_name = "JOBS", value_delimiter = ',')]
    pub(crate) skip: Vec<String>,
}

/// Upgrade rules that may be broken on purpose.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Guards {
    /// Allow an upgrade that skips versions
    #[arg(long)]
    pub(crate) allow_skip_version: bool,
    /// Allow a downgrade; skip jobs that succeeded with a newer version (except `run: Always`)
    #[arg(long)]
    pub(crate) allow_older: bool,
}

/// The output of a command.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Output {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text, alias = "format")]
    pub(crate) output: Format,
    /// Hide progress
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Stream logs and decisions
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
