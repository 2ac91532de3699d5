//! Jobs in the model: which are due, which run, how often, and how they end.

use super::{Due, Flow, Oracle, Went, outcome};
use crate::case::Switch;
use crate::plan::{ADOPT, Job, On, OnFailure, Phase, Policy};
use crate::state::{Active, End, History, Occasion, Result, Stage};
use jobwright_engine::JobOutcome;
use std::collections::BTreeMap;

/// Why a job need not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Satisfied {
    ByPolicy,
    /// It has succeeded with a newer version.
    ByNewer,
}

impl Oracle<'_> {
    /// Runs the jobs of a phase, in the order of `after`.
    pub(super) fn phase(&mut self, component: Option<usize>, phase: Phase, due: Due) -> Went<Flow> {
        let plan = &self.deploy.plan;
        let mut done: BTreeMap<usize, Flow> = BTreeMap::new();
        for (index, job) in plan.jobs_of(component, phase) {
            let befores = plan.jobs_before(index, job);
            let flow = if befores.iter().any(|before| done[before] == Flow::Blocked) {
                self.show_job(index, JobOutcome::Skipped);
                Flow::Blocked
            } else {
                self.job(index, job, due)?
            };
            done.insert(index, flow);
        }
        Ok(if done.values().any(|flow| *flow == Flow::Blocked) { Flow::Blocked } else { Flow::Open })
    }

    pub(super) fn skip_phase(&mut self, component: Option<usize>, phase: Phase) {
        for (index, _) in self.deploy.plan.jobs_of(component, phase) {
            self.show_job(index, JobOutcome::Skipped);
        }
    }

    fn job(&mut self, index: usize, job: &Job, due: Due) -> Went<Flow> {
        let runs_on = |occasion: Occasion| match job.on {
            On::Both => true,
            On::Install => occasion == Occasion::Install,
            On::Upgrade => occasion == Occasion::Upgrade,
        };
        // What is owed is due for what it was skipped for, as long as the plan still runs it then.
        let owed = self.owed.get(&index).copied().filter(|occasion| runs_on(*occasion));
        let now = match due {
            Due::All(occasion) => Some(occasion).filter(|occasion| runs_on(*occasion)),
            Due::OnlyOwed => None,
        };
        let Some(occasion) = owed.or(now) else {
            self.show_job(index, JobOutcome::Skipped);
            return Ok(Flow::Open);
        };
        let options = &self.deploy.options;
        let is_selected = options.only.as_ref().is_none_or(|only| only.contains(&index));
        if options.skip.contains(&index) || !is_selected {
            self.mark("skipped");
            self.owed.insert(index, occasion);
            self.show_job(index, JobOutcome::Skipped);
            return Ok(Flow::Open);
        }
        if self.is_aborted {
            self.show_job(index, JobOutcome::Skipped);
            return Ok(Flow::Open);
        }
        let outcome = self.drive(index, job)?;
        self.show_job(index, outcome);
        let has_failed = matches!(outcome, JobOutcome::Failed | JobOutcome::Unknown);
        if !has_failed && self.owed.remove(&index).is_some() {
            self.mark("paid");
        }
        if has_failed {
            self.mark(if outcome == JobOutcome::Unknown { "unknown result" } else { "job failed" });
        }
        if has_failed && job.on_failure == OnFailure::Abort {
            self.is_aborted = true;
            self.mark("aborted");
        }
        Ok(if has_failed && job.on_failure != OnFailure::Continue { Flow::Blocked } else { Flow::Open })
    }

    /// The run that is asked for by force, if it is.
    fn forced(&self) -> Option<u64> {
        self.deploy.options.force.then_some(self.number)
    }

    fn history(&mut self, index: usize) -> &mut History {
        self.state.jobs.entry(index).or_default()
    }

    /// Brings a job to where it should be.
    fn drive(&mut self, index: usize, job: &Job) -> Went<JobOutcome> {
        self.driven.insert(index);
        let forced = self.forced();
        let mut has_followed = false;
        while let Some(active) = self.history(index).active.clone() {
            let is_ours = active.content == job.content && (forced.is_none() || forced == active.forced);
            has_followed |= is_ours;
            self.mark("taken up");
            self.follow(index, is_ours.then_some(job.retries), &active)?;
        }
        if let Some(ended) = self.ended_in_this_deploy(index, job) {
            return Ok(outcome(ended));
        }
        let history = self.history(index);
        let is_asked = forced.is_some_and(|forced| !history.forced.contains(&forced));
        if !is_asked {
            if history.is_unknown(job.content) {
                if !job.repeats_unknown || index == ADOPT {
                    return Ok(JobOutcome::Unknown);
                }
            } else if let Some(satisfied) = self.is_satisfied(index, job) {
                // What it has just followed to its end was not skipped.
                let history = self.history(index);
                let ended_well = history.ends.last().is_some_and(|end| end.result == Result::Succeeded);
                let is_credited = satisfied == Satisfied::ByPolicy && has_followed && ended_well;
                return Ok(if is_credited { JobOutcome::Succeeded } else { JobOutcome::Skipped });
            }
        }
        if index == ADOPT && self.state.adopted == Some(job.content) {
            return Ok(JobOutcome::Skipped);
        }
        if self.history(index).has_succeeded_with(job.content) {
            self.mark("rerun");
        }
        self.effect()?;
        let (version, deploy) = (self.deploy.version, self.number);
        let history = self.history(index);
        history.runs += 1;
        history.forced.extend(forced);
        history.active = Some(Active {
            content: job.content,
            version,
            deploy,
            forced,
            attempt: 1,
            stage: Stage::Intended,
            is_gone: false,
        });
        while let Some(active) = self.history(index).active.clone() {
            self.follow(index, Some(job.retries), &active)?;
        }
        Ok(self.history(index).ends.last().map_or(JobOutcome::Skipped, |end| outcome(end.result)))
    }

    /// How the job ended if this very deploy has run it before it was interrupted.
    fn ended_in_this_deploy(&mut self, index: usize, job: &Job) -> Option<Result> {
        let number = self.number;
        let last = self.history(index).ends.last()?;
        let is_it = last.deploy == number && last.content == job.content;
        (is_it && !(last.result == Result::Unknown && job.repeats_unknown && index != ADOPT)).then_some(last.result)
    }

    /// Why a job need not run, if it need not.
    fn is_satisfied(&mut self, index: usize, job: &Job) -> Option<Satisfied> {
        let version = self.deploy.version;
        let history = self.history(index);
        let is_done = match job.run {
            Policy::Always => return None,
            Policy::Once => history.last_success().is_some(),
            Policy::OncePerFingerprint => history.has_succeeded_with(job.content),
            Policy::OnChange => history.last_success().is_some_and(|end| end.content == job.content),
        };
        let is_older = version.is_some() && version < history.newest_success();
        if is_done {
            self.mark("satisfied");
            Some(Satisfied::ByPolicy)
        } else if is_older {
            self.mark("newer succeeded");
            Some(Satisfied::ByNewer)
        } else {
            None
        }
    }

    /// The next step of a run. `retries` are those of the plan, if it is the run that is wanted.
    fn follow(&mut self, index: usize, retries: Option<u32>, active: &Active) -> Went<()> {
        if index == ADOPT {
            return self.follow_process(index, retries.is_some(), active);
        }
        self.effect()?;
        match active.stage {
            _ if active.is_gone => self.conclude(index, active, Some(Result::Unknown)),
            Stage::Intended | Stage::Held if retries.is_none() => self.conclude(index, active, None),
            Stage::Intended => self.advance(index, Stage::Held),
            Stage::Held => {
                *self.state.starts.entry((index, active.content)).or_default() += 1;
                let succeeds = match self.deploy.switches[index] {
                    Switch::Well => true,
                    Switch::Once => active.attempt == 2,
                    Switch::Badly => false,
                };
                self.advance(index, Stage::Started { succeeds });
            }
            Stage::Started { succeeds: true } => self.conclude(index, active, Some(Result::Succeeded)),
            Stage::Started { succeeds: false } if retries.is_some_and(|retries| active.attempt <= retries) => {
                self.mark("retried");
                self.history(index).active =
                    Some(Active { attempt: active.attempt + 1, stage: Stage::Intended, ..active.clone() });
            }
            Stage::Started { succeeds: false } => self.conclude(index, active, Some(Result::Failed)),
        }
        Ok(())
    }

    /// The same for a job in the process that deploys: where it was interrupted, it runs again from its beginning.
    fn follow_process(&mut self, index: usize, is_ours: bool, active: &Active) -> Went<()> {
        self.effect()?;
        if !is_ours {
            self.conclude(index, active, None);
            return Ok(());
        }
        let succeeds = self.state.adopted.is_none_or(|content| content == active.content);
        if succeeds && self.state.adopted.is_none() {
            self.state.adopted = Some(active.content);
            self.effect()?;
        }
        self.conclude(index, active, Some(if succeeds { Result::Succeeded } else { Result::Failed }));
        Ok(())
    }

    fn advance(&mut self, index: usize, stage: Stage) {
        if let Some(active) = &mut self.history(index).active {
            active.stage = stage;
        }
    }

    /// A run is over; without a result if it never started.
    fn conclude(&mut self, index: usize, active: &Active, result: Option<Result>) {
        let Active { content, version, deploy, .. } = *active;
        let history = self.history(index);
        history.active = None;
        history.ends.extend(result.map(|result| End { content, version, deploy, result }));
    }

    /// Runs that this deploy had no reason to look at are recorded if they have ended.
    pub(super) fn settle(&mut self) -> Went<()> {
        let has_pods = self.state.had_pods() || self.deploy.plan.jobs().iter().any(|(index, _)| *index != ADOPT);
        let idle = self.state.jobs.iter().filter(|(index, _)| !self.driven.contains(index));
        let idle: Vec<(usize, Active)> =
            idle.filter_map(|(index, history)| Some((*index, history.active.clone()?))).collect();
        for (index, active) in idle.into_iter().filter(|_| has_pods) {
            let result = match active.stage {
                _ if active.is_gone => Result::Unknown,
                Stage::Intended if index == ADOPT => Result::Failed,
                Stage::Started { succeeds } if !self.leaves_running => {
                    if succeeds {
                        Result::Succeeded
                    } else {
                        Result::Failed
                    }
                }
                _ => continue,
            };
            self.effect()?;
            self.conclude(index, &active, Some(result));
            self.mark("settled");
        }
        Ok(())
    }
}
