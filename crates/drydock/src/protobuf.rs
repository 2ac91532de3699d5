//! Kubernetes' protobuf encoding, read by schema: what Go's typed clients send unless told otherwise.
//!
//! Only bodies are read; answers are JSON, which every such client takes as well.

use crate::schema::facts::{self, TypeFacts};
use crate::schema::{Schema, Shape, Struct, View, definitions};
use base64::Engine as _;
use serde_json::{Map, Value};

/// What every body starts with.
const MAGIC: &[u8] = b"k8s\0";
const DEPTH_LIMIT: usize = 64;

/// Reads a body: an envelope with the object's kind, and the object.
pub(crate) fn decode(schema: &Schema, bytes: &[u8]) -> Result<Value, String> {
    let envelope = bytes
        .strip_prefix(MAGIC)
        .ok_or("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")?;
    let mut value = Value::Object(Map::new());
    let mut type_meta = Map::new();
    for field in Fields(envelope) {
        match field? {
            (1, Wire::Bytes(bytes)) => {
                for field in Fields(bytes) {
                    match field? {
                        (1, Wire::Bytes(text)) => type_meta.insert("apiVersion".to_owned(), text_of(text)?),
                        (2, Wire::Bytes(text)) => type_meta.insert("kind".to_owned(), text_of(text)?),
                        _ => None,
                    };
                }
            }
            (2, Wire::Bytes(bytes)) => value = message(schema.root(), bytes, 0)?,
            _ => {}
        }
    }
    if let Value::Object(object) = &mut value {
        object.extend(type_meta);
    }
    Ok(value)
}

/// A field's value as it stands on the wire.
#[derive(Clone, Copy)]
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn field(&mut self) -> Option<(u32, Wire<'a>)> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok()?;
        let wire = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Number(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = self.varint()?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Number(u64::from(u32::from_le_bytes(self.take(4)?.try_into().ok()?))),
            _ => return None,
        };
        Some((number, wire))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Wire<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field.ok_or_else(|| "proto: illegal or truncated field".to_owned()))
    }
}

fn text_of(bytes: &[u8]) -> Result<Value, String> {
    std::str::from_utf8(bytes).map(Value::from).map_err(|error| format!("proto: {error}"))
}

/// Reads a message of a built-in struct.
fn message(view: View<'_>, bytes: &[u8], depth: usize) -> Result<Value, String> {
    let Shape::Struct(Struct { definition: Some(definition), .. }) = view.shape() else {
        return Err("no protobuf message of this kind is known".to_owned());
    };
    let facts =
        facts::type_named(definitions::short_name(definition)).ok_or("no protobuf message of this kind is known")?;
    let mut map = Map::new();
    read_fields(view, facts, bytes, &mut map, depth)?;
    Ok(Value::Object(map))
}

fn read_fields(
    view: View<'_>,
    facts: &'static TypeFacts,
    bytes: &[u8],
    map: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), String> {
    if depth > DEPTH_LIMIT {
        return Err("proto: nested too deeply".to_owned());
    }
    for field in Fields(bytes) {
        let (number, wire) = field?;
        if let Some((name, _)) = facts.fields.iter().find(|(_, facts)| facts.number == number) {
            if let Some(view) = view.entry(name) {
                add(view, map.entry((*name).to_owned()).or_insert(Value::Null), wire, depth)?;
            }
        } else if let (Some((embedded, _)), Wire::Bytes(bytes)) =
            (facts.embedded.iter().find(|(_, embedded)| *embedded == number), wire)
            && let Some(facts) = facts::type_named(embedded)
        {
            read_fields(view, facts, bytes, map, depth + 1)?;
        }
    }
    Ok(())
}

/// Adds one occurrence of a field: another item, another entry, or the value itself.
fn add(view: View<'_>, slot: &mut Value, wire: Wire<'_>, depth: usize) -> Result<(), String> {
    match (view.shape(), wire) {
        (Shape::List { items, .. }, wire) => {
            let items = view.go_to(*items);
            let Value::Array(list) = ensure(slot, || Value::Array(Vec::new())) else { return Ok(()) };
            match (items.shape(), wire) {
                // Numbers may stand packed in one field.
                (Shape::Integer(_), Wire::Bytes(bytes)) => {
                    let mut packed = Fields(bytes);
                    while !packed.0.is_empty() {
                        let number = packed.varint().ok_or("proto: truncated list")?;
                        list.push(single(items, Wire::Number(number), depth)?);
                    }
                }
                _ => list.push(single(items, wire, depth)?),
            }
        }
        (Shape::Map { values, .. }, Wire::Bytes(bytes)) => {
            let values = view.go_to(*values);
            let (mut key, mut value) = (String::new(), Value::Null);
            for field in Fields(bytes) {
                match field? {
                    (1, Wire::Bytes(text)) => key = String::from_utf8_lossy(text).into_owned(),
                    (2, wire) => add(values, &mut value, wire, depth + 1)?,
                    _ => {}
                }
            }
            if let Value::Object(map) = ensure(slot, || Value::Object(Map::new())) {
                map.insert(key, value);
            }
        }
        (_, wire) => *slot = single(view, wire, depth)?,
    }
    Ok(())
}

