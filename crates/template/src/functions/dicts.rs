//! Maps, which are shared: `set` and `merge` change the map that they are given.

use super::strings::strval;
use super::{Function, Returned, bytes, function, map, text, value, variadic};
use crate::error::Failure;
use crate::execute::Machine;
use crate::host::Host;
use crate::value::{ListType, MapId, MapType, Operand, Type, Value};
use std::collections::BTreeSet;

const ANY: &[Type] = &[Type::Any];
const MAP: &[Type] = &[Type::Map];
const MAPS: &[Type] = &[Type::Map, Type::Map];
const KEY: &[Type] = &[Type::Map, Type::Text];

pub(super) const FUNCTIONS: &[Function] = &[
    variadic("dict", ANY, dict).transparent(),
    function("get", KEY, |machine, arguments| {
        Ok(lookup(machine, map(arguments, 0)?, bytes(&machine.heap, arguments, 1).to_vec())
            .unwrap_or_else(|| machine.heap.string("")))
    })
    .transparent(),
    function("set", &[Type::Map, Type::Text, Type::Any], |machine, arguments| {
        let map = map(arguments, 0)?;
        writable(machine, map)?;
        machine.heap.set_text(map, text(arguments, 1), value(arguments, 2));
        Ok(value(arguments, 0))
    })
    .transparent(),
    function("unset", KEY, |machine, arguments| {
        let key = bytes(&machine.heap, arguments, 1).to_vec();
        machine.heap.remove(map(arguments, 0)?, &key);
        Ok(value(arguments, 0))
    })
    .transparent(),
    function("hasKey", KEY, |machine, arguments| {
        let found = lookup(machine, map(arguments, 0)?, bytes(&machine.heap, arguments, 1).to_vec());
        Ok(Value::Bool(found.is_some()))
    })
    .transparent(),
    variadic("pluck", &[Type::Text, Type::Map], |machine, arguments| {
        let key = bytes(&machine.heap, arguments, 0).to_vec();
        let maps = (1..arguments.len()).map(|index| map(arguments, index)).collect::<Result<Vec<_>, _>>()?;
        let found = maps.into_iter().filter_map(|map| lookup(machine, map, key.clone())).collect();
        Ok(machine.heap.any_list(found))
    })
    .transparent(),
    variadic("keys", MAP, |machine, arguments| {
        let mut keys = Vec::new();
        for index in 0..arguments.len() {
            let map = map(arguments, index)?;
            machine.reads.keys(&machine.heap, map);
            keys.extend(machine.heap.get_map(map).entries.iter().map(|(key, _)| Value::Text(*key)));
        }
        Ok(machine.heap.list(ListType::Texts, keys))
    })
    .transparent(),
    function("values", MAP, |machine, arguments| {
        let map = map(arguments, 0)?;
        let values = machine.heap.get_map(map).entries.iter().map(|(_, value)| *value).collect();
        Ok(machine.heap.any_list(values))
    }),
    variadic("pick", KEY, |machine, arguments| {
        let from = map(arguments, 0)?;
        let picked = machine.heap.map(MapType::Any);
        for index in 1..arguments.len() {
            let key = text(arguments, index);
            if let Some(value) = lookup(machine, from, machine.heap.bytes(key).to_vec()) {
                machine.heap.set_text(picked, key, value);
            }
        }
        Ok(Value::Map(picked))
    })
    .transparent(),
    variadic("omit", KEY, |machine, arguments| {
        let from = map(arguments, 0)?;
        let kept = machine.heap.map(MapType::Any);
        let omitted: Vec<&[u8]> = (1..arguments.len()).map(|index| bytes(&machine.heap, arguments, index)).collect();
        let entries = machine.heap.get_map(from).entries.iter();
        let entries: Vec<_> =
            entries.filter(|(key, _)| !omitted.contains(&machine.heap.bytes(*key))).copied().collect();
        for (key, value) in entries {
            machine.heap.set_text(kept, key, value);
        }
        Ok(Value::Map(kept))
    }),
    variadic("merge", MAPS, |machine, arguments| merged(machine, arguments, false)),
    variadic("mustMerge", MAPS, |machine, arguments| merged(machine, arguments, false)),
    variadic("mergeOverwrite", MAPS, |machine, arguments| merged(machine, arguments, true)),
    variadic("mustMergeOverwrite", MAPS, |machine, arguments| merged(machine, arguments, true)),
    function("deepCopy", ANY, |machine, arguments| deep_copy(machine, value(arguments, 0))),
    function("mustDeepCopy", ANY, |machine, arguments| deep_copy(machine, value(arguments, 0))),
    variadic("dig", ANY, dig).transparent(),
];

/// What a map has under a key, which is noted as read.
fn lookup(machine: &mut Machine<'_>, map: MapId, key: Vec<u8>) -> Option<Value> {
    let found = machine.heap.get(map, &key);
    machine.reads.lookup(&machine.heap, map, &key, found);
    found
}

fn writable(machine: &Machine<'_>, map: MapId) -> Result<(), Failure> {
    if machine.heap.get_map(map).is_nil {
        return Err("assignment to entry in nil map".into());
    }
    Ok(())
}

