//! Texts.

mod cases;

use super::{Function, Returned, bytes, function, integer, string, text, value, values, variadic};
use crate::error::Failure;
use crate::execute::Machine;
use crate::format;
use crate::lex::find;
use crate::quote::quote;
use crate::utf8::{characters, push};
use crate::value::{ListType, MapType, Operand, Type, Value};

const TEXT: &[Type] = &[Type::Text];
const TEXTS: &[Type] = &[Type::Text, Type::Text];
const NUMBER_TEXT: &[Type] = &[Type::Int, Type::Text];
const THREE: &[Type] = &[Type::Text, Type::Text, Type::Text];
const ANY: &[Type] = &[Type::Any];

pub(super) const FUNCTIONS: &[Function] = &[
    function("hello", &[], |machine, _| Ok(machine.heap.string("Hello!"))),
    function("abbrev", NUMBER_TEXT, |machine, arguments| {
        let width = integer(arguments, 0);
        let text = bytes(&machine.heap, arguments, 1).to_vec();
        let short = if width < 4 { text } else { abbreviate(&text, 0, width)? };
        Ok(machine.heap.string(short))
    }),
    function("abbrevboth", &[Type::Int, Type::Int, Type::Text], |machine, arguments| {
        let (left, right) = (integer(arguments, 0), integer(arguments, 1));
        let text = bytes(&machine.heap, arguments, 2).to_vec();
        let short = if right < 4 || (left > 0 && right < 7) { text } else { abbreviate(&text, left, right)? };
        Ok(machine.heap.string(short))
    }),
    function("trunc", NUMBER_TEXT, |_, arguments| {
        let (count, text) = (integer(arguments, 0), text(arguments, 1));
        let length = text.len() as i64;
        Ok(Value::Text(match count {
            _ if count < 0 && length + count > 0 => text.slice((length + count) as usize, text.len()),
            _ if count >= 0 && length > count => text.slice(0, count as usize),
            _ => text,
        }))
    }),
    function("trim", TEXT, |machine, arguments| Ok(trim(machine, arguments, 0, char::is_whitespace))),
    function("upper", TEXT, |machine, arguments| mapped(machine, arguments, &|one, output| push_upper(output, one))),
    function("lower", TEXT, |machine, arguments| mapped(machine, arguments, &|one, output| push_lower(output, one))),
    function("title", TEXT, title),
    function("untitle", TEXT, untitle),
    function("substr", &[Type::Int, Type::Int, Type::Text], substring),
    function("repeat", NUMBER_TEXT, repeat),
    function("trimall", TEXTS, trim_all),
    function("trimAll", TEXTS, trim_all),
    function("trimSuffix", TEXTS, |machine, arguments| {
        let whole = text(arguments, 1);
        let kept = bytes(&machine.heap, arguments, 1).strip_suffix(bytes(&machine.heap, arguments, 0)).map(<[u8]>::len);
        Ok(Value::Text(kept.map_or(whole, |kept| whole.slice(0, kept))))
    }),
    function("trimPrefix", TEXTS, |machine, arguments| {
        let whole = text(arguments, 1);
        let starts = bytes(&machine.heap, arguments, 1).starts_with(bytes(&machine.heap, arguments, 0));
        Ok(Value::Text(if starts { whole.slice(text(arguments, 0).len(), whole.len()) } else { whole }))
    }),
    function("nospace", TEXT, no_space),
    function("initials", TEXT, |machine, arguments| {
        let mut output = Vec::new();
        let mut after_gap = true;
        for byte in bytes(&machine.heap, arguments, 0) {
            let character = char::from(*byte);
            if character.is_whitespace() {
                after_gap = true;
            } else if std::mem::take(&mut after_gap) {
                push(&mut output, character);
            }
        }
        Ok(machine.heap.string(output))
    }),
    function("swapcase", TEXT, |machine, arguments| {
        let swapped = cases::swap(&string(machine, arguments, 0));
        Ok(machine.heap.string(swapped))
    }),
    function("snakecase", TEXT, |machine, arguments| {
        let output = cases::connected(&string(machine, arguments, 0), '_');
        Ok(machine.heap.string(output))
    }),
    function("kebabcase", TEXT, |machine, arguments| {
        let output = cases::connected(&string(machine, arguments, 0), '-');
        Ok(machine.heap.string(output))
    }),
    function("camelcase", TEXT, |machine, arguments| {
        let output = cases::pascal(&string(machine, arguments, 0));
        Ok(machine.heap.string(output))
    }),
    function("wrap", NUMBER_TEXT, |machine, arguments| {
        let output = wrap(bytes(&machine.heap, arguments, 1), integer(arguments, 0), b"\n", false);
        Ok(machine.heap.string(output))
    }),
    function("wrapWith", &[Type::Int, Type::Text, Type::Text], |machine, arguments| {
        let separator = bytes(&machine.heap, arguments, 1);
        let separator = if separator.is_empty() { b"\n" } else { separator };
        let text = bytes(&machine.heap, arguments, 2);
        room(machine, text.len().saturating_mul(separator.len() + 1))?;
        let output = wrap(text, integer(arguments, 0), separator, true);
        Ok(machine.heap.string(output))
    }),
    function("contains", TEXTS, |machine, arguments| {
        let found = find(bytes(&machine.heap, arguments, 1), bytes(&machine.heap, arguments, 0));
        Ok(Value::Bool(found.is_some()))
    }),
    function("hasPrefix", TEXTS, |machine, arguments| {
        Ok(Value::Bool(bytes(&machine.heap, arguments, 1).starts_with(bytes(&machine.heap, arguments, 0))))
    }),
    function("hasSuffix", TEXTS, |machine, arguments| {
        Ok(Value::Bool(bytes(&machine.heap, arguments, 1).ends_with(bytes(&machine.heap, arguments, 0))))
    }),
    variadic("quote", ANY, |machine, arguments| {
        joined(machine, arguments, |machine, value| Ok(quote(&strval(machine, value)?, false).into_bytes()))
    }),
    variadic("squote", ANY, |machine, arguments| {
        joined(machine, arguments, |machine, value| {
            Ok([b"'", &*format::sprint(&machine.heap, &[value])?, b"'"].concat())
        })
    }),
    variadic("cat", ANY, cat),
    function("indent", NUMBER_TEXT, |machine, arguments| indent(machine, arguments, b"")),
    function("nindent", NUMBER_TEXT, |machine, arguments| indent(machine, arguments, b"\n")),
    function("replace", THREE, |machine, arguments| {
        let [old, new, source] = [0, 1, 2].map(|index| bytes(&machine.heap, arguments, index));
        let output = replace(machine, source, old, new)?;
        Ok(machine.heap.string(output))
    }),
    function("plural", &[Type::Text, Type::Text, Type::Int], |_, arguments| {
        Ok(value(arguments, usize::from(integer(arguments, 2) != 1)))
    }),
    function("toString", ANY, |machine, arguments| {
        let output = strval(machine, value(arguments, 0))?;
        Ok(machine.heap.string(output))
    }),
    function("toStrings", ANY, |machine, arguments| {
        let texts = strslice(machine, value(arguments, 0))?;
        Ok(machine.heap.texts(texts))
    }),
    function("split", TEXTS, |machine, arguments| {
        let parts = split(bytes(&machine.heap, arguments, 1), bytes(&machine.heap, arguments, 0), usize::MAX);
        Ok(numbered(machine, parts))
    }),
    function("splitn", &[Type::Text, Type::Int, Type::Text], |machine, arguments| {
        let count = integer(arguments, 1);
        let most = if count < 0 { usize::MAX } else { count as usize };
        let parts = split(bytes(&machine.heap, arguments, 2), bytes(&machine.heap, arguments, 0), most);
        Ok(numbered(machine, parts))
    }),
    function("splitList", TEXTS, |machine, arguments| {
        let parts = split(bytes(&machine.heap, arguments, 1), bytes(&machine.heap, arguments, 0), usize::MAX);
        Ok(machine.heap.texts(parts))
    }),
    function("join", &[Type::Text, Type::Any], |machine, arguments| {
        let separator = bytes(&machine.heap, arguments, 0).to_vec();
        let texts = strslice(machine, value(arguments, 1))?;
        let length: usize = texts.iter().map(|text| text.len().saturating_add(separator.len())).sum();
        room(machine, length)?;
        Ok(machine.heap.string(texts.join(&*separator)))
    }),
    function("sortAlpha", ANY, |machine, arguments| {
        let mut texts = strslice(machine, value(arguments, 0))?;
        texts.sort();
        Ok(machine.heap.texts(texts))
    }),
];

