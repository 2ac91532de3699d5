//! From how a plan is written to what it means. Each form is taken apart whole: a field that nothing reads does not
//! compile, and what contradicts itself is an error, whatever the schema has let through.

use super::form;
use super::model::{Adopt, Chart, Component, Job, Occasions, Plan, PodPolicies, Retires, Source, Work};
use jobwright_engine::{Condition, Keep};

/// What a plan means.
pub(super) fn plan(form: form::Plan) -> Result<Plan, String> {
    let form::Plan { _api_version, _kind, release, parallel, on_removed_component, components, jobs } = form;
    let components: Vec<Component> = components.into_iter().map(component).collect::<Result<_, _>>()?;
    let jobs = jobs.into_iter().map(|form| job(form, &components)).collect::<Result<_, _>>()?;
    Ok(Plan { release, parallel, on_removed_component, components, jobs })
}

fn component(form: form::Component) -> Result<Component, String> {
    let form::Component { name, depends_on, chart, values, set, helm, manifests } = form;
    let source = match (chart, values, set, helm, manifests) {
        (Some(chart), values, set, helm, None) => Source::Chart {
            chart: self::chart(chart)?,
            values: values.unwrap_or_default(),
            set: set.unwrap_or_default(),
            helm: helm.unwrap_or_default(),
        },
        (None, None, None, None, Some(manifests)) => Source::Manifests(manifests),
        _ => return Err(format!("component `{name}` needs a chart, perhaps with values, or manifests")),
    };
    Ok(Component { name, depends_on, source })
}

fn chart(form: form::Chart) -> Result<Chart, String> {
    let form::Chart { path, reference, version, repo: repository } = form;
    match (path, reference, version, repository) {
        (Some(path), None, None, None) => Ok(Chart::Path(path)),
        (None, Some(reference), version, repository) => Ok(Chart::Reference { reference, version, repository }),
        _ => Err("a chart needs a `path`, or a `ref` with perhaps a `version` and a `repo`".to_owned()),
    }
}

fn job(form: form::Job, components: &[Component]) -> Result<Job, String> {
    let form::Job {
        id,
        component,
        phase,
        on,
        run,
        after,
        skip_if,
        on_failure,
        on_supersede,
        on_unknown,
        on_cancel,
        retires,
        retries,
        timeout,
        keep,
        pod,
        pod_from,
        adopt,
        grow_volume,
        backfill,
        command,
        init_cert,
    } = form;
    let policies = Policies { skip_if, on_supersede, on_unknown, on_cancel, keep };
    let needs_phase = || phase.ok_or_else(|| format!("job `{id}` needs a `phase`"));
    let work = match (pod, pod_from, init_cert, backfill, adopt, grow_volume, command) {
        (Some(pod), None, None, None, None, None, None) => {
            let form::Pod { template: form::Template(template) } = pod;
            Work::Pod { phase: needs_phase()?, template, policies: policies.of_pod() }
        }
        (None, Some(from), None, None, None, None, None) => {
            Work::PodFrom { phase: needs_phase()?, from, policies: policies.of_pod() }
        }
        (None, None, Some(certificate), None, None, None, None) => {
            policies.refuse(&id)?;
            Work::InitCert { phase, certificate: Box::new(certificate) }
        }
        (None, None, None, Some(backfill), None, None, None) => {
            policies.refuse(&id)?;
            Work::Backfill { phase: needs_phase()?, backfill: Box::new(backfill) }
        }
        (None, None, None, None, Some(form), None, None) => {
            policies.refuse(&id)?;
            let owner = components.iter().find(|one| Some(&one.name) == component.as_ref());
            let adopt = self::adopt(form, owner).ok_or_else(|| format!("`adopt` of job `{id}` needs a `release`"))?;
            Work::Adopt { phase: needs_phase()?, adopt }
        }
        (None, None, None, None, None, Some(grow), None) => {
            policies.refuse(&id)?;
            Work::GrowVolume { phase: needs_phase()?, grow }
        }
        (None, None, None, None, None, None, Some(command)) => {
            policies.refuse(&id)?;
            Work::Command { phase: needs_phase()?, command }
        }
        _ => return Err(format!("job `{id}` needs exactly one of `{}`", form::KINDS.join("`, `"))),
    };
    let retires = retires.map(|form| self::retires(form, &id)).transpose()?;
    let form::Retries { limit, backoff } = retries;
    Ok(Job {
        on: occasions(on.as_deref(), &id)?,
        component,
        run,
        after,
        on_failure: on_failure.unwrap_or_default(),
        retires,
        retries: jobwright_engine::Retries { limit, backoff: backoff.duration() },
        timeout: timeout.duration(),
        work,
        id,
    })
}

