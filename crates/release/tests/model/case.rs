//! A case: deploys of one release, one after the other, and what happens between them.

use crate::plan::{COMPONENTS, Component, JOBS, Job, Kind, Object, Plan};
use jobwright_drydock::When;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) plan: Plan,
    pub(crate) steps: Vec<Step>,
}

/// What comes next, in terms of what came before, so that a case still makes sense when a step is left out.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub(crate) struct Step {
    pub(crate) edits: Vec<Edit>,
    /// Goes back to the plan and version of an earlier deploy, before the edits.
    pub(crate) back: Option<usize>,
    pub(crate) version: Move,
    pub(crate) options: Options,
    pub(crate) switches: Vec<Switch>,
    pub(crate) kill: Option<Kill>,
    /// Components and jobs one at a time, or four.
    pub(crate) is_parallel: bool,
    /// What another client does before the deploy.
    pub(crate) acts: Vec<Act>,
    /// Whether two hours pass before the deploy, or ten seconds.
    pub(crate) is_late: bool,
    /// After a deploy that was to be killed, the same is deployed again.
    pub(crate) repeats: bool,
    /// After a deploy that was to be killed, another client deletes its Jobs.
    pub(crate) deletes_jobs: bool,
}

/// A change of a plan. Objects, jobs, and the components that they belong to, are counted round those of the plan.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    Add(usize, Component),
    Remove(usize),
    Base(usize, u8),
    Put(usize, Object),
    Drop(usize),
    Move(usize, usize),
    /// Removes the objects that cannot be deployed.
    Mend,
    Schedule(usize, Job),
    Unschedule(usize),
    Content(usize, usize),
    PruneRemoved(bool),
}

/// The version, compared with the deploy before.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Move {
    Same,
    Up,
    TwoUp,
    Down,
    None,
}

/// How a deploy is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of `jobwright deploy`")]
pub(crate) struct Options {
    pub(crate) force: bool,
    pub(crate) redeploy: bool,
    pub(crate) skip: BTreeSet<usize>,
    pub(crate) only: Option<BTreeSet<usize>>,
    pub(crate) components: Option<BTreeSet<usize>>,
    pub(crate) allow_older: bool,
    pub(crate) allow_skip_version: bool,
}

/// How the containers of a job end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    Well,
    /// The first attempt fails.
    Once,
    Badly,
}

/// The process that deploys is killed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kill {
    /// At which of its API calls, in thousandths of how many are expected.
    pub(crate) at: usize,
    pub(crate) when: When,
}

/// What another client does. Objects are counted round the existing ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    DeleteObject(usize),
    ChangeObject(usize),
    /// Gives an object to a component that Jobwright does not know.
    TakeObject(usize),
    /// Deletes all Jobs of the release.
    DeleteJobs,
}

/// A deploy, as it comes of the steps.
#[derive(Clone, Debug)]
pub(crate) struct Deploy {
    pub(crate) plan: Plan,
    pub(crate) version: Option<u8>,
    pub(crate) options: Options,
    pub(crate) switches: Vec<Switch>,
    pub(crate) kill: Option<Kill>,
    pub(crate) parallel: usize,
    pub(crate) acts: Vec<Act>,
    pub(crate) is_late: bool,
}

impl Case {
    pub(crate) fn deploys(&self) -> Vec<Deploy> {
        let mut deploys: Vec<Deploy> = Vec::new();
        let (mut plan, mut current) = (self.plan.clone(), 1_u8);
        for step in &self.steps {
            let Step { switches, kill, mut acts, is_late, .. } = step.clone();
            if step.deletes_jobs && deploys.last().is_some_and(|last| last.kill.is_some()) {
                acts.insert(0, Act::DeleteJobs);
            }
            if let Some(killed) = deploys.last().filter(|last| step.repeats && last.kill.is_some()) {
                deploys.push(Deploy { switches, kill, acts, is_late, ..killed.clone() });
                continue;
            }
            if let Some(earlier) = step.back.and_then(|back| deploys.get(back)) {
                plan = earlier.plan.clone();
                current = earlier.version.unwrap_or(current);
            }
            for edit in &step.edits {
                edit.apply(&mut plan);
            }
            current = match step.version {
                Move::Same | Move::None => current,
                Move::Up => current + 1,
                Move::TwoUp => current + 2,
                Move::Down => current.saturating_sub(1),
            };
            // What is killed or aborted has to have one order.
            let is_parallel = step.is_parallel && kill.is_none() && !plan.aborts();
            deploys.push(Deploy {
                plan: plan.clone(),
                version: (!matches!(step.version, Move::None)).then_some(current),
                options: step.options.clone(),
                switches,
                kill,
                parallel: if is_parallel { 4 } else { 1 },
                acts,
                is_late,
            });
        }
        deploys
    }
}