/// Refuses what would not fit into memory before it is computed.
pub(super) fn room(machine: &Machine<'_>, bytes: usize) -> Result<(), Failure> {
    if machine.heap.has_room(bytes) {
        return Ok(());
    }
    Err(Failure::Limit(format!("the values of the templates would take more than {} bytes", machine.heap.limit())))
}

/// A value as Sprig turns it into a text.
pub(super) fn strval(machine: &Machine<'_>, value: Value) -> Result<Vec<u8>, Failure> {
    match value {
        Value::Text(text) => Ok(machine.heap.bytes(text).to_vec()),
        Value::List(id) if machine.heap.get_list(id).kind == ListType::Bytes => Ok(raw(machine, value)),
        _ => Ok(format::sprint(&machine.heap, &[value])?),
    }
}

/// The bytes of a `[]byte`.
pub(super) fn raw(machine: &Machine<'_>, value: Value) -> Vec<u8> {
    let Value::List(list) = value else { return Vec::new() };
    let items = machine.heap.get_list(list).items.iter();
    items.map(|item| if let Value::Byte(byte) = item { *byte } else { 0 }).collect()
}

/// A value as Sprig turns it into texts; nothing in a list is left out.
pub(super) fn strslice(machine: &Machine<'_>, value: Value) -> Result<Vec<Vec<u8>>, Failure> {
    match value {
        Value::Nil => Ok(Vec::new()),
        Value::List(list) => {
            let items = machine.heap.get_list(list).items.iter().filter(|item| **item != Value::Nil);
            items.map(|item| strval(machine, *item)).collect()
        }
        _ => Ok(vec![strval(machine, value)?]),
    }
}

