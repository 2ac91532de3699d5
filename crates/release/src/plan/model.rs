//! What a plan means, in types that can hold nothing contradictory: one [`Work`] per job, one [`Source`] per component.
//! How it is written is in `form`; `read` turns one into the other.

use super::backfill::Backfill;
use super::init_cert::InitCert;
use jobwright_engine::{Condition, Keep, OnCancel, OnFailure, OnSupersede, OnUnknown, Retries, RunPolicy, Version};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

pub use super::form::{
    Command, GrowVolume, Helm, Manifests, Object, OnDrift, OnRemovedComponent, Phase, PodFrom, Release, Workload,
    WorkloadKind,
};

/// A release with its components and jobs.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is deployed.
    pub release: Release,
    /// How many components, and how many jobs of a phase, are in progress at the same time.
    pub parallel: u16,
    /// What happens to components that the plan no longer has.
    pub on_removed_component: OnRemovedComponent,
    /// The parts of the release.
    pub components: Vec<Component>,
    /// What runs before and after them.
    pub jobs: Vec<Job>,
}

/// A part of a release.
#[derive(Clone, Debug)]
pub struct Component {
    /// Its name.
    pub name: String,
    /// Components that are deployed before it.
    pub depends_on: Vec<String>,
    /// What it is deployed from.
    pub source: Source,
}

/// What a component is deployed from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A chart, by helm.
    Chart {
        /// Where the chart is.
        chart: Chart,
        /// Values files, the last one wins.
        values: Vec<PathBuf>,
        /// Values over those of the files.
        set: BTreeMap<String, Value>,
        /// How helm deploys it.
        helm: Helm,
    },
    /// Plain YAML, by server-side apply.
    Manifests(Manifests),
}

/// Where a chart is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chart {
    /// A directory or an archive.
    Path(PathBuf),
    /// In a repository or a registry.
    Reference {
        /// `oci://…`, or `repository/name`.
        reference: String,
        /// Its version, or a constraint on it; the newest if none.
        version: Option<String>,
        /// The URL of its repository.
        repository: Option<String>,
    },
}

impl Component {
    /// The Helm release of a chart; none for manifests.
    pub fn helm_release(&self) -> Option<&str> {
        match &self.source {
            Source::Chart { helm, .. } => Some(helm.release.as_deref().unwrap_or(&self.name)),
            Source::Manifests(_) => None,
        }
    }

    /// The values files of a chart.
    pub fn values(&self) -> &[PathBuf] {
        match &self.source {
            Source::Chart { values, .. } => values,
            Source::Manifests(_) => &[],
        }
    }
}

/// Work before or after something is deployed.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its id.
    pub id: String,
    /// The component it belongs to; none for the release as a whole.
    pub component: Option<String>,
    /// On which occasions it runs.
    pub on: Occasions,
    /// When it runs again; the default depends on what it does.
    pub run: Option<RunPolicy>,
    /// Jobs of the same component and phase that come before it.
    pub after: Vec<String>,
    /// What its failure means.
    pub on_failure: OnFailure,
    /// At which version it has to be removed.
    pub retires: Option<Retires>,
    /// Retries of failed attempts.
    pub retries: Retries,
    /// How long an attempt may take.
    pub timeout: Duration,
    /// What it does.
    pub work: Work,
}

/// On which occasions a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasions {
    /// When it is installed.
    Install,
    /// When it is upgraded.
    Upgrade,
    /// At both.
    Both,
}

/// At which version a job has to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retires {
    /// From this version on, a plan that still has it is refused.
    At(Version),
    /// It stays, for this reason.
    Never(String),
}

/// What a job does, with what only such jobs have.
#[derive(Clone, Debug)]
pub enum Work {
    /// Runs a pod.
    Pod {
        /// Before or after.
        phase: Phase,
        /// The pod template, as a Job has it.
        template: Value,
        /// What only pods have.
        policies: PodPolicies,
    },
    /// Runs a pod like those of a Deployment.
    PodFrom {
        /// Before or after.
        phase: Phase,
        /// The Deployment, and what differs.
        from: PodFrom,
        /// What only pods have.
        policies: PodPolicies,
    },
    /// Issues, renews and distributes the certificate of a webhook.
    InitCert {
        /// All of it then; none for the Secret before and the rest after.
        phase: Option<Phase>,
        /// The certificate.
        certificate: Box<InitCert>,
    },
    /// Captures the state of the cluster and uploads it.
    Backfill {
        /// Before or after.
        phase: Phase,
        /// What, and where to.
        backfill: Box<Backfill>,
    },
    /// Gives existing objects to a Helm release.
    Adopt {
        /// Before or after.
        phase: Phase,
        /// Which objects, and to which release.
        adopt: Adopt,
    },
    /// Makes a volume larger.
    GrowVolume {
        /// Before or after.
        phase: Phase,
        /// Which, and how large.
        grow: GrowVolume,
    },
    /// Runs a program on this machine.
    Command {
        /// Before or after.
        phase: Phase,
        /// The program.
        command: Command,
    },
}

impl Job {
    /// When it runs; none for a certificate that is two jobs.
    pub fn phase(&self) -> Option<Phase> {
        match &self.work {
            Work::InitCert { phase, .. } => *phase,
            Work::Pod { phase, .. }
            | Work::PodFrom { phase, .. }
            | Work::Backfill { phase, .. }
            | Work::Adopt { phase, .. }
            | Work::GrowVolume { phase, .. }
            | Work::Command { phase, .. } => Some(*phase),
        }
    }

    /// Whether it is two jobs: a certificate without a phase is issued before and distributed after.
    pub fn is_two_jobs(&self) -> bool {
        self.phase().is_none()
    }

    /// Makes one job of two, which does everything at once.
    pub fn make_whole(&mut self) {
        if let Work::InitCert { phase, .. } = &mut self.work {
            phase.get_or_insert(Phase::Post);
        }
    }
}

/// What only jobs that are pods have.
#[derive(Clone, Debug)]
pub struct PodPolicies {
    /// Conditions under any of which it is not needed.
    pub skip_if: Vec<Condition>,
    /// What happens when the previous run, with another fingerprint, is still going.
    pub on_supersede: OnSupersede,
    /// What happens when the result of a run is unknown.
    pub on_unknown: OnUnknown,
    /// What happens to its pod when the deploy is cancelled.
    pub on_cancel: OnCancel,
    /// What is kept of its runs.
    pub keep: Keep,
}

/// Objects that a Helm release adopts.
#[derive(Clone, Debug)]
pub struct Adopt {
    /// The Helm release.
    pub release: String,
    /// Its namespace; that of the plan's release if none.
    pub namespace: Option<String>,
    /// The objects.
    pub objects: Vec<Object>,
    /// Whether they are taken away from another release.
    pub force: bool,
}
