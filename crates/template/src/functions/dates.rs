//! Dates and durations.

use super::{Function, NIL_POINTER, Returned, function, string, value};
use crate::error::Failure;
use crate::execute::Machine;
use crate::host::Host;
use crate::number::parse_int;
use crate::time::{self, Time};
use crate::value::{Operand, Type, Value};
use jiff::Timestamp;
use jiff::tz::TimeZone;

const ANY: &[Type] = &[Type::Any];
const FORMATTED: &[Type] = &[Type::Text, Type::Any];
const ZONED: &[Type] = &[Type::Text, Type::Any, Type::Text];
const MODIFIED: &[Type] = &[Type::Text, Type::Time];
const PARSED: &[Type] = &[Type::Text, Type::Text];

pub(super) const FUNCTIONS: &[Function] = &[
    function("now", &[], |machine, _| {
        machine.reads.drew = true;
        let now = now(machine);
        Ok(machine.heap.host(Host::Time(now)))
    }),
    function("date", FORMATTED, |machine, arguments| {
        let layout = string(machine, arguments, 0);
        formatted(machine, &layout, value(arguments, 1), "Local")
    }),
    function("dateInZone", ZONED, date_in_zone),
    function("date_in_zone", ZONED, date_in_zone),
    function("htmlDate", ANY, |machine, arguments| formatted(machine, "2006-01-02", value(arguments, 0), "Local")),
    function("htmlDateInZone", &[Type::Any, Type::Text], |machine, arguments| {
        let zone = string(machine, arguments, 1);
        formatted(machine, "2006-01-02", value(arguments, 0), &zone)
    }),
    function("dateModify", MODIFIED, modified_quietly),
    function("date_modify", MODIFIED, modified_quietly),
    function("mustDateModify", MODIFIED, modified),
    function("must_date_modify", MODIFIED, modified),
    function("ago", ANY, |machine, arguments| {
        machine.reads.drew = true;
        let nanoseconds = age(machine, value(arguments, 0));
        // Rounded to seconds, half away from zero.
        let seconds = (nanoseconds.saturating_add(500_000_000 * nanoseconds.signum())) / 1_000_000_000;
        Ok(machine.heap.string(time::duration(seconds.saturating_mul(1_000_000_000))))
    }),
    function("duration", ANY, |machine, arguments| {
        let seconds = match value(arguments, 0) {
            Value::Int64(seconds) => seconds,
            Value::Text(text) => parse_int(&machine.heap.str(text), 10).unwrap_or_default(),
            _ => 0,
        };
        Ok(machine.heap.string(time::duration(seconds.wrapping_mul(1_000_000_000))))
    }),
    function("durationRound", ANY, |machine, arguments| {
        let nanoseconds = match value(arguments, 0) {
            Value::Int64(nanoseconds) => nanoseconds,
            Value::Text(text) => time::parse_duration(&machine.heap.str(text)).unwrap_or_default(),
            Value::Host(host) if let Host::Time(_) = machine.heap.get_host(host) => age(machine, value(arguments, 0)),
            _ => 0,
        };
        Ok(machine.heap.string(rounded(nanoseconds.unsigned_abs())))
    }),
    function("toDate", PARSED, |machine, arguments| {
        let zone = machine.environment.entropy.zone.clone();
        let parsed = time::parse(&string(machine, arguments, 0), &string(machine, arguments, 1), &zone);
        Ok(machine.heap.host(Host::Time(parsed.unwrap_or_else(|_| Time::zero()))))
    }),
    function("mustToDate", PARSED, |machine, arguments| {
        let zone = machine.environment.entropy.zone.clone();
        let parsed = time::parse(&string(machine, arguments, 0), &string(machine, arguments, 1), &zone)?;
        Ok(machine.heap.host(Host::Time(parsed)))
    }),
    function("unixEpoch", &[Type::Time], |machine, arguments| {
        let seconds = moment(machine, arguments, 0)?.timestamp().as_second();
        Ok(machine.heap.string(seconds.to_string()))
    }),
];

pub(crate) fn now(machine: &Machine<'_>) -> Time {
    let entropy = &machine.environment.entropy;
    Time::new(entropy.now, entropy.zone.clone())
}

/// A time argument.
pub(crate) fn moment(machine: &Machine<'_>, arguments: &[Operand], index: usize) -> Result<Time, Failure> {
    match value(arguments, index) {
        Value::Host(host) => match machine.heap.get_host(host) {
            Host::Time(time) => Ok(time.clone()),
            _ => Err(NIL_POINTER.into()),
        },
        _ => Err(NIL_POINTER.into()),
    }
}

fn date_in_zone(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let (layout, zone) = (string(machine, arguments, 0), string(machine, arguments, 2));
    formatted(machine, &layout, value(arguments, 1), &zone)
}

fn from_seconds(seconds: i64) -> Time {
    Timestamp::from_second(seconds).map_or_else(|_| Time::zero(), |timestamp| Time::new(timestamp, TimeZone::UTC))
}

fn formatted(machine: &mut Machine<'_>, layout: &str, date: Value, zone: &str) -> Returned {
    let time = match date {
        Value::Int(seconds) | Value::Int64(seconds) => from_seconds(seconds),
        Value::Host(host) if let Host::Time(time) = machine.heap.get_host(host) => time.clone(),
        // Anything else is now, even a number from a values file.
        _ => {
            machine.reads.drew = true;
            now(machine)
        }
    };
    let zone = time::zone(zone, &machine.environment.entropy.zone).unwrap_or(TimeZone::UTC);
    Ok(machine.heap.string(time::format(&time.within(zone), layout)))
}

fn modified_quietly(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    match time::parse_duration(&string(machine, arguments, 0)) {
        Ok(_) => modified(machine, arguments),
        Err(_) => Ok(value(arguments, 1)),
    }
}

fn modified(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let nanoseconds = time::parse_duration(&string(machine, arguments, 0))?;
    let later = moment(machine, arguments, 1)?.plus(nanoseconds);
    Ok(machine.heap.host(Host::Time(later)))
}

/// How long ago a moment was.
fn age(machine: &Machine<'_>, date: Value) -> i64 {
    let now = machine.environment.entropy.now;
    let then = match date {
        Value::Int(seconds) | Value::Int64(seconds) => from_seconds(seconds).timestamp(),
        Value::Host(host) if let Host::Time(time) = machine.heap.get_host(host) => time.timestamp(),
        _ => now,
    };
    let nanoseconds = now.duration_since(then).as_nanos();
    i64::try_from(nanoseconds).unwrap_or(if nanoseconds < 0 { i64::MIN } else { i64::MAX })
}

/// The largest unit of which there is more than one whole.
fn rounded(nanoseconds: u64) -> String {
    const HOUR: u64 = 3_600_000_000_000;
    let units = [
        (HOUR * 24 * 365, "y"),
        (HOUR * 24 * 30, "mo"),
        (HOUR * 24, "d"),
        (HOUR, "h"),
        (HOUR / 60, "m"),
        (HOUR / 3600, "s"),
    ];
    let fits = units.into_iter().find(|(size, _)| nanoseconds > *size);
    fits.map_or_else(|| "0s".to_owned(), |(size, name)| format!("{}{name}", nanoseconds / size))
}
