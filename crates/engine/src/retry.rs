//! Retries of API calls that fail in passing: one time limit, one report, one way to obey a cancellation.

use crate::clock::Clock;
use crate::error::{Answer, Error, classify};
use crate::event::{Event, Events};
use crate::ledger::later;
use crate::report::between;
use jiff::Timestamp;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a failing API call is retried before its error counts.
pub const RETRY_LIMIT: Duration = Duration::from_mins(5);
/// How long it is still retried after a cancellation: long enough to record what happened.
const AFTER_CANCELLATION: Duration = Duration::from_secs(10);
/// How long an outage may last before it is reported, and how often it is reported again.
const UNREPORTED: Duration = Duration::from_secs(5);
const REPORTED_AGAIN: Duration = Duration::from_mins(1);

/// The pauses between retries, and how long they continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The pause after the first failure; each further one is twice as long.
    pub first: Duration,
    /// No pause is longer, unless a server asks for it.
    pub longest: Duration,
    /// How long after the first failure the last try is made.
    pub limit: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_millis(250), longest: Duration::from_secs(10), limit: RETRY_LIMIT }
    }
}

/// Retries API calls until [`RETRY_LIMIT`] has passed, or shortly after a cancellation.
#[derive(Clone, Debug)]
pub struct Retry {
    clock: Clock,
    cancellation: CancellationToken,
    events: Events,
    backoff: Backoff,
}

/// A call that keeps failing.
#[derive(Debug, Default)]
pub struct Outage {
    since: Option<Timestamp>,
    cancelled_at: Option<Timestamp>,
    reported_at: Option<Timestamp>,
    times: u32,
}

impl Retry {
    /// Retries that end soon after the cancellation, and report outages as events.
    pub fn new(clock: Clock, cancellation: CancellationToken, events: Events) -> Self {
        Self { clock, cancellation, events, backoff: Backoff::default() }
    }

