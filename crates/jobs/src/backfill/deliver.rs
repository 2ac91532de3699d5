//! Delivers batches: packs them, tries again what may do better, and notes what has arrived.

use super::batch::{Batch, BatchId, Full};
use super::book::{Arrival, Mark};
use super::note::Note;
use super::run::Shared;
use super::sinks::{Form, Remedy, SinkError, remote_write};
use super::summary::Problem;
use prometheus_client::metrics::counter::Counter;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio_util::task::AbortOnDropHandle;

/// When this many batches were refused and none has arrived, none will.
const HOPELESS: u64 = 3;

/// The run has stopped: there is nobody to deliver to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped;

/// What one kind sends: a batch is on its way while the next one is made.
pub(crate) struct Outbox {
    shared: Arc<Shared>,
    kind: Arc<str>,
    /// Counts objects that have arrived.
    sent: Counter,
    on_its_way: Option<AbortOnDropHandle<Result<Vec<u8>, Stopped>>>,
}

impl Outbox {
    pub(crate) fn new(shared: Arc<Shared>, kind: Arc<str>, sent: Counter) -> Self {
        Self { shared, kind, sent, on_its_way: None }
    }

    /// Sends a batch, once the one before it is settled. Gives the memory of that one, if nobody else has it.
    pub(crate) async fn put(&mut self, full: Full, mark: Mark) -> Result<Vec<u8>, Stopped> {
        let room = self.settle().await?;
        let (shared, kind, sent) = (Arc::clone(&self.shared), Arc::clone(&self.kind), self.sent.clone());
        let delivery = tokio::spawn(async move { deliver(&shared, &kind, full, mark, &sent).await });
        self.on_its_way = Some(AbortOnDropHandle::new(delivery));
        Ok(room)
    }

    /// Waits until nothing is on its way. Gives the memory of what was.
    pub(crate) async fn settle(&mut self) -> Result<Vec<u8>, Stopped> {
        match &mut self.on_its_way {
            None => Ok(Vec::new()),
            Some(task) => {
                let settled = task.await.unwrap_or(Err(Stopped));
                self.on_its_way = None;
                settled
            }
        }
    }
}

/// Delivers a batch, and notes what became of it. Gives its memory.
async fn deliver(shared: &Shared, kind: &str, full: Full, mark: Mark, sent: &Counter) -> Result<Vec<u8>, Stopped> {
    let Full { body, records } = full;
    let size = body.len();
    let id = BatchId { run: shared.run.clone(), kind: kind.to_owned(), number: mark.batch };
    let key = id.key(&body);
    let packed = match shared.sink.form() {
        Form::Lines(compression) => compression.pack(body),
        Form::Series(_) => remote_write::pack(&body),
    };
    // What goes in order is noted in order: nobody else sends until it is.
    let turn = if shared.sink.is_ordered() { Some(shared.turn.lock().await) } else { None };
    let mut room = Vec::new();
    let delivered = match packed {
        Ok(body) => {
            let batch = Batch { id: id.clone(), key, records, size, body };
            let sent = send(shared, &batch).await?;
            room = batch.body.try_into_mut().map(Vec::from).unwrap_or_default();
            sent
        }
        Err(error) => Err(Problem::of(format!("it cannot be compressed: {error}"))),
    };
    match delivered {
        Ok(()) => {
            let (records, bytes) = (records as u64, size as u64);
            shared.book.note(kind, mark, &Arrival::Sent { records, bytes, sink: shared.sink.state() });
            shared.arrived.fetch_add(1, Ordering::Relaxed);
            shared.meter.batch_sent(bytes);
            sent.inc_by(records);
        }
        Err(problem) => {
            shared.book.note(kind, mark, &Arrival::Refused(problem.clone()));
            shared.meter.batch_refused();
            shared.listener.tell(Note::Refused { batch: id.to_string(), problem: problem.clone() });
            let refused = shared.refused.fetch_add(1, Ordering::Relaxed) + 1;
            if shared.arrived.load(Ordering::Relaxed) == 0 && refused >= HOPELESS {
                shared.stop(format!("the sink takes nothing: {problem}"));
            }
        }
    }
    drop(turn);
    shared.save().await;
    Ok(room)
}

/// Sends a batch until it has arrived, or was refused for good.
async fn send(shared: &Shared, batch: &Batch) -> Result<Result<(), Problem>, Stopped> {
    let mut trying = shared.patience.begin(&shared.clock);
    loop {
        let sent = tokio::select! {
            biased;
            () = shared.hurry.cancelled() => return Err(Stopped),
            sent = shared.sink.send(batch) => sent,
        };
        let SinkError { problem, remedy } = match sent {
            Ok(()) => return Ok(Ok(())),
            Err(error) => error,
        };
        let pause = match remedy {
            Remedy::Again(asked) => trying.pause(asked),
            Remedy::None => return Ok(Err(problem)),
            Remedy::Closed => None,
        };
        let Some(pause) = pause else {
            shared.stop(format!("batch {} has not arrived: {problem}", batch.id));
            return Err(Stopped);
        };
        shared.book.note_retry();
        shared.meter.batch_resent();
        shared.listener.tell(Note::Resending { batch: batch.id.to_string(), problem, pause });
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shared.hurry.cancelled() => return Err(Stopped),
        }
    }
}
