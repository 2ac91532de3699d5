//! The cluster's clock, as far as an answer tells it.

use http::{HeaderMap, header};
use jiff::{SignedDuration, Timestamp};
use jobwright_engine::Clock;

/// A smaller difference is not corrected: a `Date` header has whole seconds.
const CORRECTED: SignedDuration = SignedDuration::from_secs(2);
/// A larger difference is reported.
const REPORTED: SignedDuration = SignedDuration::from_secs(30);

/// How far the cluster's clock is ahead of this machine's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Difference(SignedDuration);

impl Difference {
    /// The difference by the `Date` header of an answer to a request that was sent and answered at these times. None is
    /// assumed unless the answer proves one.
    pub(super) fn of(headers: &HeaderMap, sent: Timestamp, received: Timestamp) -> Self {
        let Some(date) = headers.get(header::DATE).and_then(|date| date.to_str().ok()) else { return Self::default() };
        let parser = jiff::fmt::rfc2822::DateTimeParser::new();
        let Ok(date) = parser.parse_timestamp(date) else { return Self::default() };
        // The header was written between the two, and in that second.
        let least = date.duration_since(received);
        let most = date.duration_since(sent) + SignedDuration::from_secs(1);
        let middle = (least + most) / 2;
        let is_proven = least.is_positive() || most.is_negative();
        if is_proven && middle.abs() >= CORRECTED { Self(middle) } else { Self::default() }
    }

    /// This machine's clock, set to the cluster's time.
    pub(super) fn correct(self, now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Clock {
        Clock::new(move || now().saturating_add(self.0).unwrap_or(Timestamp::MAX))
    }

    /// What to report, if the difference is large.
    pub(super) fn report(self) -> Option<String> {
        let direction = if self.0.is_negative() { "behind" } else { "ahead of" };
        let size = crate::output::duration(self.0.unsigned_abs());
        (self.0.abs() > REPORTED).then(|| {
            format!("warning: the cluster's clock is {size} {direction} this machine's; using the cluster's time")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64, millisecond: i64) -> Timestamp {
        Timestamp::from_millisecond(second * 1000 + millisecond).unwrap()
    }

    /// The difference by a header that was written at this second, of a call between two times, in milliseconds.
    fn difference(date: i64, sent: Timestamp, received: Timestamp) -> i128 {
        let printer = jiff::fmt::rfc2822::DateTimePrinter::new();
        let date = printer.timestamp_to_rfc9110_string(&at(date, 0)).unwrap();
        let headers = HeaderMap::from_iter([(header::DATE, date.parse().unwrap())]);
        Difference::of(&headers, sent, received).0.as_millis()
    }

    #[test]
    fn a_difference_counts_from_two_seconds_on_if_it_is_proven() {
        assert_eq!(difference(1000, at(1000, 200), at(1000, 300)), 0);
        assert_eq!(difference(1001, at(1000, 200), at(1000, 300)), 0, "a second is noise");
        assert_eq!(difference(1003, at(1000, 0), at(1000, 0)), 3500);
        assert_eq!(difference(400, at(1000, 0), at(1000, 0)), -599_500);
        assert_eq!(difference(1003, at(1000, 0), at(1007, 0)), 0, "the answer took long");
        assert_eq!(difference(1060, at(1000, 0), at(1007, 0)), 57_000);
    }

    #[test]
    fn an_answer_without_a_date_changes_nothing() {
        let odd = HeaderMap::from_iter([(header::DATE, "yesterday".parse().unwrap())]);
        for headers in [HeaderMap::new(), odd] {
            assert_eq!(Difference::of(&headers, at(0, 0), at(0, 0)), Difference::default());
        }
    }

    #[test]
    fn a_large_difference_is_reported_and_corrected() {
        let behind = Difference(SignedDuration::from_mins(-90));
        assert!(behind.report().unwrap().contains("1h30m behind this machine's"), "{behind:?}");
        assert_eq!(Difference(SignedDuration::from_secs(30)).report(), None);
        assert_eq!(behind.correct(|| at(6000, 0)).now(), at(600, 0));
    }
}
