//! Durations as plans and flags write them: `90s`, `10m`, `1h30m`, `365d`.

use super::format::Format;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A duration, written with units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Period(Duration);

/// A string that is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid duration `{0}`: write a number with a unit, as in 90s, 10m or 1h30m")]
pub struct NoPeriod(String);

const UNITS: [(&str, u64); 5] = [("ms", 1), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];

impl Period {
    /// How long it is.
    pub fn duration(self) -> Duration {
        self.0
    }
}

impl FromStr for Period {
    type Err = NoPeriod;

    fn from_str(text: &str) -> Result<Self, NoPeriod> {
        let refuse = || NoPeriod(text.to_owned());
        let mut rest = text;
        let mut milliseconds: u64 = 0;
        let mut last = u64::MAX;
        while !rest.is_empty() || last == u64::MAX {
            let digits = rest.find(|character: char| !character.is_ascii_digit()).ok_or_else(refuse)?;
            let number: u64 = rest[..digits].parse().map_err(|_| refuse())?;
            let (unit, factor) = UNITS.iter().find(|(unit, _)| rest[digits..].starts_with(unit)).ok_or_else(refuse)?;
            // Large units come first, each once.
            if *factor >= last {
                return Err(refuse());
            }
            last = *factor;
            let more = number.checked_mul(*factor).ok_or_else(refuse)?;
            milliseconds = milliseconds.checked_add(more).ok_or_else(refuse)?;
            rest = &rest[digits + unit.len()..];
        }
        Ok(Self(Duration::from_millis(milliseconds)))
    }
}

impl fmt::Display for Period {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        if left == 0 {
            return formatter.write_str("0s");
        }
        let mut units = UNITS;
        units.sort_by_key(|(_, factor)| std::cmp::Reverse(*factor));
        for (unit, factor) in units {
            if left >= factor {
                write!(formatter, "{}{unit}", left / factor)?;
                left %= factor;
            }
        }
        Ok(())
    }
}

impl TryFrom<String> for Period {
    type Error = NoPeriod;

    fn try_from(text: String) -> Result<Self, NoPeriod> {
        text.parse()
    }
}

impl From<Period> for String {
    fn from(period: Period) -> Self {
        period.to_string()
    }
}

impl From<Duration> for Period {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl JsonSchema for Period {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = Format::Duration.schema();
        schema.insert("description".to_owned(), "A duration: 90s, 10m, 1h30m".into());
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        for (text, seconds) in
            [("90s", 90), ("10m", 600), ("1h30m", 5400), ("365d", 31_536_000), ("0s", 0), ("1d1s", 86_401)]
        {
            let period: Period = text.parse().unwrap();
            assert_eq!(period.duration().as_secs(), seconds, "{text}");
        }
        assert_eq!("90s".parse::<Period>().unwrap().to_string(), "1m30s");
        assert_eq!("1500ms".parse::<Period>().unwrap().to_string(), "1s500ms");
        for text in ["", "10", "m", "10 m", "1m1h", "1m1m", "-1s", "1.5h", "99999999999999999999s", "300000000000d"] {
            assert!(text.parse::<Period>().is_err(), "{text}");
        }
    }
}
