//! Batches: as many objects as go together, bounded in bytes and in number, each with an id and an idempotency key.

use super::cut::{Cutter, Fate, Unreadable};
use super::sinks::remote_write::Series;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// How large batches are at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BatchLimits {
    /// In bytes, before they are compressed. A larger object is a batch of its own.
    pub bytes: usize,
    /// In objects.
    pub records: usize,
}

impl Default for BatchLimits {
    fn default() -> Self {
        Self { bytes: 1024 * 1024, records: 1000 }
    }
}

/// What a batch is called: its place in a run. Two processes of one run may send different content under one id, if the
/// snapshot of a list has expired in between; [`Batch::key`] tells them apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BatchId {
    /// The run.
    pub run: String,
    /// The full name of the kind.
    pub kind: String,
    /// The number among those of the kind, from 1 on.
    pub number: u64,
}

impl fmt::Display for BatchId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{:06}", self.run, self.kind, self.number)
    }
}

/// Objects on their way.
#[derive(Clone, Debug)]
pub struct Batch {
    /// What it is called.
    pub id: BatchId,
    /// Its idempotency key: the id, and a hash of the content before it is compressed. The same key has the same content.
    pub key: String,
    /// How many objects it has.
    pub records: usize,
    /// How large it was before it was compressed.
    pub size: usize,
    /// What is sent.
    pub body: Bytes,
}

impl BatchId {
    /// The idempotency key of a batch with this content.
    pub(crate) fn key(&self, content: &[u8]) -> String {
        let digest = Sha256::digest(content);
        digest.iter().take(8).fold(format!("{self}-"), |key, byte| format!("{key}{byte:02x}"))
    }
}

/// What objects are written as.
pub(crate) enum Writer<'r> {
    /// A line each.
    Lines(Cutter<'r>),
    /// Series of metrics.
    Series(Cutter<'r>, Series),
}

impl Writer<'_> {
    fn write(&mut self, object: &[u8], out: &mut Vec<u8>) -> Result<Fate, Unreadable> {
        match self {
            Self::Lines(cutter) => cutter.cut(object, out),
            Self::Series(cutter, series) => series.write(cutter, object, out),
        }
    }
}

/// Makes batches of objects.
pub(crate) struct Batcher<'r> {
    writer: Writer<'r>,
    limits: BatchLimits,
    body: Vec<u8>,
    records: usize,
    /// Memory of a batch that has gone.
    room: Vec<u8>,
}

/// A batch that is full.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full {
    pub(crate) body: Vec<u8>,
    pub(crate) records: usize,
}

/// What became of an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// There is room for more.
    Yes,
    /// Nobody wants it.
    Skipped,
    /// It is in, and there is no more room.
    Filled(Full),
    /// There was no room for it: it is in the next one.
    Overflowed(Full),
}

impl<'r> Batcher<'r> {
    pub(crate) fn new(writer: Writer<'r>, limits: BatchLimits) -> Self {
        Self { writer, limits, body: Vec::new(), records: 0, room: Vec::new() }
    }

    /// Adds an object.
    pub(crate) fn add(&mut self, object: &[u8]) -> Result<Added, Unreadable> {
        let before = self.body.len();
        if self.body.capacity() == 0 {
            self.body = self.begin();
        }
        match self.writer.write(object, &mut self.body) {
            Ok(Fate::Written) => {}
            Ok(Fate::Skipped) => return Ok(Added::Skipped),
            Err(error) => {
                self.body.truncate(before);
                return Err(error);
            }
        }
        if self.body.len() > self.limits.bytes && self.records > 0 {
            let mut next = self.begin();
            next.extend_from_slice(&self.body[before..]);
            self.body.truncate(before);
            let full = Full { body: std::mem::replace(&mut self.body, next), records: self.records };
            self.records = 1;
            return Ok(Added::Overflowed(full));
        }
        self.records += 1;
        if self.records >= self.limits.records || self.body.len() >= self.limits.bytes {
            return Ok(self.take().map_or(Added::Yes, Added::Filled));
        }
        Ok(Added::Yes)
    }

