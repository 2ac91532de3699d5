//! Arguments that say which cluster is meant.

use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Which cluster, and where in it.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct Cluster {
    /// Namespace; overrides that of the plan or the context
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Kubeconfig; overrides $KUBECONFIG and ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Use an in-memory cluster, discarded at the end
    #[arg(long, conflicts_with_all = ["kubeconfig", "context"])]
    pub(crate) drydock: bool,
    /// Script of its containers (default: `drydock.yaml` beside the plan)
    #[arg(long, value_name = "FILE", requires = "drydock")]
    pub(crate) script: Option<PathBuf>,
    /// How many times faster than real time it runs
    #[arg(long, value_name = "N", requires = "drydock", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) speed: Option<u32>,
    /// How fast its time passes if `speed` does not say so.
    #[arg(skip)]
    pub(crate) pace: Pace,
}

/// How many times as fast as the wall clock the time of an in-memory cluster passes. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pace(Arc<AtomicU32>);

impl Pace {
    pub(crate) fn set(&self, speed: u32) {
        self.0.store(speed, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}
