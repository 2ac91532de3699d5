//! The model of a deploy: what it must do to the world, one effect after the other, and what it must report.
//!
//! A deploy that is killed stops after some number of effects. So what the world may be then are the states after none of
//! them, after the first, after the second, and so on; what is seen afterwards, and what the next deploy does, narrows
//! them down.

mod components;
mod jobs;

use crate::case::Deploy;
use crate::plan::{COMPONENTS, JOBS, OnFailure, Phase};
use crate::state::{Occasion, Result as End, State};
use jobwright_engine::{Action, JobOutcome};
use std::collections::{BTreeMap, BTreeSet};

/// What a deploy reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// It breaks a rule, and changes nothing.
    Refused,
    Ended {
        succeeded: bool,
        components: BTreeMap<String, Shown>,
        jobs: BTreeMap<String, Shown>,
    },
}

/// An action or an outcome, by name.
pub(crate) type Shown = String;

/// A way a deploy may go.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Prediction {
    pub(crate) state: State,
    /// None if it was stopped.
    pub(crate) report: Option<Report>,
    /// What happened on the way.
    pub(crate) marks: BTreeMap<&'static str, usize>,
}

/// The deploy was stopped.
struct Stopped;

type Went<T> = Result<T, Stopped>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Open,
    Blocked,
}

/// Which jobs of a phase are due.
#[derive(Clone, Copy)]
enum Due {
    All(Occasion),
    OnlyOwed,
}

struct Oracle<'a> {
    deploy: &'a Deploy,
    state: State,
    /// How many effects it may still have.
    budget: usize,
    /// Runs of jobs that it has no reason to look at have not ended yet.
    leaves_running: bool,
    number: u64,
    owed: BTreeMap<usize, Occasion>,
    driven: BTreeSet<usize>,
    is_aborted: bool,
    components: BTreeMap<String, Shown>,
    jobs: BTreeMap<String, Shown>,
    has_failed: bool,
    marks: BTreeMap<&'static str, usize>,
}

/// More effects than any deploy has.
const UNLIMITED: usize = 10_000;

/// All ways that a deploy may go from a state, to its end.
pub(crate) fn predict(state: &State, deploy: &Deploy) -> Vec<Prediction> {
    let mut found = vec![Oracle::run(state, deploy, UNLIMITED, false)];
    let other = Oracle::run(state, deploy, UNLIMITED, true);
    if other != found[0] {
        found.push(other);
    }
    found
}

/// All ways that the world may be after a deploy was killed.
pub(crate) fn predict_killed(state: &State, deploy: &Deploy) -> Vec<State> {
    let mut found: Vec<State> = Vec::new();
    for leaves_running in [false, true] {
        for budget in 0..UNLIMITED {
            let prediction = Oracle::run(state, deploy, budget, leaves_running);
            if !found.contains(&prediction.state) {
                found.push(prediction.state);
            }
            if prediction.report.is_some() {
                break;
            }
        }
    }
    found
}

impl<'a> Oracle<'a> {
    fn run(state: &State, deploy: &'a Deploy, budget: usize, leaves_running: bool) -> Prediction {
        let mut oracle = Oracle {
            deploy,
            state: state.clone(),
            budget,
            leaves_running,
            number: 0,
            owed: state.owed.clone(),
            driven: BTreeSet::new(),
            is_aborted: false,
            components: BTreeMap::new(),
            jobs: BTreeMap::new(),
            has_failed: false,
            marks: BTreeMap::new(),
        };
        let report = oracle.run_all().ok();
        Prediction { state: oracle.state, report, marks: oracle.marks }
    }

    /// Something is about to change in the cluster.
    fn effect(&mut self) -> Went<()> {
        self.budget = self.budget.checked_sub(1).ok_or(Stopped)?;
        Ok(())
    }

    fn mark(&mut self, what: &'static str) {
        *self.marks.entry(what).or_default() += 1;
    }

