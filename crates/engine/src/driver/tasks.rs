//! Attempts that are tasks of this process: jobs in code.

use super::Attempts;
use crate::context::{Context, Lines};
use crate::error::Error;
use crate::job::{Failure, Job, Needed};
use crate::ledger::Active;
use crate::machine::{Finish, Life, Observed, Seen, Step};
use crate::retry::Outage;
use async_trait::async_trait;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The attempts of a job in code.
pub(crate) struct Tasks {
    job: Arc<dyn Job>,
    context: Context,
    /// How long a job that is cancelled may take to end.
    grace: Duration,
    log_bytes: usize,
    state: State,
    ends_deploy: bool,
}

enum State {
    Idle,
    Running(Running),
    Ended { attempt: u32, finish: Finish, is_final: bool, log: String },
}

struct Running {
    attempt: u32,
    started_at: jiff::Timestamp,
    handle: JoinHandle<Result<(), Failure>>,
    cancellation: CancellationToken,
    lines: Arc<Mutex<Lines>>,
    deadline: Instant,
    /// Why it has to end, and when it is given up.
    ending: Option<(&'static str, Instant)>,
}

impl Tasks {
    pub(crate) fn new(job: Arc<dyn Job>, context: Context, grace: Duration, log_bytes: usize) -> Self {
        Self { job, context, grace, log_bytes, state: State::Idle, ends_deploy: false }
    }

    /// Asks the job until a passing error of an API call has passed: asking changes nothing, so it is no attempt.
    async fn needed(&self) -> Result<Needed, Failure> {
        let (retry, mut outage) = (self.context.retry(), Outage::default());
        let doing = format!("ask whether job `{}` is needed", self.context.job);
        loop {
            let failure = match self.job.needed(&self.context).await {
                Ok(needed) => return Ok(needed),
                Err(failure) => failure,
            };
            let Some(error) = failure.passing_error() else { return Err(failure) };
            if !retry.is_worth_another(&mut outage, &doing, error).await {
                return Err(failure);
            }
        }
    }

    fn start(&mut self, attempt: u32) {
        let cancellation = self.context.cancellation.child_token();
        let lines = Arc::new(Mutex::new(Lines::default()));
        let context = Context {
            attempt,
            cancellation: cancellation.clone(),
            lines: Arc::clone(&lines),
            retry: self.context.retry.under(cancellation.clone(), self.context.events.clone()),
            ..self.context.clone()
        };
        let job = Arc::clone(&self.job);
        let handle = tokio::spawn(async move { job.run(&context).await });
        let deadline = Instant::now() + self.job.timeout();
        let started_at = self.context.clock.now();
        self.state =
            State::Running(Running { attempt, started_at, handle, cancellation, lines, deadline, ending: None });
    }

    /// The attempt has ended, or, without a result, is given up.
    fn end(&mut self, result: Option<Result<Result<(), Failure>, JoinError>>) {
        let State::Running(running) = &self.state else { return };
        let why = running.ending.map(|(why, _)| why);
        let (succeeded, reason, is_final) = match result {
            Some(Ok(Ok(()))) => (true, String::new(), false),
            Some(Ok(Err(failure))) => {
                self.ends_deploy |= failure.does_end_deploy();
                let reason = failure.whole_message();
                (false, why.map_or(reason.clone(), |why| format!("{why}: {reason}")), failure.is_final())
            }
            Some(Err(error)) if error.is_panic() => (false, format!("it panicked: {}", panic_message(error)), false),
            Some(Err(_)) | None => {
                (false, format!("{}, and it did not end: abandoned", why.unwrap_or("it was aborted")), false)
            }
        };
        let log = running.lines.lock().unwrap_or_else(PoisonError::into_inner).tail(self.log_bytes);
        let reason = self.context.mask.apply(&reason);
        let (started_at, at) = (Some(running.started_at), self.context.clock.now());
        let finish = Finish { succeeded, reason, exit_code: None, started_at, at };
        self.state = State::Ended { attempt: running.attempt, finish, is_final, log };
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

#[async_trait]
impl Attempts for Tasks {
    async fn look(&mut self, active: Option<&Active>, observed: &mut Observed) -> Result<(), Error> {
        let wanted = active.map(|active| active.attempt);
        observed.attempt = match &self.state {
            State::Running(running) if Some(running.attempt) == wanted => {
                Seen::Present { uid: String::new(), life: Life::Running { since: Some(running.started_at) } }
            }
            State::Ended { attempt, finish, is_final, log } if Some(*attempt) == wanted => {
                observed.is_final = *is_final;
                observed.log = Some(Ok(log.clone()));
                Seen::Present { uid: String::new(), life: Life::Finished(finish.clone()) }
            }
            _ => Seen::Absent,
        };
        Ok(())
    }

    async fn ask(&mut self) -> Result<Option<Needed>, String> {
        use futures::FutureExt as _;
        let asked = AssertUnwindSafe(self.needed()).catch_unwind();
        let failed = |reason: String| format!("cannot tell whether it is needed: {reason}");
        let asked = tokio::select! {
            asked = tokio::time::timeout(self.job.timeout(), asked) => asked,
            () = self.context.cancellation.cancelled() => return Ok(None),
        };
        match asked {
            Ok(Ok(Ok(needed))) => Ok(Some(needed)),
            Ok(Ok(Err(failure))) => {
                self.ends_deploy |= failure.does_end_deploy();
                Err(failed(self.context.mask.apply(&failure.whole_message())))
            }
            Ok(Err(_panic)) => Err(failed("it panicked".to_owned())),
            Err(_elapsed) => Err(failed("it took longer than its time limit".to_owned())),
        }
    }

    async fn foresee(&mut self, _: &Active) -> Result<(), String> {
        let foreseen = tokio::time::timeout(self.job.timeout(), self.job.foresee(&self.context)).await;
        // What cannot be told within its time may still succeed.
        let failure = foreseen.ok().and_then(Result::err);
        failure.map_or(Ok(()), |failure| Err(self.context.mask.apply(&failure.whole_message())))
    }

    async fn carry_out(&mut self, step: &Step, active: Option<&Active>, _: &str) -> kube::Result<()> {
        if let (Step::Create, Some(active)) = (step, active) {
            self.start(active.attempt);
        }
        Ok(())
    }

    fn refuse(&mut self, _: String) {}

    fn doubt(&mut self) {}

    async fn changed(&mut self) {
        let State::Running(running) = &mut self.state else { return std::future::pending().await };
        let grace = self.grace;
        let result = loop {
            let give_up = running.ending.map_or(running.deadline, |(_, give_up)| give_up);
            tokio::select! {
                result = &mut running.handle => break Some(result),
                () = tokio::time::sleep_until(give_up) => {
                    if running.ending.is_some() {
                        running.handle.abort();
                        // A task that blocks its thread never hears of it; it is left behind.
                        break tokio::time::timeout(Duration::from_millis(100), &mut running.handle).await.ok();
                    }
                    running.ending = Some(("it took longer than its time limit", Instant::now() + grace));
                    running.cancellation.cancel();
                }
                () = running.cancellation.cancelled(), if running.ending.is_none() => {
                    running.ending = Some(("it was cancelled", Instant::now() + grace));
                }
            }
        };
        self.end(result);
    }

    fn ends_deploy(&self) -> bool {
        self.ends_deploy
    }
}

fn panic_message(error: JoinError) -> String {
    let Ok(payload) = error.try_into_panic() else { return String::new() };
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a word".to_owned())
}
