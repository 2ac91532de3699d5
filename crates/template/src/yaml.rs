//! YAML as Helm's functions print and read it.

use crate::error::Failure;
use crate::heap::Heap;
use crate::host::Host;
use crate::value::{ListType, Value};
use data_encoding::BASE64;
use jobwright_yaml::emit::{Data, Flavor, emit};
use std::borrow::Cow;

/// Values within values that are printed.
const DEPTH: usize = 1000;

/// Prints a value with a line break at the end; `Err` has Go's message.
pub(crate) fn write(heap: &Heap, value: Value, flavor: Flavor) -> Result<String, Failure> {
    let mut converter = Converter { heap, flavor, left: heap.limit() };
    Ok(emit(&converter.data(value, 0)?, flavor))
}

struct Converter<'h> {
    heap: &'h Heap,
    flavor: Flavor,
    /// Bytes that may still be printed.
    left: usize,
}

impl<'h> Converter<'h> {
    fn data(&mut self, value: Value, depth: usize) -> Result<Data<'h>, Failure> {
        if depth > DEPTH {
            return Err("json: unsupported value: encountered a cycle via map[string]interface {}".into());
        }
        let too_large = || Failure::Limit("a value is too large to be printed as YAML".to_owned());
        self.left = self.left.checked_sub(1).ok_or_else(too_large)?;
        Ok(match value {
            Value::Nil => Data::Null,
            Value::Bool(value) => Data::Bool(value),
            Value::Int(number) | Value::Int64(number) => Data::Integer(number),
            Value::Uint64(number) => Data::Unsigned(number),
            Value::Byte(number) => Data::Unsigned(number.into()),
            Value::Float(number) if self.flavor == Flavor::V3 => Data::Float(number),
            Value::Float(number) if number.is_finite() => Data::from_json_float(number),
            Value::Float(number) => {
                return Err(format!("json: unsupported value: {}", crate::float::shortest(number)).into());
            }
            Value::Text(text) => {
                let bytes = self.heap.bytes(text);
                self.left = self.left.checked_sub(bytes.len()).ok_or_else(too_large)?;
                self.check(bytes)?;
                self.text(bytes)
            }
            Value::List(id) => {
                let list = self.heap.get_list(id);
                match list.kind {
                    ListType::Bytes if self.flavor == Flavor::V2 && !list.is_nil => {
                        let bytes = list.items.iter().map(|item| if let Value::Byte(byte) = item { *byte } else { 0 });
                        Data::Text(BASE64.encode(&bytes.collect::<Vec<u8>>()).into())
                    }
                    _ if list.is_nil && self.flavor == Flavor::V2 => Data::Null,
                    _ => {
                        Data::List(list.items.iter().map(|item| self.data(*item, depth + 1)).collect::<Result<_, _>>()?)
                    }
                }
            }
            Value::Map(id) => {
                let map = self.heap.get_map(id);
                if map.is_nil && self.flavor == Flavor::V2 {
                    return Ok(Data::Null);
                }
                let mut entries = Vec::with_capacity(map.entries.len());
                for (key, item) in &map.entries {
                    let key = self.heap.bytes(*key);
                    self.left = self.left.checked_sub(key.len()).ok_or_else(too_large)?;
                    self.check(key)?;
                    entries.push((String::from_utf8_lossy(key), self.data(*item, depth + 1)?));
                }
                Data::Map(entries)
            }
            Value::Host(id) => self.host(self.heap.get_host(id), depth)?,
        })
    }

    /// Refuses what go-yaml v2 cannot read, because the JSON that it is given has it unescaped.
    fn check(&self, bytes: &[u8]) -> Result<(), Failure> {
        let is_refused = |character: char| matches!(character, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
        if self.flavor == Flavor::V2 && crate::utf8::characters(bytes).any(|(_, character, _)| is_refused(character)) {
            return Err("error converting JSON to YAML: yaml: control characters are not allowed".into());
        }
        Ok(())
    }

    fn text(&self, bytes: &'h [u8]) -> Data<'h> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Data::Text(Cow::Borrowed(text)),
            Err(_) if self.flavor == Flavor::V3 => Data::Bytes(Cow::Borrowed(bytes)),
            Err(_) => {
                Data::Text(crate::utf8::characters(bytes).map(|(_, character, _)| character).collect::<String>().into())
            }
        }
    }

    fn host(&mut self, host: &Host, depth: usize) -> Result<Data<'h>, Failure> {
        Ok(match host {
            Host::Struct(structure) => {
                let mut entries = Vec::new();
                for field in &structure.fields {
                    let (name, omits) = match self.flavor {
                        Flavor::V2 => (field.json.to_owned(), field.omit_empty),
                        Flavor::V3 => (field.name.to_lowercase(), false),
                    };
                    let is_omitted = omits && self.heap.is_empty(field.value);
                    if !name.is_empty() && !is_omitted {
                        entries.push((Cow::Owned(name), self.data(field.value, depth + 1)?));
                    }
                }
                Data::Map(entries)
            }
            Host::Time(time) => Data::Text(crate::time::format(time, "2006-01-02T15:04:05.999999999Z07:00").into()),
            Host::Duration(nanoseconds) if self.flavor == Flavor::V3 => {
                Data::Text(crate::time::duration(*nanoseconds).into())
            }
            Host::Duration(nanoseconds) => Data::Integer(*nanoseconds),
            Host::Semver(version) => Data::Text(version.to_string().into()),
        })
    }
}

/// Reads the first document of a text; `Err` has the message of `sigs.k8s.io/yaml`.
pub(crate) fn read(text: &[u8]) -> Result<serde_json::Value, String> {
    let text = String::from_utf8_lossy(text);
    match jobwright_yaml::parse(&text) {
        Ok(documents) => Ok(documents.first().map_or(serde_json::Value::Null, |document| document.root.to_json())),
        Err(error) => Err(format!("error converting YAML to JSON: yaml: {}", error.in_go(&text))),
    }
}
