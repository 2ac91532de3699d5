//! The jobs of a certificate: one before and one after the deploy, unless its phase is given.

use super::place;
use crate::plan;
use jobwright_engine::Registry;
use jobwright_jobs::init_cert::{Dialling, Stage};
use jobwright_jobs::{InitCert, Place};

/// The id of the job after the deploy.
pub fn second_id(id: &str) -> String {
    format!("{id}-inject")
}

/// A certificate, and what its jobs need.
pub(super) struct Certificates<'a> {
    pub(super) certificate: &'a plan::InitCert,
    pub(super) namespace: &'a str,
    pub(super) dialling: &'a Dialling,
    pub(super) holder: &'a str,
}

impl Certificates<'_> {
    /// Adds the jobs of the certificate.
    pub(super) fn add(&self, registry: &mut Registry, job: &plan::Job, phase: Option<plan::Phase>) {
        if let Some(phase) = phase {
            return self.add_stage(registry, place(job, phase), Stage::All);
        }
        self.add_stage(registry, place(job, plan::Phase::Pre), Stage::Secret);
        let after = Place { id: second_id(&job.id), after: Vec::new(), ..place(job, plan::Phase::Post) };
        self.add_stage(registry, after, Stage::Inject);
    }

    fn add_stage(&self, registry: &mut Registry, place: Place, stage: Stage) {
        let dialling = if self.certificate.handshake {
            self.dialling.clone()
        } else {
            Dialling::Not("the plan has `handshake: false`".to_owned())
        };
        let options = self.certificate.options(self.namespace, stage);
        registry.job(InitCert { place, options, dialling, holder: self.holder.to_owned() });
    }
}
