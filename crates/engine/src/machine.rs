//! The machine: what to do next about a job, from what is wanted, what is written down, and what is seen.
//!
//! [`step`] is a pure function. It talks to nobody and takes no time, so every policy is tested as data; a driver
//! carries the steps out and comes back with what it saw, in the command line and in an operator alike.
//!
//! The way of a run, one step at a time, and what a crash leaves behind at each point:
//!
//! | step | then | a crash before it | a crash after it |
//! |---|---|---|---|
//! | record the intent | create the Job, held | nothing has happened | the Job is created |
//! | create the Job, held | record its uid | the Job is created | it is found by its name |
//! | record its uid | let it start | as above, nothing has run | it is let start |
//! | let it start | wait | it is let start | it is waited for |
//! | read its log, record how it ended | let it expire | it is read from the Job | the Job expires |
//!
//! No container starts before the uid of its Job is recorded. So a Job that is missing without a recorded uid can be
//! made without running anything twice, and one that is missing with it is unknown: somebody took it away.

mod conclude;
mod decide;
mod model;
mod tidy;

pub use model::{
    Durability, Effort, Finish, Identity, Life, Observed, Remains, Seen, Skip, Spec, Step, Stray, Trouble, Verdict,
    Waiting,
};

use crate::job::Needed;
use crate::ledger::{Active, Ledger, Outcome, Stopping, later};
use crate::policy::{OnCancel, OnSupersede, RunPolicy};
use conclude::conclude;
pub(crate) use decide::verdict_of_record;
use decide::{Decision, decide};
use jiff::Timestamp;
use std::time::Duration;

/// How much longer than its Job's own deadline an attempt may take before it is stopped from here.
const DEADLINE_SLACK: Duration = Duration::from_mins(1);
const TOO_LONG: &str = "DeadlineExceeded: it took longer than its time limit";
const NOT_STARTED: &str = "NotStarted: the Job controller did not start its Job within its time limit";
/// How long a pod may say nothing of why it does not start before its events are looked at.
const SILENCE: Duration = Duration::from_secs(10);
/// How long a cancelled deploy waits until a run that it stops has ended.
const STOPPED_WITHIN: Duration = Duration::from_mins(1);

/// What to do next.
pub fn step(spec: &Spec, ledger: &Ledger, observed: &Observed, now: Timestamp) -> Step {
    match ledger.active() {
        Some(active) => follow(spec, ledger, active, observed, now),
        None => tidy::tidy(spec, observed, now).unwrap_or_else(|| consider(spec, ledger, observed, now)),
    }
}

/// Nothing is going on: is there anything to be done?
fn consider(spec: &Spec, ledger: &Ledger, observed: &Observed, now: Timestamp) -> Step {
    if spec.effort == Effort::Settle {
        return Step::Done(Verdict::Skipped(Skip::NothingActive));
    }
    match decide(spec, ledger, observed.is_cancelled, now) {
        Decision::Done(verdict) => Step::Done(verdict),
        Decision::Run if observed.is_cancelled => Step::Done(Verdict::Cancelled { run: None }),
        // The other policies compare with the last success only, so their ledgers may forget older inputs.
        Decision::Run if spec.run == RunPolicy::OncePerFingerprint && ledger.is_full() => {
            Step::Done(Verdict::Failed { run: None, attempts: 0, reason: spec.identity.advise_when_full() })
        }
        Decision::Run => match &observed.needed {
            None => Step::Ask,
            Some(Needed::No(reason)) => Step::Done(Verdict::Skipped(Skip::NotNeeded(reason.clone()))),
            Some(Needed::Yes) => match tidy::make_room(spec, observed, now) {
                Some(step) => step,
                None => Step::Record(Box::new(intend(spec, ledger, now))),
            },
        },
    }
}

/// The ledger with the intent to run.
fn intend(spec: &Spec, ledger: &Ledger, now: Timestamp) -> Ledger {
    let run = ledger.head.next;
    let fingerprint = spec.fingerprints.newest();
    // A Job of an earlier run with the same inputs may still be there, so the name has to be another one.
    let nonce = if ledger.has_tried(&spec.fingerprints) { format!("{}#{run}", spec.nonce) } else { spec.first_nonce() };
    let active = Active {
        run,
        job: spec.job_name(fingerprint, &nonce, 1),
        uid: None,
        attempt: 1,
        fingerprint: fingerprint.clone(),
        started_at: now,
        version: spec.version.clone(),
        revision: spec.revision.clone(),
        nonce: spec.nonce.clone(),
        not_before: None,
        stopping: None,
        left_at: None,
    };
    ledger.begin(active)
}

