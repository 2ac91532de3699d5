//! Lists, which are never changed: each function returns another list.

use super::conversions::to_int;
use super::{Function, NIL_POINTER, Returned, function, integer, value, values, variadic};
use crate::error::Failure;
use crate::execute::Machine;
use crate::heap::List;
use crate::value::{ListType, Operand, Type, Value};

const ANY: &[Type] = &[Type::Any];
const TWO: &[Type] = &[Type::Any, Type::Any];
const CHUNK: &[Type] = &[Type::Int, Type::Any];

pub(super) const FUNCTIONS: &[Function] = &[
    variadic("list", ANY, |machine, arguments| Ok(machine.heap.any_list(values(arguments, 0)))).transparent(),
    variadic("tuple", ANY, |machine, arguments| Ok(machine.heap.any_list(values(arguments, 0)))).transparent(),
    function("append", TWO, append).transparent(),
    function("push", TWO, append).transparent(),
    function("mustAppend", TWO, append).transparent(),
    function("mustPush", TWO, append).transparent(),
    function("prepend", TWO, prepend).transparent(),
    function("mustPrepend", TWO, prepend).transparent(),
    function("first", ANY, first).transparent(),
    function("mustFirst", ANY, first).transparent(),
    function("last", ANY, last).transparent(),
    function("mustLast", ANY, last).transparent(),
    function("rest", ANY, rest).transparent(),
    function("mustRest", ANY, rest).transparent(),
    function("initial", ANY, initial).transparent(),
    function("mustInitial", ANY, initial).transparent(),
    function("reverse", ANY, reverse).transparent(),
    function("mustReverse", ANY, reverse).transparent(),
    function("uniq", ANY, uniq),
    function("mustUniq", ANY, uniq),
    variadic("without", TWO, without),
    variadic("mustWithout", TWO, without),
    function("has", TWO, has),
    function("mustHas", TWO, has),
    function("compact", ANY, compact),
    function("mustCompact", ANY, compact),
    variadic("slice", TWO, slice).transparent(),
    variadic("mustSlice", TWO, slice).transparent(),
    variadic("concat", ANY, concat).transparent(),
    function("chunk", CHUNK, chunk).transparent(),
    function("mustChunk", CHUNK, chunk).transparent(),
];

/// A list argument; `refusal` is what Sprig says of anything else, before its kind.
fn list<'m>(machine: &'m Machine<'_>, value: Value, refusal: &str) -> Result<&'m List, Failure> {
    match value {
        Value::List(list) => Ok(machine.heap.get_list(list)),
        Value::Nil => Err(NIL_POINTER.into()),
        other => Err(format!("{refusal} {}", machine.heap.kind(other)).into()),
    }
}

fn items(machine: &Machine<'_>, value: Value, refusal: &str) -> Result<Vec<Value>, Failure> {
    list(machine, value, refusal).map(|list| list.items.clone())
}

fn append(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let mut items = items(machine, value(arguments, 0), "Cannot push on type")?;
    items.push(value(arguments, 1));
    Ok(machine.heap.any_list(items))
}

fn prepend(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let mut items = items(machine, value(arguments, 0), "Cannot prepend on type")?;
    items.insert(0, value(arguments, 1));
    Ok(machine.heap.any_list(items))
}

fn first(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let list = list(machine, value(arguments, 0), "Cannot find first on type")?;
    Ok(list.items.first().copied().unwrap_or(Value::Nil))
}

fn last(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let list = list(machine, value(arguments, 0), "Cannot find last on type")?;
    Ok(list.items.last().copied().unwrap_or(Value::Nil))
}

fn rest(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let mut items = items(machine, value(arguments, 0), "Cannot find rest on type")?;
    if items.is_empty() {
        return Ok(machine.heap.nil_list(ListType::Any));
    }
    items.remove(0);
    Ok(machine.heap.any_list(items))
}

fn initial(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let mut items = items(machine, value(arguments, 0), "Cannot find initial on type")?;
    if items.pop().is_none() {
        return Ok(machine.heap.nil_list(ListType::Any));
    }
    Ok(machine.heap.any_list(items))
}

fn reverse(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let mut items = items(machine, value(arguments, 0), "Cannot find reverse on type")?;
    items.reverse();
    Ok(machine.heap.any_list(items))
}

fn uniq(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let items = items(machine, value(arguments, 0), "Cannot find uniq on type")?;
    let mut kept: Vec<Value> = Vec::new();
    for item in items {
        if !kept.iter().any(|known| machine.heap.deep_equal(item, *known, 0)) {
            kept.push(item);
        }
    }
    Ok(machine.heap.any_list(kept))
}

fn without(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let mut items = items(machine, value(arguments, 0), "Cannot find without on type")?;
    let omitted = values(arguments, 1);
    items.retain(|item| !omitted.iter().any(|omitted| machine.heap.deep_equal(*item, *omitted, 0)));
    Ok(machine.heap.any_list(items))
}

fn has(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    if value(arguments, 1) == Value::Nil {
        return Ok(Value::Bool(false));
    }
    let list = list(machine, value(arguments, 1), "Cannot find has on type")?;
    let needle = value(arguments, 0);
    Ok(Value::Bool(list.items.iter().any(|item| machine.heap.deep_equal(needle, *item, 0))))
}

fn compact(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let mut items = items(machine, value(arguments, 0), "Cannot compact on type")?;
    items.retain(|item| !machine.heap.is_empty(*item));
    Ok(machine.heap.any_list(items))
}

fn slice(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let list = list(machine, value(arguments, 0), "list should be type of slice or array but")?;
    let (kind, length) = (list.kind, list.items.len());
    if length == 0 {
        return Ok(Value::Nil);
    }
    let bound = |index: usize, default: usize| {
        if arguments.len() > index { to_int(machine, value(arguments, index)) } else { default as i64 }
    };
    let (start, end) = (bound(1, 0), bound(2, length));
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return Err("reflect.Value.Slice: slice index out of bounds".into());
    };
    if from > to || to > length {
        return Err("reflect.Value.Slice: slice index out of bounds".into());
    }
    let items = list.items[from..to].to_vec();
    Ok(machine.heap.list(kind, items))
}

fn concat(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let mut joined = Vec::new();
    for value in values(arguments, 0) {
        match value {
            Value::List(list) => joined.extend_from_slice(&machine.heap.get_list(list).items),
            Value::Nil => return Err(NIL_POINTER.into()),
            other => return Err(format!("Cannot concat type {} as list", machine.heap.kind(other)).into()),
        }
    }
    let is_nil = joined.is_empty();
    Ok(Value::List(machine.heap.list_id(ListType::Any, joined, is_nil)))
}

fn chunk(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let items = items(machine, value(arguments, 1), "Cannot chunk type")?;
    let size = integer(arguments, 0);
    let Some(size) = usize::try_from(size).ok().filter(|size| *size > 0) else {
        // Go computes with infinities here, and panics.
        return Err("runtime error: makeslice: len out of range".into());
    };
    let chunks = items.chunks(size).map(|chunk| machine.heap.any_list(chunk.to_vec())).collect();
    Ok(machine.heap.list(ListType::Lists, chunks))
}
