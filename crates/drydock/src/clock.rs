//! Times as the API writes them.

use jiff::{Timestamp, Unit};

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
}