/// A run is going on, ours or one that is in the way.
fn follow(spec: &Spec, ledger: &Ledger, active: &Active, observed: &Observed, now: Timestamp) -> Step {
    let is_ours = spec.takes(active);
    let end =
        |outcome: Outcome, reason: &str| Step::Record(Box::new(conclude(spec, ledger, observed, now, outcome, reason)));
    match &observed.attempt {
        Seen::Absent => match (&active.stopping, &active.uid) {
            (Some(stopping), _) => end(stopping.outcome, &stopping.reason),
            (None, None) => not_started(spec, active, observed, is_ours, now, end),
            // The pod has told how it ended, even if its Job is gone.
            (None, Some(_)) => match &observed.pod_finish {
                Some(finish) => read_log_then(spec, observed, || end(finish.outcome(), &finish.reason)),
                None => end(Outcome::Unknown, "its Job was deleted before its result was recorded"),
            },
        },
        Seen::Present { uid, life } => match (&active.uid, life) {
            (_, Life::Finished(finish)) if active.uid.as_ref().is_none_or(|recorded| recorded == uid) => {
                read_log_then(spec, observed, || end(finish.outcome(), &finish.reason))
            }
            (None, _) if spec.durability == Durability::Process => {
                running(spec, ledger, active, observed, is_ours, now)
            }
            (None, Life::Held) if !is_ours || (observed.is_cancelled && spec.on_cancel == OnCancel::Stop) => {
                Step::Delete { job: active.job.clone(), uid: uid.clone() }
            }
            (_, Life::Going { since }) if observed.is_cancelled => cancelled_while_going(active, *since, is_ours, now),
            (None, Life::Going { since }) => going(spec, active, *since, now),
            (None, _) => Step::Record(Box::new(ledger.amend(|active| active.uid = Some(uid.clone())))),
            (Some(recorded), _) if recorded != uid => {
                end(Outcome::Unknown, "its Job was deleted and another one took its name")
            }
            (Some(_), Life::Going { since }) => going(spec, active, *since, now),
            (Some(_), _) if active.stopping.is_some() => Step::Delete { job: active.job.clone(), uid: uid.clone() },
            (Some(_), Life::Held) if !is_ours => stop(ledger, Outcome::Superseded, "never started"),
            (Some(_), Life::Held) if spec.effort == Effort::Settle => left(active),
            (Some(_), Life::Held) if observed.is_cancelled => cancel(spec, ledger, active, now),
            (Some(_), Life::Held) => Step::Release { job: active.job.clone(), uid: uid.clone() },
            (Some(_), _) => running(spec, ledger, active, observed, is_ours, now),
        },
    }
}

/// The intent is written down, and there is no Job.
fn not_started(
    spec: &Spec,
    active: &Active,
    observed: &Observed,
    is_ours: bool,
    now: Timestamp,
    end: impl Fn(Outcome, &str) -> Step,
) -> Step {
    if let Some(refusal) = &observed.refusal {
        return end(Outcome::Failed, refusal);
    }
    // Without the name of a Job it was a task of a process that has ended, or is about to start in this one.
    let unstarted = match (active.job.is_empty(), active.attempt) {
        (true, _) => "the process that ran it ended".to_owned(),
        (false, 1) => "it had not started".to_owned(),
        (false, attempt) => format!("attempt {attempt} had not started"),
    };
    if !is_ours {
        return end(Outcome::Superseded, &unstarted);
    }
    if spec.effort == Effort::Settle {
        return if active.job.is_empty() { end(Outcome::Failed, &unstarted) } else { left(active) };
    }
    if observed.is_cancelled {
        return end(Outcome::Cancelled, &unstarted);
    }
    match active.not_before.filter(|time| *time > now) {
        Some(time) => Step::Wait(Waiting::to_retry(time)),
        None => Step::Create,
    }
}