    /// The same with a shorter limit, for what is not worth five minutes.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.backoff.limit = limit;
        self
    }

    /// The same with other pauses and another limit.
    #[must_use]
    pub fn with(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// The clock by which the limit is counted.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The cancellation that is obeyed.
    pub(crate) fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Where outages are reported.
    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    /// Waits for something that others have to do, until the limit or shortly after a cancellation.
    pub(crate) async fn wait<T>(&self, what: impl Future<Output = T>) -> Option<T> {
        let late = async {
            tokio::select! {
                () = tokio::time::sleep(self.backoff.limit) => {}
                () = async { self.cancellation.cancelled().await; tokio::time::sleep(AFTER_CANCELLATION).await } => {}
            }
        };
        tokio::select! {
            done = what => Some(done),
            () = late => None,
        }
    }

    /// Makes a call until it is answered. An error that a repetition cannot change is returned immediately.
    pub async fn call<T, F>(&self, doing: &str, mut call: impl FnMut() -> F) -> Result<T, Error>
    where
        F: Future<Output = kube::Result<T>>,
    {
        let mut outage = Outage::default();
        loop {
            match call().await {
                Ok(answer) => return Ok(answer),
                Err(error) => match classify(&error) {
                    Answer::TryAgain(_) | Answer::Conflict => self.pause(&mut outage, doing, error).await?,
                    Answer::NotFound | Answer::AlreadyExists | Answer::Refused | Answer::LostLease => {
                        return Err(Error::cluster(doing, error));
                    }
                },
            }
        }
    }

    /// Waits before a failed call is made again; returns its error where the limit has passed.
    pub async fn pause(&self, outage: &mut Outage, doing: &str, error: kube::Error) -> Result<(), Error> {
        if self.is_worth_another(outage, doing, &error).await {
            return Ok(());
        }
        let retried = outage.since.map_or(Duration::ZERO, |since| between(since, self.clock.now()));
        Err(Error::retried(doing, error, retried))
    }

    /// Waits before a failed call is made again, or says that the limit has passed.
    pub(crate) async fn is_worth_another(&self, outage: &mut Outage, doing: &str, error: &kube::Error) -> bool {
        let asked = match classify(error) {
            Answer::LostLease => return false,
            Answer::TryAgain(after) => after,
            _ => None,
        };
        let Some(pause) = self.next_pause(outage, asked) else { return false };
        self.report(outage, doing, error, self.clock.now());
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.cancellation.cancelled(), if outage.cancelled_at.is_none() => {}
        }
        true
    }

    /// The pause before something that has just failed is tried again; none where the limit has passed. A server may ask
    /// for a longer pause, up to the limit.
    pub fn next_pause(&self, outage: &mut Outage, asked: Option<Duration>) -> Option<Duration> {
        let now = self.clock.now();
        outage.since.get_or_insert(now);
        if self.cancellation.is_cancelled() {
            outage.cancelled_at.get_or_insert(now);
        }
        let left = self.time_left(outage);
        if left.is_zero() {
            return None;
        }
        let Backoff { first, longest, .. } = self.backoff;
        let pause = first.saturating_mul(1 << outage.times.min(20)).min(longest);
        outage.times += 1;
        Some(asked.unwrap_or(pause).min(left))
    }

    /// How much longer something that fails is retried.
    pub fn time_left(&self, outage: &Outage) -> Duration {
        let now = self.clock.now();
        let end = later(outage.since.unwrap_or(now), self.backoff.limit);
        let end = outage.cancelled_at.map_or(end, |cancelled| end.min(later(cancelled, AFTER_CANCELLATION)));
        between(now, end)
    }

    fn report(&self, outage: &mut Outage, doing: &str, error: &kube::Error, now: Timestamp) {
        let due = match (outage.reported_at, outage.since) {
            (Some(reported), _) => later(reported, REPORTED_AGAIN),
            (None, since) => later(since.unwrap_or(now), UNREPORTED),
        };
        if due <= now {
            outage.reported_at = Some(now);
            let (doing, error) = (doing.to_owned(), crate::error::plain(error));
            self.events.send(Event::Retrying { doing, error });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;
    use std::cell::Cell;

    fn api(code: u16) -> kube::Error {
        kube::Error::Api(Status { code, message: "no".to_owned(), ..Status::default() }.boxed())
    }

    fn virtual_clock() -> Clock {
        let begun = tokio::time::Instant::now();
        Clock::new(move || later(Timestamp::UNIX_EPOCH, begun.elapsed()))
    }

    /// Calls something that fails this often, and tells how it ended, how often it was called and how long it took.
    async fn play(code: u16, fails: u32, cancelled_after: Option<Duration>) -> (Result<(), String>, u32, Duration) {
        let cancellation = CancellationToken::new();
        let retry = Retry::new(virtual_clock(), cancellation.clone(), Events::nowhere());
        if let Some(after) = cancelled_after {
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                cancellation.cancel();
            });
        }
        let calls = Cell::new(0);
        let begun = tokio::time::Instant::now();
        let call = || async {
            calls.set(calls.get() + 1);
            if calls.get() <= fails { Err(api(code)) } else { Ok(()) }
        };
        let result = retry.call("read it", call).await.map_err(|error| error.whole_message());
        (result, calls.get(), begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_passing_error_is_retried_and_a_refusal_is_not() {
        assert_eq!(play(503, 3, None).await.1, 4);
        let (refused, calls, _) = play(403, 1, None).await;
        assert_eq!((refused.unwrap_err().as_str(), calls), ("cannot read it: no", 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lasting_error_counts_after_five_minutes() {
        for code in [409, 429, 500, 503] {
            let (result, _, took) = play(code, u32::MAX, None).await;
            assert_eq!(result.unwrap_err(), "cannot read it, retried for 5m: no");
            assert_eq!(took.as_secs(), 300, "{code}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancellation_ends_retries_within_ten_seconds() {
        let (result, _, took) = play(500, u32::MAX, Some(Duration::from_mins(1))).await;
        assert!(result.is_err());
        assert!((60..=71).contains(&took.as_secs()), "{took:?}");
        let (_, _, took) = play(500, u32::MAX, Some(Duration::ZERO)).await;
        assert!(took.as_secs() <= 11, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_reported_after_five_seconds_and_every_minute() {
        let (events, mut receiver) = Events::channel();
        let retry = Retry::new(virtual_clock(), CancellationToken::new(), events);
        let failing = retry.call("read it", || async { Err::<(), _>(api(500)) }).await;
        assert!(failing.is_err());
        drop(retry);
        let mut reports = 0;
        while let Some(event) = receiver.recv().await {
            assert_eq!(event, Event::Retrying { doing: "read it".to_owned(), error: "no".to_owned() });
            reports += 1;
        }
        assert_eq!(reports, 5);
    }
}
