//! Numbers from anything.

use super::{Function, function, string, value};
use crate::execute::Machine;
use crate::format;
use crate::host::Host;
use crate::number::{NotNumber, parse_float, parse_int};
use crate::value::{Type, Value};

const ANY: &[Type] = &[Type::Any];

pub(super) const FUNCTIONS: &[Function] = &[
    function("int", ANY, |machine, arguments| Ok(Value::Int(to_int(machine, value(arguments, 0))))),
    function("int64", ANY, |machine, arguments| Ok(Value::Int64(to_int(machine, value(arguments, 0))))),
    function("float64", ANY, |machine, arguments| Ok(Value::Float(to_float(machine, value(arguments, 0))))),
    function("atoi", &[Type::Text], |machine, arguments| {
        let number = match parse_int(&string(machine, arguments, 0), 10) {
            Ok(number) => number,
            Err(NotNumber::Range(nearest)) => nearest,
            Err(NotNumber::Syntax) => 0,
        };
        Ok(Value::Int(number))
    }),
    function("toDecimal", ANY, |machine, arguments| {
        let printed = format::sprint(&machine.heap, &[value(arguments, 0)])?;
        Ok(Value::Int64(parse_int(&String::from_utf8_lossy(&printed), 8).unwrap_or(0)))
    }),
];

/// A number as Go converts it: what does not fit is the smallest one.
fn truncate(number: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) { number as i64 } else { i64::MIN }
}

/// `cast.ToInt64`
pub(super) fn to_int(machine: &Machine<'_>, value: Value) -> i64 {
    match value {
        Value::Int(number) | Value::Int64(number) => number,
        Value::Uint64(number) => number.cast_signed(),
        Value::Byte(number) => number.into(),
        Value::Float(number) => truncate(number),
        Value::Bool(value) => value.into(),
        Value::Text(text) => parse_int(trim_zero_decimal(&machine.heap.str(text)), 0).unwrap_or(0),
        Value::Host(host) if let Host::Duration(_) = machine.heap.get_host(host) => 0,
        _ => 0,
    }
}

/// `cast.ToFloat64`
pub(super) fn to_float(machine: &Machine<'_>, value: Value) -> f64 {
    match value {
        Value::Int(number) | Value::Int64(number) => number as f64,
        Value::Uint64(number) => number as f64,
        Value::Byte(number) => number.into(),
        Value::Float(number) => number,
        Value::Bool(value) => f64::from(u8::from(value)),
        Value::Text(text) => parse_float(&machine.heap.str(text)).unwrap_or(0.0),
        _ => 0.0,
    }
}

/// `5.00` as `5`: only zeros after the point are cut.
fn trim_zero_decimal(text: &str) -> &str {
    match text.rsplit_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') => whole,
        _ => text,
    }
}
