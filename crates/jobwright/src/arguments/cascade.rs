//! Arguments of `cascade`.

use super::Format;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Cascade {
    /// The chart: its directory, or its name
    #[arg(value_name = "CHART")]
    pub(crate) chart: String,
    /// By which step versions go up
    #[arg(long, value_enum, value_name = "STEP", default_value_t = Step::Minor)]
    pub(crate) bump: Step,
    /// Look for charts below this directory; the repository that this one is in if not given
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) root: Option<PathBuf>,
    /// Count dependencies that come from elsewhere as the charts here that have their names
    #[arg(long)]
    pub(crate) by_name: bool,
    /// Only show what would change
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text, alias = "format")]
    pub(crate) output: Format,
}

/// By which step versions go up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// 1.4.2 becomes 2.0.0
    Major,
    /// 1.4.2 becomes 1.5.0
    Minor,
    /// 1.4.2 becomes 1.4.3
    Patch,
}
