//! From a plan to what the engine deploys.

mod init_cert;

pub use init_cert::second_id;

use crate::component::{ChartComponent, Common, Helm, HelmReleases, ManifestsComponent, Source};
use crate::plan::{self, PlanFile};
use crate::record::Records;
use jobwright_engine::{
    Borrowed, Condition, Keep, Occasion, PodJob, Registry, Retires, Retries, RunPolicy, Scope, Settings, Version,
    Violation, When,
};
use jobwright_jobs::backfill::{BackfillJob, Environment};
use jobwright_jobs::init_cert::Dialling;
use jobwright_jobs::{Adopt, Command, GrowVolume, ObjectReference, Place, Workload};
use serde_json::Value;

/// What a plan does not say.
pub(crate) struct Options {
    /// What was deployed before.
    pub records: Records,
    /// The Helm releases that are there.
    pub releases: HelmReleases,
    /// The helm that deploys charts; none if the plan has none.
    pub helm: Option<Helm>,
    /// This machine.
    pub host: String,
    /// Components are deployed even if nothing has changed.
    pub redeploy: bool,
    /// Pending Helm releases are nobody's any more.
    pub unlock: bool,
    /// What the environment says of object storage.
    pub environment: Environment,
    /// How servers are asked what they show.
    pub dialling: Dialling,
    /// Who deploys.
    pub holder: String,
}

/// What the engine deploys.
pub(crate) fn build(file: &PlanFile, options: &Options) -> Registry {
    let mut registry = Registry::new();
    for component in &file.plan.components {
        add_component(&mut registry, file, component, options);
    }
    for job in &file.plan.jobs {
        add_job(&mut registry, file, job, options);
    }
    registry
}

fn add_component(registry: &mut Registry, file: &PlanFile, component: &plan::Component, options: &Options) {
    let common = Common {
        name: component.name.clone(),
        depends_on: component.depends_on.clone(),
        version: file.plan.release.version.clone(),
        records: options.records.clone(),
        redeploy: options.redeploy,
    };
    if let Some(manifests) = &component.manifests {
        let path = file.resolve(&manifests.path);
        registry.component(ManifestsComponent { common, path, options: manifests.clone() });
        return;
    }
    // Whoever builds a registry of a plan with charts has a helm.
    if let (Some(chart), Some(helm)) = (&component.chart, &options.helm) {
        let source = match (&chart.path, &chart.reference) {
            (Some(path), _) => Source::Path(file.resolve(path)),
            (None, reference) => Source::Reference {
                reference: reference.clone().unwrap_or_default(),
                version: chart.version.clone(),
                repository: chart.repo.clone(),
            },
        };
        registry.component(ChartComponent {
            common,
            release: helm_release(component),
            chart: source,
            values: component.values.iter().map(|path| file.resolve(path)).collect(),
            set: component.set.clone(),
            options: component.helm.clone(),
            helm: helm.clone(),
            releases: options.releases.clone(),
            host: options.host.clone(),
            unlock: options.unlock,
        });
    }
}

/// What the Helm release of a component is called.
fn helm_release(component: &plan::Component) -> String {
    component.helm.release.clone().unwrap_or_else(|| component.name.clone())
}

fn add_job(registry: &mut Registry, file: &PlanFile, job: &plan::Job, options: &Options) {
    let borrowed = job.pod_from.as_ref().map(|from| Borrowed {
        deployment: from.deployment.clone(),
        container: from.container.clone(),
        command: from.command.clone(),
        args: from.args.clone(),
    });
    if job.pod.is_some() || borrowed.is_some() {
        let template = job.pod.as_ref().map_or(Value::Null, |pod| pod.template.0.clone());
        registry.pod(PodJob { borrowed, ..pod_job(job, template) });
    } else if let Some(adopt) = &job.adopt {
        registry.job(adopt_job(file, job, adopt));
    } else if let Some(grow) = &job.grow_volume {
        // Its size was looked at when the plan was read.
        if let Ok(to) = grow.to.parse() {
            let detach = grow.detach.as_ref().map(workload);
            let patience = grow.patience.map_or(GrowVolume::PATIENCE, plan::Period::duration);
            registry.job(GrowVolume { place: place(job), claim: grow.claim.clone(), to, detach, patience });
        }
    } else if let Some(wanted) = &job.init_cert {
        let namespace = &file.plan.release.namespace;
        init_cert::add(registry, job, wanted, namespace, &options.dialling, &options.holder);
    } else if let Some(backfill) = &job.backfill {
        // Everything in it was looked at when the plan was read.
        if let Ok(task) = backfill.task(|path| file.resolve(path), options.environment.clone()) {
            registry.job(BackfillJob { place: place(job), task });
        }
    } else if let Some(command) = &job.command {
        let here = file.resolve(std::path::Path::new(""));
        let here = if here.as_os_str().is_empty() { ".".into() } else { here };
        registry.job(Command {
            place: place(job),
            program: command.program.clone(),
            arguments: command.args.clone(),
            environment: command.env.clone(),
            directory: Some(command.directory.as_ref().map_or(here, |directory| file.resolve(directory))),
        });
    }
}

