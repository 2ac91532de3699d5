//! Follows what a pod says while it runs, for whoever watches the deploy.

use super::{log, view};
use crate::event::{Event, Events};
use futures::{AsyncBufReadExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};
use kube::{Client, ResourceExt as _};
use tokio::task::JoinHandle;

/// Longer lines are cut: nobody reads them.
const LONGEST_LINE: usize = 2000;

/// Somebody who follows a pod. Stops when it is dropped.
pub(super) struct Follower {
    pod: String,
    task: JoinHandle<()>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Follower {
    /// Whether this pod is the one that is followed.
    pub(super) fn follows(&self, pod: &Pod) -> bool {
        pod.uid().is_some_and(|uid| uid == self.pod)
    }

    /// Follows a pod, if one of its containers has started.
    pub(super) fn start(
        client: &Client,
        namespace: &str,
        pod: &Pod,
        job: &str,
        secrets: Vec<String>,
        events: &Events,
    ) -> Option<Self> {
        let container = view::started_containers(pod).into_iter().next()?;
        let (client, namespace, name) = (client.clone(), namespace.to_owned(), pod.name_any());
        let (job, events) = (job.to_owned(), events.clone());
        let task = tokio::spawn(async move {
            let secrets = log::known_secrets(&client, &namespace, secrets.iter()).await;
            let pods = Api::<Pod>::namespaced(client, &namespace);
            let parameters = LogParams { container: Some(container), follow: true, ..LogParams::default() };
            // What cannot be followed can still be read at the end.
            let Ok(stream) = pods.log_stream(&name, &parameters).await else { return };
            let mut lines = Box::pin(stream).lines();
            while let Some(Ok(line)) = lines.next().await {
                let cut: String = log::mask(&line, &secrets).chars().take(LONGEST_LINE).collect();
                events.send(Event::Log { job: job.clone(), line: cut });
            }
        });
        Some(Self { pod: pod.uid().unwrap_or_default(), task })
    }
}
