//! The time that a schedule was due last (Kubernetes v1.34 `cronjob/utils.go`).

use crate::Schedule;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// The times at which a schedule was due in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The last of them; none if it was not due.
    pub last: Option<Timestamp>,
    /// How many there were, as if they were evenly spaced; 0 for one or none.
    pub count: i64,
}

/// A schedule that is never due, or twice in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooOften;

impl std::fmt::Display for TooOften {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("time difference between two schedules is less than 1 second")
    }
}

impl std::error::Error for TooOften {}

impl Schedule {
    /// When it was due after `since`, up to and including `now`. However long that is, a few steps suffice.
    pub fn missed(&self, zone: &TimeZone, since: Timestamp, now: Timestamp) -> Result<Missed, TooOften> {
        let after = |time: Timestamp| self.next_after(zone, time);
        let first = after(since).ok_or(TooOften)?;
        if now < first {
            return Ok(Missed { last: None, count: 0 });
        }
        let Some(second) = after(first).filter(|second| *second <= now) else {
            return Ok(Missed { last: Some(first), count: 0 });
        };
        let between = second.duration_since(first).as_secs();
        if between < 1 {
            return Err(TooOften);
        }
        let count = now.duration_since(first).as_secs() / between + 1;
        let skipped = SignedDuration::from_secs((count - 2).saturating_mul(between));
        let mut last = None;
        let mut next = first.checked_add(skipped).ok().and_then(after);
        while let Some(due) = next.filter(|due| *due <= now) {
            last = Some(due);
            next = after(due);
        }
        Ok(Missed { last, count })
    }
}
