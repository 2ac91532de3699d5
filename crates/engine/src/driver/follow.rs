//! Follows what a pod prints while it runs.

use super::view;
use crate::event::{Event, Events};
use crate::mask::{Cut, Mask};
use futures::{AsyncBufRead, AsyncBufReadExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};
use kube::{Client, ResourceExt as _};
use tokio::task::JoinHandle;

/// Longer lines are cut, and the rest of them is not kept in memory.
const LONGEST_LINE: usize = 2000;

/// The follower of a pod. Stops when it is dropped.
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
        mask: &Mask,
        events: &Events,
    ) -> Option<Self> {
        let container = view::started_containers(pod).into_iter().next()?;
        let (pods, name) = (Api::<Pod>::namespaced(client.clone(), namespace), pod.name_any());
        let (job, mask, events) = (job.to_owned(), mask.clone(), events.clone());
        let task = tokio::spawn(async move {
            let parameters = LogParams { container: Some(container), follow: true, ..LogParams::default() };
            // What cannot be followed can still be read at the end.
            let Ok(stream) = pods.log_stream(&name, &parameters).await else { return };
            let mut stream = Box::pin(stream);
            while let Ok(Some(line)) = read_line(&mut stream, LONGEST_LINE).await {
                let line = mask.apply_to_bytes(&line.bytes, line.cut()).trim_end().to_owned();
                events.send(Event::Log { job: job.clone(), line });
            }
        });
        Some(Self { pod: pod.uid().unwrap_or_default(), task })
    }
}

/// A line, or as much of it as is kept.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) bytes: Vec<u8>,
    is_cut: bool,
}

impl Line {
    pub(super) fn cut(&self) -> Cut {
        Cut { start: false, end: self.is_cut }
    }
}

/// Reads a line, or as much of it as is kept.
pub(super) async fn read_line(
    stream: &mut (impl AsyncBufRead + Unpin),
    longest: usize,
) -> std::io::Result<Option<Line>> {
    let mut line = Line::default();
    loop {
        let read = stream.fill_buf().await?;
        if read.is_empty() {
            return Ok((!line.bytes.is_empty()).then_some(line));
        }
        let end = read.iter().position(|byte| *byte == b'\n');
        let part = &read[..end.unwrap_or(read.len())];
        let kept = part.len().min(longest - line.bytes.len());
        line.bytes.extend_from_slice(&part[..kept]);
        line.is_cut |= kept < part.len();
        let used = end.map_or(read.len(), |end| end + 1);
        stream.consume_unpin(used);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_long_line_is_cut_and_the_next_one_is_whole() {
        let text = format!("first\n{}\nlast", "x".repeat(10 * LONGEST_LINE));
        let mut stream = futures::io::BufReader::with_capacity(64, text.as_bytes());
        let mut lines = Vec::new();
        while let Some(line) = read_line(&mut stream, LONGEST_LINE).await.unwrap() {
            lines.push((String::from_utf8(line.bytes).unwrap(), line.is_cut));
        }
        let long = "x".repeat(LONGEST_LINE);
        assert_eq!(lines, [("first".to_owned(), false), (long, true), ("last".to_owned(), false)]);
    }
}
