//! Reads schedules, and refuses them in the words of the parser that Kubernetes uses (robfig/cron v3).

use crate::zones::is_zone;
use jiff::SignedDuration;
use std::str::FromStr;

/// What a field of a schedule may hold.
struct Bounds {
    low: u64,
    high: u64,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const FIELDS: [Bounds; 5] = [
    Bounds { low: 0, high: 59, names: &[] },
    Bounds { low: 0, high: 23, names: &[] },
    Bounds { low: 1, high: 31, names: &[] },
    Bounds { low: 1, high: 12, names: &MONTHS },
    Bounds { low: 0, high: 6, names: &DAYS },
];
const DESCRIPTORS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// A schedule: five fields, a descriptor such as `@daily`, or `@every 90m`, after an optional time zone (`TZ=Europe/Berlin`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    zone: Option<String>,
    pub(crate) timing: Timing,
}

/// Why a text is no schedule, in the words of the parser that Kubernetes uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(String);

impl std::fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ParseError {}

impl Schedule {
    /// The time zone that the schedule itself names.
    pub fn zone(&self) -> Option<&str> {
        self.zone.as_deref()
    }
}

impl FromStr for Schedule {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse(text).map_err(ParseError)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// Always after so many whole seconds, one at least.
    Every(SignedDuration),
    At(Fields),
}

/// The fields of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) minutes: Field,
    pub(crate) hours: Field,
    pub(crate) days: Field,
    pub(crate) months: Field,
    pub(crate) weekdays: Field,
}

/// The values that a field lets through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Field {
    bits: u64,
    /// Whether it lets everything through by saying nothing: `*`.
    pub(crate) is_star: bool,
}

impl Field {
    pub(crate) fn contains(self, value: i8) -> bool {
        u32::try_from(value).ok().and_then(|value| self.bits.checked_shr(value)).is_some_and(|bits| bits & 1 == 1)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.bits == 0
    }

    fn with(self, other: Self) -> Self {
        Self { bits: self.bits | other.bits, is_star: self.is_star || other.is_star }
    }
}

fn parse(text: &str) -> Result<Schedule, String> {
    let mut text = text;
    let mut own_zone = None;
    if let Some(rest) = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) {
        let (zone, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        if !is_zone(zone) {
            return Err(format!("provided bad location {zone}: unknown time zone {zone}"));
        }
        text = rest.trim();
        own_zone = Some(zone.to_owned());
    }
    let timing = if text.starts_with('@') { parse_descriptor(text)? } else { Timing::At(parse_fields(text)?) };
    Ok(Schedule { zone: own_zone, timing })
}

fn parse_fields(text: &str) -> Result<Fields, String> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let found = fields.join(" ");
        return Err(format!("expected exactly 5 fields, found {}: [{found}]", fields.len()));
    }
    let mut parsed = [Field::default(); FIELDS.len()];
    for ((field, bounds), parsed) in fields.iter().zip(&FIELDS).zip(&mut parsed) {
        for range in field.split(',').filter(|range| !range.is_empty()) {
            *parsed = parsed.with(parse_range(range, bounds)?);
        }
    }
    let [minutes, hours, days, months, weekdays] = parsed;
    Ok(Fields { minutes, hours, days, months, weekdays })
}

fn parse_descriptor(text: &str) -> Result<Timing, String> {
    if let Some((_, fields)) = DESCRIPTORS.iter().find(|(name, _)| *name == text) {
        return parse_fields(fields).map(Timing::At);
    }
    match text.strip_prefix("@every ") {
        Some(duration) => {
            let duration = parse_duration(duration).map_err(|why| format!("failed to parse duration {text}: {why}"))?;
            Ok(Timing::Every(SignedDuration::from_secs(duration.as_secs().max(1))))
        }
        None => Err(format!("unrecognized descriptor: {text}")),
    }
}

