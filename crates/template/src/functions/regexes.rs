//! Regular expressions.

mod translate;

use super::strings::room;
use super::{Function, Returned, bytes, function, integer, string, text, value};
use crate::error::Failure;
use crate::execute::Machine;
use crate::value::{ListType, Operand, Type, Value};
use regex::bytes::{Captures, Regex, RegexBuilder};

/// Bytes that a compiled expression takes.
const SIZE: usize = 8 << 20;

const TWO: &[Type] = &[Type::Text, Type::Text];
const THREE: &[Type] = &[Type::Text, Type::Text, Type::Text];
const COUNTED: &[Type] = &[Type::Text, Type::Text, Type::Int];

pub(super) const FUNCTIONS: &[Function] = &[
    function("regexMatch", TWO, |machine, arguments| match compiled(machine, arguments) {
        Ok(regex) => Ok(Value::Bool(regex.is_match(bytes(&machine.heap, arguments, 1)))),
        Err(_) => Ok(Value::Bool(false)),
    }),
    function("mustRegexMatch", TWO, |machine, arguments| {
        let regex = compiled(machine, arguments)?;
        Ok(Value::Bool(regex.is_match(bytes(&machine.heap, arguments, 1))))
    }),
    function("regexFind", TWO, |machine, arguments| find(machine, arguments, true)),
    function("mustRegexFind", TWO, |machine, arguments| find(machine, arguments, false)),
    function("regexFindAll", COUNTED, |machine, arguments| find_all(machine, arguments, true)),
    function("mustRegexFindAll", COUNTED, |machine, arguments| find_all(machine, arguments, false)),
    function("regexReplaceAll", THREE, |machine, arguments| replace(machine, arguments, true, true)),
    function("mustRegexReplaceAll", THREE, |machine, arguments| replace(machine, arguments, false, true)),
    function("regexReplaceAllLiteral", THREE, |machine, arguments| replace(machine, arguments, true, false)),
    function("mustRegexReplaceAllLiteral", THREE, |machine, arguments| replace(machine, arguments, false, false)),
    function("regexSplit", COUNTED, |machine, arguments| split(machine, arguments, true)),
    function("mustRegexSplit", COUNTED, |machine, arguments| split(machine, arguments, false)),
    function("regexQuoteMeta", &[Type::Text], |machine, arguments| {
        let mut output = Vec::new();
        for byte in bytes(&machine.heap, arguments, 0) {
            if br"\.+*?()|[]{}^$".contains(byte) {
                output.push(b'\\');
            }
            output.push(*byte);
        }
        Ok(machine.heap.string(output))
    }),
];

/// The expression that is the first argument; `Err` has Go's message.
fn compiled(machine: &mut Machine<'_>, arguments: &[Operand]) -> Result<Regex, String> {
    let pattern = string(machine, arguments, 0);
    if let Some(known) = machine.regexes.get(&pattern) {
        return known.clone();
    }
    let regex = compile(&pattern);
    machine.regexes.insert(pattern, regex.clone());
    regex
}

fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = translate::translate(pattern)?;
    let mut builder = RegexBuilder::new(&translated);
    builder.size_limit(SIZE).nest_limit(250);
    builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "error parsing regexp: expression too large".to_owned(),
        _ => format!("error parsing regexp: invalid or unsupported Perl syntax: `{pattern}`"),
    })
}

/// The expression, or what Go panics with if there is none.
fn expression(machine: &mut Machine<'_>, arguments: &[Operand], panics: bool) -> Result<Regex, Failure> {
    compiled(machine, arguments).map_err(|error| {
        if !panics {
            return Failure::Message(error);
        }
        let pattern = string(machine, arguments, 0);
        let is_raw = !pattern.contains('`') && pattern.chars().all(|one| one >= ' ' || one == '\t');
        let quoted = if is_raw { format!("`{pattern}`") } else { crate::quote::quote(pattern.as_bytes(), false) };
        Failure::Message(format!("regexp: Compile({quoted}): {error}"))
    })
}

