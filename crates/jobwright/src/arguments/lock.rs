//! Arguments of `lock`.

use super::Format;
use super::cluster::Cluster;
use super::ledger::Whose;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Lock {
    /// Show which process holds the lock, and when it renewed it
    Show(Show),
    /// Take the lock away from the process that holds it
    Break(Break),
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
