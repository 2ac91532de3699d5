//! Deploys a whole release from one file: components by helm or server-side apply, with jobs before and after.
//!
//! A plan (`jobwright.yaml`) is read with the place of everything in it, so that what is wrong is told where it stands.
//! It becomes a registry of the [engine](jobwright_engine): charts that helm deploys, manifests that the server applies,
//! jobs. What was deployed is written into a record in the cluster, which decides what the next deploy has to do, and
//! lets it go on where an interrupted one has stopped.

mod build;
mod component;
mod deploy;
mod patience;
pub mod plan;
pub mod preflight;
mod record;

pub use build::{second_id, violations};
use component::HelmReleases;
pub use component::{Driver, Helm, HelmError};
pub use deploy::{DeployError, Deployment};
pub use plan::{Finding, Findings, Period, PlanFile, Renewal, plan_schema};
pub use record::{Deployed, Deploying, HelmProcess, ObjectKey, Record, Records};

pub use jobwright_jobs::backfill::Environment;
pub use jobwright_jobs::init_cert::Dialling;

use jobwright_engine::{Failure, Refusal};

/// A failure of the cluster, in its own words.
fn failure(doing: impl Into<String>, error: kube::Error) -> Failure {
    Failure::new(doing).because(Refusal::from(error))
}
