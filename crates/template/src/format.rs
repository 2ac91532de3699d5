//! Values as Go's `fmt` prints them (go1.24 `print.go` and `format.go`).

mod printf;
mod scalar;

use crate::heap::Heap;
use crate::host::Host;
use crate::value::{ListType, Value};
use scalar::Flags;

/// Values within values that are printed.
const DEPTH: usize = 1000;

/// Prints values one after the other, as `fmt.Sprint` does: a space between two that are no texts.
pub(crate) fn sprint(heap: &Heap, values: &[Value]) -> Result<Vec<u8>, Overflow> {
    let mut printer = Printer::new(heap);
    let mut previous_is_text = false;
    for (index, value) in values.iter().enumerate() {
        let is_text = matches!(value, Value::Text(_));
        if index > 0 && !is_text && !previous_is_text {
            printer.output.push(b' ');
        }
        printer.argument(*value, 'v');
        previous_is_text = is_text;
    }
    printer.finish()
}

/// Prints values with a space between each two, and a line break, as `fmt.Sprintln` does.
pub(crate) fn sprintln(heap: &Heap, values: &[Value]) -> Result<Vec<u8>, Overflow> {
    let mut printer = Printer::new(heap);
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            printer.output.push(b' ');
        }
        printer.argument(*value, 'v');
    }
    printer.output.push(b'\n');
    printer.finish()
}

/// `fmt.Sprintf`
pub(crate) fn sprintf(heap: &Heap, format: &[u8], values: &[Value]) -> Result<Vec<u8>, Overflow> {
    let mut printer = Printer::new(heap);
    printer.printf(format, values);
    printer.finish()
}

/// A value that is too deep to print, or too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

struct Printer<'a> {
    heap: &'a Heap,
    output: Vec<u8>,
    flags: Flags,
    /// Whether what is printed belongs to the report of a wrong verb.
    is_reporting: bool,
    overflows: bool,
}

impl<'a> Printer<'a> {
    fn new(heap: &'a Heap) -> Self {
        Self { heap, output: Vec::new(), flags: Flags::default(), is_reporting: false, overflows: false }
    }

    fn finish(self) -> Result<Vec<u8>, Overflow> {
        if self.overflows || !self.heap.has_room(self.output.len()) { Err(Overflow) } else { Ok(self.output) }
    }

    /// Whether to stop, because nothing more is wanted.
    fn is_full(&mut self) -> bool {
        self.overflows |= self.output.len() > self.heap.limit();
        self.overflows
    }

    fn argument(&mut self, value: Value, verb: char) {
        match (value, verb) {
            (Value::Nil, 'T' | 'v') => self.pad_text(b"<nil>"),
            (Value::Nil, _) => self.bad_verb(value, verb),
            (_, 'T') => {
                let name = self.heap.type_name(value);
                self.truncated(name.as_bytes());
            }
            (Value::List(_) | Value::Map(_), 'p') => self.output.extend_from_slice(b"0xc000000000"),
            (_, 'p') => self.bad_verb(value, verb),
            _ => self.value(value, verb, 0),
        }
    }

    fn value(&mut self, value: Value, verb: char, depth: usize) {
        if depth > DEPTH || self.is_full() {
            self.overflows = true;
            return;
        }
        match value {
            Value::Nil => self.nil(verb),
            Value::Bool(value) => self.bool(value, verb),
            Value::Int(number) | Value::Int64(number) => self.integer(number.cast_unsigned(), true, verb, value),
            Value::Uint64(number) => self.integer(number, false, verb, value),
            Value::Byte(number) => self.integer(u64::from(number), false, verb, value),
            Value::Float(number) => self.float(number, verb, value),
            Value::Text(text) => {
                let bytes = self.heap.bytes(text);
                self.text(bytes, verb, value);
            }
            Value::List(id) => {
                let list = self.heap.get_list(id);
                if list.kind == ListType::Bytes && (depth == 0 || matches!(verb, 's' | 'q' | 'x' | 'X')) {
                    return self.bytes(value, verb, depth);
                }
                let (open, close) = if self.flags.sharp_v { (b'{', b'}') } else { (b'[', b']') };
                if self.flags.sharp_v {
                    self.output.extend_from_slice(list.kind.name().as_bytes());
                    if list.is_nil {
                        return self.output.extend_from_slice(b"(nil)");
                    }
                }
                self.output.push(open);
                let holds_interfaces = list.kind == ListType::Any;
                for (index, item) in list.items.iter().enumerate() {
                    self.separate(index);
                    self.element(*item, holds_interfaces, verb, depth + 1);
                    if self.overflows {
                        return;
                    }
                }
                self.output.push(close);
            }
            Value::Map(id) => {
                let map = self.heap.get_map(id);
                if self.flags.sharp_v {
                    self.output.extend_from_slice(map.kind.name().as_bytes());
                    if map.is_nil {
                        return self.output.extend_from_slice(b"(nil)");
                    }
                    self.output.push(b'{');
                } else {
                    self.output.extend_from_slice(b"map[");
                }
                for (index, (key, item)) in map.entries.iter().enumerate() {
                    self.separate(index);
                    self.value(Value::Text(*key), verb, depth + 1);
                    self.output.push(b':');
                    self.element(*item, map.kind.holds_interfaces(), verb, depth + 1);
                    if self.overflows {
                        return;
                    }
                }
                self.output.push(if self.flags.sharp_v { b'}' } else { b']' });
            }
            Value::Host(id) => self.host(value, self.heap.get_host(id), verb, depth),
        }
    }

