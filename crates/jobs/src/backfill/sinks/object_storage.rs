//! Objects in object storage: one a batch under `PREFIX/RUN/`, and a manifest when the run is over.

mod connect;

use super::{Compression, Form, Sink, SinkError};
use crate::backfill::batch::Batch;
use crate::backfill::summary::{Problem, Summary};
use crate::backfill::transport::confidence::hide_all;
use connect::Answer;
use jobwright_engine::async_trait;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_mins(2);

/// Writes objects into object storage.
pub struct ObjectStorageSink {
    store: Arc<dyn ObjectStore>,
    name: String,
    prefix: String,
    compression: Compression,
    /// Where the store is.
    server: Value,
    /// What the server is told in confidence, and what is not shown if it comes back.
    secrets: Vec<String>,
    run: Mutex<String>,
}

impl ObjectStorageSink {
    /// Writes objects into this store, below a prefix.
    pub fn new(store: Arc<dyn ObjectStore>, name: &str, prefix: &str, compression: Compression) -> Self {
        Self {
            store,
            name: name.to_owned(),
            prefix: prefix.to_owned(),
            compression,
            server: Value::Null,
            secrets: Vec::new(),
            run: Mutex::default(),
        }
    }

    /// Shows nothing of these, should the server repeat them.
    #[must_use]
    pub fn hiding(mut self, secrets: Vec<String>) -> Self {
        self.secrets = secrets;
        self
    }

    /// Says where the store is: its server and its region.
    #[must_use]
    pub fn at(mut self, server: Value) -> Self {
        self.server = server;
        self
    }

    fn place(&self, name: &str) -> Path {
        self.prefix.split('/').chain(name.split('/')).filter(|part| !part.is_empty()).collect()
    }

    async fn put(&self, place: &Path, body: PutPayload) -> Result<(), SinkError> {
        // Its own connections have a limit each, but fetching credentials and reading an answer take several.
        let sent = tokio::time::timeout(ATTEMPT, connect::listen(self.store.put(place, body))).await;
        let late = || SinkError::passing(Problem::of(format!("no answer within {} s", ATTEMPT.as_secs())), None);
        let (put, answer) = sent.map_err(|_| late())?;
        put.map(drop).map_err(|error| judge(&error, answer, &self.secrets))
    }
}

#[async_trait]
impl Sink for ObjectStorageSink {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn identity(&self) -> Value {
        json!([self.name, self.prefix, self.server, self.form()])
    }

    fn form(&self) -> Form {
        Form::Lines(self.compression)
    }

    async fn begin(&self, run: &str, _: Option<&Value>) -> Result<bool, SinkError> {
        run.clone_into(&mut self.run.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(true)
    }

    async fn send(&self, batch: &Batch) -> Result<(), SinkError> {
        // Named by its key: a later process may send other content under the same id, which must not replace what has arrived.
        let place = self.place(&format!("{}.ndjson{}", batch.key, self.compression.extension()));
        self.put(&place, batch.body.clone().into()).await
    }

    async fn finish(&self, summary: &Summary) -> Result<(), SinkError> {
        let run = self.run.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let manifest = serde_json::to_vec(summary).unwrap_or_default();
        self.put(&self.place(&format!("{run}/manifest.json")), manifest.into()).await
    }
}

/// What an error means: what the server answered says more than what it was made into.
fn judge(error: &object_store::Error, answer: Answer, secrets: &[String]) -> SinkError {
    let message = crate::backfill::transport::chain(error);
    // Hidden before it is cut: half a secret would not be found.
    let mut message = hide_all(&message, secrets.iter().cloned());
    message.truncate(message.char_indices().nth(300).map_or(message.len(), |(end, _)| end));
    let problem = Problem { status: answer.status, message: message.replace(['\n', '\r'], " ") };
    match answer.status {
        None | Some(200..=299 | 408 | 429 | 500..=599) => SinkError::passing(problem, answer.retry_after),
        Some(_) => SinkError::refused(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backfill::batch::BatchId;
    use object_store::memory::InMemory;

    #[tokio::test]
    async fn a_batch_is_an_object_and_the_same_one_again() {
        let store = Arc::new(InMemory::new());
        let sink = ObjectStorageSink::new(store.clone(), "s3://b/in", "in//deep", Compression::None);
        sink.begin("r1", None).await.unwrap();
        let id = BatchId { run: "r1".to_owned(), kind: "pods".to_owned(), number: 7 };
        let batch = Batch { key: id.key(b"{}\n"), id, records: 1, size: 3, body: "{}\n".into() };
        sink.send(&batch).await.unwrap();
        sink.send(&batch).await.unwrap();
        let object = store.get(&Path::from("in/deep/r1/pods/000007-ca3d163bab055381.ndjson")).await.unwrap();
        assert_eq!(object.bytes().await.unwrap(), "{}\n");
        assert_eq!(futures::StreamExt::count(store.list(None)).await, 1);
        let other = Batch { key: batch.id.key(b"[]\n"), body: "[]\n".into(), ..batch };
        sink.send(&other).await.unwrap();
        assert_eq!(
            futures::StreamExt::count(store.list(None)).await,
            2,
            "other content under the same id replaces nothing"
        );
    }

    #[test]
    fn what_a_server_repeats_is_not_shown() {
        let secret = "wJalrXUtnFEMI/K7MDENG";
        let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, secret);
        let source = format!("<Message>key {secret} or {encoded}</Message>").into();
        let error = object_store::Error::Generic { store: "S3", source };
        let told = judge(&error, Answer { status: Some(403), retry_after: None }, &[secret.to_owned()]).to_string();
        assert!(told.contains("<Message>key (removed) or (removed)"), "{told}");
    }
}
