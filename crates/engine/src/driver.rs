//! The driver: carries out what the machine says, and comes back with what it saw. It takes no decisions.

pub(crate) mod attempt_log;
mod follow;
pub(crate) mod log;
pub(crate) mod pods;
pub(crate) mod tasks;
pub(crate) mod view;

use crate::error::{Answer, Error, Refusal, classify};
use crate::event::{Event, Events};
use crate::job::Needed;
use crate::ledger::store::{Book, Written};
use crate::ledger::{Active, Ledger};
use crate::machine::{self, Effort, Observed, Skip, Spec, Step, Verdict};
use crate::retry::{Outage, Retry};
use async_trait::async_trait;
use jiff::Timestamp;

/// How the attempts of a job are made and seen.
#[async_trait]
pub(crate) trait Attempts: Send {
    /// What is seen of the attempt that is going, and of others.
    async fn look(&mut self, active: Option<&Active>, observed: &mut Observed) -> Result<(), Error>;

    /// Whether there is anything to do; none if the deploy was cancelled before that was known.
    async fn ask(&mut self) -> Result<Option<Needed>, String>;

    /// Fails where this attempt would fail before it changes anything, for a preview.
    async fn foresee(&mut self, active: &Active) -> Result<(), String>;

    /// Carries out a step that is neither a question nor a record.
    async fn carry_out(&mut self, step: &Step, active: Option<&Active>, ledger_uid: &str) -> kube::Result<()>;

    /// The cluster will not make the attempt.
    fn refuse(&mut self, reason: String);

    /// What was seen before may be out of date.
    fn doubt(&mut self);

    /// Waits until something may have changed.
    async fn changed(&mut self);

    /// Whether the job wants the whole deploy to end.
    fn ends_deploy(&self) -> bool {
        false
    }
}

/// Drives a job until it has its verdict.
pub(crate) async fn drive(
    spec: &Spec,
    book: &mut Book,
    attempts: &mut dyn Attempts,
    retry: &Retry,
) -> Result<Verdict, Error> {
    let (clock, cancellation) = (retry.clock(), retry.cancellation());
    let mut needed = None;
    let mut outage = Outage::default();
    let mut followed = None;
    let mut teller = Teller { job: &spec.identity.job, events: retry.events(), trouble: None, waiting: None };
    loop {
        let mut observed =
            Observed { needed: needed.clone(), is_cancelled: cancellation.is_cancelled(), ..Observed::default() };
        let active = book.ledger().active();
        if let Some(active) = active.filter(|active| spec.effort == Effort::Run && spec.takes(active)) {
            followed = Some(active.run);
        }
        attempts.look(active, &mut observed).await?;
        teller.tell_trouble(&observed);
        let step = machine::step(spec, book.ledger(), &observed, clock.now());
        match step {
            Step::Done(verdict) => return Ok(credit(verdict, followed, book.ledger())),
            Step::Ask => match attempts.ask().await {
                Ok(answer) => needed = answer,
                Err(reason) => return Ok(Verdict::Failed { run: None, attempts: 0, reason }),
            },
            Step::Wait(waiting) => {
                teller.tell_waiting(waiting.what);
                tokio::select! {
                    () = attempts.changed() => {}
                    () = clock.wait_until(waiting.until) => {}
                    () = cancellation.cancelled(), if !observed.is_cancelled => {}
                }
            }
            Step::Record(next) => {
                let before = book.ledger().active().cloned();
                if book.write(*next).await? == Written::Yes {
                    teller.tell_ending(before.as_ref(), book.ledger(), clock.now());
                }
            }
            act => {
                let active = book.ledger().active().cloned();
                let uid = book.uid();
                match attempts.carry_out(&act, active.as_ref(), &uid).await {
                    Ok(()) => {
                        outage = Outage::default();
                        teller.tell_start(&act, active.as_ref());
                    }
                    Err(error) => match classify(&error) {
                        Answer::NotFound | Answer::Conflict | Answer::AlreadyExists | Answer::TryAgain(_) => {
                            attempts.doubt();
                            retry.pause(&mut outage, &describe(&act), error).await?;
                        }
                        Answer::Refused if act == Step::Create => {
                            attempts.refuse(format!("the API server refused its Job: {}", Refusal(error)));
                        }
                        Answer::Refused | Answer::LostLease => return Err(Error::cluster(describe(&act), error)),
                    },
                }
            }
        }
    }
}

