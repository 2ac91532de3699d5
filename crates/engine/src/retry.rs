//! Retries of API calls that fail in passing: one time limit, one report, one way to obey a cancellation.

use crate::call;
use crate::clock::Clock;
use crate::error::{Answer, Error, classify};
use crate::event::{Event, Events};
use crate::ledger::later;
use crate::report::between;
use jiff::Timestamp;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a failing API call is retried before its error counts.
pub const RETRY_LIMIT: Duration = Duration::from_mins(5);
/// How long it is still retried after a cancellation: long enough to record what happened.
const AFTER_CANCELLATION: Duration = Duration::from_secs(10);
/// How long a call may take that is made even later. What a healthy cluster answers is still recorded.
const LAST_CALL: Duration = Duration::from_secs(2);
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
    /// When the cancellation was noticed. Clones share it, so that the time after it is not granted to each call anew.
    cancelled_at: Arc<OnceLock<Instant>>,
    /// The retries of the whole, if these are of a part of it.
    whole: Option<Arc<Retry>>,
}

/// A call that keeps failing.
#[derive(Debug, Default)]
pub struct Outage {
    since: Option<Timestamp>,
    is_woken: bool,
    reported_at: Option<Timestamp>,
    times: u32,
}

impl Retry {
    /// Retries that end soon after the cancellation, and report outages as events.
    pub fn new(clock: Clock, cancellation: CancellationToken, events: Events) -> Self {
        Self { clock, cancellation, events, backoff: Backoff::default(), cancelled_at: Arc::default(), whole: None }
    }

    /// The same for a part of the work, which may also be cancelled alone. When the whole is cancelled, the time after that
    /// is not granted to its parts anew.
    #[must_use]
    pub(crate) fn under(&self, cancellation: CancellationToken, events: Events) -> Self {
        let whole = Some(Arc::new(self.clone()));
        Self { cancellation, events, cancelled_at: Arc::default(), whole, ..self.clone() }
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
        tokio::select! {
            done = what => Some(done),
            () = tokio::time::sleep(self.backoff.limit) => None,
            () = self.too_late() => None,
        }
    }

    /// Makes a call once. After a cancellation it is not waited for any longer than for retries.
    pub async fn attempt<T>(&self, call: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
        let sent = Instant::now();
        tokio::select! {
            // An answer that has come counts, however late it is.
            biased;
            answer = call => answer,
            () = self.too_late() => Err(call::overdue(sent.elapsed())),
        }
    }

    /// Waits until a cancellation was so long ago that nothing is waited for any more; indefinitely without one.
    async fn too_late(&self) {
        let begun = Instant::now();
        self.cancellation.cancelled().await;
        tokio::time::sleep_until(self.end_of_grace().max(begun + LAST_CALL)).await;
    }

    /// Until when calls are retried after the cancellation, which has happened.
    fn end_of_grace(&self) -> Instant {
        if let Some(whole) = self.whole.as_ref().filter(|whole| whole.cancellation.is_cancelled()) {
            return whole.end_of_grace();
        }
        *self.cancelled_at.get_or_init(Instant::now) + AFTER_CANCELLATION
    }

    /// Makes a call until it is answered. An error that a repetition cannot change is returned immediately.
    pub async fn call<T, F>(&self, doing: &str, mut call: impl FnMut() -> F) -> Result<T, Error>
    where
        F: Future<Output = kube::Result<T>>,
    {
        let mut outage = Outage::default();
        loop {
            match self.attempt(call()).await {
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

    /// Makes a call until the API server answers it, and gives the answer also where it is an error that a repetition
    /// cannot change, or a conflict.
    pub async fn answer<T, F>(&self, doing: &str, mut call: impl FnMut() -> F) -> Result<kube::Result<T>, Error>
    where
        F: Future<Output = kube::Result<T>>,
    {
        let mut outage = Outage::default();
        loop {
            match self.attempt(call()).await {
                Err(error) if matches!(classify(&error), Answer::TryAgain(_)) => {
                    self.pause(&mut outage, doing, error).await?;
                }
                answer => return Ok(answer),
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
            () = self.cancellation.cancelled(), if !outage.is_woken => outage.is_woken = true,
        }
        true
    }

    /// The pause before something that has just failed is tried again; none where the limit has passed. A server may ask
    /// for a longer pause, up to the limit.
    pub fn next_pause(&self, outage: &mut Outage, asked: Option<Duration>) -> Option<Duration> {
        let now = self.clock.now();
        outage.since.get_or_insert(now);
        outage.is_woken |= self.cancellation.is_cancelled();
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
        let left = between(now, later(outage.since.unwrap_or(now), self.backoff.limit));
        if self.cancellation.is_cancelled() {
            left.min(self.end_of_grace().saturating_duration_since(Instant::now()))
        } else {
            left
        }
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
    async fn a_cancellation_ends_calls_that_hang_within_ten_seconds_in_all() {
        let cancellation = CancellationToken::new();
        let retry = Retry::new(virtual_clock(), cancellation.clone(), Events::nowhere());
        let hang = || retry.call("read it", std::future::pending::<kube::Result<()>>);
        let cancel = async {
            tokio::time::sleep(Duration::from_mins(1)).await;
            cancellation.cancel();
        };
        let begun = Instant::now();
        let (hung, ()) = tokio::join!(hang(), cancel);
        assert_eq!(begun.elapsed().as_secs(), 70, "{hung:?}");
        let message = hung.unwrap_err().whole_message();
        assert!(message.contains("no answer within 70s"), "{message}");
        // The ten seconds are not granted again; a last call is, and a healthy cluster answers it.
        for clone in [retry.clone(), retry.clone()] {
            let begun = Instant::now();
            assert!(clone.call("read it", std::future::pending::<kube::Result<()>>).await.is_err());
            assert_eq!(begun.elapsed().as_secs(), 2);
        }
        assert!(retry.call("read it", || async { Ok(()) }).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn parts_of_what_is_cancelled_share_its_ten_seconds() {
        let cancellation = CancellationToken::new();
        let whole = Retry::new(virtual_clock(), cancellation.clone(), Events::nowhere());
        let hang = async |retry: Retry| {
            let begun = Instant::now();
            assert!(retry.call("read it", std::future::pending::<kube::Result<()>>).await.is_err());
            begun.elapsed().as_secs()
        };
        let alone = whole.under(cancellation.child_token(), Events::nowhere());
        alone.cancellation().cancel();
        assert_eq!(hang(alone).await, 10, "a part that is cancelled alone");
        cancellation.cancel();
        let parts: Vec<Retry> = (0..3).map(|_| whole.under(cancellation.child_token(), Events::nowhere())).collect();
        let mut took = Vec::new();
        for part in parts.into_iter().chain([whole]) {
            took.push(hang(part).await);
        }
        assert_eq!(took, [10, 2, 2, 2]);
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
