//! Which cluster is meant: the arguments, a kubeconfig, or the pod that this runs in.

use crate::arguments;
use crate::failure::{Failure, Kind};
use anyhow::Context as _;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use std::error::Error;
use std::io::ErrorKind;

/// The configuration of the cluster that is meant.
pub(super) async fn find(arguments: &arguments::Cluster) -> Result<Config, Failure> {
    let options = KubeConfigOptions { context: arguments.context.clone(), ..KubeConfigOptions::default() };
    match &arguments.kubeconfig {
        Some(file) => {
            let doing = || format!("cannot use the kubeconfig `{}`", file.display());
            let read = Kubeconfig::read_from(file).with_context(doing);
            let read = read.map_err(|error| Failure::of(Kind::Usage, error))?;
            let config = Config::from_custom_kubeconfig(read, &options).await.with_context(doing);
            config.map_err(|error| Failure::of(Kind::Cluster, error))
        }
        None if arguments.context.is_some() => Config::from_kubeconfig(&options).await.map_err(|error| refuse(&error)),
        None => Config::infer().await.map_err(|error| {
            // The error is about both a kubeconfig and a pod; its source is what is wrong with the kubeconfig.
            let kubeconfig = error.source().and_then(|source| source.downcast_ref::<KubeconfigError>());
            kubeconfig.map_or_else(|| Failure::new(Kind::Cluster, &error), refuse)
        }),
    }
}

/// Why no kubeconfig can be used.
fn refuse(error: &KubeconfigError) -> Failure {
    let missing = match error {
        KubeconfigError::FindPath => Some(None),
        KubeconfigError::ReadConfig(source, path) if source.kind() == ErrorKind::NotFound => Some(Some(path)),
        _ => None,
    };
    let Some(path) = missing else {
        return Failure::new(Kind::Cluster, format!("cannot use the kubeconfig: {error}"))
            .hint("pass `--kubeconfig`, or correct $KUBECONFIG");
    };
    let failure = Failure::new(Kind::Cluster, "no cluster configured: found no kubeconfig, and this is not a pod");
    let failure = failure.hint("pass `--kubeconfig`, set $KUBECONFIG, or try `--drydock`");
    match path {
        Some(path) => failure.hint(format!("`{}` does not exist", path.display())),
        None => failure,
    }
}