fn when(job: &plan::Job) -> When {
    let only = match job.on.as_slice() {
        [plan::Occasion::Install] => Some(Occasion::Install),
        [plan::Occasion::Upgrade] => Some(Occasion::Upgrade),
        _ => None,
    };
    let phase = match job.phase {
        Some(plan::Phase::Post) => jobwright_engine::Phase::Post,
        _ => jobwright_engine::Phase::Pre,
    };
    When { scope: job.component.clone().map_or(Scope::Global, Scope::Component), phase, only }
}

fn retires(job: &plan::Job) -> Retires {
    match &job.retires {
        Some(plan::Retires { at: Some(version), .. }) => Retires::At(version.clone()),
        Some(plan::Retires { never: Some(why), .. }) => Retires::never(why),
        _ => Retires::never("nobody has said"),
    }
}

fn retries(job: &plan::Job) -> Retries {
    Retries { limit: job.retries.limit, backoff: job.retries.backoff.duration() }
}

fn place(job: &plan::Job) -> Place {
    Place {
        id: job.id.clone(),
        when: when(job),
        retires: retires(job),
        after: job.after.clone(),
        run: job.run.unwrap_or(RunPolicy::Always),
        timeout: job.timeout.duration(),
        retries: retries(job),
        on_failure: job.on_failure,
    }
}

fn pod_job(job: &plan::Job, template: Value) -> PodJob {
    let usual = Keep::default();
    let keep = Keep {
        finished: job.keep.finished.map_or(usual.finished, plan::Period::duration),
        runs: job.keep.runs.map_or(usual.runs, usize::from),
        log_bytes: job.keep.log_bytes.map_or(usual.log_bytes, |bytes| bytes as usize),
    };
    let usual = if job.component.is_some() { RunPolicy::OncePerFingerprint } else { RunPolicy::Always };
    PodJob {
        after: job.after.clone(),
        run: job.run.unwrap_or(usual),
        skip_if: job.skip_if.iter().filter_map(condition).collect(),
        on_failure: job.on_failure,
        on_supersede: job.on_supersede,
        on_unknown: job.on_unknown,
        on_cancel: job.on_cancel,
        retries: retries(job),
        timeout: job.timeout.duration(),
        keep,
        ..PodJob::new(&job.id, when(job), retires(job), template)
    }
}

fn condition(condition: &plan::SkipIf) -> Option<Condition> {
    Some(Condition {
        api_version: condition.api_version.clone(),
        kind: condition.kind.clone(),
        name: condition.name.clone(),
        // Its form was looked at when the plan was read.
        path: condition.json_path.parse().ok()?,
        equals: condition.equals.clone(),
    })
}

fn adopt_job(file: &PlanFile, job: &plan::Job, adopt: &plan::Adopt) -> Adopt {
    let component = job.component.as_ref().and_then(|name| file.plan.components.iter().find(|one| one.name == *name));
    let object = |object: &plan::Object| ObjectReference {
        api_version: object.api_version.clone(),
        kind: object.kind.clone(),
        name: object.name.clone(),
        namespace: object.namespace.clone(),
    };
    Adopt {
        place: place(job),
        objects: adopt.objects.iter().map(object).collect(),
        release: adopt.release.clone().or_else(|| component.map(helm_release)).unwrap_or_default(),
        namespace: adopt.namespace.clone(),
        force: adopt.force,
    }
}

fn workload(workload: &plan::Workload) -> Workload {
    let kind = match workload.kind {
        plan::WorkloadKind::Deployment => "Deployment",
        plan::WorkloadKind::StatefulSet => "StatefulSet",
    };
    Workload { kind: kind.to_owned(), name: workload.name.clone() }
}

/// What a deploy of a plan is recognised by, asked for in a certain way.
pub(crate) fn fingerprint(file: &PlanFile, asked: &str) -> String {
    crate::component::hash_of(&[&format!("{:?}", file.plan), asked])
}

/// The rules that a plan breaks, by itself and against what is deployed.
pub fn violations(file: &PlanFile, previous: Option<Version>, settings: &Settings) -> Vec<Violation> {
    let retirements: Vec<(String, Retires)> = file.plan.jobs.iter().map(|job| (job.id.clone(), retires(job))).collect();
    let retirements = retirements.iter().map(|(id, retires)| (id.as_str(), retires));
    jobwright_engine::violations(retirements, file.plan.release.version.as_ref(), previous.as_ref(), settings)
}
