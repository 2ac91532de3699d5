//! Deploys a whole release from one file: components by helm or server-side apply, with jobs before and after.
//!
//! A plan (`jobwright.yaml`) is parsed into types; every error is reported with its file, line and column. It becomes a
//! registry of the [engine](jobwright_engine): charts that helm deploys, manifests that the API server applies, and jobs.
//! What was deployed is recorded in the cluster: the record decides what the next deploy has to do, and lets it resume an
//! interrupted one.

mod build;
mod component;
mod content;
mod deploy;
pub mod plan;
pub mod preflight;
mod record;

pub use build::{second_id, violations};
use component::HelmReleases;
pub use component::{Driver, Helm, HelmError, Removed, removed_components};
pub use deploy::Deployment;
pub use plan::{Finding, Findings, Period, PlanFile, Renewal, plan_schema};
pub use record::{Deployed, Deploying, HelmProcess, ObjectKey, Record, Records};

pub use jobwright_jobs::backfill::Environment;
pub use jobwright_jobs::init_cert::Dialling;
