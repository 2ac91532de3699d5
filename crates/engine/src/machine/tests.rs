//! The machine as data: a cluster that is only a few fields, played step by step.

mod laws;
mod plays;
mod times;

use super::*;
use crate::fingerprint::{Fingerprints, Inputs};
use crate::ledger::Run;
use crate::policy::{Keep, OnUnknown, Patience, Retries, RunPolicy};
use serde_json::json;

/// What is wanted, of a job whose inputs are a text.
pub(super) fn spec(inputs: &str) -> Spec {
    Spec {
        identity: Identity {
            namespace: "shop".to_owned(),
            owner: "shop".to_owned(),
            job: "migrate".to_owned(),
            base: "shop-migrate".to_owned(),
        },
        fingerprints: Fingerprints::of(&Inputs { template: json!(inputs), ..Inputs::default() }),
        version: None,
        revision: "1".to_owned(),
        nonce: String::new(),
        run: RunPolicy::OncePerFingerprint,
        on_supersede: OnSupersede::Wait,
        on_unknown: OnUnknown::Fail,
        on_cancel: OnCancel::Leave,
        retries: Retries::default(),
        deadline: Some(Duration::from_mins(10)),
        keep: Keep::default(),
        patience: Patience::default(),
        durability: Durability::Cluster,
        effort: Effort::Run,
    }
}

/// A cluster with one job.
#[derive(Clone, Default)]
pub(super) struct Stage {
    pub(super) ledger: Ledger,
    pub(super) jobs: Vec<FakeJob>,
    pub(super) now: i64,
    pub(super) next_uid: u32,
    /// What started, by the inputs' fingerprint.
    pub(super) started: Vec<String>,
    pub(super) needed: Option<Needed>,
    pub(super) is_cancelled: bool,
    pub(super) trouble: Option<Trouble>,
    pub(super) silent_since: Option<i64>,
    pub(super) unstarted_since: Option<i64>,
    is_confirmed: bool,
    pub(super) refusal: Option<String>,
    log: Option<Result<String, String>>,
    /// What was done, in words.
    pub(super) history: Vec<String>,
}

#[derive(Clone)]
pub(super) struct FakeJob {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) life: Life,
    pub(super) fingerprint: String,
    pub(super) expires: bool,
}

impl FakeJob {
    pub(super) fn is_running(&self) -> bool {
        matches!(self.life, Life::Running { .. })
    }
}

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

impl Stage {
    pub(super) fn observed(&self) -> Observed {
        let active = self.ledger.active();
        let name = active.map(|active| active.job.as_str());
        let attempt = self
            .jobs
            .iter()
            .find(|job| Some(job.name.as_str()) == name)
            .map_or(Seen::Absent, |job| Seen::Present { uid: job.uid.clone(), life: job.life.clone() });
        let strays = self.jobs.iter().filter(|job| Some(job.name.as_str()) != name);
        let stray = |job: &FakeJob| Stray {
            job: job.name.clone(),
            uid: job.uid.clone(),
            life: job.life.clone(),
            expires: job.expires,
        };
        Observed {
            attempt,
            is_confirmed: self.is_confirmed,
            strays: strays.map(stray).collect(),
            needed: self.needed.clone(),
            is_cancelled: self.is_cancelled,
            trouble: self.trouble.clone(),
            is_silent_since: self.silent_since.map(at),
            is_unstarted_since: self.unstarted_since.map(at),
            refusal: self.refusal.clone(),
            log: self.log.clone(),
            ..Observed::default()
        }
    }

    /// One step; says whether there is more to do.
    pub(super) fn step(&mut self, spec: &Spec) -> Option<Verdict> {
        let step = step(spec, &self.ledger, &self.observed(), at(self.now));
        self.carry_out(spec, &step)
    }