/// A run that an earlier deploy started and that succeeded while this one followed it has not been skipped.
fn credit(verdict: Verdict, followed: Option<u64>, ledger: &Ledger) -> Verdict {
    let Verdict::Skipped(Skip::AlreadySucceeded { run } | Skip::Unchanged { run } | Skip::NotExpired { run, .. }) =
        verdict
    else {
        return verdict;
    };
    let ended = ledger.runs().find(|ended| ended.run == run && Some(run) == followed);
    ended.map_or(verdict, |ended| Verdict::Succeeded { run, attempts: ended.attempt })
}

fn describe(step: &Step) -> String {
    match step {
        Step::Create => "create its Job".to_owned(),
        Step::Release { job, .. } => format!("unsuspend Job `{job}`"),
        Step::Delete { job, .. } => format!("delete Job `{job}`"),
        Step::Expire { job, .. } => format!("set the TTL of Job `{job}`"),
        Step::Inspect => "read the events of its Job".to_owned(),
        Step::Confirm => "read its Job".to_owned(),
        Step::ReadLog => "read its log".to_owned(),
        Step::Ask | Step::Record(_) | Step::Wait(_) | Step::Done(_) => "continue".to_owned(),
    }
}

/// Tells what happens, each thing once.
struct Teller<'a> {
    job: &'a str,
    events: &'a Events,
    trouble: Option<String>,
    waiting: Option<&'static str>,
}

impl Teller<'_> {
    fn tell_trouble(&mut self, observed: &Observed) {
        let trouble = observed.trouble.as_ref().map(|trouble| format!("{}: {}", trouble.reason, trouble.message));
        if trouble != self.trouble {
            self.events.send(Event::Trouble { job: self.job.to_owned(), trouble: trouble.clone() });
            self.trouble = trouble;
        }
    }

    fn tell_waiting(&mut self, what: &'static str) {
        if self.waiting.replace(what) != Some(what) {
            self.events.send(Event::Waiting { job: self.job.to_owned(), what });
        }
    }

    fn tell_start(&self, act: &Step, active: Option<&Active>) {
        let starts = match act {
            Step::Release { .. } => true,
            Step::Create => active.is_some_and(|active| active.job.is_empty()),
            _ => false,
        };
        if let Some(active) = active.filter(|_| starts) {
            self.events.send(Event::AttemptStarted {
                job: self.job.to_owned(),
                run: active.run,
                attempt: active.attempt,
                name: active.job.clone(),
            });
        }
    }

    /// Tells how an attempt ended, if the ledger has just learnt that.
    fn tell_ending(&self, before: Option<&Active>, ledger: &Ledger, now: Timestamp) {
        let Some(before) = before else { return };
        let ended = ledger.runs().next().filter(|run| run.run == before.run && run.attempt == before.attempt);
        let goes_on = |active: &Active| active.run == before.run && active.attempt == before.attempt;
        let Some(ended) = ended.filter(|_| !ledger.active().is_some_and(goes_on)) else { return };
        let retry_in = ledger.active().and_then(|next| next.not_before);
        self.events.send(Event::AttemptEnded {
            job: self.job.to_owned(),
            attempt: ended.attempt,
            outcome: ended.outcome,
            reason: ended.reason.clone(),
            retry_in: retry_in.map(|time| time.duration_since(now).try_into().unwrap_or_default()),
            log: ledger.log(ended.run, ended.attempt).map(str::to_owned),
        });
    }
}
