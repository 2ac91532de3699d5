//! FieldsV1: sets of fields as the API writes them (structured-merge-diff v6.3 `fieldpath/serialize*.go`).
//! An object is a level; its keys are `f:name`, `k:{"key":"value"}`, `v:value` and `i:index`, and `.` says that the
//! level itself is in the set. An empty object is, too.

use super::element::Plain;
use super::{FieldSet, Node, PathElement};
use serde_json::{Map, Value};
use std::fmt;

impl FieldSet {
    /// Reads FieldsV1. Elements of unknown kinds are left out.
    pub(crate) fn from_value(value: &Value) -> Result<Self, String> {
        let empty = Map::new();
        let map = match value {
            Value::Null => &empty,
            Value::Object(map) => map,
            other => return Err(format!("expected an object, found {other}")),
        };
        let mut set = Self::default();
        for (text, below) in map.iter().filter(|(text, _)| *text != ".") {
            let Some(element) = PathElement::parse(text)? else { continue };
            let read = Self::from_value(below)?;
            let is_member = read.is_empty() || below.get(".").is_some();
            // Two spellings of one element are one element.
            let node = set.nodes.entry(element).or_default();
            node.is_member |= is_member;
            node.below = std::mem::take(&mut node.below).union(&read);
        }
        Ok(set)
    }

    /// Writes FieldsV1.
    pub(crate) fn to_value(&self) -> Value {
        let entries = self.nodes.iter().map(|(element, node)| {
            let Value::Object(mut below) = node.below.to_value() else { return (element.encode(), Value::Null) };
            if node.is_dot() {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            (element.encode(), Value::Object(below))
        });
        Value::Object(entries.collect())
    }
}

impl FieldSet {
    /// Whether a set as the API writes it has a path of this one.
    pub(crate) fn touches(&self, written: &Value) -> bool {
        self.nodes.iter().any(|(element, node)| {
            written.get(element.encode()).is_some_and(|below| {
                let is_member = below.as_object().is_none_or(|map| map.is_empty() || map.contains_key("."));
                (node.is_member && is_member) || node.below.touches(below)
            })
        })
    }
}

impl Node {
    /// Whether the level has to say that it is in the set.
    fn is_dot(&self) -> bool {
        self.is_member && !self.below.is_empty()
    }
}

/// The JSON of FieldsV1 with its fields in the order of the server: by kind of element, numbers by size.
impl fmt::Display for FieldSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn level(set: &FieldSet, is_dot: bool, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(if is_dot { r#"{".":{}"# } else { "{" })?;
            for (index, (element, node)) in set.nodes.iter().enumerate() {
                let comma = if index > 0 || is_dot { "," } else { "" };
                write!(formatter, "{comma}{}:", Value::from(element.encode()))?;
                level(&node.below, node.is_dot(), formatter)?;
            }
            formatter.write_str("}")
        }
        level(self, false, formatter)
    }
}

impl PathElement {
    /// Reads an element; none if it is of a kind that only later servers know.
    fn parse(text: &str) -> Result<Option<Self>, String> {
        let json = |text: &str| serde_json::from_str(text).map_err(|error| error.to_string());
        let mut characters = text.chars();
        let (Some(kind), Some(separator)) = (characters.next(), characters.next()) else {
            return Err("key must be 2 characters long:".to_owned());
        };
        if separator != ':' {
            return Err(format!("missing colon: {text}"));
        }
        let rest = characters.as_str();
        Ok(Some(match kind {
            'f' => Self::Field(rest.to_owned()),
            'v' => Self::Value(Plain(json(rest)?)),
            'i' => Self::Index(rest.parse().map_err(|_| format!("parsing {rest:?}: invalid syntax"))?),
            'k' => {
                let keys: Map<String, Value> = serde_json::from_str(rest).map_err(|error| error.to_string())?;
                let mut keys: Vec<(String, Plain)> =
                    keys.into_iter().map(|(name, value)| (name, Plain(value))).collect();
                keys.sort();
                Self::Key(keys)
            }
            _ => return Ok(None),
        }))
    }

    fn encode(&self) -> String {
        match self {
            Self::Field(name) => ["f:", name].concat(),
            Self::Key(keys) => {
                let keys: Vec<String> = keys
                    .iter()
                    .map(|(name, value)| format!("{}:{}", encode(&Value::from(name.as_str())), encode(&value.0)))
                    .collect();
                format!("k:{{{}}}", keys.join(","))
            }
            Self::Value(value) => format!("v:{}", encode(&value.0)),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

/// JSON as Go writes it: whole numbers without a fraction, and some characters of strings always escaped.
fn encode(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => {
            let text = number.to_string();
            text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
        }
        Value::String(text) => {
            let always = |character: char| matches!(character, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
            let json = Value::from(text.as_str()).to_string();
            json.chars().fold(String::with_capacity(json.len()), |escaped, character| {
                if always(character) {
                    escaped + &format!("\\u{:04x}", u32::from(character))
                } else {
                    escaped + character.encode_utf8(&mut [0; 4])
                }
            })
        }
        Value::Array(items) => format!("[{}]", items.iter().map(encode).collect::<Vec<_>>().join(",")),
        Value::Object(map) => {
            let entries: Vec<String> = map
                .iter()
                .map(|(name, value)| format!("{}:{}", encode(&Value::from(name.as_str())), encode(value)))
                .collect();
            format!("{{{}}}", entries.join(","))
        }
        other => other.to_string(),
    }
}
