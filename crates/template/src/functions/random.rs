//! Chance.

use super::{Function, bytes, function, integer};
use crate::environment::Random;
use crate::execute::Machine;
use crate::utf8::{characters, push};
use crate::value::{Type, Value};
use data_encoding::{BASE64, HEXLOWER};

const COUNT: &[Type] = &[Type::Int];
const DIGITS: &str = "0123456789";
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

pub(super) const FUNCTIONS: &[Function] = &[
    function("randAlphaNum", COUNT, |machine, arguments| {
        drawn(machine, integer(arguments, 0), format!("{DIGITS}{LETTERS}").as_bytes())
    }),
    function("randAlpha", COUNT, |machine, arguments| drawn(machine, integer(arguments, 0), LETTERS.as_bytes())),
    function("randNumeric", COUNT, |machine, arguments| drawn(machine, integer(arguments, 0), DIGITS.as_bytes())),
    function("randAscii", COUNT, |machine, arguments| {
        let printable: Vec<u8> = (b' '..=b'~').collect();
        drawn(machine, integer(arguments, 0), &printable)
    }),
    function("randInt", &[Type::Int, Type::Int], |machine, arguments| {
        let (least, most) = (integer(arguments, 0), integer(arguments, 1));
        let width = most.wrapping_sub(least);
        let width = u64::try_from(width).ok().filter(|width| *width > 0).ok_or("invalid argument to Intn")?;
        let drawn = draw(machine).below(width).cast_signed();
        Ok(Value::Int(least.wrapping_add(drawn)))
    }),
    function("randBytes", COUNT, |machine, arguments| {
        let count = usize::try_from(integer(arguments, 0)).map_err(|_| "runtime error: makeslice: len out of range")?;
        super::strings::room(machine, count.saturating_mul(2))?;
        let drawn = draw(machine).bytes(count);
        Ok(machine.heap.string(BASE64.encode(&drawn)))
    }),
    function("uuidv4", &[], |machine, _| {
        let mut drawn = draw(machine).bytes(16);
        drawn[6] = drawn[6] & 0x0f | 0x40;
        drawn[8] = drawn[8] & 0x3f | 0x80;
        let hexadecimal = HEXLOWER.encode(&drawn);
        let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &hexadecimal[range]);
        Ok(machine.heap.string(parts.join("-")))
    }),
    function("shuffle", &[Type::Text], |machine, arguments| {
        let mut random = draw(machine);
        let mut shuffled: Vec<char> = characters(bytes(&machine.heap, arguments, 0)).map(|(_, one, _)| one).collect();
        for index in (1..shuffled.len()).rev() {
            shuffled.swap(index, random.below(index as u64 + 1) as usize);
        }
        let mut output = Vec::new();
        for character in shuffled {
            push(&mut output, character);
        }
        Ok(machine.heap.string(output))
    }),
];

/// A source for one draw, which is noted.
pub(crate) fn draw(machine: &mut Machine<'_>) -> Random {
    machine.reads.drew = true;
    machine.draws += 1;
    machine.environment.entropy.draw(&machine.file, machine.draws)
}

fn drawn(machine: &mut Machine<'_>, count: i64, symbols: &[u8]) -> super::Returned {
    let count = usize::try_from(count).unwrap_or(0);
    super::strings::room(machine, count)?;
    let mut random = draw(machine);
    let text: Vec<u8> = (0..count).map(|_| symbols[random.below(symbols.len() as u64) as usize]).collect();
    Ok(machine.heap.string(text))
}
