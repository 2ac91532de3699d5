//! Time: when it is in a cluster, how fast it passes, and how the API writes it.

use jiff::{SignedDuration, Timestamp, Unit};
use std::time::Duration;
use tokio::time::Instant;

/// The clock of a cluster. It follows tokio's clock from a start time on, so it stands still and jumps ahead
/// where that one does (`tokio::time::pause`), and follows the wall where that one does.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Timestamp,
    start: Instant,
    /// How many seconds pass in the cluster in a second of tokio's.
    speed: u32,
}

impl Clock {
    /// A clock that shows `epoch` now.
    pub fn starting_at(epoch: Timestamp) -> Self {
        Self { epoch, start: Instant::now(), speed: 1 }
    }

    /// The same clock, this many times as fast.
    #[must_use]
    pub fn times(self, speed: u32) -> Self {
        Self { speed: speed.max(1), ..self }
    }

    /// What the clock shows.
    pub fn now(&self) -> Timestamp {
        let passed = self.start.elapsed().saturating_mul(self.speed);
        let passed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
        self.epoch.checked_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// The first moment of tokio's clock at which this clock shows `time` or later.
    pub(crate) fn instant_of(&self, time: Timestamp) -> Instant {
        let passed = Duration::try_from(time.duration_since(self.epoch)).unwrap_or_default();
        let real = passed / self.speed + Duration::from_nanos(1);
        self.start.checked_add(real).unwrap_or_else(|| self.after(Duration::MAX))
    }

    /// The moment of tokio's clock at which this clock has gone on by `duration`.
    pub(crate) fn after(&self, duration: Duration) -> Instant {
        let real = duration / self.speed;
        Instant::now().checked_add(real).unwrap_or_else(|| Instant::now() + Duration::from_hours(24 * 365))
    }
}

/// A `Time`: whole seconds, UTC.
pub(crate) fn time(time: Timestamp) -> String {
    let whole = Timestamp::from_second(time.as_second()).unwrap_or(time);
    format!("{whole:.0}")
}

/// A `MicroTime`: microseconds, UTC.
pub(crate) fn micro_time(time: Timestamp) -> String {
    let micro = time.round(Unit::Microsecond).unwrap_or(time);
    format!("{micro:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_cut_to_what_the_api_keeps() {
        let now: Timestamp = "2026-11-16T01:02:03.999999999Z".parse().unwrap();
        assert_eq!(time(now), "2026-11-16T01:02:03Z");
        assert_eq!(micro_time("2026-11-16T01:02:03.5Z".parse().unwrap()), "2026-11-16T01:02:03.500000Z");
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_can_be_faster_than_the_wall() {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH).times(10);
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert_eq!(time(clock.now()), "1970-01-01T00:01:00Z");
    }
}
