//! Arithmetic.

mod decimal;

use super::conversions::{to_float, to_int};
use super::{Function, Returned, function, integer, value, values, variadic};
use crate::error::Failure;
use crate::execute::Machine;
use crate::value::{ListType, Operand, Type, Value};
use decimal::Decimal;

const ANY: &[Type] = &[Type::Any];
const TWO: &[Type] = &[Type::Any, Type::Any];

pub(super) const FUNCTIONS: &[Function] = &[
    function("add1", ANY, |machine, arguments| Ok(Value::Int64(to_int(machine, value(arguments, 0)).wrapping_add(1)))),
    variadic("add", ANY, |machine, arguments| fold(machine, arguments, 0, i64::wrapping_add)),
    function("sub", TWO, |machine, arguments| {
        let [one, other] = pair(machine, arguments);
        Ok(Value::Int64(one.wrapping_sub(other)))
    }),
    function("div", TWO, |machine, arguments| {
        let [one, other] = pair(machine, arguments);
        if other == 0 { Err(DIVIDED.into()) } else { Ok(Value::Int64(one.wrapping_div(other))) }
    }),
    function("mod", TWO, |machine, arguments| {
        let [one, other] = pair(machine, arguments);
        if other == 0 { Err(DIVIDED.into()) } else { Ok(Value::Int64(one.wrapping_rem(other))) }
    }),
    variadic("mul", TWO, |machine, arguments| fold(machine, arguments, 1, i64::wrapping_mul)),
    variadic("max", TWO, |machine, arguments| fold(machine, arguments, i64::MIN, Ord::max)),
    variadic("biggest", TWO, |machine, arguments| fold(machine, arguments, i64::MIN, Ord::max)),
    variadic("min", TWO, |machine, arguments| fold(machine, arguments, i64::MAX, Ord::min)),
    variadic("maxf", TWO, |machine, arguments| extreme(machine, arguments, true)),
    variadic("minf", TWO, |machine, arguments| extreme(machine, arguments, false)),
    function("add1f", ANY, |machine, arguments| {
        let one = Decimal::from_float(to_float(machine, value(arguments, 0)))?;
        Ok(Value::Float(one.plus(&Decimal::from_float(1.0)?).to_float()))
    }),
    variadic("addf", ANY, |machine, arguments| {
        decimals(machine, Decimal::from_float(0.0)?, arguments, |one, other| Ok(one.plus(other)))
    }),
    variadic("subf", TWO, |machine, arguments| {
        let first = first(machine, arguments)?;
        decimals(machine, first, &arguments[1..], |one, other| Ok(one.minus(other)))
    }),
    variadic("mulf", TWO, |machine, arguments| {
        let first = first(machine, arguments)?;
        decimals(machine, first, &arguments[1..], |one, other| Ok(one.times(other)))
    }),
    variadic("divf", TWO, |machine, arguments| {
        let first = first(machine, arguments)?;
        decimals(machine, first, &arguments[1..], Decimal::over)
    }),
    function("floor", ANY, |machine, arguments| Ok(Value::Float(to_float(machine, value(arguments, 0)).floor()))),
    function("ceil", ANY, |machine, arguments| Ok(Value::Float(to_float(machine, value(arguments, 0)).ceil()))),
    variadic("round", &[Type::Any, Type::Int, Type::Float], |machine, arguments| {
        let on = if let Value::Float(on) = value(arguments, 2) { on } else { 0.5 };
        let power = 10_f64.powf(integer(arguments, 1) as f64);
        let digit = power * to_float(machine, value(arguments, 0));
        let rounded = if digit.fract() >= on { digit.ceil() } else { digit.floor() };
        Ok(Value::Float(rounded / power))
    }),
    function("until", &[Type::Int], |machine, arguments| {
        let count = integer(arguments, 0);
        let numbers = steps(machine, 0, count, if count < 0 { -1 } else { 1 })?;
        Ok(numbers_list(machine, numbers))
    }),
    function("untilStep", &[Type::Int, Type::Int, Type::Int], |machine, arguments| {
        let numbers = steps(machine, integer(arguments, 0), integer(arguments, 1), integer(arguments, 2))?;
        Ok(numbers_list(machine, numbers))
    }),
    variadic("seq", &[Type::Int], sequence),
];

const DIVIDED: &str = "runtime error: integer divide by zero";

fn pair(machine: &Machine<'_>, arguments: &[Operand]) -> [i64; 2] {
    [0, 1].map(|index| to_int(machine, value(arguments, index)))
}

fn fold(machine: &Machine<'_>, arguments: &[Operand], start: i64, step: fn(i64, i64) -> i64) -> Returned {
    let numbers = values(arguments, 0).into_iter().map(|value| to_int(machine, value));
    Ok(Value::Int64(numbers.fold(start, step)))
}

fn extreme(machine: &Machine<'_>, arguments: &[Operand], is_largest: bool) -> Returned {
    let mut numbers = values(arguments, 0).into_iter().map(|value| to_float(machine, value));
    let mut best = numbers.next().unwrap_or(0.0);
    for number in numbers {
        best = match () {
            () if best.is_nan() || number.is_nan() => f64::NAN,
            () if is_largest => best.max(number),
            () => best.min(number),
        };
    }
    Ok(Value::Float(best))
}

fn first(machine: &Machine<'_>, arguments: &[Operand]) -> Result<Decimal, Failure> {
    Decimal::from_float(to_float(machine, value(arguments, 0)))
}

fn decimals(
    machine: &Machine<'_>,
    start: Decimal,
    arguments: &[Operand],
    step: impl Fn(&Decimal, &Decimal) -> Result<Decimal, Failure>,
) -> Returned {
    let mut sum = start;
    for argument in arguments {
        sum = step(&sum, &Decimal::from_float(to_float(machine, argument.value))?)?;
    }
    Ok(Value::Float(sum.to_float()))
}

/// `untilStep`
fn steps(machine: &Machine<'_>, start: i64, stop: i64, step: i64) -> Result<Vec<i64>, Failure> {
    if step == 0 || (stop < start) != (step < 0) {
        // Go would count on for ever where it counts down by nothing.
        return Ok(Vec::new());
    }
    let count = (i128::from(stop) - i128::from(start)).unsigned_abs().div_ceil(u128::from(step.unsigned_abs()));
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    super::strings::room(machine, count.saturating_mul(size_of::<Value>()))?;
    Ok((0..count as i64).map(|index| start.wrapping_add(index.wrapping_mul(step))).collect())
}

fn numbers_list(machine: &mut Machine<'_>, numbers: Vec<i64>) -> Value {
    let items = numbers.into_iter().map(Value::Int).collect();
    machine.heap.list(ListType::Ints, items)
}

fn sequence(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let numbers: Vec<i64> = (0..arguments.len()).map(|index| integer(arguments, index)).collect();
    let numbers = match numbers[..] {
        [end] => {
            let step = if end < 1 { -1 } else { 1 };
            steps(machine, 1, end.saturating_add(step), step)?
        }
        [start, end] => {
            let step = if end < start { -1 } else { 1 };
            steps(machine, start, end.saturating_add(step), step)?
        }
        [start, step, end] => {
            let direction = if end < start { -1 } else { 1 };
            if end < start && step > 0 {
                Vec::new()
            } else {
                steps(machine, start, end.saturating_add(direction), step)?
            }
        }
        _ => Vec::new(),
    };
    let words: Vec<String> = numbers.iter().map(i64::to_string).collect();
    Ok(machine.heap.string(words.join(" ")))
}