    fn run_all(&mut self) -> Went<Report> {
        if self.breaks_a_rule() {
            self.mark("refused");
            return Ok(Report::Refused);
        }
        self.begin()?;
        let decisions = self.decide();
        let occasion = if self.state.is_installed { Occasion::Upgrade } else { Occasion::Install };
        let due = Due::All(occasion);
        let mut flow = self.phase(None, Phase::Pre, due)?;
        match flow {
            Flow::Open => flow = self.deploy_components(&decisions)?,
            Flow::Blocked => {
                for index in decisions.iter().map(|(index, _)| *index) {
                    self.skip_component(index);
                }
            }
        }
        match flow {
            Flow::Open => drop(self.phase(None, Phase::Post, due)?),
            Flow::Blocked => self.skip_phase(None, Phase::Post),
        }
        self.settle()?;
        self.end()
    }

    /// Versions go up one minor version at a time; the last complete one can always be deployed again.
    fn breaks_a_rule(&self) -> bool {
        let options = &self.deploy.options;
        let Some(to) = self.deploy.version.filter(|version| self.state.version != Some(*version)) else { return false };
        let mut befores = self.state.version.into_iter().chain(self.state.attempted);
        befores.any(|from| (to < from && !options.allow_older) || (to > from + 1 && !options.allow_skip_version))
    }

    /// Records that a deploy begins, or that an interrupted one resumes.
    fn begin(&mut self) -> Went<()> {
        let Deploy { plan, version, options, .. } = self.deploy;
        // What is allowed does not change what is deployed, and only what is written counts.
        let objects: Vec<_> = plan.components.keys().map(|index| plan.declares(*index)).collect();
        let components: Vec<_> = plan
            .components
            .iter()
            .map(|(index, component)| (index, component.reports_drift, plan.components_before(*index)))
            .collect();
        let jobs: Vec<_> = plan
            .jobs()
            .into_iter()
            .map(|(index, job)| {
                let after = plan.jobs_before(index, job);
                // An in-process job has no such field.
                let repeats = index != crate::plan::ADOPT && job.repeats_unknown;
                (
                    index,
                    job.component,
                    job.phase,
                    job.on,
                    job.run,
                    job.on_failure,
                    (repeats, job.retries, after, job.content),
                )
            })
            .collect();
        let asked = (&options.components, &options.only, &options.skip, options.redeploy, options.force);
        let asked = format!("{version:?} {objects:?} {components:?} {jobs:?} {} {asked:?}", plan.prunes_removed);
        self.effect()?;
        let interrupted = self.state.interrupted.take();
        self.number = match interrupted {
            Some((number, before)) if before == asked => {
                self.mark("resumed");
                number
            }
            Some(_) => {
                self.mark("overtaken");
                self.state.deploys + 1
            }
            None => self.state.deploys + 1,
        };
        self.state.deploys = self.number.max(self.state.deploys);
        self.state.interrupted = Some((self.number, asked));
        self.state.attempted = self.state.attempted.max(*version);
        if version.is_some() && self.state.version > *version {
            self.mark("rolled back");
        }
        for (is_asked, what) in
            [(options.force, "forced"), (options.redeploy, "redeployed"), (options.components.is_some(), "selected")]
        {
            if is_asked {
                self.mark(what);
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Went<Report> {
        let succeeded = !self.has_failed && !self.is_aborted;
        self.mark(if succeeded { "succeeded" } else { "failed" });
        self.effect()?;
        self.state.interrupted = None;
        self.state.owed.clone_from(&self.owed);
        if succeeded && self.deploy.options.components.is_none() {
            self.state.is_installed = true;
            self.state.attempted = None;
            self.state.version = self.deploy.version.or(self.state.version);
        }
        let (components, jobs) = (std::mem::take(&mut self.components), std::mem::take(&mut self.jobs));
        Ok(Report::Ended { succeeded, components, jobs })
    }

    fn show_component(&mut self, index: usize, action: Action) {
        self.has_failed |= action == Action::Failed;
        self.components.insert(COMPONENTS[index].to_owned(), format!("{action:?}"));
    }

    fn show_job(&mut self, index: usize, outcome: JobOutcome) {
        let is_serious = self.deploy.plan.jobs[&index].on_failure != OnFailure::Continue;
        self.has_failed |= is_serious && matches!(outcome, JobOutcome::Failed | JobOutcome::Unknown);
        self.jobs.insert(JOBS[index].to_owned(), format!("{outcome:?}"));
    }
}

fn outcome(end: End) -> JobOutcome {
    match end {
        End::Succeeded => JobOutcome::Succeeded,
        End::Failed => JobOutcome::Failed,
        End::Unknown => JobOutcome::Unknown,
    }
}
