//! Watches, which the peer in process has none of, and what only servers are asked.

use crate::workload;
use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::path::Path;

/// Creates objects while a watch tells of each.
pub(crate) async fn watch(client: &Client, count: usize) -> Result<()> {
    // The watch is asked for first, so that it tells of each object as it comes.
    let (followed, made) = futures::join!(follow(client, count), workload::create(client, count));
    made?;
    followed
}

/// A client of the server that a kubeconfig names.
pub(crate) async fn connect(kubeconfig: &Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).context("cannot read the kubeconfig")?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// Asks a server for a page, and for nothing else.
pub(crate) async fn ask(client: &Client, path: &str) -> Result<()> {
    let request = http::Request::get(path).body(Vec::new())?;
    client.request_text(request).await?;
    Ok(())
}

/// Watches objects until each has been told of.
pub(crate) async fn follow(client: &Client, count: usize) -> Result<()> {
    let api = Api::<ConfigMap>::default_namespaced(client.clone());
    let watching = WatchParams::default().labels("app.kubernetes.io/name=shop").timeout(290);
    let events = api.watch(&watching, "0").await?;
    let seen = events.filter(|event| std::future::ready(matches!(event, Ok(WatchEvent::Added(_))))).take(count).count();
    let seen = seen.await;
    ensure!(seen == count, "the watch told of {seen} objects, not of {count}");
    Ok(())
}
