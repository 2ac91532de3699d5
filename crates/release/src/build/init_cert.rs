//! The jobs of a certificate: one before and one after, unless its phase is given.

use super::place;
use crate::plan;
use jobwright_engine::{Phase, Registry, When};
use jobwright_jobs::init_cert::{Dialling, Stage};
use jobwright_jobs::{InitCert, Place};

/// What the job after a deploy is called.
pub fn second_id(id: &str) -> String {
    format!("{id}-inject")
}

/// Adds the jobs of a certificate.
pub(super) fn add(
    registry: &mut Registry,
    job: &plan::Job,
    wanted: &plan::InitCert,
    namespace: &str,
    dialling: &Dialling,
    holder: &str,
) {
    let dialling = if wanted.handshake { dialling.clone() } else { Dialling::Not("the plan says so".to_owned()) };
    let mut add = |place: Place, stage: Stage| {
        let options = wanted.options(namespace, stage);
        registry.job(InitCert { place, options, dialling: dialling.clone(), holder: holder.to_owned() });
    };
    let first = place(job);
    if job.phase.is_some() {
        return add(first, Stage::All);
    }
    let when = |phase| When { phase, ..first.when.clone() };
    let (before, after) = (when(Phase::Pre), when(Phase::Post));
    add(Place { when: before, ..first.clone() }, Stage::Secret);
    add(Place { id: second_id(&job.id), when: after, after: Vec::new(), ..first }, Stage::Inject);
}
