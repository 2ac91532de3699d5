//! TOML as BurntSushi/toml v1.4 writes it.

use crate::error::Failure;
use crate::heap::Heap;
use crate::host::Host;
use crate::value::{ListType, MapType, Value};

/// Values within values that are written.
const DEPTH: usize = 500;

/// Writes a value; `Err` has the library's message.
pub(crate) fn write(heap: &Heap, value: Value) -> Result<String, Failure> {
    let mut writer = Writer { heap, output: String::new() };
    writer.encode(&[], value)?;
    Ok(writer.output)
}

/// What a value is in TOML.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Table,
    Tables,
    Other,
}

struct Writer<'h> {
    heap: &'h Heap,
    output: String,
}

impl Writer<'_> {
    fn kind(&self, value: Value) -> Result<Kind, Failure> {
        Ok(match value {
            Value::Nil => Kind::Nothing,
            Value::Map(map) if self.heap.get_map(map).is_nil => Kind::Nothing,
            Value::Map(_) => Kind::Table,
            Value::List(id) => {
                let list = self.heap.get_list(id);
                if list.is_nil {
                    return Ok(Kind::Nothing);
                }
                let mut is_tables = !list.items.is_empty();
                for item in &list.items {
                    let kind = self.kind(*item)?;
                    if kind == Kind::Nothing {
                        return Err("toml: cannot encode array with nil element".into());
                    }
                    is_tables &= kind == Kind::Table;
                }
                if is_tables { Kind::Tables } else { Kind::Other }
            }
            Value::Host(host) if let Host::Struct(_) = self.heap.get_host(host) => Kind::Table,
            _ => Kind::Other,
        })
    }

    fn newline(&mut self) {
        if !self.output.is_empty() {
            self.output.push('\n');
        }
    }

    fn indent(&mut self, key: &[String]) {
        self.output.push_str(&"  ".repeat(key.len().saturating_sub(1)));
    }

    fn check(&self, depth: usize) -> Result<(), Failure> {
        if depth > DEPTH || self.output.len() > self.heap.limit() {
            return Err(Failure::Limit("a value is too large or too deep to be written as TOML".to_owned()));
        }
        Ok(())
    }

    fn encode(&mut self, key: &[String], value: Value) -> Result<(), Failure> {
        self.check(key.len())?;
        match self.kind(value)? {
            Kind::Nothing => {}
            Kind::Table => {
                if key.len() == 1 {
                    self.newline();
                }
                if !key.is_empty() {
                    self.indent(key);
                    self.output.push_str(&format!("[{}]", joined(key)));
                    self.newline();
                }
                self.entries(key, value)?;
            }
            Kind::Tables => {
                if key.is_empty() {
                    return Err("toml: top-level values must be Go maps or structs".into());
                }
                let Value::List(list) = value else { return Ok(()) };
                for item in self.heap.get_list(list).items.clone() {
                    self.newline();
                    self.indent(key);
                    self.output.push_str(&format!("[[{}]]", joined(key)));
                    self.newline();
                    self.entries(key, item)?;
                }
            }
            Kind::Other => self.key_value(key, value, false)?,
        }
        Ok(())
    }

    fn key_value(&mut self, key: &[String], value: Value, is_inline: bool) -> Result<(), Failure> {
        if let Some(last) = key.last() {
            self.indent(key);
            self.output.push_str(&quoted_if_needed(last));
            self.output.push_str(" = ");
        } else {
            return self.element(value, 0);
        }
        self.element(value, key.len())?;
        if !is_inline {
            self.newline();
        }
        Ok(())
    }

    /// The entries of a table: first those that are no tables.
    fn sorted(&self, value: Value) -> Result<Vec<(String, Value)>, Failure> {
        let entries: Vec<(String, Value)> = match value {
            Value::Map(map) => {
                let entries = self.heap.get_map(map).entries.iter();
                entries.map(|(key, item)| (self.heap.str(*key), *item)).collect()
            }
            Value::Host(host) => match self.heap.get_host(host) {
                Host::Struct(structure) => {
                    structure.fields.iter().map(|field| (field.name.to_owned(), field.value)).collect()
                }
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        let mut kept = Vec::new();
        for (key, item) in entries {
            let kind = self.kind(item)?;
            kept.push((matches!(kind, Kind::Table | Kind::Tables), key, item));
        }
        kept.sort_by_key(|(is_table, ..)| *is_table);
        Ok(kept.into_iter().map(|(_, key, item)| (key, item)).collect())
    }

    fn entries(&mut self, key: &[String], value: Value) -> Result<(), Failure> {
        for (name, item) in self.sorted(value)? {
            self.encode(&[key, &[name]].concat(), item)?;
        }
        Ok(())
    }

    fn element(&mut self, value: Value, depth: usize) -> Result<(), Failure> {
        self.check(depth)?;
        match value {
            Value::Nil => return Err("toml: cannot encode array with nil element".into()),
            Value::Bool(value) => self.output.push_str(if value { "true" } else { "false" }),
            Value::Int(number) | Value::Int64(number) => self.output.push_str(&number.to_string()),
            Value::Uint64(number) => self.output.push_str(&number.to_string()),
            Value::Byte(number) => self.output.push_str(&number.to_string()),
            Value::Float(number) => self.output.push_str(&float(number)),
            Value::Text(text) => {
                let text = self.heap.str(text);
                self.output.push_str(&quoted(&text));
            }
            Value::List(list) => {
                self.output.push('[');
                for (index, item) in self.heap.get_list(list).items.clone().into_iter().enumerate() {
                    self.output.push_str(if index > 0 { ", " } else { "" });
                    self.element(item, depth + 1)?;
                }
                self.output.push(']');
            }
            Value::Map(_) => self.inline(value, depth)?,
            Value::Host(host) => match self.heap.get_host(host) {
                Host::Struct(_) => self.inline(value, depth)?,
                Host::Time(time) => {
                    let text = crate::time::format(time, "2006-01-02T15:04:05.999999999Z07:00");
                    self.output.push_str(&text);
                }
                host => {
                    let text = host.string().unwrap_or_default();
                    self.output.push_str(&quoted(&text));
                }
            },
        }
        Ok(())
    }

    fn inline(&mut self, value: Value, depth: usize) -> Result<(), Failure> {
        self.check(depth)?;
        self.output.push('{');
        let entries = self.sorted(value)?;
        let count = entries.len();
        for (index, (name, item)) in entries.into_iter().enumerate() {
            if self.kind(item)? == Kind::Nothing {
                continue;
            }
            self.output.push_str(&quoted_if_needed(&name));
            self.output.push_str(" = ");
            self.element(item, depth + 1)?;
            self.output.push_str(if index + 1 < count { ", " } else { "" });
        }
        self.output.push('}');
        Ok(())
    }
}

fn float(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let text = format!("{number}");
    if text.contains('.') { text } else { text + ".0" }
}

fn joined(key: &[String]) -> String {
    key.iter().map(|part| quoted_if_needed(part)).collect::<Vec<_>>().join(".")
}

fn quoted_if_needed(key: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !key.is_empty() && key.bytes().all(is_bare) { key.to_owned() } else { quoted(key) }
}

fn quoted(text: &str) -> String {
    let mut output = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => output.push_str("\\\""),
            '\\' => output.push_str("\\\\"),
            '\u{8}' => output.push_str("\\b"),
            '\t' => output.push_str("\\t"),
            '\n' => output.push_str("\\n"),
            '\u{c}' => output.push_str("\\f"),
            '\r' => output.push_str("\\r"),
            _ if character < ' ' || character == '\u{7f}' => {
                output.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            _ => output.push(character),
        }
    }
    output.push('"');
    output
}

