//! Methods that templates call: `.Files.Get`, `.Capabilities.APIVersions.Has`, `now.Format` and their kin.

use crate::environment::Helm;
use crate::error::Failure;
use crate::execute::Machine;
use crate::functions::{Returned, moment};
use crate::heap::Heap;
use crate::host::Host;
use crate::semver::Version;
use crate::time::{self, Time};
use crate::value::{ListType, MapType, Operand, Type, Value};
use data_encoding::BASE64;
use jiff::tz::TimeZone;
use jobwright_yaml::emit::Flavor;

/// A method.
pub(crate) struct Method {
    pub(crate) name: &'static str,
    pub(crate) parameters: &'static [Type],
    /// What it does; the receiver is the first argument.
    pub(crate) run: fn(&mut Machine<'_>, &[Operand]) -> Returned,
}

type Run = fn(&mut Machine<'_>, &[Operand]) -> Returned;

const fn method(name: &'static str, parameters: &'static [Type], run: Run) -> Method {
    Method { name, parameters, run }
}

/// The method of a value, if its type has it.
pub(crate) fn find(heap: &Heap, receiver: Value, name: &str) -> Option<&'static Method> {
    let methods = match receiver {
        Value::Map(map) => match heap.get_map(map).kind {
            MapType::Files(_) => FILES,
            MapType::Values(_) => VALUES,
            MapType::Any | MapType::Texts => return None,
        },
        Value::List(list) => match heap.get_list(list).kind {
            ListType::Named(name) if name.ends_with(".VersionSet") => VERSIONS,
            _ => return None,
        },
        Value::Host(host) => match heap.get_host(host) {
            Host::Time(_) => TIME,
            Host::Duration(_) => DURATION,
            Host::Semver(_) => SEMVER,
            Host::Struct(structure) if structure.string.is_some() => KUBE_VERSION,
            Host::Struct(_) => return None,
        },
        _ => return None,
    };
    methods.iter().find(|method| method.name == name)
}

const TEXT: &[Type] = &[Type::Text];

const FILES: &[Method] = &[
    method("Get", TEXT, |machine, arguments| {
        let bytes = file(machine, arguments);
        Ok(machine.heap.string(bytes.unwrap_or_default()))
    }),
    method("GetBytes", TEXT, |machine, arguments| {
        let bytes = file(machine, arguments).unwrap_or_default();
        Ok(machine.heap.list(ListType::Bytes, bytes.into_iter().map(Value::Byte).collect()))
    }),
    method("Glob", TEXT, |machine, arguments| {
        let pattern = text(machine, arguments, 1);
        let Value::Map(files) = arguments[0].value else { return Ok(Value::Nil) };
        let map = machine.heap.get_map(files);
        let kind = map.kind;
        let glob = crate::glob::Glob::new(&pattern);
        let entries = map.entries.iter().filter(|(name, _)| glob.matches(&machine.heap.str(*name)));
        let entries: Vec<_> = entries.copied().collect();
        let found = machine.heap.map(kind);
        for (name, content) in entries {
            machine.heap.set_text(found, name, content);
        }
        Ok(Value::Map(found))
    }),
    method("AsConfig", &[], |machine, arguments| by_base_name(machine, arguments, |bytes| bytes)),
    method("AsSecrets", &[], |machine, arguments| {
        by_base_name(machine, arguments, |bytes| BASE64.encode(&bytes).into())
    }),
    method("Lines", TEXT, |machine, arguments| {
        let Some(bytes) = file(machine, arguments) else { return Ok(machine.heap.texts([])) };
        if bytes.is_empty() {
            // Helm 3 looks at the last byte without asking whether there is one; Helm 4 asks.
            return if machine.environment.helm < Helm::new(3, 18, 0) {
                Err("runtime error: index out of range [-1]".into())
            } else {
                Ok(machine.heap.texts([]))
            };
        }
        let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec);
        Ok(machine.heap.texts(lines))
    }),
];

fn text(machine: &Machine<'_>, arguments: &[Operand], index: usize) -> String {
    match arguments.get(index).map(|argument| argument.value) {
        Some(Value::Text(text)) => machine.heap.str(text),
        _ => String::new(),
    }
}

/// The content of the file that the first argument after the receiver names.
fn file(machine: &Machine<'_>, arguments: &[Operand]) -> Option<Vec<u8>> {
    let Value::Map(files) = arguments.first()?.value else { return None };
    let content = machine.heap.get(files, text(machine, arguments, 1).as_bytes())?;
    Some(bytes_of(&machine.heap, content))
}

