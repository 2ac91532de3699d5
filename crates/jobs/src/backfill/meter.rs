//! What is counted while it happens: for a screen, and for Prometheus.

mod serve;

pub use serve::serve;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What is counted of a backfill in this process. Clones count together.
#[derive(Clone, Default)]
pub struct Meter {
    counters: Counters,
    kinds: Arc<Mutex<Vec<KindMeter>>>,
}

#[derive(Clone, Default)]
struct Counters {
    listed: Family<OfKind, Counter>,
    sent: Family<OfKind, Counter>,
    skipped: Family<OfKind, Counter>,
    pages: Family<OfKind, Counter>,
    retries: Family<OfKind, Counter>,
    errors: Family<OfKind, Counter>,
    batches: Family<Ended, Counter>,
    resent: Counter,
    bytes: Counter,
    running: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    result: &'static str,
}

/// What is counted of a kind.
#[derive(Clone)]
pub(crate) struct KindMeter {
    name: String,
    pub(crate) listed: Counter,
    pub(crate) sent: Counter,
    pub(crate) skipped: Counter,
    pub(crate) pages: Counter,
    pub(crate) retries: Counter,
    pub(crate) errors: Counter,
    expected: Arc<AtomicU64>,
    stage: Arc<Mutex<Stage>>,
}

/// Where a kind is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Its turn has not come.
    Waiting,
    /// It is being listed.
    Running,
    /// It was listed to its end.
    Done,
    /// It was not.
    Failed,
}

/// How far a kind has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindView {
    /// Its full name.
    pub name: String,
    /// Where it is.
    pub stage: Stage,
    /// Objects that were listed.
    pub listed: u64,
    /// Objects that have arrived.
    pub sent: u64,
    /// How many there are, as far as the cluster has said it.
    pub expected: u64,
}

impl Meter {
    /// Nothing has been counted.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a kind, too.
    pub(crate) fn kind(&self, name: &str) -> KindMeter {
        let label = OfKind { kind: name.to_owned() };
        let counter = |family: &Family<OfKind, Counter>| family.get_or_create(&label).clone();
        let counters = &self.counters;
        let meter = KindMeter {
            name: name.to_owned(),
            listed: counter(&counters.listed),
            sent: counter(&counters.sent),
            skipped: counter(&counters.skipped),
            pages: counter(&counters.pages),
            retries: counter(&counters.retries),
            errors: counter(&counters.errors),
            expected: Arc::default(),
            stage: Arc::new(Mutex::new(Stage::Waiting)),
        };
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner).push(meter.clone());
        meter
    }

    pub(crate) fn batch_sent(&self, bytes: u64) {
        self.counters.batches.get_or_create(&Ended { result: "sent" }).inc();
        self.counters.bytes.inc_by(bytes);
    }

    pub(crate) fn batch_refused(&self) {
        self.counters.batches.get_or_create(&Ended { result: "failed" }).inc();
    }

    pub(crate) fn batch_resent(&self) {
        self.counters.resent.inc();
    }

    /// How far every kind has come, in order.
    pub fn view(&self) -> Vec<KindView> {
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let view = |kind: &KindMeter| KindView {
            name: kind.name.clone(),
            stage: *kind.stage.lock().unwrap_or_else(PoisonError::into_inner),
            listed: kind.listed.get(),
            sent: kind.sent.get(),
            expected: kind.expected.load(Ordering::Relaxed).max(kind.listed.get()),
        };
        kinds.iter().map(view).collect()
    }

    /// What was counted, as Prometheus reads it.
    pub fn encode(&self) -> String {
        let mut registry = Registry::with_prefix("jobwright_backfill");
        let Counters { listed, sent, skipped, pages, retries, errors, batches, resent, bytes, running } =
            self.counters.clone();
        registry.register("objects_listed", "Objects that the cluster has listed", listed);
        registry.register("objects_sent", "Objects that have arrived", sent);
        registry.register("objects_skipped", "Objects that nobody wanted, by their names", skipped);
        registry.register("pages", "Pages that were read", pages);
        registry.register("list_retries", "Calls to the cluster that were made again", retries);
        registry.register("list_errors", "Kinds that could not be listed to their end", errors);
        registry.register("batches", "Batches by what became of them", batches);
        registry.register("batch_retries", "Deliveries that were made again", resent);
        registry.register_with_unit("sent", "What arrived, before it was compressed", Unit::Bytes, bytes);
        registry.register("kinds_running", "Kinds that are being listed", running);
        let mut text = String::new();
        // Text can always be written to.
        let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
        text
    }
}

impl KindMeter {
    pub(crate) fn enter(&self, meter: &Meter, stage: Stage) {
        let mut known = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let change = i64::from(stage == Stage::Running) - i64::from(*known == Stage::Running);
        meter.counters.running.inc_by(change);
        if stage == Stage::Failed {
            self.errors.inc();
        }
        *known = stage;
    }

    /// How many objects the cluster says there are.
    pub(crate) fn expect(&self, objects: u64) {
        self.expected.store(objects, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_seen_on_the_screen_and_by_prometheus() {
        let meter = Meter::new();
        let pods = meter.kind("pods");
        pods.enter(&meter, Stage::Running);
        pods.listed.inc_by(3);
        pods.expect(10);
        meter.batch_sent(7);
        meter.batch_refused();
        let view = meter.view();
        assert_eq!((view[0].listed, view[0].expected, view[0].stage), (3, 10, Stage::Running));
        let text = meter.encode();
        for line in [
            "jobwright_backfill_objects_listed_total{kind=\"pods\"} 3",
            "jobwright_backfill_batches_total{result=\"failed\"} 1",
            "jobwright_backfill_sent_bytes_total 7",
            "jobwright_backfill_kinds_running 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        pods.enter(&meter, Stage::Failed);
        assert!(meter.encode().contains("jobwright_backfill_kinds_running 0"));
        assert!(meter.encode().contains("jobwright_backfill_list_errors_total{kind=\"pods\"} 1"));
    }
}
