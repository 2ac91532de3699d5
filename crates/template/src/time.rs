//! Times and durations as Go's `time` reads and prints them.

mod layout;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use std::fmt;

pub(crate) use layout::{format, parse};

/// `time.Time`: a moment in a zone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Time {
    pub(crate) zoned: Zoned,
}

impl Time {
    pub(crate) fn new(timestamp: Timestamp, zone: TimeZone) -> Self {
        Self { zoned: timestamp.to_zoned(zone) }
    }

    /// Go's zero time: the first moment of the year 1.
    pub(crate) fn zero() -> Self {
        let timestamp = Timestamp::from_second(-62_135_596_800).unwrap_or(Timestamp::UNIX_EPOCH);
        Self::new(timestamp, TimeZone::UTC)
    }

    pub(crate) fn timestamp(&self) -> Timestamp {
        self.zoned.timestamp()
    }

    /// The same moment elsewhere.
    pub(crate) fn within(&self, zone: TimeZone) -> Self {
        Self::new(self.timestamp(), zone)
    }

    /// The moment so many nanoseconds later; the same one if there is none.
    #[must_use]
    pub(crate) fn plus(&self, nanoseconds: i64) -> Self {
        let later = self.timestamp().checked_add(jiff::SignedDuration::from_nanos(nanoseconds));
        later.map_or_else(|_| self.clone(), |later| Self::new(later, self.zoned.time_zone().clone()))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&format(self, "2006-01-02 15:04:05.999999999 -0700 MST"))
    }
}

/// A zone by its name; `None` if there is none.
pub(crate) fn zone(name: &str, local: &TimeZone) -> Option<TimeZone> {
    match name {
        "" | "UTC" => Some(TimeZone::UTC),
        "Local" => Some(local.clone()),
        _ if name.contains("..") || name.starts_with(['/', '\\']) => None,
        _ => TimeZone::get(name).ok(),
    }
}

/// `Duration.String`
pub(crate) fn duration(nanoseconds: i64) -> String {
    if nanoseconds == 0 {
        return "0s".to_owned();
    }
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let size = nanoseconds.unsigned_abs();
    let fraction = |value: u64, unit: u64| {
        let digits = unit.ilog10() as usize;
        let rest = format!("{:0digits$}", value % unit);
        let rest = rest.trim_end_matches('0');
        if rest.is_empty() { (value / unit).to_string() } else { format!("{}.{rest}", value / unit) }
    };
    match size {
        0..1_000 => format!("{sign}{size}ns"),
        1_000..1_000_000 => format!("{sign}{}µs", fraction(size, 1_000)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", fraction(size, 1_000_000)),
        _ => {
            let seconds = size / 1_000_000_000;
            let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
            let rest = fraction(size % 60_000_000_000, 1_000_000_000);
            match (hours, minutes) {
                (0, 0) => format!("{sign}{rest}s"),
                (0, _) => format!("{sign}{minutes}m{rest}s"),
                _ => format!("{sign}{hours}h{minutes}m{rest}s"),
            }
        }
    }
}

/// `time.ParseDuration`; `Err` has Go's message.
pub(crate) fn parse_duration(text: &str) -> Result<i64, String> {
    let quoted = || crate::quote::quote(text.as_bytes(), false);
    let invalid = || format!("time: invalid duration {}", quoted());
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut sum: i128 = 0;
    while !rest.is_empty() {
        let number = rest.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(rest.len());
        let (digits, after) = rest.split_at(number);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(invalid());
        }
        let end = after.find(|character: char| character == '.' || character.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {}", quoted()));
        }
        let size: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => {
                let unit = crate::quote::quote(unit.as_bytes(), false);
                return Err(format!("time: unknown unit {unit} in duration {}", quoted()));
            }
        };
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse::<u64>().map_err(|_| invalid())?.into() };
        let fraction = &fraction[..fraction.len().min(18)];
        let scale = 10_i128.pow(fraction.len() as u32);
        let fraction: i128 =
            if fraction.is_empty() { 0 } else { fraction.parse::<u64>().map_err(|_| invalid())?.into() };
        sum += whole * size + fraction * size / scale;
        if sum > i128::from(i64::MAX) + i128::from(negative) {
            return Err(invalid());
        }
        rest = next;
    }
    i64::try_from(if negative { -sum } else { sum }).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_printed_and_read_as_in_go() {
        for (nanoseconds, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1.5µs"),
            (2_000_000, "2ms"),
            (95_000_000_000, "1m35s"),
            (-5_400_000_000_000, "-1h30m0s"),
            (1_500_000_000, "1.5s"),
        ] {
            assert_eq!(duration(nanoseconds), text);
            assert_eq!(parse_duration(text), Ok(nanoseconds));
        }
        assert_eq!(parse_duration("1.5h"), Ok(5_400_000_000_000));
        assert_eq!(parse_duration(""), Err("time: invalid duration \"\"".to_owned()));
        assert_eq!(parse_duration("3"), Err("time: missing unit in duration \"3\"".to_owned()));
        assert_eq!(parse_duration("3y"), Err("time: unknown unit \"y\" in duration \"3y\"".to_owned()));
        assert!(parse_duration("9999999999h").is_err());
    }
}
