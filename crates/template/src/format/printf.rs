//! Formats: `%[2]*.[1]*f` and its kin, and what Go prints where they are wrong.

use super::Printer;
use super::scalar::Flags;
use crate::utf8::decode;
use crate::value::Value;

/// Widths and precisions beyond this are none, as in Go.
const LARGEST: i64 = 1_000_000;

/// A position in the arguments.
struct Position {
    index: usize,
    /// Whether an explicit index was fine so far.
    is_good: bool,
    /// Whether the last thing read was an index such as `[3]`.
    after_index: bool,
    reordered: bool,
}

impl Printer<'_> {
    pub(super) fn printf(&mut self, format: &[u8], values: &[Value]) {
        let mut position = Position { index: 0, is_good: true, after_index: false, reordered: false };
        let mut at = 0;
        while at < format.len() {
            if self.is_full() {
                return;
            }
            position.is_good = true;
            position.after_index = false;
            let text = format[at..].iter().position(|byte| *byte == b'%').map_or(format.len(), |found| at + found);
            self.output.extend_from_slice(&format[at..text]);
            at = text;
            if at >= format.len() {
                break;
            }
            at += 1;
            self.flags = Flags::default();
            while let Some(byte) = format.get(at) {
                match byte {
                    b'#' => self.flags.sharp = true,
                    b'0' => self.flags.zero = true,
                    b'+' => self.flags.plus = true,
                    b'-' => self.flags.minus = true,
                    b' ' => self.flags.space = true,
                    _ => break,
                }
                at += 1;
            }
            at = self.width_and_precision(format, at, values, &mut position);
            let Some((verb, width)) = decode(&format[at.min(format.len())..]) else {
                self.output.extend_from_slice(b"%!(NOVERB)");
                break;
            };
            at += width;
            self.verb(verb, values, &mut position);
        }
        if !position.reordered && position.index < values.len() {
            self.extra(&values[position.index..]);
        }
    }

    fn verb(&mut self, verb: char, values: &[Value], position: &mut Position) {
        let report = |printer: &mut Self, text: &str| {
            printer.output.extend_from_slice(b"%!");
            crate::utf8::push(&mut printer.output, verb);
            printer.output.extend_from_slice(text.as_bytes());
        };
        if verb == '%' {
            return self.output.push(b'%');
        }
        if !position.is_good {
            return report(self, "(BADINDEX)");
        }
        let Some(value) = values.get(position.index) else { return report(self, "(MISSING)") };
        if verb == 'v' {
            self.flags.sharp_v = std::mem::take(&mut self.flags.sharp);
            self.flags.plus_v = std::mem::take(&mut self.flags.plus);
        }
        self.argument(*value, verb);
        position.index += 1;
    }

    fn width_and_precision(
        &mut self,
        format: &[u8],
        mut at: usize,
        values: &[Value],
        position: &mut Position,
    ) -> usize {
        at = index(format, at, values.len(), position);
        if format.get(at) == Some(&b'*') {
            at += 1;
            match number_argument(values, position) {
                Some(width) => {
                    self.flags.width = Some(width.unsigned_abs() as usize);
                    if width < 0 {
                        self.flags.minus = true;
                        self.flags.zero = false;
                    }
                }
                None => self.output.extend_from_slice(b"%!(BADWIDTH)"),
            }
            position.after_index = false;
        } else {
            let (width, next) = number(format, at);
            self.flags.width = width;
            at = next;
            if position.after_index && width.is_some() {
                position.is_good = false;
            }
        }
        if at + 1 < format.len() && format[at] == b'.' {
            at += 1;
            if position.after_index {
                position.is_good = false;
            }
            at = index(format, at, values.len(), position);
            if format.get(at) == Some(&b'*') {
                at += 1;
                match number_argument(values, position) {
                    Some(precision) if precision >= 0 => self.flags.precision = Some(precision as usize),
                    Some(_) | None => self.output.extend_from_slice(b"%!(BADPREC)"),
                }
                position.after_index = false;
            } else {
                let (precision, next) = number(format, at);
                self.flags.precision = Some(precision.unwrap_or(0));
                at = next;
            }
        }
        if !position.after_index {
            at = index(format, at, values.len(), position);
        }
        at
    }

    fn extra(&mut self, values: &[Value]) {
        self.flags = Flags::default();
        self.output.extend_from_slice(b"%!(EXTRA ");
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.output.extend_from_slice(b", ");
            }
            if *value == Value::Nil {
                self.output.extend_from_slice(b"<nil>");
            } else {
                self.output.extend_from_slice(self.heap.type_name(*value).as_bytes());
                self.output.push(b'=');
                self.argument(*value, 'v');
            }
        }
        self.output.push(b')');
    }
}

/// Reads an explicit index such as `[3]`, if there is one.
fn index(format: &[u8], at: usize, count: usize, position: &mut Position) -> usize {
    if format.get(at) != Some(&b'[') {
        position.after_index = false;
        return at;
    }
    position.reordered = true;
    let Some(length) = format[at..].iter().position(|byte| *byte == b']').filter(|_| format.len() - at >= 3) else {
        position.is_good = false;
        position.after_index = false;
        return at + 1;
    };
    let next = at + length + 1;
    let (number, end) = number(format, at + 1);
    let is_number = number.is_some() && end == at + length;
    if let Some(number) = number.filter(|number| is_number && *number >= 1 && *number <= count) {
        position.index = number - 1;
        position.after_index = true;
        return next;
    }
    position.is_good = false;
    position.after_index = is_number;
    next
}

fn number(format: &[u8], start: usize) -> (Option<usize>, usize) {
    let digits = format[start.min(format.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return (None, start);
    }
    let text = String::from_utf8_lossy(&format[start..start + digits]);
    match text.parse::<i64>() {
        Ok(number) if number <= LARGEST => (Some(number as usize), start + digits),
        // Go gives up here, and takes the rest for the verb.
        _ => (None, format.len()),
    }
}

fn number_argument(values: &[Value], position: &mut Position) -> Option<i64> {
    let value = values.get(position.index)?;
    position.index += 1;
    let number = match value {
        Value::Int(number) | Value::Int64(number) => *number,
        Value::Uint64(number) => i64::try_from(*number).ok()?,
        Value::Byte(number) => i64::from(*number),
        _ => return None,
    };
    (number.abs() <= LARGEST).then_some(number)
}