fn ensure(slot: &mut Value, make: fn() -> Value) -> &mut Value {
    if slot.is_null() {
        *slot = make();
    }
    slot
}

fn single(view: View<'_>, wire: Wire<'_>, depth: usize) -> Result<Value, String> {
    Ok(match (view.shape(), wire) {
        (Shape::Flag, Wire::Number(number)) => Value::from(number != 0),
        // Negative numbers are written as 64 bits, whatever their width.
        (Shape::Integer(_), Wire::Number(number)) => Value::from(number.cast_signed()),
        (Shape::Number, Wire::Number(number)) => Value::from(f64::from_bits(number)),
        (Shape::Text, Wire::Bytes(bytes)) => text_of(bytes)?,
        (Shape::Bytes, Wire::Bytes(bytes)) => Value::from(base64::engine::general_purpose::STANDARD.encode(bytes)),
        (Shape::Quantity, Wire::Bytes(bytes)) => inner_text(bytes)?,
        (Shape::Time | Shape::MicroTime, Wire::Bytes(bytes)) => timestamp(bytes)?,
        (Shape::IntOrString, Wire::Bytes(bytes)) => int_or_string(bytes)?,
        (Shape::Struct(_), Wire::Bytes(bytes)) => message(view, bytes, depth + 1)?,
        (Shape::Any, Wire::Bytes(bytes)) => raw_json(bytes)?,
        _ => return Err("proto: wrong wire type".to_owned()),
    })
}

/// A message that holds one string.
fn inner_text(bytes: &[u8]) -> Result<Value, String> {
    for field in Fields(bytes) {
        if let (1, Wire::Bytes(text)) = field? {
            return text_of(text);
        }
    }
    Ok(Value::Null)
}

fn timestamp(bytes: &[u8]) -> Result<Value, String> {
    let (mut seconds, mut nanos) = (0i64, 0i32);
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Number(number)) => seconds = number.cast_signed(),
            (2, Wire::Number(number)) => nanos = i32::try_from(number.cast_signed()).unwrap_or_default(),
            _ => {}
        }
    }
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let time = jiff::Timestamp::new(seconds, nanos).map_err(|error| format!("proto: {error}"))?;
    Ok(Value::from(time.to_string()))
}

fn int_or_string(bytes: &[u8]) -> Result<Value, String> {
    let (mut is_text, mut number, mut text) = (false, Value::from(0), Value::from(""));
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Number(kind)) => is_text = kind == 1,
            (2, Wire::Number(value)) => number = Value::from(value.cast_signed()),
            (3, Wire::Bytes(value)) => text = text_of(value)?,
            _ => {}
        }
    }
    Ok(if is_text { text } else { number })
}

/// A message whose first field is JSON text: `FieldsV1`, `RawExtension`, `JSON`.
fn raw_json(bytes: &[u8]) -> Result<Value, String> {
    for field in Fields(bytes) {
        if let (1, Wire::Bytes(text)) = field? {
            return serde_json::from_slice(text).map_err(|error| format!("proto: {error}"));
        }
    }
    Ok(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        field.extend(bytes);
        field
    }

    #[test]
    fn a_secret_is_read() {
        let metadata = [field(1, b"name"), field(11, &[field(1, b"key"), field(2, b"value")].concat())].concat();
        let data = [field(1, b"k"), field(2, b"\x01\x02")].concat();
        let secret = [field(1, &metadata), field(2, &data), field(3, b"Opaque"), vec![5 << 3, 1]].concat();
        let type_meta = [field(1, b"v1"), field(2, b"Secret")].concat();
        let body = [MAGIC.to_vec(), field(1, &type_meta), field(2, &secret)].concat();
        assert_eq!(
            decode(&Schema::built_in("io.k8s.api.core.v1.Secret"), &body).unwrap(),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "name", "labels": {"key": "value"}},
                "data": {"k": "AQI="}, "type": "Opaque", "immutable": true})
        );
    }

    #[test]
    fn embedded_messages_stand_inline() {
        let volume = [field(1, b"v"), field(2, &field(6, &field(1, b"secret")))].concat();
        let pod = field(2, &field(1, &volume));
        let body = [MAGIC.to_vec(), field(2, &pod)].concat();
        let pod = decode(&Schema::built_in("io.k8s.api.core.v1.Pod"), &body).unwrap();
        assert_eq!(pod["spec"]["volumes"], json!([{"name": "v", "secret": {"secretName": "secret"}}]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let schema = Schema::built_in("io.k8s.api.batch.v1.Job");
            let _ = decode(&schema, &[MAGIC, &bytes].concat());
            let _ = message(schema.root(), &bytes, 0);
        }
    }
}
