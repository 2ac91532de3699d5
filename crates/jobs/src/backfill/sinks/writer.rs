//! Lines to whoever reads them: the standard output of a command, or memory.

use super::{Compression, Form, Remedy, Sink, SinkError};
use crate::backfill::batch::Batch;
use crate::backfill::summary::Problem;
use jobwright_engine::async_trait;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// Writes lines to a writer.
pub struct WriterSink<W> {
    name: String,
    compression: Compression,
    writer: Arc<Mutex<W>>,
}

impl<W: Write + Send + 'static> WriterSink<W> {
    /// Writes lines to this, which is called so.
    pub fn new(name: &str, compression: Compression, writer: Arc<Mutex<W>>) -> Self {
        Self { name: name.to_owned(), compression, writer }
    }
}

#[async_trait]
impl<W: Write + Send + 'static> Sink for WriterSink<W> {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn form(&self) -> Form {
        Form::Lines(self.compression)
    }

    fn is_ordered(&self) -> bool {
        true
    }

    async fn send(&self, batch: &Batch) -> Result<(), SinkError> {
        let (writer, body) = (Arc::clone(&self.writer), batch.body.clone());
        // Whoever reads may be slow.
        let written = tokio::task::spawn_blocking(move || {
            let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
            writer.write_all(&body).and_then(|()| writer.flush())
        });
        let problem = match written.await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        // Half of it may have been read: nothing that is written now would be understood.
        let problem = Problem::of(format!("cannot write to {}: {problem}", self.name));
        Err(SinkError { problem, remedy: Remedy::Closed })
    }
}
