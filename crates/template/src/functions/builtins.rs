//! What every Go template has.

use super::{Function, Returned, Run, function, text, value, values, variadic};
use crate::error::Failure;
use crate::execute::Machine;
use crate::format;
use crate::host::Host;
use crate::value::{Operand, Type, Value};
use std::cmp::Ordering;

const ANY: &[Type] = &[Type::Any];
const ONE: &[Type] = &[Type::Reflect];
const TWO: &[Type] = &[Type::Reflect, Type::Reflect];

pub(super) const FUNCTIONS: &[Function] = &[
    Function { run: Run::And, ..variadic("and", TWO, nothing) }.transparent(),
    Function { run: Run::Or, ..variadic("or", TWO, nothing) }.transparent(),
    Function { run: Run::Call, ..variadic("call", TWO, nothing) },
    variadic("eq", TWO, |machine, arguments| equal(machine, arguments).map(Value::Bool)),
    function("ne", TWO, |machine, arguments| equal(machine, arguments).map(|equal| Value::Bool(!equal))),
    function("lt", TWO, |machine, arguments| less(machine, arguments).map(Value::Bool)),
    function("le", TWO, |machine, arguments| less_or_equal(machine, arguments).map(Value::Bool)),
    function("gt", TWO, |machine, arguments| less_or_equal(machine, arguments).map(|less| Value::Bool(!less))),
    function("ge", TWO, |machine, arguments| less(machine, arguments).map(|less| Value::Bool(!less))),
    variadic("html", ANY, |machine, arguments| escaped(machine, arguments, html)),
    variadic("js", ANY, |machine, arguments| escaped(machine, arguments, javascript)),
    variadic("urlquery", ANY, |machine, arguments| escaped(machine, arguments, query)),
    variadic("index", TWO, index).transparent(),
    function("len", ONE, length),
    function("not", ONE, |machine, arguments| {
        let truth = machine.is_true(value(arguments, 0));
        Ok(Value::Bool(!truth))
    })
    .transparent(),
    variadic("print", ANY, |machine, arguments| {
        let printed = format::sprint(&machine.heap, &values(arguments, 0))?;
        Ok(machine.heap.string(printed))
    }),
    variadic("println", ANY, |machine, arguments| {
        let printed = format::sprintln(&machine.heap, &values(arguments, 0))?;
        Ok(machine.heap.string(printed))
    }),
    variadic("printf", &[Type::Text, Type::Any], |machine, arguments| {
        let pattern = machine.heap.bytes(text(arguments, 0)).to_vec();
        let printed = format::sprintf(&machine.heap, &pattern, &values(arguments, 1))?;
        Ok(machine.heap.string(printed))
    }),
];

/// What stands for functions that the evaluator does itself.
fn nothing(_: &mut Machine<'_>, _: &[Operand]) -> Returned {
    Ok(Value::Nil)
}

/// Go's rough kinds, within which values can be compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Basic {
    Bool,
    Int,
    Float,
    Text,
    Uint,
    Other,
}

fn basic(machine: &Machine<'_>, value: Value) -> Basic {
    match value {
        Value::Bool(_) => Basic::Bool,
        Value::Int(_) | Value::Int64(_) => Basic::Int,
        Value::Uint64(_) | Value::Byte(_) => Basic::Uint,
        Value::Float(_) => Basic::Float,
        Value::Text(_) => Basic::Text,
        Value::Host(host) if matches!(machine.heap.get_host(host), Host::Duration(_)) => Basic::Int,
        _ => Basic::Other,
    }
}

fn whole(machine: &Machine<'_>, value: Value) -> i128 {
    match value {
        Value::Int(number) | Value::Int64(number) => number.into(),
        Value::Uint64(number) => number.into(),
        Value::Byte(number) => number.into(),
        Value::Host(host) => match machine.heap.get_host(host) {
            Host::Duration(nanoseconds) => (*nanoseconds).into(),
            _ => 0,
        },
        _ => 0,
    }
}

fn incompatible(machine: &Machine<'_>, one: Value, other: Value) -> Failure {
    if !machine.environment.helm.names_compared_types() {
        return "incompatible types for comparison".into();
    }
    let (one, other) = (machine.heap.type_name(one), machine.heap.type_name(other));
    format!("incompatible types for comparison: {one} and {other}").into()
}