fn occasions(on: Option<&[form::Occasion]>, id: &str) -> Result<Occasions, String> {
    let has = |occasion| on.is_none_or(|on| on.contains(&occasion));
    match (has(form::Occasion::Install), has(form::Occasion::Upgrade)) {
        (true, true) => Ok(Occasions::Both),
        (true, false) => Ok(Occasions::Install),
        (false, true) => Ok(Occasions::Upgrade),
        (false, false) => Err(format!("`on` of job `{id}` needs `install`, `upgrade` or both")),
    }
}

fn retires(form: form::Retires, id: &str) -> Result<Retires, String> {
    match form {
        form::Retires { at: Some(version), never: None } => Ok(Retires::At(version)),
        form::Retires { at: None, never: Some(why) } => Ok(Retires::Never(why)),
        _ => Err(format!("`retires` of job `{id}` needs exactly one of `at` and `never`")),
    }
}

/// None if no Helm release is known that adopts.
fn adopt(form: form::Adopt, component: Option<&Component>) -> Option<Adopt> {
    let form::Adopt { release, namespace, objects, force } = form;
    let release = release.or_else(|| component.and_then(Component::helm_release).map(str::to_owned))?;
    Some(Adopt { release, namespace, objects, force })
}

/// What only pods have, as it is written.
struct Policies {
    skip_if: Option<Vec<form::SkipIf>>,
    on_supersede: Option<jobwright_engine::OnSupersede>,
    on_unknown: Option<jobwright_engine::OnUnknown>,
    on_cancel: Option<jobwright_engine::OnCancel>,
    keep: Option<form::Keep>,
}

impl Policies {
    fn of_pod(self) -> PodPolicies {
        let default = Keep::default();
        let keep = self.keep.map_or(default, |form| {
            let form::Keep { finished, runs, log_bytes } = form;
            Keep {
                finished: finished.map_or(default.finished, super::period::Period::duration),
                runs: runs.map_or(default.runs, usize::from),
                log_bytes: log_bytes.map_or(default.log_bytes, |bytes| bytes as usize),
            }
        });
        PodPolicies {
            skip_if: self.skip_if.unwrap_or_default().into_iter().map(condition).collect(),
            on_supersede: self.on_supersede.unwrap_or_default(),
            on_unknown: self.on_unknown.unwrap_or_default(),
            on_cancel: self.on_cancel.unwrap_or_default(),
            keep,
        }
    }

    /// A job that is no pod has none of them.
    fn refuse(&self, id: &str) -> Result<(), String> {
        let Self { skip_if, on_supersede, on_unknown, on_cancel, keep } = self;
        let is_absent = skip_if.is_none()
            && on_supersede.is_none()
            && on_unknown.is_none()
            && on_cancel.is_none()
            && keep.is_none();
        if is_absent { Ok(()) } else { Err(format!("job `{id}` is no pod, and has what only pods have")) }
    }
}

fn condition(form: form::SkipIf) -> Condition {
    let form::SkipIf { api_version, kind, name, json_path: path, equals } = form;
    Condition { api_version, kind, name, path, equals }
}
