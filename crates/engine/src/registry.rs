//! The jobs and components of a release; what cannot work is refused before anything starts.

use crate::component::Component;
use crate::graph::{Node, find_cycle};
use crate::job::{Job, Phase, Retires, Scope, When};
use crate::names;
use crate::pod_job::PodJob;
use crate::policy::OnFailure;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The jobs and components of a release, as they were added.
#[derive(Default)]
pub struct Registry {
    components: Vec<Arc<dyn Component>>,
    jobs: Vec<Entry>,
}

/// A job, and what the runner has to know of it.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) when: When,
    pub(crate) after: Vec<String>,
    pub(crate) retires: Retires,
    pub(crate) on_failure: OnFailure,
    pub(crate) work: Work,
}

/// What a job does.
#[derive(Clone)]
pub(crate) enum Work {
    Code(Arc<dyn Job>),
    Pod(Arc<PodJob>),
}

/// Something that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A name that cannot be one.
    #[error("`{0}` cannot be a name: it takes lower-case letters, digits and dashes, up to 63")]
    BadName(String),
    /// The name of a component that is taken.
    #[error("a component cannot be called `global`: that is what belongs to none")]
    ReservedName,
    /// Two jobs of the same id.
    #[error("there are two jobs `{0}`")]
    DuplicateJob(String),
    /// Two components of the same name.
    #[error("there are two components `{0}`")]
    DuplicateComponent(String),
    /// A job of a component that is not there.
    #[error("job `{job}` belongs to component `{component}`, which is not there")]
    UnknownComponent {
        /// The job.
        job: String,
        /// What it names.
        component: String,
    },
    /// A component that comes after one that is not there.
    #[error("component `{component}` depends on `{name}`, which is not there")]
    UnknownDependency {
        /// The component.
        component: String,
        /// What it names.
        name: String,
    },
    /// A job that comes after one that is not there.
    #[error("job `{job}` comes after `{name}`, which is not there")]
    UnknownAfter {
        /// The job.
        job: String,
        /// What it names.
        name: String,
    },
    /// A job that comes after one of another phase.
    #[error("job `{job}` comes after `{name}`, which belongs to {theirs}: only jobs of {ours} can")]
    AfterElsewhere {
        /// The job.
        job: String,
        /// What it names.
        name: String,
        /// Where the job belongs.
        ours: String,
        /// Where the other belongs.
        theirs: String,
    },
    /// Jobs or components that come after themselves.
    #[error("{} wait for each other", .0.join(" → "))]
    Cycle(Vec<String>),
}

impl Registry {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a component.
    pub fn component(&mut self, component: impl Component + 'static) -> &mut Self {
        self.components.push(Arc::new(component));
        self
    }

    /// Adds a job in code.
    pub fn job(&mut self, job: impl Job + 'static) -> &mut Self {
        let entry = Entry {
            id: job.id().to_owned(),
            when: job.when(),
            after: job.after(),
            retires: job.retires(),
            on_failure: job.on_failure(),
            work: Work::Code(Arc::new(job)),
        };
        self.jobs.push(entry);
        self
    }

    /// Adds a job that is a pod.
    pub fn pod(&mut self, job: PodJob) -> &mut Self {
        let entry = Entry {
            id: job.id.clone(),
            when: job.when.clone(),
            after: job.after.clone(),
            retires: job.retires.clone(),
            on_failure: job.on_failure,
            work: Work::Pod(Arc::new(job)),
        };
        self.jobs.push(entry);
        self
    }

    /// Everything that cannot work.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut names = BTreeSet::new();
        for component in &self.components {
            let name = component.name();
            match name {
                "global" => problems.push(Problem::ReservedName),
                name if !names::is_identifier(name) => problems.push(Problem::BadName(name.to_owned())),
                name if !names.insert(name.to_owned()) => problems.push(Problem::DuplicateComponent(name.to_owned())),
                _ => {}
            }
        }
        for component in &self.components {
            for name in component.depends_on().into_iter().filter(|name| !names.contains(name)) {
                problems.push(Problem::UnknownDependency { component: component.name().to_owned(), name });
            }
        }
        let mut places: BTreeMap<&str, (&Scope, Phase)> = BTreeMap::new();
        for Entry { id, when, .. } in &self.jobs {
            if !names::is_identifier(id) {
                problems.push(Problem::BadName(id.clone()));
            }
            if places.insert(id, (&when.scope, when.phase)).is_some() {
                problems.push(Problem::DuplicateJob(id.clone()));
            }
            if let Some(component) = when.scope.component().filter(|component| !names.contains(*component)) {
                problems.push(Problem::UnknownComponent { job: id.clone(), component: component.to_owned() });
            }
        }
        for Entry { id, when, after, .. } in &self.jobs {
            for name in after {
                match places.get(name.as_str()) {
                    None => problems.push(Problem::UnknownAfter { job: id.clone(), name: name.clone() }),
                    Some((scope, phase)) if (*scope, *phase) == (&when.scope, when.phase) => {}
                    Some((scope, phase)) => problems.push(Problem::AfterElsewhere {
                        job: id.clone(),
                        name: name.clone(),
                        ours: place(&when.scope, when.phase),
                        theirs: place(scope, *phase),
                    }),
                }
            }
        }
        let jobs = self.jobs.iter().map(|job| Node { name: job.id.clone(), after: job.after.clone() });
        problems.extend(find_cycle(&jobs.collect::<Vec<_>>()).map(Problem::Cycle));
        problems.extend(find_cycle(&self.component_nodes()).map(Problem::Cycle));
        problems
    }

    /// What the jobs say of when they are to be gone.
    pub fn retirements(&self) -> impl Iterator<Item = (&str, &Retires)> {
        self.jobs.iter().map(|job| (job.id.as_str(), &job.retires))
    }

    pub(crate) fn components(&self) -> &[Arc<dyn Component>] {
        &self.components
    }

    pub(crate) fn component_nodes(&self) -> Vec<Node> {
        let node =
            |component: &Arc<dyn Component>| Node { name: component.name().to_owned(), after: component.depends_on() };
        self.components.iter().map(node).collect()
    }

    pub(crate) fn jobs(&self) -> &[Entry] {
        &self.jobs
    }

    pub(crate) fn jobs_of(&self, scope: &Scope, phase: Phase) -> Vec<&Entry> {
        self.jobs.iter().filter(|job| job.when.scope == *scope && job.when.phase == phase).collect()
    }
}

fn place(scope: &Scope, phase: Phase) -> String {
    format!("the {phase} jobs of {scope}")
}

#[cfg(test)]
mod tests;