fn joined(
    machine: &mut Machine<'_>,
    arguments: &[Operand],
    show: impl Fn(&Machine<'_>, Value) -> Result<Vec<u8>, Failure>,
) -> Returned {
    let values = values(arguments, 0).into_iter().filter(|value| *value != Value::Nil);
    let shown = values.map(|value| show(machine, value)).collect::<Result<Vec<_>, _>>()?;
    Ok(machine.heap.string(shown.join(&b' ')))
}

fn cat(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    joined(machine, arguments, |machine, value| Ok(format::sprintf(&machine.heap, b"%v", &[value])?))
}

fn indent(machine: &mut Machine<'_>, arguments: &[Operand], start: &[u8]) -> Returned {
    let spaces = integer(arguments, 0);
    let spaces = usize::try_from(spaces).map_err(|_| "strings: negative Repeat count")?;
    let text = bytes(&machine.heap, arguments, 1);
    let lines = crate::lex::count_lines(text) + 1;
    room(machine, lines.saturating_mul(spaces).saturating_add(text.len()))?;
    let pad = vec![b' '; spaces];
    let mut output = start.to_vec();
    output.reserve(text.len() + lines * spaces);
    output.extend_from_slice(&pad);
    for byte in text {
        output.push(*byte);
        if *byte == b'\n' {
            output.extend_from_slice(&pad);
        }
    }
    Ok(machine.heap.string(output))
}

fn repeat(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let count = usize::try_from(integer(arguments, 0)).map_err(|_| "strings: negative Repeat count")?;
    let text = bytes(&machine.heap, arguments, 1);
    room(machine, text.len().saturating_mul(count))?;
    let output = text.repeat(count);
    Ok(machine.heap.string(output))
}

fn replace(machine: &Machine<'_>, source: &[u8], old: &[u8], new: &[u8]) -> Result<Vec<u8>, Failure> {
    let most = if old.is_empty() { source.len() + 1 } else { source.len() / old.len() };
    if new.len() > old.len() {
        room(machine, source.len().saturating_add(most.saturating_mul(new.len())))?;
    }
    let mut output = Vec::with_capacity(source.len());
    if old.is_empty() {
        output.extend_from_slice(new);
        for (offset, _, width) in characters(source) {
            output.extend_from_slice(&source[offset..offset + width]);
            output.extend_from_slice(new);
        }
        return Ok(output);
    }
    let mut rest = source;
    while let Some(at) = find(rest, old) {
        output.extend_from_slice(&rest[..at]);
        output.extend_from_slice(new);
        rest = &rest[at + old.len()..];
    }
    output.extend_from_slice(rest);
    Ok(output)
}

/// `strings.SplitN`; an empty separator cuts between characters.
pub(super) fn split(text: &[u8], separator: &[u8], most: usize) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    if most == 0 {
        return parts;
    }
    let mut rest = text;
    if separator.is_empty() {
        while let Some((_, width)) = crate::utf8::decode(rest) {
            if parts.len() + 1 == most {
                break;
            }
            parts.push(rest[..width].to_vec());
            rest = &rest[width..];
        }
        if !rest.is_empty() {
            parts.push(rest.to_vec());
        }
        return parts;
    }
    while parts.len() + 1 < most {
        let Some(at) = find(rest, separator) else { break };
        parts.push(rest[..at].to_vec());
        rest = &rest[at + separator.len()..];
    }
    parts.push(rest.to_vec());
    parts
}