fn parse_range(text: &str, bounds: &Bounds) -> Result<Field, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let limits: Vec<&str> = parts.first().copied().unwrap_or_default().split('-').collect();
    let (start, mut end) = match limits.as_slice() {
        ["*" | "?", ..] => (bounds.low, bounds.high),
        [one] => {
            let one = parse_value(one, bounds.names)?;
            (one, one)
        }
        [low, high] => (parse_value(low, bounds.names)?, parse_value(high, bounds.names)?),
        [low, ..] => {
            parse_value(low, bounds.names)?;
            return Err(format!("too many hyphens: {text}"));
        }
        [] => return Ok(Field::default()),
    };
    let mut is_star = matches!(limits.first(), Some(&"*" | &"?"));
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            let step = parse_number(step)?;
            if limits.len() == 1 {
                end = bounds.high;
            }
            is_star &= step <= 1;
            step
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if start < bounds.low {
        Err(format!("beginning of range ({start}) below minimum ({}): {text}", bounds.low))
    } else if end > bounds.high {
        Err(format!("end of range ({end}) above maximum ({}): {text}", bounds.high))
    } else if start > end {
        Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"))
    } else if step == 0 {
        Err(format!("step of range should be a positive number: {text}"))
    } else {
        let step = usize::try_from(step).unwrap_or(usize::MAX);
        let bits = (start..=end).step_by(step).fold(0, |bits, value| bits | 1 << value);
        Ok(Field { bits, is_star })
    }
}

fn parse_value(text: &str, names: &[&str]) -> Result<u64, String> {
    let lower = text.to_lowercase();
    match names.iter().position(|name| *name == lower) {
        // Months count from one, days of the week from zero.
        Some(index) => Ok(index as u64 + u64::from(names.len() == MONTHS.len())),
        None => parse_number(text),
    }
}

fn parse_number(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let refused = |why: &str| format!("failed to parse int from {text}: strconv.Atoi: parsing {}: {why}", quoted(text));
    if !is_number {
        return Err(refused("invalid syntax"));
    }
    let number = text.parse::<i64>().map_err(|_| refused("value out of range"))?;
    u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
}

/// A text as Go quotes it, but for control characters, which no schedule has.
fn quoted(text: &str) -> String {
    format!("{text:?}")
}

/// Durations such as `1h30m`.
fn parse_duration(text: &str) -> Result<SignedDuration, String> {
    const UNITS: [(&str, f64); 8] =
        [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("μs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let shown = quoted(text);
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut seconds = 0.0;
    if rest == "0" {
        return Ok(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return Err(format!("time: invalid duration {shown}"));
    }
    while !rest.is_empty() {
        let number = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (digits, after) = rest.split_at(number);
        if !digits.bytes().any(|byte| byte.is_ascii_digit()) || digits.matches('.').count() > 1 {
            return Err(format!("time: invalid duration {shown}"));
        }
        let unit_end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {shown}"));
        }
        let Some((_, length)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(format!("time: unknown unit {} in duration {shown}", quoted(unit)));
        };
        seconds += digits.parse::<f64>().unwrap_or_default() * length;
        rest = after;
    }
    let seconds = if text.starts_with('-') { -seconds } else { seconds };
    SignedDuration::try_from_secs_f64(seconds).map_err(|_| format!("time: invalid duration {shown}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_as_the_parser_of_kubernetes_reads_them() {
        for right in [
            "* * * * *",
            "*/5 1-3 1,15 jan-mar SUN",
            "@daily",
            "@every 1h30m",
            "0 0 ? * *",
            "TZ=Europe/Berlin 0 0 * * *",
        ] {
            assert_eq!(parse(right).map(drop), Ok(()), "{right}");
        }
        for (wrong, why) in [
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("@often", "unrecognized descriptor: @often"),
            ("@every 5", "failed to parse duration @every 5: time: missing unit in duration \"5\""),
            ("@every x", "failed to parse duration @every x: time: invalid duration \"x\""),
            ("@every 5x", "failed to parse duration @every 5x: time: unknown unit \"x\" in duration \"5x\""),
            ("TZ=Mars/Base * * * * *", "provided bad location Mars/Base: unknown time zone Mars/Base"),
        ] {
            assert_eq!(parse(wrong).unwrap_err(), why, "{wrong}");
        }
    }
}