    /// Something within a list, a map or a struct.
    fn element(&mut self, value: Value, is_interface: bool, verb: char, depth: usize) {
        if value == Value::Nil {
            let nil: &[u8] = if self.flags.sharp_v { b"interface {}(nil)" } else { b"<nil>" };
            return self.output.extend_from_slice(nil);
        }
        self.value(value, verb, depth + usize::from(is_interface));
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.output.extend_from_slice(if self.flags.sharp_v { b", " } else { b" " });
        }
    }

    fn nil(&mut self, verb: char) {
        if verb == 'v' {
            self.output.extend_from_slice(b"<nil>");
        } else {
            self.bad_verb(Value::Nil, verb);
        }
    }

    fn host(&mut self, value: Value, host: &Host, verb: char, depth: usize) {
        if !self.is_reporting
            && !self.flags.sharp_v
            && matches!(verb, 'v' | 's' | 'x' | 'X' | 'q')
            && let Some(text) = host.string()
        {
            return self.text(text.as_bytes(), verb, value);
        }
        match host {
            Host::Struct(structure) => {
                if structure.is_pointer {
                    if depth > 0 {
                        return self.output.extend_from_slice(b"0xc000000000");
                    }
                    self.output.push(b'&');
                }
                if self.flags.sharp_v {
                    self.output.extend_from_slice(structure.type_name.as_bytes());
                }
                self.output.push(b'{');
                for (index, field) in structure.fields.iter().enumerate() {
                    self.separate(index);
                    if self.flags.plus_v || self.flags.sharp_v {
                        self.output.extend_from_slice(field.name.as_bytes());
                        self.output.push(b':');
                    }
                    self.element(field.value, false, verb, depth + 1);
                }
                self.output.push(b'}');
            }
            Host::Duration(nanoseconds) => self.integer(nanoseconds.cast_unsigned(), true, verb, value),
            Host::Time(_) | Host::Semver(_) => match host.string() {
                Some(text) => self.text(text.as_bytes(), verb, value),
                None => self.bad_verb(value, verb),
            },
        }
    }

    fn bytes(&mut self, value: Value, verb: char, depth: usize) {
        let Value::List(id) = value else { return };
        let items = &self.heap.get_list(id).items;
        let bytes: Vec<u8> = items.iter().map(|item| if let Value::Byte(byte) = item { *byte } else { 0 }).collect();
        match verb {
            'v' | 'd' if self.flags.sharp_v => {
                self.output.extend_from_slice(if depth == 0 { b"[]byte{" } else { b"[]uint8{" });
                for (index, byte) in bytes.iter().enumerate() {
                    self.separate(index);
                    self.output.extend_from_slice(format!("{byte:#x}").as_bytes());
                }
                self.output.push(b'}');
            }
            's' | 'q' | 'x' | 'X' => self.text(&bytes, verb, value),
            _ => {
                self.output.push(b'[');
                for (index, byte) in bytes.iter().enumerate() {
                    self.separate(index);
                    self.integer(u64::from(*byte), false, verb, Value::Byte(*byte));
                }
                self.output.push(b']');
            }
        }
    }

    fn bad_verb(&mut self, value: Value, verb: char) {
        self.is_reporting = true;
        self.output.extend_from_slice(b"%!");
        crate::utf8::push(&mut self.output, verb);
        self.output.push(b'(');
        if value == Value::Nil {
            self.output.extend_from_slice(b"<nil>");
        } else {
            self.output.extend_from_slice(self.heap.type_name(value).as_bytes());
            self.output.push(b'=');
            self.value(value, 'v', 0);
        }
        self.output.push(b')');
        self.is_reporting = false;
    }
}

#[cfg(test)]
mod tests;
