//! `backfill`: captures the state of a cluster and uploads it, all of it or says so.
//!
//! One way through the house: kinds are discovered, each is listed in pages, a page is cut into objects without making
//! trees of it, what is secret is taken out, objects go into batches with ids, a sink takes them, and what it has taken is
//! written down.
//!
//! ```
//! use jobwright_engine::Clock;
//! use jobwright_jobs::backfill::{Backfill, Compression, Surroundings, WriterSink};
//! use std::sync::{Arc, Mutex};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let drydock = jobwright_drydock::Drydock::new();
//! let client = kube::Client::new(drydock.clone(), "default");
//! let surroundings = Surroundings::new(client, Clock::new(move || drydock.now()));
//! let lines = Arc::new(Mutex::new(Vec::new()));
//! let sink = Arc::new(WriterSink::new("memory", Compression::None, Arc::clone(&lines)));
//!
//! let backfill = Backfill { kinds: vec!["Namespace".into(), "Node".into()], ..Backfill::default() };
//! let summary = backfill.run(surroundings, sink, None, Default::default()).await?;
//!
//! assert!(summary.complete);
//! let lines = String::from_utf8(lines.lock().unwrap().clone())?;
//! assert!(lines.lines().any(|line| line.starts_with(r#"{"apiVersion":"v1","kind":"Namespace","metadata":"#)));
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(example()).unwrap();
//! ```
//!
//! # Guarantees
//!
//! - What was there all the time, from the beginning of a kind's list to its end, has arrived when the summary says that
//!   it is complete. A kind shows one moment, unless the summary says that its list went on at a later one.
//! - At least once: a batch whose arrival is unknown is sent again with the same idempotency key; other content never has
//!   the same key. With a checkpoint, the next process with the same options resumes after a crash.
//! - Nothing is lost in silence: what could not be listed or was refused is in the summary.
//! - Memory does not grow with the number of objects: of each kind that is listed there are two pages and two batches.
//!
//! # Where things are
//!
//! | room | what is in it |
//! |---|---|
//! | `discover`, `kind` | which kinds there are, and by which names they are meant |
//! | `list`, `page`, `pages`, `restarts` | calls to the cluster, and what they bring |
//! | `cut`, `filter`, `secrets` | from an object to a line: what goes out, and what never does |
//! | `batch`, `deliver`, `sinks`, `transport` | on the way |
//! | `checkpoint`, `book` | what has arrived |
//! | `run`, `work`, `stopping` | the order of all that, for a run and for a kind; how it stops |
//! | `task`, `wait`, `rbac`, `job` | what goes with it: waits, lock, credentials; who may do it; as a job of a plan |

mod batch;
mod book;
mod checkpoint;
mod cut;
mod deliver;
mod discover;
mod filter;
mod force;
mod job;
mod kind;
mod list;
mod meter;
mod note;
mod page;
mod pages;
mod patience;
mod rbac;
mod restarts;
mod run;
mod secrets;
mod sinks;
mod stopping;
mod summary;
mod task;
mod transport;
mod wait;
mod work;

pub use batch::{Batch, BatchId, BatchLimits};
pub use checkpoint::{
    Checkpoint, CheckpointError, CheckpointStore, Completed, ConfigMapCheckpoint, FileCheckpoint, Position, Progress,
    State,
};
pub use discover::{Catalogue, KindName, UnknownKind};
pub use filter::{Expression, Filters, Names, NoExpression, Pattern, Patterns};
pub use job::BackfillJob;
pub use kind::Kind;
pub use list::Selection;
pub use meter::{KindView, Meter, Stage, serve as serve_metrics};
pub use note::{Listener, Note};
pub use patience::Patience;
pub use rbac::Needs;
pub use secrets::SecretValues;
pub use sinks::{
    Address, Compression, FileSink, Form, HttpSink, Naming, NoAddress, ObjectStorageSink, Objects, OpenError, Remedy,
    RemoteWriteSink, Sink, SinkError, Sinks, WriterSink,
};
pub use summary::{Batches, Counts, Ending, KindSummary, Problem, Summary};
pub use task::{Auth, CheckpointPlace, Environment, NoCheckpointPlace, ObjectPlaces, Place, Setting, Task, TlsPlaces};
pub use transport::{Credentials, Source, TlsSources, Transport};
pub use wait::{Endpoint, NoWait, Wait, WaitError};

