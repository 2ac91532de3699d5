//! Where batches go: one file a place.

mod address;
mod file;
mod http;
mod object_storage;
mod open;
pub(crate) mod pack;
pub(crate) mod remote_write;
mod writer;

pub(crate) use address::show;
pub use address::{Address, NoAddress};
pub use file::FileSink;
pub use http::HttpSink;
pub use object_storage::ObjectStorageSink;
pub use open::{Naming, Objects, OpenError, Sinks};
pub use pack::Compression;
pub use remote_write::RemoteWriteSink;
pub use writer::WriterSink;

use super::batch::Batch;
use super::summary::{Problem, Summary};
use jobwright_engine::async_trait;
use serde_json::{Value, json};
use std::time::Duration;

/// A place that batches go to.
///
/// # Guarantees and assumptions
///
/// A batch has arrived when [`send`](Sink::send) returns without an error, and is not sent again. If it is unknown whether
/// it arrived it is sent again with the same [`key`](Batch::key), so a sink has to be able to take a batch twice. After an
/// expired snapshot a later process may send other content with the same [`id`](Batch::id): that has another key.
#[async_trait]
pub trait Sink: Send + Sync {
    /// What it is, for people: without anything secret.
    fn describe(&self) -> String;

    /// What decides where batches go and what is in them, such as an address with its query. Only its hash is kept. A run
    /// resumes nothing that was sent to a sink with another identity.
    fn identity(&self) -> Value {
        json!([self.describe(), self.form()])
    }

    /// What batches are made of.
    fn form(&self) -> Form {
        Form::Lines(Compression::None)
    }

    /// Whether batches go one after the other, and are noted in the order in which they went.
    fn is_ordered(&self) -> bool {
        false
    }

    /// Gets ready for a run. `state` is what [`state`](Sink::state) said when a process before this one had sent its last
    /// batch. Says whether it can go on from there; if not, the run begins anew, and this is called again without it.
    async fn begin(&self, _run: &str, _state: Option<&Value>) -> Result<bool, SinkError> {
        Ok(true)
    }

    /// Delivers a batch.
    async fn send(&self, batch: &Batch) -> Result<(), SinkError>;

    /// What has to be remembered to go on after the last batch that was sent.
    fn state(&self) -> Option<Value> {
        None
    }

    /// The run is over: there is nothing more to come, and nobody goes on with it.
    async fn finish(&self, _summary: &Summary) -> Result<(), SinkError> {
        Ok(())
    }

    /// The run stops before its end. Unless somebody can go on with it, what is half done is taken away.
    async fn leave(&self, _goes_on: bool) {}
}

/// What batches are made of.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Form {
    /// Objects, one a line.
    Lines(Compression),
    /// Series of metrics, for Prometheus' remote write.
    Series(Naming),
}

/// Why a batch has not arrived.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct SinkError {
    /// What went wrong.
    pub problem: Problem,
    /// Whether it may do better.
    pub remedy: Remedy,
}

/// What can be done about a batch that has not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// It can be sent again, perhaps after a time that was asked for.
    Again(Option<Duration>),
    /// Nothing: this batch will not be taken.
    None,
    /// Nothing: no batch will be taken any more.
    Closed,
}

impl SinkError {
    pub(crate) fn passing(problem: Problem, after: Option<Duration>) -> Self {
        Self { problem, remedy: Remedy::Again(after) }
    }

    pub(crate) fn refused(problem: Problem) -> Self {
        Self { problem, remedy: Remedy::None }
    }
}
