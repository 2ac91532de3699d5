//! What a cluster in memory holds, read past everything under test.

use http::Request;
use jobwright_drydock::Started;
use kube::Client;
use serde_json::Value;
use std::future::Future;

/// Two containers that ran at the same time.
pub(crate) fn overlap(starts: &[Started]) -> Option<String> {
    let pairs =
        starts.iter().enumerate().flat_map(|(index, first)| starts[index + 1..].iter().map(move |s| (first, s)));
    let at_once = |(first, second): &(&Started, &Started)| first.ended.is_none_or(|ended| ended.at > second.at);
    pairs.into_iter().find(at_once).map(|(first, second)| format!("{} and {}", first.pod, second.pod))
}

/// A string of an object; empty if there is none.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Where the objects of a kind are.
pub(crate) fn path(namespace: &str, version: &str, kind: &str) -> String {
    let root = if version.contains('/') { "apis" } else { "api" };
    format!("/{root}/{version}/namespaces/{namespace}/{}s", kind.to_lowercase())
}

/// All objects of a kind.
pub(crate) async fn list(client: &Client, namespace: &str, version: &str, kind: &str) -> Vec<Value> {
    let request = Request::get(path(namespace, version, kind)).body(Vec::new()).unwrap();
    let listed: Value = client.request(request).await.unwrap();
    listed["items"].as_array().cloned().unwrap_or_default()
}

/// Runs a play on a clock and a cluster of its own.
pub(crate) fn block_on<T>(play: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let shown = runtime.block_on(play);
    runtime.shutdown_background();
    shown
}