/// The bytes of a text or a `[]byte`.
pub(crate) fn bytes_of(heap: &Heap, value: Value) -> Vec<u8> {
    match value {
        Value::Text(text) => heap.bytes(text).to_vec(),
        Value::List(list) => {
            let items = heap.get_list(list).items.iter();
            items.map(|item| if let Value::Byte(byte) = item { *byte } else { 0 }).collect()
        }
        _ => Vec::new(),
    }
}

/// Files as YAML, by their names without directories.
fn by_base_name(machine: &mut Machine<'_>, arguments: &[Operand], change: fn(Vec<u8>) -> Vec<u8>) -> Returned {
    let Value::Map(files) = arguments[0].value else { return Ok(machine.heap.string("")) };
    let entries = machine.heap.get_map(files).entries.clone();
    let map = machine.heap.map(MapType::Texts);
    for (name, content) in entries {
        let base = crate::functions::base_name(machine.heap.bytes(name));
        let content = machine.heap.string(change(bytes_of(&machine.heap, content)));
        machine.heap.set(map, base, content);
    }
    let printed = crate::yaml::write(&machine.heap, Value::Map(map), Flavor::V2)?;
    Ok(machine.heap.string(printed.strip_suffix('\n').unwrap_or(&printed)))
}

const VALUES: &[Method] = &[
    method("AsMap", &[], |machine, arguments| {
        let Value::Map(values) = arguments[0].value else { return Ok(Value::Nil) };
        // The same map under another type.
        let entries = machine.heap.get_map(values).entries.clone();
        let map = machine.heap.map(MapType::Any);
        for (key, value) in entries {
            machine.heap.set_text(map, key, value);
        }
        Ok(Value::Map(map))
    }),
    method("YAML", &[], |machine, arguments| {
        let printed = crate::yaml::write(&machine.heap, arguments[0].value, Flavor::V2)?;
        Ok(machine.heap.string(printed))
    }),
    method("Table", TEXT, |machine, arguments| {
        let path = text(machine, arguments, 1);
        let mut value = arguments[0].value;
        for key in path.split('.') {
            let Value::Map(map) = value else { break };
            match machine.heap.get(map, key.as_bytes()) {
                Some(inner @ Value::Map(_)) => value = inner,
                _ => return Err(format!("{} is not a table", crate::quote::quote(key.as_bytes(), false)).into()),
            }
        }
        Ok(value)
    }),
    method("PathValue", TEXT, |machine, arguments| {
        let path = text(machine, arguments, 1);
        let mut value = arguments[0].value;
        for key in path.split('.') {
            let found = if let Value::Map(map) = value { machine.heap.get(map, key.as_bytes()) } else { None };
            value = found.ok_or_else(|| {
                Failure::Message(format!("{} is not a value", crate::quote::quote(path.as_bytes(), false)))
            })?;
        }
        Ok(value)
    }),
];

const VERSIONS: &[Method] = &[method("Has", TEXT, |machine, arguments| {
    let wanted = text(machine, arguments, 1);
    let Value::List(list) = arguments[0].value else { return Ok(Value::Bool(false)) };
    let items = &machine.heap.get_list(list).items;
    let is_wanted = |item: &Value| matches!(item, Value::Text(text) if machine.heap.bytes(*text) == wanted.as_bytes());
    Ok(Value::Bool(items.iter().any(is_wanted)))
})];

const KUBE_VERSION: &[Method] = &[method("String", &[], own_string), method("GitVersion", &[], own_string)];

fn own_string(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let Value::Host(host) = arguments[0].value else { return Ok(Value::Nil) };
    match machine.heap.get_host(host) {
        Host::Struct(structure) => Ok(structure.string.unwrap_or(Value::Nil)),
        host => {
            let text = host.string().unwrap_or_default();
            Ok(machine.heap.string(text))
        }
    }
}

fn time_of(machine: &Machine<'_>, arguments: &[Operand]) -> Result<Time, Failure> {
    moment(machine, arguments, 0)
}

fn int(machine: &Machine<'_>, arguments: &[Operand], part: impl Fn(&jiff::Zoned) -> i64) -> Returned {
    Ok(Value::Int(part(&time_of(machine, arguments)?.zoned)))
}

