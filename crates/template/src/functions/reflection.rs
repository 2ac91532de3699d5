//! What a value is.

use super::{Function, bytes, function, value};
use crate::value::{Type, Value};

const ANY: &[Type] = &[Type::Any];
const TWO: &[Type] = &[Type::Any, Type::Any];
const NAMED: &[Type] = &[Type::Text, Type::Any];

pub(super) const FUNCTIONS: &[Function] = &[
    function("typeOf", ANY, |machine, arguments| {
        let name = machine.heap.type_name(value(arguments, 0));
        Ok(machine.heap.string(name))
    })
    .transparent(),
    function("typeIs", NAMED, |machine, arguments| {
        let name = machine.heap.type_name(value(arguments, 1));
        Ok(Value::Bool(bytes(&machine.heap, arguments, 0) == name.as_bytes()))
    })
    .transparent(),
    function("typeIsLike", NAMED, |machine, arguments| {
        let name = machine.heap.type_name(value(arguments, 1));
        let wanted = bytes(&machine.heap, arguments, 0);
        Ok(Value::Bool(
            wanted == name.as_bytes() || name.strip_prefix('*').is_some_and(|bare| wanted == bare.as_bytes()),
        ))
    })
    .transparent(),
    function("kindOf", ANY, |machine, arguments| {
        let kind = machine.heap.kind(value(arguments, 0));
        Ok(machine.heap.string(kind))
    })
    .transparent(),
    function("kindIs", NAMED, |machine, arguments| {
        let kind = machine.heap.kind(value(arguments, 1));
        Ok(Value::Bool(bytes(&machine.heap, arguments, 0) == kind.as_bytes()))
    })
    .transparent(),
    function("deepEqual", TWO, |machine, arguments| {
        Ok(Value::Bool(machine.heap.deep_equal(value(arguments, 0), value(arguments, 1), 0)))
    }),
];