/// Reads a document.
pub(crate) fn read(heap: &mut Heap, text: &str) -> Result<Value, String> {
    let table: ::toml::Table = text.parse().map_err(|error: ::toml::de::Error| format!("toml: {}", error.message()))?;
    Ok(import(heap, &::toml::Value::Table(table)))
}

fn import(heap: &mut Heap, value: &::toml::Value) -> Value {
    match value {
        ::toml::Value::String(text) => heap.string(text),
        ::toml::Value::Integer(number) => Value::Int64(*number),
        ::toml::Value::Float(number) => Value::Float(*number),
        ::toml::Value::Boolean(value) => Value::Bool(*value),
        ::toml::Value::Datetime(moment) => {
            let text = moment.to_string();
            match text.parse::<jiff::Timestamp>() {
                Ok(moment) => heap.host(Host::Time(crate::time::Time::new(moment, jiff::tz::TimeZone::UTC))),
                Err(_) => heap.string(text),
            }
        }
        ::toml::Value::Array(items) => {
            let is_tables = !items.is_empty() && items.iter().all(::toml::Value::is_table);
            let items = items.iter().map(|item| import(heap, item)).collect();
            heap.list(if is_tables { ListType::Maps } else { ListType::Any }, items)
        }
        ::toml::Value::Table(entries) => {
            let map = heap.map(MapType::Any);
            for (key, item) in entries {
                let item = import(heap, item);
                heap.set(map, key, item);
            }
            Value::Map(map)
        }
    }
}
