//! How long something is tried again, and how long the pauses are.

use http::HeaderMap;
use jiff::Timestamp;
use jobwright_engine::{Backoff, Clock, Events, Outage, Retry};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long something that fails in passing is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The pause after the first failure; each is twice as long as the one before, and up to a half of it is left out.
    pub first: Duration,
    /// No pause is longer, unless a server asks for it.
    pub longest: Duration,
    /// How long after the first failure something is tried for the last time.
    pub total: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { first: Duration::from_millis(500), longest: Duration::from_secs(30), total: Duration::from_mins(5) }
    }
}

/// Something that has failed and is retried, by the engine's own backoff. Its user reports every try.
pub(crate) struct Trying {
    retry: Retry,
    outage: Outage,
}

impl Patience {
    pub(crate) fn begin(self, clock: &Clock) -> Trying {
        let Self { first, longest, total } = self;
        let retry = Retry::new(clock.clone(), CancellationToken::new(), Events::nowhere());
        Trying { retry: retry.with(Backoff { first, longest, limit: total }), outage: Outage::default() }
    }
}

impl Trying {
    /// The pause before the next try; none if it has been tried for long enough. A server may ask for more.
    pub(crate) fn pause(&mut self, asked: Option<Duration>) -> Option<Duration> {
        let pause = self.retry.next_pause(&mut self.outage, None)?;
        let left = self.retry.time_left(&self.outage);
        // Clients that failed together do not come back together, but for the last try.
        let pause = if pause < left { pause.mul_f64(0.5 + fastrand::f64() / 2.0) } else { pause };
        let pause = pause.max(asked.unwrap_or_default());
        (pause <= left).then_some(pause)
    }
}

/// What a server asks for with `Retry-After`: seconds, or a date.
pub(crate) fn read_retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(http::header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Some(date.duration_since(now).try_into().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Clock {
        let begun = tokio::time::Instant::now();
        Clock::new(move || Timestamp::UNIX_EPOCH + begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_up_to_a_bound_and_end() {
        let seconds = Duration::from_secs;
        let mut trying = Patience { first: seconds(1), longest: seconds(8), total: seconds(60) }.begin(&clock());
        let mut pauses = Vec::new();
        while let Some(pause) = trying.pause(None) {
            pauses.push(pause);
            tokio::time::sleep(pause).await;
        }
        for (pause, longest) in pauses.iter().zip([1, 2, 4, 8, 8, 8]) {
            assert!(*pause <= seconds(longest) && *pause >= seconds(longest) / 2, "{pauses:?}");
        }
        assert!((8..20).contains(&pauses.len()), "{pauses:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_may_ask_for_more_but_not_for_ever() {
        let mut trying = Patience::default().begin(&clock());
        assert_eq!(trying.pause(Some(Duration::from_secs(40))), Some(Duration::from_secs(40)));
        assert_eq!(trying.pause(Some(Duration::from_secs(4000))), None);
        assert_eq!(trying.pause(Some(Duration::from_secs(u64::MAX))), None);
    }

    #[test]
    fn servers_ask_in_seconds_or_by_a_date() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let read = |text: &str| {
            read_retry_after(&HeaderMap::from_iter([(http::header::RETRY_AFTER, text.parse().unwrap())]), now)
        };
        assert_eq!(read("7"), Some(Duration::from_secs(7)));
        assert_eq!(read("Thu, 01 Jan 2026 00:01:00 GMT"), Some(Duration::from_mins(1)));
        assert_eq!(read("Wed, 31 Dec 2025 00:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("soon"), None);
        assert_eq!(read_retry_after(&HeaderMap::new(), now), None);
    }
}