/// A container runs, or tries to.
fn running(spec: &Spec, ledger: &Ledger, active: &Active, observed: &Observed, is_ours: bool, now: Timestamp) -> Step {
    if spec.effort == Effort::Settle {
        return left(active);
    }
    if spec.durability == Durability::Process {
        // It lives in this process, so it is ours, and hears of a cancellation by itself.
        return Step::Wait(Waiting::until_finished(None));
    }
    if !is_ours && observed.is_cancelled {
        return leave(active, is_ours);
    }
    let deadline = deadline(spec, observed, is_ours);
    let exceeded = deadline.filter(|(deadline, _)| *deadline <= now).map(|(_, reason)| reason);
    let deadline = deadline.map(|(deadline, _)| deadline);
    if !is_ours {
        return match (spec.on_supersede, exceeded) {
            (OnSupersede::Wait, Some(exceeded)) => stop_late(ledger, observed, exceeded),
            (OnSupersede::Wait, None) => Step::Wait(Waiting::until_finished(deadline)),
            (OnSupersede::Replace, _) => stop(ledger, Outcome::Superseded, "a new run took its place"),
            (OnSupersede::Fail, _) => Step::Done(Verdict::Failed {
                run: None,
                attempts: 0,
                reason: format!(
                    "run {} with other inputs is still running: wait for it, or choose `onSupersede: Wait` or `Replace`",
                    active.run
                ),
            }),
        };
    }
    if observed.is_cancelled {
        return cancel(spec, ledger, active, now);
    }
    if let Some(exceeded) = exceeded {
        return stop_late(ledger, observed, exceeded);
    }
    let patience = observed.trouble.as_ref().map(|trouble| {
        let limit = if trouble.is_scheduling { spec.patience.with_scheduling } else { spec.patience.with_trouble };
        (trouble, later(trouble.since, limit))
    });
    if let Some((trouble, _)) = patience.filter(|(trouble, end)| trouble.is_lasting && *end <= trouble.seen.min(now)) {
        return stop(ledger, Outcome::Failed, &format!("{}: {}", trouble.reason, trouble.message));
    }
    let inspection = observed.is_silent_since.map(|since| later(since, SILENCE));
    if inspection.is_some_and(|due| due <= now) {
        return Step::Inspect;
    }
    let end = patience.map(|(_, end)| end).filter(|end| *end > now);
    Step::Wait(Waiting::until_finished(deadline.into_iter().chain(inspection).chain(end).min()))
}

/// When an attempt is stopped from here, and why.
///
/// Both the Job's own deadline and this one count from its start, however long ago the run was decided on. A Job that the
/// Job controller does not start has no deadline of its own: it gets as long to start as it may take.
fn deadline(spec: &Spec, observed: &Observed, is_ours: bool) -> Option<(Timestamp, &'static str)> {
    let (since, reason) = match &observed.attempt {
        // Another run has the deadline that its own plan gave it.
        Seen::Present { life: Life::Running { since: Some(_) }, .. } if !is_ours => return None,
        Seen::Present { life: Life::Running { since: Some(since) }, .. } => (*since, TOO_LONG),
        _ => (observed.is_unstarted_since?, NOT_STARTED),
    };
    Some((later(since, spec.deadline? + DEADLINE_SLACK), reason))
}

/// Stops an attempt that takes too long, for certain: a watch that lags may show a Job that has finished as one that runs.
fn stop_late(ledger: &Ledger, observed: &Observed, reason: &str) -> Step {
    if observed.is_confirmed { stop(ledger, Outcome::Failed, reason) } else { Step::Confirm }
}

/// The Job is being deleted: its pod may run until it is gone.
fn going(spec: &Spec, active: &Active, since: Timestamp, now: Timestamp) -> Step {
    tidy::await_removal(spec, &format!("Job `{}`", active.job), since, now, Waiting::until_gone)
}

/// The deploy is cancelled while a Job is being deleted. Where it deletes the Job itself, it waits to record the end.
fn cancelled_while_going(active: &Active, since: Timestamp, is_ours: bool, now: Timestamp) -> Step {
    let stops_it = active.stopping.as_ref().is_some_and(|stopping| stopping.outcome == Outcome::Cancelled);
    let end = later(since, STOPPED_WITHIN);
    if is_ours && stops_it && now < end {
        return Step::Wait(Waiting::until_gone(Some(end)));
    }
    leave(active, is_ours)
}

/// The deploy is cancelled while it waits for something that it cannot hurry.
fn leave(active: &Active, is_ours: bool) -> Step {
    if is_ours { left(active) } else { Step::Done(Verdict::Cancelled { run: None }) }
}

fn cancel(spec: &Spec, ledger: &Ledger, active: &Active, now: Timestamp) -> Step {
    match spec.on_cancel {
        OnCancel::Stop => stop(ledger, Outcome::Cancelled, "the deploy was cancelled"),
        OnCancel::Leave if active.left_at.is_none() => {
            Step::Record(Box::new(ledger.amend(|active| active.left_at = Some(now))))
        }
        OnCancel::Leave => left(active),
    }
}

fn left(active: &Active) -> Step {
    Step::Done(Verdict::Left { run: active.run })
}

/// Writes down that the run is stopped from here, before it is: else its missing Job would look like somebody's deed.
fn stop(ledger: &Ledger, outcome: Outcome, reason: &str) -> Step {
    let stopping = Stopping { outcome, reason: reason.to_owned() };
    Step::Record(Box::new(ledger.amend(|active| active.stopping = Some(stopping))))
}

fn read_log_then(spec: &Spec, observed: &Observed, then: impl Fn() -> Step) -> Step {
    if spec.keep.log_bytes > 0 && observed.log.is_none() { Step::ReadLog } else { then() }
}

#[cfg(test)]
mod tests;