fn find(machine: &mut Machine<'_>, arguments: &[Operand], panics: bool) -> Returned {
    let regex = expression(machine, arguments, panics)?;
    let whole = text(arguments, 1);
    let found = regex.find(machine.heap.bytes(whole)).map_or((0, 0), |found| (found.start(), found.end()));
    Ok(Value::Text(whole.slice(found.0, found.1)))
}

/// Where the expression matches, so many times at most if the number is not negative.
fn matches(regex: &Regex, text: &[u8], most: i64) -> Vec<(usize, usize)> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    regex.find_iter(text).take(most).map(|found| (found.start(), found.end())).collect()
}

fn find_all(machine: &mut Machine<'_>, arguments: &[Operand], panics: bool) -> Returned {
    let regex = expression(machine, arguments, panics)?;
    let whole = text(arguments, 1);
    let found = matches(&regex, machine.heap.bytes(whole), integer(arguments, 2));
    if found.is_empty() {
        return Ok(machine.heap.nil_list(ListType::Texts));
    }
    let items = found.into_iter().map(|(start, end)| Value::Text(whole.slice(start, end))).collect();
    Ok(machine.heap.list(ListType::Texts, items))
}

fn split(machine: &mut Machine<'_>, arguments: &[Operand], panics: bool) -> Returned {
    let regex = expression(machine, arguments, panics)?;
    let (whole, count) = (text(arguments, 1), integer(arguments, 2));
    if count == 0 {
        return Ok(machine.heap.nil_list(ListType::Texts));
    }
    if text(arguments, 0).len() > 0 && whole.len() == 0 {
        let items = vec![value(arguments, 1)];
        return Ok(machine.heap.list(ListType::Texts, items));
    }
    let mut parts = Vec::new();
    let (mut begin, mut end) = (0, 0);
    for (start, stop) in matches(&regex, machine.heap.bytes(whole), count) {
        if count > 0 && parts.len() as i64 == count - 1 {
            break;
        }
        end = start;
        if stop != 0 {
            parts.push(Value::Text(whole.slice(begin, end)));
        }
        begin = stop;
    }
    if end != whole.len() {
        parts.push(Value::Text(whole.slice(begin, whole.len())));
    }
    Ok(machine.heap.list(ListType::Texts, parts))
}

fn replace(machine: &mut Machine<'_>, arguments: &[Operand], panics: bool, expands: bool) -> Returned {
    let regex = expression(machine, arguments, panics)?;
    let [source, template] = [1, 2].map(|index| bytes(&machine.heap, arguments, index));
    let mut output = Vec::new();
    let mut done = 0;
    for found in regex.captures_iter(source) {
        let Some(whole) = found.get(0) else { continue };
        output.extend_from_slice(&source[done..whole.start()]);
        if expands {
            expand(&regex, &found, template, &mut output);
        } else {
            output.extend_from_slice(template);
        }
        done = whole.end();
        room(machine, output.len())?;
    }
    output.extend_from_slice(&source[done..]);
    Ok(machine.heap.string(output))
}

/// Fills groups into a template as Go does: `$1x` is the group `1x`, and `${1}x` the group 1.
fn expand(regex: &Regex, found: &Captures<'_>, template: &[u8], output: &mut Vec<u8>) {
    let mut rest = template;
    while let Some(at) = rest.iter().position(|byte| *byte == b'$') {
        output.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        if rest.get(1) == Some(&b'$') {
            output.push(b'$');
            rest = &rest[2..];
            continue;
        }
        let brace = usize::from(rest.get(1) == Some(&b'{'));
        let name_start = 1 + brace;
        let length =
            rest[name_start..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let end = name_start + length;
        if length == 0 || (brace == 1 && rest.get(end) != Some(&b'}')) {
            output.push(b'$');
            rest = &rest[1..];
            continue;
        }
        let name = String::from_utf8_lossy(&rest[name_start..end]).into_owned();
        rest = &rest[end + brace..];
        let group = match name.parse::<usize>() {
            Ok(number) if name.bytes().all(|byte| byte.is_ascii_digit()) => found.get(number),
            _ if regex.capture_names().flatten().any(|known| known == name) => found.name(&name),
            _ => None,
        };
        output.extend_from_slice(group.map_or(&[], |group| group.as_bytes()));
    }
    output.extend_from_slice(rest);
}