const TIME: &[Method] = &[
    method("Format", TEXT, |machine, arguments| {
        let formatted = time::format(&time_of(machine, arguments)?, &text(machine, arguments, 1));
        Ok(machine.heap.string(formatted))
    }),
    method("String", &[], own_string),
    method("Unix", &[], |machine, arguments| Ok(Value::Int64(time_of(machine, arguments)?.timestamp().as_second()))),
    method("UnixMilli", &[], |machine, arguments| {
        Ok(Value::Int64(time_of(machine, arguments)?.timestamp().as_millisecond()))
    }),
    method("UnixMicro", &[], |machine, arguments| {
        Ok(Value::Int64(time_of(machine, arguments)?.timestamp().as_microsecond()))
    }),
    method("UnixNano", &[], |machine, arguments| {
        Ok(Value::Int64(time_of(machine, arguments)?.timestamp().as_nanosecond() as i64))
    }),
    method("Year", &[], |machine, arguments| int(machine, arguments, |zoned| zoned.year().into())),
    method("Day", &[], |machine, arguments| int(machine, arguments, |zoned| zoned.day().into())),
    method("Hour", &[], |machine, arguments| int(machine, arguments, |zoned| zoned.hour().into())),
    method("Minute", &[], |machine, arguments| int(machine, arguments, |zoned| zoned.minute().into())),
    method("Second", &[], |machine, arguments| int(machine, arguments, |zoned| zoned.second().into())),
    method("Nanosecond", &[], |machine, arguments| int(machine, arguments, |zoned| zoned.subsec_nanosecond().into())),
    method("YearDay", &[], |machine, arguments| int(machine, arguments, |zoned| zoned.day_of_year().into())),
    method("Month", &[], |machine, arguments| {
        let name = time::format(&time_of(machine, arguments)?, "January");
        Ok(machine.heap.string(name))
    }),
    method("Weekday", &[], |machine, arguments| {
        let name = time::format(&time_of(machine, arguments)?, "Monday");
        Ok(machine.heap.string(name))
    }),
    method("IsZero", &[], |machine, arguments| {
        Ok(Value::Bool(time_of(machine, arguments)?.timestamp() == Time::zero().timestamp()))
    }),
    method("UTC", &[], |machine, arguments| {
        let moved = time_of(machine, arguments)?.within(TimeZone::UTC);
        Ok(machine.heap.host(Host::Time(moved)))
    }),
    method("Local", &[], |machine, arguments| {
        let zone = machine.environment.entropy.zone.clone();
        let moved = time_of(machine, arguments)?.within(zone);
        Ok(machine.heap.host(Host::Time(moved)))
    }),
    method("Add", &[Type::Duration], |machine, arguments| {
        let nanoseconds = nanoseconds(machine, arguments, 1);
        let later = time_of(machine, arguments)?.plus(nanoseconds);
        Ok(machine.heap.host(Host::Time(later)))
    }),
    method("AddDate", &[Type::Int, Type::Int, Type::Int], |machine, arguments| {
        let time = time_of(machine, arguments)?;
        let [years, months, days] = [1, 2, 3].map(|index| match arguments.get(index).map(|argument| argument.value) {
            Some(Value::Int(number)) => number,
            _ => 0,
        });
        let later = add_date(&time, years, months, days).unwrap_or(time);
        Ok(machine.heap.host(Host::Time(later)))
    }),
    method("Sub", &[Type::Time], |machine, arguments| {
        let (one, other) = (time_of(machine, arguments)?, moment(machine, arguments, 1)?);
        let nanoseconds = one.timestamp().duration_since(other.timestamp()).as_nanos();
        let nanoseconds = i64::try_from(nanoseconds).unwrap_or(if nanoseconds < 0 { i64::MIN } else { i64::MAX });
        Ok(machine.heap.host(Host::Duration(nanoseconds)))
    }),
    method("Before", &[Type::Time], |machine, arguments| {
        Ok(Value::Bool(time_of(machine, arguments)?.timestamp() < moment(machine, arguments, 1)?.timestamp()))
    }),
    method("After", &[Type::Time], |machine, arguments| {
        Ok(Value::Bool(time_of(machine, arguments)?.timestamp() > moment(machine, arguments, 1)?.timestamp()))
    }),
    method("Equal", &[Type::Time], |machine, arguments| {
        Ok(Value::Bool(time_of(machine, arguments)?.timestamp() == moment(machine, arguments, 1)?.timestamp()))
    }),
];

/// `Time.AddDate`: days beyond the end of a month run into the next one.
fn add_date(time: &Time, years: i64, months: i64, days: i64) -> Option<Time> {
    let zoned = &time.zoned;
    let total = i64::from(zoned.year())
        .checked_add(years)?
        .checked_mul(12)?
        .checked_add(i64::from(zoned.month()) - 1 + months)?;
    let year = i16::try_from(total.div_euclid(12)).ok()?;
    let month = i8::try_from(total.rem_euclid(12) + 1).ok()?;
    let first = jiff::civil::Date::new(year, month, 1).ok()?;
    let span = jiff::Span::new().try_days(i64::from(zoned.day()) - 1 + days).ok()?;
    let date = first.checked_add(span).ok()?;
    let moved = date.to_datetime(zoned.time()).to_zoned(zoned.time_zone().clone()).ok()?;
    Some(Time { zoned: moved })
}