fn equal(machine: &mut Machine<'_>, arguments: &[Operand]) -> Result<bool, Failure> {
    if arguments.len() < 2 {
        return Err("missing argument for comparison".into());
    }
    let one = value(arguments, 0);
    for other in values(arguments, 1) {
        if equal_to(machine, one, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn equal_to(machine: &Machine<'_>, one: Value, other: Value) -> Result<bool, Failure> {
    let (kind, other_kind) = (basic(machine, one), basic(machine, other));
    let is_whole = |kind| matches!(kind, Basic::Int | Basic::Uint);
    if is_whole(kind) && is_whole(other_kind) {
        return Ok(whole(machine, one) == whole(machine, other));
    }
    if kind != other_kind {
        if one != Value::Nil && other != Value::Nil {
            return Err(incompatible(machine, one, other));
        }
        return Ok(false);
    }
    let heap = &machine.heap;
    Ok(match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Float(one), Value::Float(other)) => one == other,
        (Value::Text(one), Value::Text(other)) => heap.bytes(one) == heap.bytes(other),
        _ => {
            let (left, right) = (heap.kind(one), heap.kind(other));
            if left != right && one != Value::Nil && other != Value::Nil {
                let shown =
                    |value| String::from_utf8_lossy(&format::sprint(heap, &[value]).unwrap_or_default()).into_owned();
                return Err(format!(
                    "non-comparable types {}: {}, {}: {}",
                    shown(one),
                    heap.type_name(one),
                    heap.type_name(other),
                    shown(other)
                )
                .into());
            }
            let is_nil = |value| match value {
                Value::Nil => true,
                Value::List(list) => heap.get_list(list).is_nil,
                Value::Map(map) => heap.get_map(map).is_nil,
                _ => false,
            };
            if is_nil(one) || is_nil(other) {
                is_nil(one) == is_nil(other)
            } else if matches!(other, Value::List(_) | Value::Map(_)) {
                let shown = format::sprint(heap, &[other])?;
                return Err(format!(
                    "non-comparable type {}: {}",
                    String::from_utf8_lossy(&shown),
                    heap.type_name(other)
                )
                .into());
            } else {
                heap.deep_equal(one, other, 0)
            }
        }
    })
}

fn less(machine: &mut Machine<'_>, arguments: &[Operand]) -> Result<bool, Failure> {
    let (one, other) = (value(arguments, 0), value(arguments, 1));
    let (kind, other_kind) = (basic(machine, one), basic(machine, other));
    let invalid = || Failure::from("invalid type for comparison");
    if kind == Basic::Other || other_kind == Basic::Other {
        return Err(invalid());
    }
    let is_whole = |kind| matches!(kind, Basic::Int | Basic::Uint);
    if is_whole(kind) && is_whole(other_kind) {
        return Ok(whole(machine, one) < whole(machine, other));
    }
    if kind != other_kind {
        return Err(incompatible(machine, one, other));
    }
    match (one, other) {
        (Value::Float(one), Value::Float(other)) => Ok(one < other),
        (Value::Text(one), Value::Text(other)) => {
            Ok(machine.heap.bytes(one).cmp(machine.heap.bytes(other)) == Ordering::Less)
        }
        _ => Err(invalid()),
    }
}

fn less_or_equal(machine: &mut Machine<'_>, arguments: &[Operand]) -> Result<bool, Failure> {
    Ok(less(machine, arguments)? || equal(machine, arguments)?)
}

fn position(machine: &Machine<'_>, index: Operand, length: usize) -> Result<usize, Failure> {
    let number = match index.value {
        Value::Int(_) | Value::Int64(_) | Value::Uint64(_) | Value::Byte(_) => whole(machine, index.value),
        Value::Nil => return Err("cannot index slice/array with nil".into()),
        other => return Err(format!("cannot index slice/array with type {}", machine.heap.type_name(other)).into()),
    };
    match usize::try_from(number) {
        Ok(position) if position <= length => Ok(position),
        _ => Err(format!("index out of range: {number}").into()),
    }
}

fn index(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let mut item = value(arguments, 0);
    if item == Value::Nil {
        return Err("index of untyped nil".into());
    }
    for key in &arguments[1..] {
        match item {
            Value::Nil => return Err("index of nil pointer".into()),
            Value::List(list) => {
                let items = &machine.heap.get_list(list).items;
                let at = position(machine, *key, items.len())?;
                item = *items.get(at).ok_or("reflect: slice index out of range")?;
            }
            Value::Text(text) => {
                let at = position(machine, *key, text.len())?;
                let byte = machine.heap.bytes(text).get(at).ok_or("reflect: string index out of range")?;
                item = Value::Byte(*byte);
            }
            Value::Map(map) => {
                let name = match key.value {
                    Value::Text(text) => machine.heap.bytes(text).to_vec(),
                    Value::Nil => return Err("value is nil; should be of type string".into()),
                    other => {
                        return Err(
                            format!("value has type {}; should be string", machine.heap.type_name(other)).into()
                        );
                    }
                };
                let found = machine.heap.get(map, &name);
                machine.reads.lookup(&machine.heap, map, &name, found);
                let kind = machine.heap.get_map(map).kind;
                item = found.unwrap_or_else(|| machine.zero_of(kind).value);
            }
            other => return Err(format!("can't index item of type {}", machine.heap.type_name(other)).into()),
        }
    }
    Ok(item)
}

fn length(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let item = arguments.first().copied().unwrap_or(Operand::INVALID);
    let length = match item.value {
        Value::Nil if item.is_interface => return Err("len of nil pointer".into()),
        Value::Nil => return Err("reflect: call of reflect.Value.Type on zero Value".into()),
        Value::Text(text) => text.len(),
        Value::List(list) => machine.heap.get_list(list).items.len(),
        Value::Map(map) => machine.heap.get_map(map).entries.len(),
        other => return Err(format!("len of type {}", machine.heap.type_name(other)).into()),
    };
    Ok(Value::Int(length as i64))
}

/// What functions that escape escape: one text as it is, anything else printed.
fn escaped(machine: &mut Machine<'_>, arguments: &[Operand], escape: fn(&[u8]) -> Vec<u8>) -> Returned {
    let printed = match arguments {
        [Operand { value: Value::Text(text), .. }] => machine.heap.bytes(*text).to_vec(),
        _ => format::sprint(&machine.heap, &values(arguments, 0))?,
    };
    Ok(machine.heap.string(escape(&printed)))
}

fn html(text: &[u8]) -> Vec<u8> {
    let mut output = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            0 => output.extend_from_slice("\u{fffd}".as_bytes()),
            b'"' => output.extend_from_slice(b"&#34;"),
            b'\'' => output.extend_from_slice(b"&#39;"),
            b'&' => output.extend_from_slice(b"&amp;"),
            b'<' => output.extend_from_slice(b"&lt;"),
            b'>' => output.extend_from_slice(b"&gt;"),
            _ => output.push(*byte),
        }
    }
    output
}

fn javascript(text: &[u8]) -> Vec<u8> {
    let mut output = Vec::with_capacity(text.len());
    for (offset, character, width) in crate::utf8::characters(text) {
        match character {
            '\\' => output.extend_from_slice(b"\\\\"),
            '\'' => output.extend_from_slice(b"\\'"),
            '"' => output.extend_from_slice(b"\\\""),
            '<' | '>' | '&' | '=' => output.extend_from_slice(format!("\\u{:04X}", u32::from(character)).as_bytes()),
            _ if character < ' ' => output.extend_from_slice(format!("\\u{:04X}", u32::from(character)).as_bytes()),
            _ if character.is_ascii() || crate::quote::is_printable(character) => {
                output.extend_from_slice(&text[offset..offset + width]);
            }
            _ => output.extend_from_slice(format!("\\u{:04X}", u32::from(character)).as_bytes()),
        }
    }
    output
}

fn query(text: &[u8]) -> Vec<u8> {
    let mut output = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b' ' => output.push(b'+'),
            b'-' | b'_' | b'.' | b'~' => output.push(*byte),
            _ if byte.is_ascii_alphanumeric() => output.push(*byte),
            _ => output.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    output
}
