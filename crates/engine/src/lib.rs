//! Runs release jobs on Kubernetes when they should, once, and leaves proof.
//!
//! A release job is the work around a release: a database migration, a backfill, a step before or after a component is
//! deployed. A [`Manager`] deploys a release: its global pre-jobs, then each [`Component`] with its own jobs before and
//! after, then its global post-jobs; concurrently, in the order that was declared, with retries, deadlines and
//! cancellation that are really observed. A job is code (the [`Job`] trait) or a pod ([`PodJob`]).
//!
//! ```
//! use jobwright_engine::{
//!     Clock, Component, Context, Decision, DeployContext, DeployOutcome, Events, Failure, Job, Manager, Occasion, Registry,
//!     Release, Retires, Settings, When, async_trait,
//! };
//!
//! struct Shop;
//!
//! #[async_trait]
//! impl Component for Shop {
//!     fn name(&self) -> &str {
//!         "shop"
//!     }
//!     async fn decide(&self, _: &DeployContext) -> Result<Decision, Failure> {
//!         Ok(Decision::Install("it is not there".into()))
//!     }
//!     async fn deploy(&self, context: &DeployContext, _: Occasion) -> Result<(), Failure> {
//!         context.progress("applying");
//!         Ok(())
//!     }
//! }
//!
//! struct Greet;
//!
//! #[async_trait]
//! impl Job for Greet {
//!     fn id(&self) -> &str {
//!         "greet"
//!     }
//!     fn when(&self) -> When {
//!         When::after("shop")
//!     }
//!     fn retires(&self) -> Retires {
//!         Retires::never("everybody likes to be greeted")
//!     }
//!     async fn run(&self, context: &Context) -> Result<(), Failure> {
//!         context.log("hello");
//!         Ok(())
//!     }
//! }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let drydock = jobwright_drydock::Drydock::new();
//! let client = kube::Client::new(drydock.clone(), "default");
//! let clock = Clock::new(move || drydock.now());
//! let release = Release { name: "shop".into(), namespace: "default".into(), ..Release::default() };
//! let mut registry = Registry::new();
//! registry.component(Shop).job(Greet);
//! let manager = Manager::new(client, release, clock, Settings::default());
//! let report = manager.deploy(&registry, Default::default(), Events::nowhere()).await?;
//! assert_eq!(report.outcome, DeployOutcome::Succeeded);
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(example()).unwrap();
//! ```
//!
//! # What is promised
//!
//! Kubernetes itself may start a container twice, when a node is lost. So: at most one Job object per job, fingerprint
//! and attempt; at most one recorded success; a recorded success is never run again; nothing is lost and nothing is
//! silent. A Job is made *held* and let go only when its uid stands in the ledger, so that a crash anywhere neither
//! doubles nor loses a run. See [`machine`] for the order of things.
//!
//! # Where things are
//!
//! Plan and code become a registry; the runner takes its jobs in order; for each, the machine (pure) says what to do
//! next, and the driver does it. What happened goes into the ledger, and, as events, to whoever follows.
//!
//! | room | what is in it |
//! |---|---|
//! | `job`, `pod_job`, `component`, `context`, `policy` | what a release is made of |
//! | `registry`, `guard`, `graph` | what cannot work, or may not |
//! | `runner` | phases, concurrency, cancellation |
//! | [`machine`] | what to do next about a job: a pure function |
//! | `driver`, `lookout` | carries it out, and sees what happens |
//! | `call`, `retry`, `error` | API calls: deadlines, one retry, one classifier |
//! | `lease`, `fence` | one process at a time |
//! | `mask` | Secret values that are never printed |
//! | `ledger`, `fingerprint`, `names` | what is written down, and how it is recognised |
//! | `event`, `report` | what is told, while it happens and afterwards |

mod call;
mod clock;
mod component;
mod context;
mod driver;
mod error;
mod event;
mod fence;
mod fingerprint;
mod graph;
mod guard;
mod job;
mod json_path;
mod lease;
mod ledger;
mod lookout;
pub mod machine;
mod mask;
mod names;
mod pod_job;
mod policy;
mod registry;
mod report;
mod retry;
mod runner;
mod skip;
mod version;

pub use async_trait::async_trait;
pub use call::{CALL_LIMIT, bounded};
pub use clock::Clock;
pub use component::{Component, Decision, DeployContext};
pub use context::{Context, Past, Release, Watchdog};
pub use driver::attempt_log::AttemptLog;
pub use error::{Answer, Error, Refusal, classify};
pub use event::{Event, Events};
pub use fence::{Fence, Known};
pub use fingerprint::{Fingerprint, Fingerprints, Inputs, Key, References};
pub use graph::find_cycle_in as find_cycle;
pub use guard::Violation;
pub use job::{Failure, Job, Needed, Occasion, Phase, Retires, Scope, When};
pub use json_path::{JsonPath, NoPath};
pub use lease::{Claim, DURATION as LEASE_DURATION, Holder, Lease, Tenure, break_lease, read_holder};
pub use ledger::store::read_ledgers;
pub use ledger::{Active, Done, FormatError, Ledger, Outcome, Run, Stopping};
pub use mask::{Cut, Mask};
pub use names::{is_identifier, record as record_name};
pub use pod_job::{Borrowed, PodJob};
pub use policy::{Keep, OnCancel, OnFailure, OnSupersede, OnUnknown, Patience, Retries, RunPolicy};
pub use registry::{Problem, Registry};
pub use report::{
    Action, ComponentFailure, ComponentReport, DeployOutcome, JobOutcome, JobReport, PathStep, PhaseReport, Report,
};
pub use retry::{Backoff, Outage, RETRY_LIMIT, Retry};
pub use runner::{Exceptions, JobPreview, Lock, Manager, Preview, Settings, Would, violations};
pub use skip::Condition;
pub use version::{NoVersion, Version};