    /// Room for a batch.
    fn begin(&mut self) -> Vec<u8> {
        let mut room = std::mem::take(&mut self.room);
        room.clear();
        room.reserve(self.limits.bytes + self.limits.bytes / 8);
        room
    }

    /// Takes the memory of a batch back.
    pub(crate) fn give_back(&mut self, room: Vec<u8>) {
        self.room = room;
    }

    /// What has been added and is not in a batch yet.
    pub(crate) fn take(&mut self) -> Option<Full> {
        let records = std::mem::take(&mut self.records);
        (records > 0).then(|| Full { body: std::mem::take(&mut self.body), records })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backfill::filter::Filters;
    use crate::backfill::kind::Kind;
    use proptest::prelude::*;

    fn kind() -> Kind {
        Kind {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            plural: "pods".to_owned(),
            namespaced: true,
        }
    }

    proptest! {
        #[test]
        fn batches_keep_their_bounds_and_lose_nothing(
            sizes in prop::collection::vec(0..400_usize, 0..60),
            bytes in 1..1500_usize,
            records in 1..12_usize,
        ) {
            let filters = Filters::default();
            let limits = BatchLimits { bytes, records };
            let mut batcher = Batcher::new(Writer::Lines(Cutter::new(&kind(), &filters, false)), limits);
            let mut batches = Vec::new();
            for (index, size) in sizes.iter().enumerate() {
                let object = format!("{{\"metadata\":{{\"name\":\"{index}\"}},\"x\":\"{}\"}}", "x".repeat(*size));
                match batcher.add(object.as_bytes()).unwrap() {
                    Added::Filled(full) | Added::Overflowed(full) => batches.push(full),
                    Added::Yes => {}
                    Added::Skipped => prop_assert!(false),
                }
            }
            batches.extend(batcher.take());
            prop_assert_eq!(batcher.take(), None);
            let mut next = 0;
            for batch in &batches {
                let lines: Vec<&[u8]> = batch.body.split_inclusive(|byte| *byte == b'\n').collect();
                prop_assert_eq!(lines.len(), batch.records);
                prop_assert!(batch.records <= records && (batch.body.len() <= bytes || batch.records == 1));
                for line in lines {
                    let object: serde_json::Value = serde_json::from_slice(line).unwrap();
                    prop_assert_eq!(&object["metadata"]["name"], &next.to_string());
                    next += 1;
                }
            }
            prop_assert_eq!(next, sizes.len());
        }
    }

    #[test]
    fn a_key_is_the_same_for_the_same_content_only() {
        let id = BatchId { run: "r".to_owned(), kind: "pods".to_owned(), number: 7 };
        assert_eq!(id.key(b"{}\n"), "r/pods/000007-ca3d163bab055381");
        assert_eq!(id.key(b"{}\n"), id.key(b"{}\n"));
        assert_ne!(id.key(b"{}\n"), id.key(b"{}\n{}\n"));
        let next = BatchId { number: 8, ..id.clone() };
        assert_ne!(id.key(b"{}\n"), next.key(b"{}\n"));
    }

    #[test]
    fn what_cannot_be_read_leaves_nothing_behind() {
        let filters = Filters::default();
        let mut batcher = Batcher::new(Writer::Lines(Cutter::new(&kind(), &filters, false)), BatchLimits::default());
        assert_eq!(batcher.add(b"{\"a\":").unwrap_err(), Unreadable);
        assert_eq!(batcher.add(b"{}").unwrap(), Added::Yes);
        assert_eq!(batcher.take().unwrap().body, b"{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}\n");
    }

    #[test]
    fn an_id_sorts_by_its_number() {
        let id = |number| BatchId { run: "r".to_owned(), kind: "pods".to_owned(), number }.to_string();
        assert_eq!(id(7), "r/pods/000007");
        assert!(id(9) < id(10));
    }
}
