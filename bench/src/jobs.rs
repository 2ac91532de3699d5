//! Jobs that come, run and expire, beside Jobs that have finished and stay.

use crate::usage::Usage;
use anyhow::{Result, ensure};
use jobwright_drydock::Drydock;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use serde_json::json;
use std::time::Duration;

/// How many Jobs run at once: as many as a node takes.
const AT_ONCE: usize = 100;

/// What it takes that `more` Jobs come, run and expire when `finished` others have finished and stay.
pub(crate) async fn measure(finished: usize, more: usize) -> Result<Usage> {
    let drydock = Drydock::new();
    let client = Client::new(drydock.clone(), "default");
    run(&client, "stays", finished, None).await?;
    let usage = Usage::of(run(&client, "goes", more, Some(600))).await?;
    let left = Api::<Job>::default_namespaced(client.clone()).list(&ListParams::default()).await?.items.len();
    let pods = Api::<Pod>::default_namespaced(client).list(&ListParams::default()).await?.items.len();
    ensure!(left == finished && pods == finished, "{left} Jobs and {pods} pods are left, not {finished}");
    ensure!(drydock.witness().len() == finished + more, "each Job runs once");
    // To take a whole cluster apart is no part of a Job's life, and takes as many instructions as a hundred of them.
    std::mem::forget(drydock);
    Ok(usage)
}

/// Lets Jobs run to their end, and until they have expired if they do.
async fn run(client: &Client, name: &str, count: usize, time_to_live: Option<u32>) -> Result<()> {
    let api = Api::<Job>::default_namespaced(client.clone());
    for number in 0..count {
        let job: Job = serde_json::from_value(json!({
            "metadata": {"name": format!("{name}-{number}")},
            "spec": {"ttlSecondsAfterFinished": time_to_live, "template": {"spec": {"restartPolicy": "Never", "containers": [
                {"name": "main", "image": "shop/api:1.4.0", "command": ["sh", "-c", "sleep 5; echo done"]}]}}},
        }))?;
        api.create(&PostParams::default(), &job).await?;
        if number % AT_ONCE == AT_ONCE - 1 {
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
    }
    tokio::time::sleep(Duration::from_secs(20 + u64::from(time_to_live.unwrap_or_default()))).await;
    Ok(())
}
