//! From a plan to what the engine deploys. Every component and every job of the plan becomes one of the registry.

mod init_cert;

pub use init_cert::second_id;

use crate::component::{
    ChartComponent, Common, Declared, Helm, HelmReleases, Kinds, ManifestsComponent, RemovedComponent,
    removed_components,
};
use crate::plan::{self, PlanFile, Source, Work};
use crate::record::{Record, Records};
use init_cert::Certificates;
use jobwright_engine::{
    Borrowed, Occasion, Past, Phase, PodJob, Registry, Retires, RunPolicy, Scope, Settings, Violation, When,
};
use jobwright_jobs::backfill::{BackfillJob, Environment};
use jobwright_jobs::init_cert::Dialling;
use jobwright_jobs::{Adopt, Command, GrowVolume, ObjectReference, Place, Workload};
use serde_json::Value;

/// What a plan does not say.
pub(crate) struct Options {
    /// What was deployed before.
    pub records: Records,
    /// The Helm releases of the namespace.
    pub releases: HelmReleases,
    /// The helm that deploys charts; without one, charts cannot be deployed.
    pub helm: Option<Helm>,
    /// This machine.
    pub host: String,
    /// Components are deployed even if nothing has changed.
    pub redeploy: bool,
    /// Pending Helm releases are taken over.
    pub unlock: bool,
    /// The environment variables of object storage.
    pub environment: Environment,
    /// How servers are asked which certificate they present.
    pub dialling: Dialling,
    /// The process that deploys.
    pub holder: String,
}

/// What the engine deploys. `record` is what was deployed before: what the plan no longer has comes last.
pub(crate) fn build(file: &PlanFile, record: &Record, options: &Options) -> Registry {
    let mut registry = Registry::new();
    let builder = Builder { file, options, kinds: Kinds::default(), declared: declared(file) };
    for component in &file.plan.components {
        builder.add_component(&mut registry, component);
    }
    for removed in removed_components(&file.plan, record) {
        registry.component(RemovedComponent {
            removed,
            others: file.plan.components.iter().map(|component| component.name.clone()).collect(),
            policy: file.plan.on_removed_component,
            records: options.records.clone(),
            releases: options.releases.clone(),
            kinds: builder.kinds.clone(),
            declared: builder.declared.clone(),
        });
    }
    for job in &file.plan.jobs {
        add_job(&mut registry, file, job, options);
    }
    registry
}

/// What the components declare.
fn declared(file: &PlanFile) -> Declared {
    let manifests = file.plan.components.iter().filter_map(|component| match &component.source {
        Source::Manifests(manifests) => Some((component.name.clone(), file.resolve(&manifests.path))),
        Source::Chart { .. } => None,
    });
    let is_chart = |component: &plan::Component| matches!(component.source, Source::Chart { .. });
    let defines_more = !file.plan.jobs.is_empty() || file.plan.components.iter().any(is_chart);
    Declared::new(manifests, defines_more)
}

/// What components have in common.
struct Builder<'a> {
    file: &'a PlanFile,
    options: &'a Options,
    kinds: Kinds,
    declared: Declared,
}

impl Builder<'_> {
    fn add_component(&self, registry: &mut Registry, component: &plan::Component) {
        let Self { file, options, kinds, declared } = self;
        let common = Common {
            name: component.name.clone(),
            depends_on: component.depends_on.clone(),
            version: file.plan.release.version.clone(),
            records: options.records.clone(),
            redeploy: options.redeploy,
        };
        match &component.source {
            Source::Manifests(manifests) => {
                registry.component(ManifestsComponent {
                    common,
                    path: file.resolve(&manifests.path),
                    options: manifests.clone(),
                    kinds: kinds.clone(),
                    declared: declared.clone(),
                });
            }
            Source::Chart { chart, values, set, helm } => {
                registry.component(ChartComponent {
                    common,
                    release: helm.release.clone().unwrap_or_else(|| component.name.clone()),
                    chart: chart.resolve(|path| file.resolve(path)),
                    values: values.iter().map(|path| file.resolve(path)).collect(),
                    set: set.clone(),
                    options: helm.clone(),
                    helm: options.helm.clone(),
                    releases: options.releases.clone(),
                    host: options.host.clone(),
                    unlock: options.unlock,
                    unlocked: std::sync::Mutex::default(),
                });
            }
        }
    }
}