impl Edit {
    fn apply(&self, plan: &mut Plan) {
        match self {
            Self::Add(index, component) => drop(plan.components.insert(*index, component.clone())),
            // A plan has a component.
            Self::Remove(index) if plan.components.len() > 1 => drop(plan.components.remove(index)),
            Self::Remove(_) => {}
            Self::Base(index, value) => {
                if let Some(component) = plan.components.get_mut(index) {
                    component.base = *value;
                }
            }
            Self::Put(index, object) => {
                let component = plan.nth_component(object.component);
                plan.objects.insert(*index, Object { component, ..object.clone() });
            }
            Self::Drop(number) => {
                if let Some(index) = nth(&plan.objects, *number) {
                    plan.objects.remove(&index);
                }
            }
            Self::Move(number, component) => {
                let component = plan.nth_component(*component);
                if let Some(object) = nth(&plan.objects, *number).and_then(|index| plan.objects.get_mut(&index)) {
                    object.component = component;
                }
            }
            Self::Mend => plan.objects.retain(|_, object| !matches!(object.kind, Kind::Refused | Kind::Stuck)),
            Self::Schedule(index, job) => {
                let component = job.component.map(|component| plan.nth_component(component));
                plan.jobs.insert(*index, Job { component, ..job.clone() });
            }
            Self::Unschedule(index) => drop(plan.jobs.remove(index)),
            Self::Content(number, content) => {
                if let Some(job) = nth(&plan.jobs, *number).and_then(|index| plan.jobs.get_mut(&index)) {
                    job.content = *content;
                }
            }
            Self::PruneRemoved(prunes) => plan.prunes_removed = *prunes,
        }
    }
}

/// The key of an entry, counted round all.
fn nth<T>(entries: &BTreeMap<usize, T>, number: usize) -> Option<usize> {
    entries.keys().copied().cycle().nth(number)
}

impl fmt::Display for Deploy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan, version, options, switches, kill, parallel, acts, is_late } = self;
        let pause = if *is_late { "two hours later" } else { "ten seconds later" };
        writeln!(formatter, "{pause} {acts:?}")?;
        let version = version.map_or("no version".to_owned(), |version| format!("1.{version}.0"));
        writeln!(formatter, "deploy {version}, {parallel} at a time, {options:?}")?;
        if let Some(kill) = kill {
            writeln!(formatter, "  {kill:?}")?;
        }
        writeln!(formatter, "  {} removed components", if plan.prunes_removed { "prune" } else { "report" })?;
        for (index, component) in &plan.components {
            let objects: Vec<String> =
                plan.declares(*index).iter().map(|object| format!("{} ({})", object.key, object.mark)).collect();
            let after: Vec<&str> = plan.components_before(*index).iter().map(|other| COMPONENTS[*other]).collect();
            let drift = if component.reports_drift { ", reports drift" } else { "" };
            writeln!(formatter, "  component {} after {after:?}{drift}: {}", COMPONENTS[*index], objects.join(", "))?;
        }
        for (index, job) in plan.jobs() {
            let Job { component, phase, on, run, on_failure, repeats_unknown, retries, content, .. } = job;
            let component = component.map_or("global", |component| COMPONENTS[component]);
            let after: Vec<&str> = plan.jobs_before(index, job).iter().map(|other| JOBS[*other]).collect();
            let ends = switches.get(index).map(|switch| format!(", ends {switch:?}")).unwrap_or_default();
            let unknown = if *repeats_unknown { ", repeats unknown" } else { "" };
            writeln!(
                formatter,
                "  job {} content {content}: {component} {phase:?} on {on:?}, {run:?}, {on_failure:?}, {retries} retries, after {after:?}{unknown}{ends}",
                JOBS[index]
            )?;
        }
        Ok(())
    }
}
