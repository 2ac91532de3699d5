//! Arguments that say which cluster is meant.

use clap::Args;
use std::path::PathBuf;

/// Which cluster, and where in it.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct Cluster {
    /// The namespace, instead of the plan's or the context's
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// The kubeconfig, instead of $KUBECONFIG and ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// A cluster in memory instead, gone at the end
    #[arg(long, conflicts_with_all = ["kubeconfig", "context"])]
    pub(crate) drydock: bool,
    /// What containers do in it; a file `drydock.yaml` beside the plan if not given
    #[arg(long, value_name = "FILE", requires = "drydock")]
    pub(crate) script: Option<PathBuf>,
    /// How many times as fast its time passes
    #[arg(long, value_name = "N", requires = "drydock", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) speed: Option<u32>,
}
