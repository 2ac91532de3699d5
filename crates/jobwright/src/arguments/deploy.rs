//! Arguments of the commands that work on a plan.

#![allow(clippy::struct_excessive_bools, clippy::struct_field_names, reason = "a flag is a bool, named as it is typed")]

use super::Format;
use super::cluster::Cluster;
use clap::Args;
use jobwright_release::Period;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Deploy {
    /// The plan: a file, or a directory with a jobwright.yaml
    #[arg(value_name = "PLAN", default_value = "jobwright.yaml")]
    pub(crate) plan: PathBuf,
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Run every selected job once more, whatever has succeeded
    #[arg(long)]
    pub(crate) force: bool,
    /// Deploy components even if nothing has changed
    #[arg(long)]
    pub(crate) redeploy: bool,
    /// How long it all may take
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<Period>,
    /// Take up Helm releases that a killed helm has left pending
    #[arg(long)]
    pub(crate) unlock: bool,
    /// Only show what would be done, and why
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
    /// The plan: a file, or a directory with a jobwright.yaml
    #[arg(value_name = "PLAN", default_value = "jobwright.yaml")]
    pub(crate) plan: PathBuf,
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Fail on retired jobs, jobs that do not say when they retire, broken guards, and values files that nobody uses
    #[arg(long)]
    pub(crate) check: bool,
    /// Show what would be run once more
    #[arg(long)]
    pub(crate) force: bool,
    /// Show what would be deployed again
    #[arg(long)]
    pub(crate) redeploy: bool,
    /// Take up Helm releases that a killed helm has left pending
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
    /// The job: an id of the plan
    #[arg(value_name = "JOB")]
    pub(crate) job: String,
    /// The plan: a file, or a directory with a jobwright.yaml
    #[arg(long, value_name = "PLAN", default_value = "jobwright.yaml")]
    pub(crate) plan: PathBuf,
    /// Run it once more, whatever has succeeded
    #[arg(long, visible_alias = "force")]
    pub(crate) again: bool,
    /// How long it may take
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<Period>,
    /// Only show what would be done, and why
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) guards: Guards,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) cluster: Cluster,
}

/// Which jobs.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Selection {
    /// Only these jobs, with commas between; components are deployed all the same
    #[arg(long, value_name = "JOBS", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Not these jobs, with commas between
    #[arg(long, value_name = "JOBS", value_delimiter = ',')]
    pub(crate) skip: Vec<String>,
}

/// Rules that may be broken on purpose.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Guards {
    /// Let versions be left out
    #[arg(long)]
    pub(crate) allow_skip_version: bool,
    /// Let an older version follow a newer one; jobs that have succeeded with the newer one are satisfied
    #[arg(long)]
    pub(crate) allow_older: bool,
}

/// How it is told.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Output {
    /// Words for people, or one JSON document
    #[arg(short, long, value_enum, default_value_t = Format::Text, alias = "format")]
    pub(crate) output: Format,
    /// Say less
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say more
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
