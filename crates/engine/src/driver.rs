//! The driver: carries out what the machine says, and comes back with what it saw. It takes no decisions.

mod follow;
pub(crate) mod log;
pub(crate) mod pods;
pub(crate) mod tasks;
pub(crate) mod view;

use crate::clock::Clock;
use crate::error::{Answer, Error, Refusal, classify};
use crate::event::{Event, Events};
use crate::job::Needed;
use crate::ledger::store::{Book, Written};
use crate::ledger::{Active, Ledger, later};
use crate::machine::{self, Observed, Spec, Step, Verdict};
use async_trait::async_trait;
use jiff::Timestamp;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a cluster that does not answer is asked again.
const PATIENCE: Duration = Duration::from_mins(5);

/// How the attempts of a job are made and seen.
#[async_trait]
pub(crate) trait Attempts: Send {
    /// What is seen of the attempt that is going, and of others.
    async fn look(&mut self, active: Option<&Active>, observed: &mut Observed) -> Result<(), Error>;

    /// Whether there is anything to do.
    async fn ask(&mut self) -> Result<Needed, String>;

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
    clock: &Clock,
    events: &Events,
    cancellation: &CancellationToken,
) -> Result<Verdict, Error> {
    let mut needed = None;
    let mut outage = Outage::default();
    let mut teller = Teller { job: &spec.identity.job, events, trouble: None, waiting: None };
    loop {
        let mut observed =
            Observed { needed: needed.clone(), is_cancelled: cancellation.is_cancelled(), ..Observed::default() };
        attempts.look(book.ledger().active(), &mut observed).await?;
        teller.tell_trouble(&observed);
        let step = machine::step(spec, book.ledger(), &observed, clock.now());
        match step {
            Step::Done(verdict) => return Ok(verdict),
            Step::Ask => match attempts.ask().await {
                Ok(answer) => needed = Some(answer),
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
                        Answer::NotFound | Answer::Conflict | Answer::AlreadyExists => {
                            attempts.doubt();
                            outage.wait(clock, None, &act, error).await?;
                        }
                        Answer::TryAgain(after) => {
                            attempts.doubt();
                            outage.wait(clock, after, &act, error).await?;
                        }
                        Answer::Refused if act == Step::Create => {
                            attempts.refuse(format!("the cluster refused its Job: {}", Refusal(error)));
                        }
                        Answer::Refused => return Err(Error::cluster(describe(&act), error)),
                    },
                }
            }
        }
    }
}

/// A cluster that does not answer as it should.
#[derive(Default)]
struct Outage {
    since: Option<Timestamp>,
    times: u32,
}

impl Outage {
    /// Waits before something is tried again, or gives up.
    async fn wait(
        &mut self,
        clock: &Clock,
        after: Option<Duration>,
        act: &Step,
        error: kube::Error,
    ) -> Result<(), Error> {
        let since = *self.since.get_or_insert(clock.now());
        if later(since, PATIENCE) <= clock.now() {
            return Err(Error::cluster(describe(act), error));
        }
        let backoff = Duration::from_millis(100).saturating_mul(1 << self.times.min(7));
        self.times += 1;
        tokio::time::sleep(after.unwrap_or(backoff)).await;
        Ok(())
    }
}

fn describe(step: &Step) -> String {
    match step {
        Step::Create => "create its Job".to_owned(),
        Step::Release { job, .. } => format!("let Job `{job}` start"),
        Step::Delete { job, .. } => format!("delete Job `{job}`"),
        Step::Expire { job, .. } => format!("let Job `{job}` expire"),
        Step::Inspect => "read the events of its Job".to_owned(),
        Step::ReadLog => "read its log".to_owned(),
        Step::Ask | Step::Record(_) | Step::Wait(_) | Step::Done(_) => "go on".to_owned(),
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
