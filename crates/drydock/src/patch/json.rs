//! JSON patch (RFC 6902) with the habits of the library behind the server
//! (evanphx/json-patch v4.12.0 `patch.go`):
//!
//! - `replace` of an absent key of an object adds it, and `copy` of one copies null;
//! - `test` of an absent key against null passes;
//! - a negative index counts from the end;
//! - what stands before the first slash of a path is ignored, and no path but that of `replace` and `test`
//!   names the whole document.
//!
//! Two of its habits are left out: where it crashes (`test` without a value on an absent key, nulls in tested
//! lists) the patch passes or is refused, and strings with `<`, `>` or `&` compare by what they are, not by how the
//! patch escapes them.

use super::{REJECTED, go};
use crate::status::Status;
use serde_json::{Map, Value};
use std::io;

/// Operations in one patch (apiserver v0.34 `endpoints/handlers/patch.go`).
const MOST_OPERATIONS: usize = 10_000;
/// Bytes that all copies of one patch may add (apiserver v0.34 `server/config.go`).
const MOST_COPIED_BYTES: usize = 3 * 1024 * 1024;
/// How deep a document may get: what a JSON reader takes. Moves could make it deeper and deeper.
const DEEPEST: usize = 128;

/// The fields of an operation.
const FIELDS: [&str; 4] = ["op", "path", "from", "value"];

/// Reads a patch as the server does unless `fieldValidation=Ignore`: refuses what has the wrong form, and names
/// what is unknown.
pub(crate) fn check(patch: &Value) -> Result<Vec<String>, Status> {
    let refuse = |value: &Value, place: &str| {
        let found = go::json_name(value);
        Status::bad_request(format!("error decoding patch: json: cannot unmarshal {found} into Go {place}"))
    };
    let mut unknown = Vec::new();
    for (index, operation) in operations(patch).ok_or_else(|| refuse(patch, "value of type []handlers.jsonPatchOp"))? {
        let fields = match operation {
            Value::Null => continue,
            Value::Object(fields) => fields,
            other => return Err(refuse(other, "value of type handlers.jsonPatchOp")),
        };
        for (name, value) in fields {
            if !FIELDS.contains(&name.as_str()) {
                unknown.push(format!("json patch unknown field {:?}", format!("[{index}].{name}")));
            } else if name != "value" && !value.is_string() && !value.is_null() {
                return Err(refuse(value, &format!("struct field jsonPatchOp.{name} of type string")));
            }
        }
    }
    Ok(unknown)
}

/// Patches a document. If the patch does not apply, the document stays as it was.
pub(crate) fn apply(document: &mut Value, patch: &Value) -> Result<(), Status> {
    let malformed = |value: &Value, wanted: &str| {
        let found = go::json_name(value);
        Status::bad_request(format!("json: cannot unmarshal {found} into Go value of type jsonpatch.{wanted}"))
    };
    let operations = operations(patch).ok_or_else(|| malformed(patch, "Patch"))?;
    if operations.len() > MOST_OPERATIONS {
        return Err(Status::new(
            413,
            "RequestEntityTooLarge",
            format!(
                "Request entity too large: The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {}",
                operations.len()
            ),
        ));
    }
    let nothing = Map::new();
    let mut state = State { document: document.clone(), copied: 0 };
    for (_, operation) in operations {
        let fields = match operation {
            Value::Null => &nothing,
            Value::Object(fields) => fields,
            other => return Err(malformed(other, "Operation")),
        };
        // The server keeps to itself what is wrong.
        state.run(fields).ok_or_else(|| Status::unprocessable(REJECTED))?;
    }
    *document = state.document;
    Ok(())
}

/// The operations of a patch, of which null has none.
fn operations(patch: &Value) -> Option<impl ExactSizeIterator<Item = (usize, &Value)>> {
    match patch {
        Value::Null => Some([].iter().enumerate()),
        Value::Array(operations) => Some(operations.iter().enumerate()),
        _ => None,
    }
}

struct State {
    document: Value,
    copied: usize,
}

