//! JSON, base64 and base32.

mod read_json;

use super::strings::room;
use super::{Function, Returned, bytes, function, text, value};
use crate::error::Failure;
use crate::execute::Machine;
use crate::json::{Style, write};
use crate::value::{Operand, Type};
use data_encoding::{BASE32, BASE64, Encoding};

const ANY: &[Type] = &[Type::Any];
const TEXT: &[Type] = &[Type::Text];
const PLAIN: Style = Style { escapes_html: true, is_pretty: false };
const PRETTY: Style = Style { escapes_html: true, is_pretty: true };
const RAW: Style = Style { escapes_html: false, is_pretty: false };

pub(super) const FUNCTIONS: &[Function] = &[
    function("toJson", ANY, |machine, arguments| quietly(machine, arguments, PLAIN)),
    function("mustToJson", ANY, |machine, arguments| loudly(machine, arguments, PLAIN)),
    function("toPrettyJson", ANY, |machine, arguments| quietly(machine, arguments, PRETTY)),
    function("mustToPrettyJson", ANY, |machine, arguments| loudly(machine, arguments, PRETTY)),
    function("toRawJson", ANY, |machine, arguments| loudly(machine, arguments, RAW)),
    function("mustToRawJson", ANY, |machine, arguments| loudly(machine, arguments, RAW)),
    function("mustFromJson", TEXT, |machine, arguments| {
        let text = bytes(&machine.heap, arguments, 0).to_vec();
        let json = read_json::read(&text)?;
        Ok(machine.heap.import(&json, crate::json::Numbers::Floats))
    }),
    function("b64enc", TEXT, |machine, arguments| encode(machine, arguments, &BASE64)),
    function("b32enc", TEXT, |machine, arguments| encode(machine, arguments, &BASE32)),
    function("b64dec", TEXT, |machine, arguments| decode(machine, arguments, &BASE64, "base64", 4)),
    function("b32dec", TEXT, |machine, arguments| decode(machine, arguments, &BASE32, "base32", 8)),
];

pub(super) use read_json::read as read_json;

/// Writes JSON; what cannot be written is empty.
fn quietly(machine: &mut Machine<'_>, arguments: &[Operand], style: Style) -> Returned {
    match write(&machine.heap, value(arguments, 0), style) {
        Ok(text) => Ok(machine.heap.string(text)),
        Err(Failure::Message(_)) => Ok(machine.heap.string("")),
        Err(failure) => Err(failure),
    }
}

fn loudly(machine: &mut Machine<'_>, arguments: &[Operand], style: Style) -> Returned {
    let text = write(&machine.heap, value(arguments, 0), style)?;
    Ok(machine.heap.string(text))
}

fn encode(machine: &mut Machine<'_>, arguments: &[Operand], encoding: &Encoding) -> Returned {
    room(machine, text(arguments, 0).len().saturating_mul(2))?;
    let encoded = encoding.encode(bytes(&machine.heap, arguments, 0));
    Ok(machine.heap.string(encoded))
}

/// What cannot be decoded is the error's text, as in Sprig.
fn decode(machine: &mut Machine<'_>, arguments: &[Operand], encoding: &Encoding, name: &str, group: usize) -> Returned {
    // Go passes over line breaks.
    let is_line_break = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let text = bytes(&machine.heap, arguments, 0);
    let bare: Vec<u8> = text.iter().copied().filter(|byte| !is_line_break(byte)).collect();
    let decoded = match encoding.decode(&bare) {
        Ok(decoded) => decoded,
        Err(_) => {
            let at = bad_position(text, encoding, group);
            format!("illegal {name} data at input byte {at}").into_bytes()
        }
    };
    Ok(machine.heap.string(decoded))
}

/// Where Go reports that a text is not well encoded.
fn bad_position(text: &[u8], encoding: &Encoding, group: usize) -> usize {
    let symbols: Vec<(usize, u8)> =
        text.iter().copied().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n')).collect();
    let is_symbol = |byte: u8| encoding.specification().symbols.as_bytes().contains(&byte);
    let mut start = 0;
    while start < symbols.len() {
        let quantum = &symbols[start..symbols.len().min(start + group)];
        if let Some(index) = quantum.iter().position(|(_, byte)| !is_symbol(*byte)) {
            let (at, byte) = quantum[index];
            if byte != b'=' {
                return at;
            }
            let padding = quantum.len() - index;
            let is_fine =
                index >= 2 && quantum.len() == group && quantum[index..].iter().all(|(_, byte)| *byte == b'=');
            return match () {
                () if !is_fine && index < 2 => at,
                () if quantum.len() < group => text.len(),
                () if !is_fine => quantum[index..].iter().find(|(_, byte)| *byte != b'=').map_or(at, |(at, _)| *at),
                () => symbols.get(start + group).map_or(at + padding, |(at, _)| *at),
            };
        }
        if quantum.len() < group {
            // What is missing is reported where the group begins.
            return text.len() - quantum.len();
        }
        start += group;
    }
    text.len()
}
