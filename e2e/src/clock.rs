//! The edge to the clock of the machine.

use std::time::{Duration, Instant, SystemTime};

#[expect(clippy::disallowed_methods, reason = "real processes are awaited in real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Seconds since 1970: names of one run differ from those of another.
#[expect(clippy::disallowed_methods, reason = "only tells runs apart")]
pub(crate) fn seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}