/// Parts as a map from `_0` on.
fn numbered(machine: &mut Machine<'_>, parts: Vec<Vec<u8>>) -> Value {
    let map = machine.heap.map(MapType::Texts);
    for (index, part) in parts.into_iter().enumerate() {
        let part = machine.heap.string(part);
        machine.heap.set(map, format!("_{index}"), part);
    }
    Value::Map(map)
}

fn trim(machine: &Machine<'_>, arguments: &[Operand], index: usize, is_cut: impl Fn(char) -> bool) -> Value {
    let whole = text(arguments, index);
    let text = machine.heap.bytes(whole);
    let Some(start) = characters(text).find(|(_, one, _)| !is_cut(*one)).map(|(offset, ..)| offset) else {
        return Value::Text(whole.slice(0, 0));
    };
    let mut end = text.len();
    while let Some((last, width)) = crate::utf8::decode_last(&text[..end]) {
        if !is_cut(last) {
            break;
        }
        end -= width;
    }
    Value::Text(whole.slice(start, end))
}

fn trim_all(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let cut = string(machine, arguments, 0);
    Ok(trim(machine, arguments, 1, |character| cut.contains(character)))
}

fn mapped(machine: &mut Machine<'_>, arguments: &[Operand], change: &dyn Fn(char, &mut Vec<u8>)) -> Returned {
    let text = bytes(&machine.heap, arguments, 0);
    let mut output = Vec::with_capacity(text.len());
    for (_, character, _) in characters(text) {
        change(character, &mut output);
    }
    Ok(machine.heap.string(output))
}

/// Go maps characters to characters, so that what becomes several in Rust stays as it is.
pub(super) fn upper(character: char) -> char {
    let mut upper = character.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(one), None) => one,
        _ => character,
    }
}

pub(super) fn lower(character: char) -> char {
    match character {
        // Go's lower case of it is one character.
        '\u{130}' => 'i',
        _ => character.to_lowercase().next().unwrap_or(character),
    }
}

fn push_upper(output: &mut Vec<u8>, character: char) {
    push(output, upper(character));
}

fn push_lower(output: &mut Vec<u8>, character: char) {
    push(output, lower(character));
}

/// `strings.Title`: the first letter of each word in upper case, the rest as it is.
fn title(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let mut output = Vec::new();
    let mut previous = ' ';
    for (_, character, _) in characters(bytes(&machine.heap, arguments, 0)) {
        push(&mut output, if is_separator(previous) { upper(character) } else { character });
        previous = character;
    }
    Ok(machine.heap.string(output))
}