fn add_job(registry: &mut Registry, file: &PlanFile, job: &plan::Job, options: &Options) {
    match &job.work {
        Work::Pod { phase, template, policies } => {
            registry.pod(pod_job(job, *phase, policies, template.clone(), None));
        }
        Work::PodFrom { phase, from, policies } => {
            let borrowed = Borrowed {
                deployment: from.deployment.clone(),
                container: from.container.clone(),
                image: from.image.clone(),
                command: from.command.clone(),
                args: from.args.clone(),
            };
            registry.pod(pod_job(job, *phase, policies, Value::Null, Some(borrowed)));
        }
        Work::InitCert { phase, certificate } => {
            let namespace = &file.plan.release.namespace;
            Certificates { certificate, namespace, dialling: &options.dialling, holder: &options.holder }
                .add(registry, job, *phase);
        }
        Work::Backfill { phase, backfill } => {
            let task = backfill.task(|path| file.resolve(path), options.environment.clone());
            registry.job(BackfillJob { place: place(job, *phase), task });
        }
        Work::Adopt { phase, adopt } => {
            registry.job(Adopt {
                place: place(job, *phase),
                objects: adopt.objects.iter().map(object).collect(),
                release: adopt.release.clone(),
                namespace: adopt.namespace.clone(),
                force: adopt.force,
            });
        }
        Work::GrowVolume { phase, grow } => {
            registry.job(GrowVolume {
                place: place(job, *phase),
                claim: grow.claim.clone(),
                to: grow.to.clone(),
                detach: grow.detach.as_ref().map(workload),
                patience: grow.patience.map_or(GrowVolume::PATIENCE, plan::Period::duration),
            });
        }
        Work::Command { phase, command } => {
            let here = file.resolve(std::path::Path::new(""));
            let here = if here.as_os_str().is_empty() { ".".into() } else { here };
            registry.job(Command {
                place: place(job, *phase),
                program: command.program.clone(),
                arguments: command.args.clone(),
                environment: command.env.clone(),
                directory: Some(command.directory.as_ref().map_or(here, |directory| file.resolve(directory))),
            });
        }
    }
}

fn when(job: &plan::Job, phase: plan::Phase) -> When {
    let only = match job.on {
        plan::Occasions::Install => Some(Occasion::Install),
        plan::Occasions::Upgrade => Some(Occasion::Upgrade),
        plan::Occasions::Both => None,
    };
    let phase = match phase {
        plan::Phase::Pre => Phase::Pre,
        plan::Phase::Post => Phase::Post,
    };
    When { scope: job.component.clone().map_or(Scope::Global, Scope::Component), phase, only }
}

fn retires(job: &plan::Job) -> Retires {
    match &job.retires {
        Some(plan::Retires::At(version)) => Retires::At(version.clone()),
        Some(plan::Retires::Never(why)) => Retires::never(why),
        None => Retires::never("the plan does not say when it retires"),
    }
}

fn place(job: &plan::Job, phase: plan::Phase) -> Place {
    Place {
        id: job.id.clone(),
        when: when(job, phase),
        retires: retires(job),
        after: job.after.clone(),
        run: job.run.unwrap_or(RunPolicy::Always),
        timeout: job.timeout,
        retries: job.retries,
        on_failure: job.on_failure,
    }
}

fn pod_job(
    job: &plan::Job,
    phase: plan::Phase,
    policies: &plan::PodPolicies,
    template: Value,
    borrowed: Option<Borrowed>,
) -> PodJob {
    let default = if job.component.is_some() { RunPolicy::OncePerFingerprint } else { RunPolicy::Always };
    PodJob {
        borrowed,
        after: job.after.clone(),
        run: job.run.unwrap_or(default),
        skip_if: policies.skip_if.clone(),
        on_failure: job.on_failure,
        on_supersede: policies.on_supersede,
        on_unknown: policies.on_unknown,
        on_cancel: policies.on_cancel,
        retries: job.retries,
        timeout: job.timeout,
        keep: policies.keep,
        ..PodJob::new(&job.id, when(job, phase), retires(job), template)
    }
}

fn object(object: &plan::Object) -> ObjectReference {
    ObjectReference {
        api_version: object.api_version.clone(),
        kind: object.kind.clone(),
        name: object.name.clone(),
        namespace: object.namespace.clone(),
    }
}

fn workload(workload: &plan::Workload) -> Workload {
    let kind = match workload.kind {
        plan::WorkloadKind::Deployment => "Deployment",
        plan::WorkloadKind::StatefulSet => "StatefulSet",
    };
    Workload { kind: kind.to_owned(), name: workload.name.clone() }
}

/// What a deploy of a plan is recognised by, with its files and how it was asked for.
pub(crate) fn fingerprint(file: &PlanFile, more: &[&str]) -> String {
    let said = file.source.to_string();
    let parts: Vec<&str> =
        [said.as_str(), &file.plan.release.namespace].into_iter().chain(more.iter().copied()).collect();
    crate::component::files::hash_of(&parts)
}

/// The rules that a plan breaks, by itself and against what is deployed.
pub fn violations(file: &PlanFile, past: &Past, settings: &Settings) -> Vec<Violation> {
    let retirements: Vec<(String, Retires)> = file.plan.jobs.iter().map(|job| (job.id.clone(), retires(job))).collect();
    let retirements = retirements.iter().map(|(id, retires)| (id.as_str(), retires));
    jobwright_engine::violations(retirements, file.plan.release.version.as_ref(), past, settings)
}
