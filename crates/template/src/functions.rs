//! The functions of Go, Sprig and Helm, one file a family.

mod builtins;
mod conversions;
mod crypto;
mod dates;
mod defaults;
mod dicts;
mod encoding;
mod helm;
mod lists;
mod math;
mod paths;
mod random;
mod reflection;
mod regexes;
mod strings;
mod urls;
mod versions;

use crate::environment::Helm;
use crate::error::Failure;
use crate::execute::Machine;
use crate::heap::Heap;
use crate::value::{MapId, Operand, Text, Type, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What a function returns.
pub(crate) type Returned = Result<Value, Failure>;

/// What a function does. Its arguments have the types of its signature.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    Plain(fn(&mut Machine<'_>, &[Operand]) -> Returned),
    /// `and`, which evaluates its arguments itself.
    And,
    /// `or`, likewise.
    Or,
    /// `call`, which can call nothing, because no value of a chart is a function.
    Call,
}

/// A function.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// The types of its parameters; the last one may be repeated if it is variadic.
    pub(crate) parameters: &'static [Type],
    pub(crate) is_variadic: bool,
    /// Whether it reads nothing of the maps that it is given, or notes itself what it reads.
    pub(crate) is_transparent: bool,
    /// The first Helm that has it.
    since: Helm,
    pub(crate) run: Run,
}

type Plain = fn(&mut Machine<'_>, &[Operand]) -> Returned;

const fn function(name: &'static str, parameters: &'static [Type], run: Plain) -> Function {
    let since = Helm::new(3, 0, 0);
    Function { name, parameters, is_variadic: false, is_transparent: false, since, run: Run::Plain(run) }
}

const fn variadic(name: &'static str, parameters: &'static [Type], run: Plain) -> Function {
    Function { is_variadic: true, ..function(name, parameters, run) }
}

impl Function {
    /// It passes maps on without looking into them, or notes itself what it reads.
    const fn transparent(self) -> Self {
        Self { is_transparent: true, ..self }
    }

    const fn since(self, since: Helm) -> Self {
        Self { since, ..self }
    }
}

static FUNCTIONS: LazyLock<BTreeMap<&'static str, &'static Function>> = LazyLock::new(|| {
    let families = [
        builtins::FUNCTIONS,
        conversions::FUNCTIONS,
        crypto::FUNCTIONS,
        dates::FUNCTIONS,
        defaults::FUNCTIONS,
        dicts::FUNCTIONS,
        encoding::FUNCTIONS,
        lists::FUNCTIONS,
        math::FUNCTIONS,
        paths::FUNCTIONS,
        random::FUNCTIONS,
        reflection::FUNCTIONS,
        regexes::FUNCTIONS,
        strings::FUNCTIONS,
        urls::FUNCTIONS,
        versions::FUNCTIONS,
        // Helm's replace those of the same name.
        helm::FUNCTIONS,
    ];
    families.into_iter().flatten().map(|function| (function.name, function)).collect()
});

/// A function by its name, if this Helm has it.
pub(crate) fn find(name: &str, helm: Helm) -> Option<&'static Function> {
    FUNCTIONS.get(name).copied().filter(|function| function.since <= helm)
}

/// The names of all functions that a Helm has.
pub fn names(helm: Helm) -> impl Iterator<Item = &'static str> {
    FUNCTIONS.values().filter(move |function| function.since <= helm).map(|function| function.name)
}

/// An argument as it is, nothing where there is none.
fn value(arguments: &[Operand], index: usize) -> Value {
    arguments.get(index).map_or(Value::Nil, |argument| argument.value)
}

/// A text argument.
fn text(arguments: &[Operand], index: usize) -> Text {
    match value(arguments, index) {
        Value::Text(text) => text,
        _ => Text { start: 0, length: 0 },
    }
}

/// An integer argument.
fn integer(arguments: &[Operand], index: usize) -> i64 {
    match value(arguments, index) {
        Value::Int(number) | Value::Int64(number) => number,
        Value::Uint64(number) => number.cast_signed(),
        Value::Byte(number) => i64::from(number),
        _ => 0,
    }
}

/// A map argument.
fn map(arguments: &[Operand], index: usize) -> Result<MapId, Failure> {
    match value(arguments, index) {
        Value::Map(map) => Ok(map),
        _ => Err("the argument is no map".into()),
    }
}

/// The bytes of a text argument.
fn bytes<'h>(heap: &'h Heap, arguments: &[Operand], index: usize) -> &'h [u8] {
    heap.bytes(text(arguments, index))
}

/// A text argument as Rust's, broken characters replaced.
fn string(machine: &Machine<'_>, arguments: &[Operand], index: usize) -> String {
    machine.heap.str(text(arguments, index))
}

/// All arguments from one on.
fn values(arguments: &[Operand], from: usize) -> Vec<Value> {
    arguments.iter().skip(from).map(|argument| argument.value).collect()
}

/// What Go panics with where a nil interface has no type.
const NIL_POINTER: &str = "runtime error: invalid memory address or nil pointer dereference";

pub(crate) use dates::moment;

/// The last part of a path.
pub(crate) fn base_name(path: &[u8]) -> Vec<u8> {
    paths::base(path)
}