fn is_separator(character: char) -> bool {
    match character {
        '_' => false,
        _ if character.is_ascii() => !character.is_ascii_alphanumeric(),
        _ if character.is_alphanumeric() => false,
        _ => character.is_whitespace(),
    }
}

fn untitle(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let mut output = Vec::new();
    let mut is_first = true;
    for (_, character, _) in characters(bytes(&machine.heap, arguments, 0)) {
        if character.is_whitespace() {
            is_first = true;
            push(&mut output, character);
        } else if std::mem::take(&mut is_first) {
            push_lower(&mut output, character);
        } else {
            push(&mut output, character);
        }
    }
    Ok(machine.heap.string(output))
}

fn substring(_: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let (start, end, text) = (integer(arguments, 0), integer(arguments, 1), text(arguments, 2));
    let length = text.len() as i64;
    let out_of_range = |what: String| Failure::from(format!("runtime error: slice bounds out of range {what}"));
    if start < 0 {
        return match usize::try_from(end) {
            Ok(end) if end <= text.len() => Ok(Value::Text(text.slice(0, end))),
            Ok(end) => Err(out_of_range(format!("[:{end}] with length {length}"))),
            Err(_) => Err(out_of_range(format!("[:{end}]"))),
        };
    }
    let to = if end < 0 || end > length { length } else { end };
    if start > to {
        let whole = end < 0 || end > length;
        return Err(out_of_range(if whole { format!("[{start}:{length}]") } else { format!("[{start}:{end}]") }));
    }
    Ok(Value::Text(text.slice(start as usize, to as usize)))
}

/// Without space; each byte is taken for a character, as goutils does.
fn no_space(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let text = bytes(&machine.heap, arguments, 0);
    let is_space = |byte: &u8| char::from(*byte).is_whitespace();
    if !text.iter().any(is_space) {
        return Ok(value(arguments, 0));
    }
    let mut output = Vec::new();
    for byte in text.iter().filter(|byte| !is_space(byte)) {
        push(&mut output, char::from(*byte));
    }
    Ok(machine.heap.string(output))
}

/// goutils' `AbbreviateFull`, which errors are lost of.
fn abbreviate(text: &[u8], offset: i64, width: i64) -> Result<Vec<u8>, Failure> {
    let length = text.len() as i64;
    if text.is_empty() || width < 4 {
        return Ok(Vec::new());
    }
    if length <= width {
        return Ok(text.to_vec());
    }
    let offset = offset.min(length);
    let offset = if length - offset < width - 3 { length - (width - 3) } else { offset };
    let kept = (width - 3) as usize;
    if offset <= 4 {
        return Ok([&text[..kept], b"..."].concat());
    }
    if width < 7 {
        return Ok(Vec::new());
    }
    if offset + width - 3 < length {
        let rest = abbreviate(&text[offset as usize..], 0, width - 3)?;
        return Ok([b"...", &*rest].concat());
    }
    Ok([b"...", &text[text.len() - kept..]].concat())
}

/// goutils' `WrapCustom`.
fn wrap(text: &[u8], width: i64, separator: &[u8], cuts_words: bool) -> Vec<u8> {
    let width = usize::try_from(width).unwrap_or(0).max(1);
    let mut output = Vec::with_capacity(text.len());
    let mut offset = 0;
    while text.len() - offset > width {
        if text[offset] == b' ' {
            offset += 1;
            continue;
        }
        let line = &text[offset..=offset + width];
        if let Some(space) = line.iter().rposition(|byte| *byte == b' ') {
            output.extend_from_slice(&line[..space]);
            output.extend_from_slice(separator);
            offset += space + 1;
        } else if cuts_words {
            output.extend_from_slice(&line[..width]);
            output.extend_from_slice(separator);
            offset += width;
        } else if let Some(space) = text[offset + width..].iter().position(|byte| *byte == b' ') {
            output.extend_from_slice(&text[offset..offset + width + space]);
            output.extend_from_slice(separator);
            offset += width + space + 1;
        } else {
            output.extend_from_slice(&text[offset..]);
            offset = text.len();
        }
    }
    output.extend_from_slice(&text[offset..]);
    output
}