use jobwright_engine::{Clock, Event, Events, Retry};
use kube::Client;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What is captured, and how.
#[derive(Clone, Debug)]
pub struct Backfill {
    /// What the run is called; a name is made up if none.
    pub run: Option<String>,
    /// Kinds; every one that can be listed if there are none.
    pub kinds: Vec<KindName>,
    /// Kinds that are left out.
    pub exclude_kinds: Vec<KindName>,
    /// Namespaces; all of them at once if there are none. Kinds without namespaces are left out then, unless they are
    /// named.
    pub namespaces: Vec<String>,
    /// Which objects the server lists.
    pub selection: Selection,
    /// Which of them go out, and which of their labels and annotations.
    pub filters: Filters,
    /// Whether the values of Secrets are read, to be taken out wherever they are.
    pub secret_values: SecretValues,
    /// How many objects a page has.
    pub page_size: usize,
    /// How many kinds are listed at once.
    pub concurrency: usize,
    /// How large batches are.
    pub batches: BatchLimits,
    /// How long calls and deliveries are tried again.
    pub patience: Patience,
    /// How old a checkpoint may be for a run to go on from it.
    pub resume_within: Duration,
    /// What need not be done twice.
    pub once: Option<Once>,
}

/// Something that need not be done twice: a run with a checkpoint that says so does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Once {
    /// What it is, such as a hash of everything that was asked. A complete run writes it down.
    pub key: String,
    /// How long it holds; for ever if none.
    pub holds: Option<Duration>,
    /// Do it all the same.
    pub force: bool,
    /// When the last forced deploy was noticed, by means of [`Task::mark`]: what was complete before it is done again.
    pub forced: Option<jiff::Timestamp>,
}

impl Default for Backfill {
    fn default() -> Self {
        Self {
            run: None,
            kinds: Vec::new(),
            exclude_kinds: Vec::new(),
            namespaces: Vec::new(),
            selection: Selection::default(),
            filters: Filters::default(),
            secret_values: SecretValues::default(),
            page_size: 500,
            concurrency: 4,
            batches: BatchLimits::default(),
            patience: Patience::default(),
            resume_within: Duration::from_hours(1),
            once: None,
        }
    }
}

/// What a backfill works with.
#[derive(Clone)]
pub struct Surroundings {
    /// The cluster.
    pub client: Client,
    /// What time it is.
    pub clock: Clock,
    /// What is counted.
    pub meter: Meter,
    /// Who hears what happens.
    pub listener: Listener,
}

impl Surroundings {
    /// A cluster and a clock; nobody listens.
    pub fn new(client: Client, clock: Clock) -> Self {
        Self { client, clock, meter: Meter::new(), listener: Listener::nobody() }
    }

    /// Retries API calls up to the engine's limit, and reports outages.
    fn retry(&self, cancellation: &CancellationToken) -> Retry {
        Retry::new(self.clock.clone(), cancellation.clone(), self.events())
    }

    /// Where the engine reports what a backfill waits for.
    fn events(&self) -> Events {
        let listener = self.listener.clone();
        Events::to(move |event| match event {
            Event::Busy { holder } => listener.tell(Note::Busy { holder }),
            Event::Retrying { doing, error } => listener.tell(Note::Failing { doing, error }),
            _ => {}
        })
    }
}

/// Why a backfill did not begin. What goes wrong later is in its summary.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The cluster does not say what it has.
    #[error("cannot ask the cluster for its kinds: {0}")]
    Discovery(String),
    /// The cluster does not say which one it is.
    #[error("{0}")]
    Identity(String),
    /// The values of Secrets are not known, so nothing is sent.
    #[error("cannot list the Secrets, whose values must not leave: {0}")]
    Secrets(Problem),
    /// Somebody named a kind that is not there.
    #[error(transparent)]
    UnknownKind(#[from] UnknownKind),
    /// The sink cannot be used.
    #[error("{0}")]
    Sink(SinkError),
    /// The sink cannot be opened.
    #[error("cannot send to the sink: {0}")]
    Open(#[from] OpenError),
    /// The checkpoint cannot be used.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// It is not known whether a deploy was forced.
    #[error(transparent)]
    Mark(#[from] crate::mark::MarkError),
    /// Something is not there.
    #[error(transparent)]
    Wait(WaitError),
    /// Somebody else is at it.
    #[error("`{holder}` holds the lock `{name}`, and has not let it go within {} s", .waited.as_secs())]
    Busy {
        /// The Lease.
        name: String,
        /// Who.
        holder: String,
        /// How long was waited.
        waited: Duration,
    },
    /// The lock cannot be had.
    #[error("{}", .0.whole_message())]
    Lock(jobwright_engine::Error),
    /// It was told to stop before it began.
    #[error("told to stop before anything was sent")]
    Cancelled,
}

impl From<WaitError> for Error {
    fn from(error: WaitError) -> Self {
        match error {
            WaitError::Cancelled(_) => Self::Cancelled,
            error @ WaitError::TimedOut { .. } => Self::Wait(error),
        }
    }
}
