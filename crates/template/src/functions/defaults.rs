//! What to take where there is nothing.

use super::{Function, function, value, values, variadic};
use crate::execute::Machine;
use crate::value::{Operand, Type, Value};

const ANY: &[Type] = &[Type::Any];

pub(super) const FUNCTIONS: &[Function] = &[
    variadic("default", &[Type::Any, Type::Any], |machine, arguments| {
        let given = value(arguments, 1);
        Ok(if arguments.len() < 2 || is_empty(machine, given) { value(arguments, 0) } else { given })
    })
    .transparent(),
    function("empty", ANY, |machine, arguments| Ok(Value::Bool(is_empty(machine, value(arguments, 0))))).transparent(),
    variadic("coalesce", ANY, |machine, arguments| Ok(first(machine, arguments, false).unwrap_or(Value::Nil)))
        .transparent(),
    variadic("all", ANY, |machine, arguments| Ok(Value::Bool(first(machine, arguments, true).is_none()))).transparent(),
    variadic("any", ANY, |machine, arguments| Ok(Value::Bool(first(machine, arguments, false).is_some())))
        .transparent(),
    function("ternary", &[Type::Any, Type::Any, Type::Bool], |_, arguments| {
        Ok(value(arguments, usize::from(value(arguments, 2) != Value::Bool(true))))
    })
    .transparent(),
];

/// Whether Sprig takes a value for empty, which is read of it.
fn is_empty(machine: &mut Machine<'_>, value: Value) -> bool {
    if let Value::Map(map) = value {
        machine.reads.emptiness(&machine.heap, map);
    }
    machine.heap.is_empty(value)
}

/// The first value that is empty, or the first that is not.
fn first(machine: &mut Machine<'_>, arguments: &[Operand], wanted: bool) -> Option<Value> {
    values(arguments, 0).into_iter().find(|value| is_empty(machine, *value) == wanted)
}
