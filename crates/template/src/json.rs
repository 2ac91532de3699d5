//! JSON as Go writes and reads it.

use crate::error::Failure;
use crate::heap::Heap;
use crate::host::Host;
use crate::utf8::{REPLACEMENT, characters};
use crate::value::{ListType, MapType, Value};
use data_encoding::BASE64;
use serde_json::Number;

/// Values within values that are written.
const DEPTH: usize = 1000;

/// How JSON is written.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    /// Whether `<`, `>` and `&` are escaped.
    pub(crate) escapes_html: bool,
    /// Whether it is indented by two spaces.
    pub(crate) is_pretty: bool,
}

/// Writes a value; `Err` has Go's message.
pub(crate) fn write(heap: &Heap, value: Value, style: Style) -> Result<Vec<u8>, Failure> {
    let mut writer = Writer { heap, style, output: Vec::new() };
    writer.value(value, 0)?;
    Ok(writer.output)
}

struct Writer<'h> {
    heap: &'h Heap,
    style: Style,
    output: Vec<u8>,
}

impl Writer<'_> {
    fn value(&mut self, value: Value, depth: usize) -> Result<(), Failure> {
        if depth > DEPTH {
            return Err("json: unsupported value: encountered a cycle via map[string]interface {}".into());
        }
        if self.output.len() > self.heap.limit() {
            return Err(Failure::Limit("a value is too large to be written as JSON".to_owned()));
        }
        match value {
            Value::Nil => self.output.extend_from_slice(b"null"),
            Value::Bool(value) => self.output.extend_from_slice(if value { b"true" } else { b"false" }),
            Value::Int(number) | Value::Int64(number) => self.output.extend_from_slice(number.to_string().as_bytes()),
            Value::Uint64(number) => self.output.extend_from_slice(number.to_string().as_bytes()),
            Value::Byte(number) => self.output.extend_from_slice(number.to_string().as_bytes()),
            Value::Float(number) => match crate::float::json(number) {
                Some(text) => self.output.extend_from_slice(text.as_bytes()),
                None => return Err(format!("json: unsupported value: {}", crate::float::shortest(number)).into()),
            },
            Value::Text(text) => {
                let text = self.heap.bytes(text);
                self.text(text);
            }
            Value::List(id) => {
                let list = self.heap.get_list(id);
                if list.is_nil {
                    self.output.extend_from_slice(b"null");
                    return Ok(());
                }
                if list.kind == ListType::Bytes {
                    let bytes = list.items.iter().map(|item| if let Value::Byte(byte) = item { *byte } else { 0 });
                    let encoded = BASE64.encode(&bytes.collect::<Vec<u8>>());
                    self.text(encoded.as_bytes());
                    return Ok(());
                }
                let mut items = list.items.iter();
                self.collection(
                    *b"[]",
                    depth,
                    |writer| match items.next() {
                        Some(item) => writer.value(*item, depth + 1).map(|()| true),
                        None => Ok(false),
                    },
                    list.items.len(),
                )?;
            }
            Value::Map(id) => {
                let map = self.heap.get_map(id);
                if map.is_nil {
                    self.output.extend_from_slice(b"null");
                    return Ok(());
                }
                let mut entries = map.entries.iter();
                self.collection(
                    *b"{}",
                    depth,
                    |writer| match entries.next() {
                        Some((key, item)) => {
                            let key = writer.heap.bytes(*key);
                            writer.key(key);
                            writer.value(*item, depth + 1).map(|()| true)
                        }
                        None => Ok(false),
                    },
                    map.entries.len(),
                )?;
            }
            Value::Host(id) => self.host(self.heap.get_host(id), depth)?,
        }
        Ok(())
    }

    fn key(&mut self, key: &[u8]) {
        self.text(key);
        self.output.extend_from_slice(if self.style.is_pretty { b": " } else { b":" });
    }

    fn host(&mut self, host: &Host, depth: usize) -> Result<(), Failure> {
        match host {
            Host::Struct(structure) => {
                let is_written = |field: &&crate::host::Field| {
                    let is_omitted = field.omit_empty && self.heap.is_empty(field.value);
                    !field.json.is_empty() && !is_omitted
                };
                let fields: Vec<_> = structure.fields.iter().filter(is_written).collect();
                let mut rest = fields.iter();
                self.collection(
                    *b"{}",
                    depth,
                    |writer| match rest.next() {
                        Some(field) => {
                            writer.key(field.json.as_bytes());
                            writer.value(field.value, depth + 1).map(|()| true)
                        }
                        None => Ok(false),
                    },
                    fields.len(),
                )?;
            }
            Host::Time(time) => {
                let text = crate::time::format(time, "2006-01-02T15:04:05.999999999Z07:00");
                self.text(text.as_bytes());
            }
            Host::Duration(nanoseconds) => self.output.extend_from_slice(nanoseconds.to_string().as_bytes()),
            Host::Semver(version) => self.text(version.to_string().as_bytes()),
        }
        Ok(())
    }

    fn collection(
        &mut self,
        brackets: [u8; 2],
        depth: usize,
        mut next: impl FnMut(&mut Self) -> Result<bool, Failure>,
        count: usize,
    ) -> Result<(), Failure> {
        self.output.push(brackets[0]);
        for index in 0..count {
            if index > 0 {
                self.output.push(b',');
            }
            self.line(depth + 1);
            next(self)?;
        }
        if count > 0 {
            self.line(depth);
        }
        self.output.push(brackets[1]);
        Ok(())
    }

    fn line(&mut self, depth: usize) {
        if self.style.is_pretty {
            self.output.push(b'\n');
            self.output.extend(std::iter::repeat_n(b' ', depth * 2));
        }
    }

    fn text(&mut self, text: &[u8]) {
        self.output.push(b'"');
        for (offset, character, width) in characters(text) {
            match character {
                '"' => self.output.extend_from_slice(b"\\\""),
                '\\' => self.output.extend_from_slice(b"\\\\"),
                '\n' => self.output.extend_from_slice(b"\\n"),
                '\r' => self.output.extend_from_slice(b"\\r"),
                '\t' => self.output.extend_from_slice(b"\\t"),
                '\x08' => self.output.extend_from_slice(b"\\b"),
                '\x0c' => self.output.extend_from_slice(b"\\f"),
                '<' | '>' | '&' if self.style.escapes_html => self.escape(character),
                '\u{2028}' | '\u{2029}' => self.escape(character),
                REPLACEMENT if width == 1 => self.output.extend_from_slice(b"\\ufffd"),
                _ if character < ' ' => self.escape(character),
                _ => self.output.extend_from_slice(&text[offset..offset + width]),
            }
        }
        self.output.push(b'"');
    }

    fn escape(&mut self, character: char) {
        self.output.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes());
    }
}

/// How numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// As `float64`, as values files and `fromYaml` yield them.
    Floats,
    /// As `int64` if they are whole, as `--set` yields them.
    Integers,
}

impl Heap {
    /// Stores a JSON value.
    pub fn import(&mut self, json: &serde_json::Value, numbers: Numbers) -> Value {
        match json {
            serde_json::Value::Null => Value::Nil,
            serde_json::Value::Bool(value) => Value::Bool(*value),
            serde_json::Value::Number(number) => import_number(number, numbers),
            serde_json::Value::String(text) => self.string(text),
            serde_json::Value::Array(items) => {
                let items = items.iter().map(|item| self.import(item, numbers)).collect();
                self.list(ListType::Any, items)
            }
            serde_json::Value::Object(entries) => {
                let map = self.map(MapType::Any);
                for (key, item) in entries {
                    let item = self.import(item, numbers);
                    self.set(map, key, item);
                }
                Value::Map(map)
            }
        }
    }
}

fn import_number(number: &Number, numbers: Numbers) -> Value {
    match (numbers, number.as_i64()) {
        (Numbers::Integers, Some(number)) => Value::Int64(number),
        _ => Value::Float(number.as_f64().unwrap_or_default()),
    }
}
