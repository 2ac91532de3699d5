//! An HTTP server that honours idempotency keys: it answers a request whose key it has seen with success, and drops it.

use super::server::{Reply, Server, good};
use super::stage::read_lines;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

pub(crate) struct Receiver {
    server: Server,
    kept: Arc<Mutex<Kept>>,
    count: watch::Receiver<usize>,
}

#[derive(Default)]
struct Kept {
    keys: BTreeSet<String>,
    bodies: Vec<Vec<u8>>,
    dropped: usize,
}

impl Receiver {
    /// Takes every request. `mood` decides by its number, counted from 1, what to answer instead.
    pub(crate) async fn start(mood: impl Fn(usize) -> Option<Reply> + Send + Sync + 'static) -> Self {
        let kept: Arc<Mutex<Kept>> = Arc::default();
        let keeps = Arc::clone(&kept);
        let (sender, count) = watch::channel(0);
        let server = Server::start(move |number, request| {
            sender.send_replace(number);
            let mut kept = keeps.lock().unwrap();
            let reply = mood(number);
            // What breaks off after the request has come may be kept all the same.
            if matches!(reply, None | Some(Reply::Reset | Reply::Half)) {
                if kept.keys.insert(request.headers["idempotency-key"].clone()) {
                    kept.bodies.push(request.body.clone());
                } else {
                    kept.dropped += 1;
                }
            }
            reply.unwrap_or_else(good)
        })
        .await;
        Self { server, kept, count }
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/in", self.server.port)
    }

    /// Waits until this many requests have come in all.
    pub(crate) async fn reaches(&self, requests: usize) {
        self.count.clone().wait_for(|count| *count >= requests).await.unwrap();
    }

    /// What it has, the newest of each object. None of it is secret.
    pub(crate) fn objects(&self) -> BTreeMap<String, Value> {
        let bodies = self.kept.lock().unwrap().bodies.clone();
        bodies.into_iter().flat_map(|body| read_lines(&String::from_utf8(body).unwrap())).collect()
    }

    /// How many requests it has dropped.
    pub(crate) fn dropped(&self) -> usize {
        self.kept.lock().unwrap().dropped
    }
}