impl State {
    fn run(&mut self, operation: &Map<String, Value>) -> Option<()> {
        let text = |name: &str| operation.get(name).and_then(Value::as_str);
        let value = operation.get("value").unwrap_or(&Value::Null);
        match text("op")? {
            "add" => self.add(text("path")?, value.clone()),
            "remove" => find(&mut self.document, text("path")?)?.remove().map(drop),
            "replace" => self.replace(text("path")?, value),
            "move" => {
                let moved = find(&mut self.document, text("from")?)?.remove()?;
                self.add(text("path")?, moved)
            }
            "test" => self.test(text("path")?, value),
            "copy" => {
                let copied = find(&mut self.document, text("from")?)?.get()?.clone();
                self.copied += size(&copied);
                let path = text("path")?;
                find(&mut self.document, path)?;
                (self.copied <= MOST_COPIED_BYTES).then_some(())?;
                self.add(path, copied)
            }
            _ => None,
        }
    }

    fn add(&mut self, path: &str, value: Value) -> Option<()> {
        fits(path, &value)?;
        find(&mut self.document, path)?.add(value)
    }

    fn replace(&mut self, path: &str, value: &Value) -> Option<()> {
        if path.is_empty() {
            // Anything but an object or a list is taken and ignored.
            if value.is_object() || value.is_array() {
                self.document = value.clone();
            }
            return Some(());
        }
        fits(path, value)?;
        find(&mut self.document, path)?.set(value.clone())
    }

    fn test(&mut self, path: &str, value: &Value) -> Option<()> {
        let found = match path {
            "" => &self.document,
            _ => find(&mut self.document, path)?.get()?,
        };
        (found == value).then_some(())
    }
}

/// A place in a list or object.
enum Place<'a> {
    Item(&'a mut Vec<Value>, String),
    Entry(&'a mut Map<String, Value>, String),
}

/// The place that a path names, if what it lies in exists.
fn find<'a>(document: &'a mut Value, path: &str) -> Option<Place<'a>> {
    let (parents, last) = path.rsplit_once('/')?;
    let mut value = document;
    for part in parents.split('/').skip(1) {
        let part = unescape(part);
        value = match value {
            Value::Object(map) => map.get_mut(&part)?,
            Value::Array(items) => {
                let index = position(&part, items.len())?;
                items.get_mut(index)?
            }
            _ => return None,
        };
    }
    match value {
        Value::Array(items) => Some(Place::Item(items, unescape(last))),
        Value::Object(map) => Some(Place::Entry(map, unescape(last))),
        _ => None,
    }
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// The index that a text names in a list of this length.
fn position(text: &str, length: usize) -> Option<usize> {
    let index: isize = text.parse().ok()?;
    let index = if index < 0 { length.checked_sub(index.unsigned_abs())? } else { index.unsigned_abs() };
    (index < length).then_some(index)
}

impl<'a> Place<'a> {
    /// What is there. In an object nothing is null, in a list it is an error.
    fn get(self) -> Option<&'a Value> {
        match self {
            Self::Item(items, key) => items.get(position(&key, items.len())?),
            Self::Entry(map, key) => Some(map.get(&key).unwrap_or(&Value::Null)),
        }
    }

    fn set(self, value: Value) -> Option<()> {
        match self {
            Self::Item(items, key) => {
                let index = position(&key, items.len())?;
                *items.get_mut(index)? = value;
            }
            Self::Entry(map, key) => {
                map.insert(key, value);
            }
        }
        Some(())
    }

    fn add(self, value: Value) -> Option<()> {
        match self {
            Self::Item(items, key) if key == "-" => items.push(value),
            Self::Item(items, key) => items.insert(position(&key, items.len() + 1)?, value),
            Self::Entry(map, key) => {
                map.insert(key, value);
            }
        }
        Some(())
    }

    fn remove(self) -> Option<Value> {
        match self {
            Self::Item(items, key) => Some(items.remove(position(&key, items.len())?)),
            Self::Entry(map, key) => map.remove(&key),
        }
    }
}

/// Nothing if the document gets too deep with the value at the path.
fn fits(path: &str, value: &Value) -> Option<()> {
    let above = path.matches('/').count();
    (above + depth(value) <= DEEPEST).then_some(())
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// The bytes of a value's JSON.
fn size(value: &Value) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).map_or(usize::MAX, |()| count.0)
}

#[cfg(test)]
#[path = "json/tests.rs"]
mod tests;