fn dict(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let map = machine.heap.map(MapType::Any);
    for pair in arguments.chunks(2) {
        let value = match pair.get(1) {
            Some(value) => value.value,
            None => machine.heap.string(""),
        };
        match pair[0].value {
            Value::Text(key) => machine.heap.set_text(map, key, value),
            key => {
                let key = strval(machine, key)?;
                machine.heap.set(map, key, value);
            }
        }
    }
    Ok(Value::Map(map))
}

fn dig(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let [keys @ .., default, last] = arguments else { return Err("dig needs at least three arguments".into()) };
    if keys.is_empty() {
        return Err("dig needs at least three arguments".into());
    }
    let conversion = |machine: &Machine<'_>, value: Value, wanted: &str| {
        let got = match value {
            Value::Nil => "nil".to_owned(),
            value => machine.heap.type_name(value),
        };
        Failure::Message(format!("interface conversion: interface {{}} is {got}, not {wanted}"))
    };
    let as_map = |machine: &Machine<'_>, value: Value| match value {
        Value::Map(map) if machine.heap.get_map(map).kind == MapType::Any => Ok(map),
        _ => Err(conversion(machine, value, "map[string]interface {}")),
    };
    let mut current = as_map(machine, last.value)?;
    let mut names = Vec::new();
    for key in keys {
        match key.value {
            Value::Text(text) => names.push(machine.heap.bytes(text).to_vec()),
            value => return Err(conversion(machine, value, "string")),
        }
    }
    let count = names.len();
    for (index, name) in names.into_iter().enumerate() {
        match lookup(machine, current, name) {
            None => return Ok(default.value),
            Some(value) if index + 1 == count => return Ok(value),
            Some(value) => current = as_map(machine, value)?,
        }
    }
    Ok(default.value)
}

fn merged(machine: &mut Machine<'_>, arguments: &[Operand], overwrites: bool) -> Returned {
    let target = map(arguments, 0)?;
    for index in 1..arguments.len() {
        let source = map(arguments, index)?;
        if target != source {
            if !machine.heap.get_map(source).entries.is_empty() {
                writable(machine, target)?;
            }
            merge(machine, target, source, overwrites, 0)?;
        }
    }
    Ok(value(arguments, 0))
}

/// What dario.cat/mergo v1.0.1 does to `map[string]interface{}`.
fn merge(
    machine: &mut Machine<'_>,
    target: MapId,
    source: MapId,
    overwrites: bool,
    depth: usize,
) -> Result<(), Failure> {
    if depth > 1000 {
        return Err(Failure::Limit("merged maps are nested more than 1000 deep".to_owned()));
    }
    let entries = machine.heap.get_map(source).entries.clone();
    for (key, theirs) in entries {
        let ours = machine.heap.get(target, machine.heap.bytes(key));
        if theirs == Value::Nil {
            if overwrites {
                machine.heap.set_text(target, key, theirs);
            }
            continue;
        }
        match (ours, theirs) {
            (Some(Value::Map(inner)), Value::Map(other)) if inner != other => {
                merge(machine, inner, other, overwrites, depth + 1)?;
            }
            // A list replaces another one even if it is empty.
            (_, Value::List(_)) if overwrites || machine.heap.get_map(target).entries.is_empty() => {
                machine.heap.set_text(target, key, theirs);
            }
            _ => {}
        }
        let is_done = match (ours, theirs) {
            (Some(ours), _) if machine.heap.is_empty(ours) => false,
            (Some(_), Value::List(_)) | (Some(Value::Map(_)), Value::Map(_)) => true,
            (Some(_), _) => !overwrites,
            (None, _) => false,
        };
        if !is_done {
            machine.heap.set_text(target, key, theirs);
        }
    }
    Ok(())
}

/// `copystructure.Copy`: maps and lists are new, and shared no longer.
fn deep_copy(machine: &mut Machine<'_>, value: Value) -> Returned {
    let mut copies = BTreeSet::new();
    let mut left = 10_000_000;
    copy(machine, value, &mut copies, &mut left, 0)
}

fn copy(
    machine: &mut Machine<'_>,
    value: Value,
    open: &mut BTreeSet<MapId>,
    left: &mut usize,
    depth: usize,
) -> Returned {
    let limit = || Failure::Limit("a value is too large or too deep to be copied".to_owned());
    *left = left.checked_sub(1).ok_or_else(limit)?;
    if depth > 1000 || machine.heap.is_exhausted() {
        return Err(limit());
    }
    match value {
        Value::Map(map) => {
            if !open.insert(map) {
                return Err(limit());
            }
            let kind = machine.heap.get_map(map).kind;
            let entries = machine.heap.get_map(map).entries.clone();
            let new = machine.heap.map(kind);
            for (key, value) in entries {
                let value = copy(machine, value, open, left, depth + 1)?;
                machine.heap.set_text(new, key, value);
            }
            open.remove(&map);
            Ok(Value::Map(new))
        }
        Value::List(list) => {
            let list = machine.heap.get_list(list).clone();
            let items = list.items.into_iter().map(|item| copy(machine, item, open, left, depth + 1));
            let items = items.collect::<Result<Vec<_>, _>>()?;
            Ok(Value::List(machine.heap.list_id(list.kind, items, list.is_nil)))
        }
        Value::Host(host) if let Host::Struct(_) = machine.heap.get_host(host) => Ok(value),
        _ => Ok(value),
    }
}