fn nanoseconds(machine: &Machine<'_>, arguments: &[Operand], index: usize) -> i64 {
    match arguments.get(index).map(|argument| argument.value) {
        Some(Value::Int(number) | Value::Int64(number)) => number,
        Some(Value::Host(host)) => match machine.heap.get_host(host) {
            Host::Duration(nanoseconds) => *nanoseconds,
            _ => 0,
        },
        _ => 0,
    }
}

const DURATION: &[Method] = &[
    method("String", &[], own_string),
    method("Hours", &[], |machine, arguments| Ok(Value::Float(nanoseconds(machine, arguments, 0) as f64 / 3.6e12))),
    method("Minutes", &[], |machine, arguments| Ok(Value::Float(nanoseconds(machine, arguments, 0) as f64 / 6e10))),
    method("Seconds", &[], |machine, arguments| Ok(Value::Float(nanoseconds(machine, arguments, 0) as f64 / 1e9))),
    method("Milliseconds", &[], |machine, arguments| Ok(Value::Int64(nanoseconds(machine, arguments, 0) / 1_000_000))),
    method("Nanoseconds", &[], |machine, arguments| Ok(Value::Int64(nanoseconds(machine, arguments, 0)))),
];

fn version(machine: &Machine<'_>, arguments: &[Operand], index: usize) -> Result<Version, Failure> {
    let nil = || Failure::from("runtime error: invalid memory address or nil pointer dereference");
    match arguments.get(index).map(|argument| argument.value) {
        Some(Value::Host(host)) => match machine.heap.get_host(host) {
            Host::Semver(version) => Ok((**version).clone()),
            _ => Err(nil()),
        },
        _ => Err(nil()),
    }
}

fn part(machine: &mut Machine<'_>, arguments: &[Operand], part: impl Fn(Version) -> String) -> Returned {
    let text = part(version(machine, arguments, 0)?);
    Ok(machine.heap.string(text))
}

fn compared(machine: &Machine<'_>, arguments: &[Operand], is_wanted: impl Fn(std::cmp::Ordering) -> bool) -> Returned {
    Ok(Value::Bool(is_wanted(version(machine, arguments, 0)?.compare(&version(machine, arguments, 1)?))))
}

fn increased(machine: &mut Machine<'_>, arguments: &[Operand], part: usize) -> Returned {
    let next = version(machine, arguments, 0)?.increase(part);
    Ok(machine.heap.host(Host::Semver(Box::new(next))))
}

const OTHER: &[Type] = &[Type::Semver];

const SEMVER: &[Method] = &[
    method("Major", &[], |machine, arguments| Ok(Value::Uint64(version(machine, arguments, 0)?.major))),
    method("Minor", &[], |machine, arguments| Ok(Value::Uint64(version(machine, arguments, 0)?.minor))),
    method("Patch", &[], |machine, arguments| Ok(Value::Uint64(version(machine, arguments, 0)?.patch))),
    method("Prerelease", &[], |machine, arguments| part(machine, arguments, |version| version.pre_release)),
    method("Metadata", &[], |machine, arguments| part(machine, arguments, |version| version.metadata)),
    method("Original", &[], |machine, arguments| part(machine, arguments, |version| version.original)),
    method("String", &[], |machine, arguments| part(machine, arguments, |version| version.to_string())),
    method("Compare", OTHER, |machine, arguments| {
        let order = version(machine, arguments, 0)?.compare(&version(machine, arguments, 1)?);
        Ok(Value::Int(order as i64))
    }),
    method("Equal", OTHER, |machine, arguments| compared(machine, arguments, std::cmp::Ordering::is_eq)),
    method("LessThan", OTHER, |machine, arguments| compared(machine, arguments, std::cmp::Ordering::is_lt)),
    method("LessThanEqual", OTHER, |machine, arguments| compared(machine, arguments, std::cmp::Ordering::is_le)),
    method("GreaterThan", OTHER, |machine, arguments| compared(machine, arguments, std::cmp::Ordering::is_gt)),
    method("GreaterThanEqual", OTHER, |machine, arguments| compared(machine, arguments, std::cmp::Ordering::is_ge)),
    method("IncMajor", &[], |machine, arguments| increased(machine, arguments, 0)),
    method("IncMinor", &[], |machine, arguments| increased(machine, arguments, 1)),
    method("IncPatch", &[], |machine, arguments| increased(machine, arguments, 2)),
];