    pub(super) fn carry_out(&mut self, spec: &Spec, step: &Step) -> Option<Verdict> {
        self.history.push(tell(step));
        self.is_confirmed = *step == Step::Confirm;
        match step {
            Step::Confirm => {}
            Step::Ask => self.needed = Some(Needed::Yes),
            Step::Record(next) => {
                self.ledger = (**next).clone();
                self.log = None;
                self.trouble = None;
            }
            Step::Create => {
                let active = self.ledger.active().unwrap().clone();
                self.next_uid += 1;
                if !self.jobs.iter().any(|job| job.name == active.job) {
                    self.jobs.push(FakeJob {
                        name: active.job,
                        uid: self.next_uid.to_string(),
                        life: Life::Held,
                        fingerprint: active.fingerprint.to_string(),
                        expires: false,
                    });
                }
            }
            Step::Release { uid, .. } => {
                let job = self.jobs.iter_mut().find(|job| job.uid == *uid).unwrap();
                assert_eq!(job.life, Life::Held);
                job.life = Life::Running { since: Some(at(self.now)) };
                self.started.push(job.fingerprint.clone());
            }
            Step::ReadLog => self.log = Some(Ok("done\n".to_owned())),
            Step::Inspect => self.silent_since = None,
            Step::Delete { uid, .. } => self.jobs.retain(|job| job.uid != *uid),
            Step::Expire { uid, .. } => {
                self.jobs.iter_mut().filter(|job| job.uid == *uid).for_each(|job| job.expires = true);
            }
            Step::Wait(waiting) => {
                if let Some(until) = waiting.until {
                    self.now = self.now.max(until.as_second());
                }
            }
            Step::Done(verdict) => return Some(verdict.clone()),
        }
        let _ = spec;
        None
    }

    /// Steps until there is nothing to do but wait.
    pub(super) fn play(&mut self, spec: &Spec) -> Option<Verdict> {
        for _ in 0..100 {
            let next = step(spec, &self.ledger, &self.observed(), at(self.now));
            if let Step::Wait(_) = next {
                self.history.push(tell(&next));
                return None;
            }
            if let Some(verdict) = self.carry_out(spec, &next) {
                return Some(verdict);
            }
        }
        panic!("it goes round in circles: {:?}", &self.history[self.history.len() - 10..]);
    }

    /// Lets what runs end.
    pub(super) fn finish(&mut self, succeeded: bool) {
        let now = at(self.now);
        for job in self.jobs.iter_mut().filter(|job| job.is_running()) {
            let reason = if succeeded { "" } else { "exit code 3" }.to_owned();
            let exit_code = Some(if succeeded { 0 } else { 3 });
            let Life::Running { since: started_at } = job.life else { continue };
            job.life = Life::Finished(Finish { succeeded, reason, exit_code, started_at, at: now });
        }
    }

    /// Deploys with a job that ends well.
    pub(super) fn deploy(&mut self, spec: &Spec) -> Verdict {
        self.needed = None;
        for _ in 0..20 {
            if let Some(verdict) = self.play(spec) {
                return verdict;
            }
            self.now += 10;
            self.finish(true);
        }
        panic!("no verdict: {:?}", self.history);
    }

    /// What was done since this was last asked.
    pub(super) fn done(&mut self) -> String {
        std::mem::take(&mut self.history).join(", ")
    }

    pub(super) fn last_run(&self) -> &Run {
        self.ledger.runs().next().unwrap()
    }
}

fn tell(step: &Step) -> String {
    match step {
        Step::Record(ledger) => match ledger.active() {
            None => "record the end".to_owned(),
            Some(active) if active.stopping.is_some() => "record the stop".to_owned(),
            Some(active) if active.left_at.is_some() => "record that it is left".to_owned(),
            Some(active) if active.uid.is_some() => "record the uid".to_owned(),
            Some(active) => format!("record the intent of {}.{}", active.run, active.attempt),
        },
        Step::Wait(waiting) => format!("wait for {}", waiting.what),
        Step::Done(_) => "done".to_owned(),
        Step::Release { .. } => "release".to_owned(),
        Step::Delete { .. } => "delete".to_owned(),
        Step::Expire { seconds, .. } => format!("expire after {seconds}"),
        other => format!("{other:?}").to_lowercase(),
    }
}
