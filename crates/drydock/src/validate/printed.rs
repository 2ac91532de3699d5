//! Values as the server's messages show them: the structs it keeps in memory, with every field, in their order.

use crate::field::go_json;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A struct on one line: `{"Name":"v","HostPath":null}`.
pub(crate) fn printed(type_name: &str, value: &Value) -> String {
    let mut text = String::new();
    shape(type_name, value).write(&mut text);
    text
}

/// A struct on many lines, for showing differences.
pub(crate) fn pretty(type_name: &str, value: &Value) -> String {
    let mut text = String::new();
    shape(type_name, value).write_pretty(&mut text, 0);
    text
}

/// A list of structs on one line.
pub(crate) fn printed_list(type_name: &str, items: &[Value]) -> String {
    let items: Vec<String> = items.iter().map(|item| printed(type_name, item)).collect();
    format!("[{}]", items.join(","))
}

/// JSON whose fields keep their order.
enum Shape {
    Plain(String),
    List(Vec<Shape>),
    Fields(Vec<(String, Shape)>),
}

impl Shape {
    fn plain(value: &Value) -> Self {
        match value {
            Value::Array(items) => Self::List(items.iter().map(Self::plain).collect()),
            Value::Object(fields) => {
                Self::Fields(fields.iter().map(|(name, value)| (name.clone(), Self::plain(value))).collect())
            }
            other => Self::Plain(go_json(other)),
        }
    }

    fn write(&self, text: &mut String) {
        match self {
            Self::Plain(value) => text.push_str(value),
            Self::List(items) => {
                text.push('[');
                for (index, item) in items.iter().enumerate() {
                    text.push_str(if index == 0 { "" } else { "," });
                    item.write(text);
                }
                text.push(']');
            }
            Self::Fields(fields) => {
                text.push('{');
                for (index, (name, value)) in fields.iter().enumerate() {
                    text.push_str(if index == 0 { "" } else { "," });
                    text.push_str(&go_json(&Value::from(name.as_str())));
                    text.push(':');
                    value.write(text);
                }
                text.push('}');
            }
        }
    }

    fn write_pretty(&self, text: &mut String, depth: usize) {
        let start_line = |text: &mut String, index: usize| {
            text.push_str(if index == 0 { "\n" } else { ",\n" });
            text.push_str(&" ".repeat(depth + 1));
        };
        let end_line = |text: &mut String, end: &str| {
            text.push('\n');
            text.push_str(&" ".repeat(depth));
            text.push_str(end);
        };
        match self {
            Self::List(items) if !items.is_empty() => {
                text.push('[');
                for (index, item) in items.iter().enumerate() {
                    start_line(text, index);
                    item.write_pretty(text, depth + 1);
                }
                end_line(text, "]");
            }
            Self::Fields(fields) if !fields.is_empty() => {
                text.push('{');
                for (index, (name, value)) in fields.iter().enumerate() {
                    start_line(text, index);
                    text.push_str(&go_json(&Value::from(name.as_str())));
                    text.push_str(": ");
                    value.write_pretty(text, depth + 1);
                }
                end_line(text, "}");
            }
            other => other.write(text),
        }
    }
}

/// A field of a struct.
struct Field {
    shown: &'static str,
    /// The name in the API's JSON.
    name: String,
    holds: Holds,
    optional: bool,
}

/// What a field holds, and so how it is shown when it is absent.
#[derive(Clone, Copy)]
enum Holds {
    Text,
    Number,
    Flag,
    Quantity,
    Nullable,
    Pointer(&'static str),
    List(&'static str),
    Struct(&'static str),
    Inline(&'static str),
}

static STRUCTS: LazyLock<BTreeMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
    include_str!("go_structs.txt").lines().filter(|line| !line.starts_with('#')).filter_map(parse_line).collect()
});

fn parse_line(line: &'static str) -> Option<(&'static str, Vec<Field>)> {
    let mut words = line.split(' ');
    let name = words.next()?;
    Some((name, words.filter_map(parse_field).collect()))
}

fn parse_field(word: &'static str) -> Option<Field> {
    let (names, holds) = word.split_once(':')?;
    let (shown, name) = if let Some((shown, name)) = names.split_once('=') {
        (shown, name.to_owned())
    } else {
        let (first, rest) = names.split_at_checked(1)?;
        (names, first.to_lowercase() + rest)
    };
    let (holds, optional) = holds.strip_suffix('?').map_or((holds, false), |holds| (holds, true));
    let named = holds.get(1..).unwrap_or_default();
    let holds = match holds.chars().next()? {
        's' => Holds::Text,
        'i' => Holds::Number,
        'b' => Holds::Flag,
        'q' => Holds::Quantity,
        '*' => Holds::Pointer(named),
        '[' => Holds::List(named),
        '{' => Holds::Struct(named),
        '+' => Holds::Inline(named),
        _ => Holds::Nullable,
    };
    Some(Field { shown, name, holds, optional })
}

fn shape(type_name: &str, value: &Value) -> Shape {
    let (Some(fields), Some(map)) = (STRUCTS.get(type_name), value.as_object()) else { return Shape::plain(value) };
    if type_name == "core.PodSpec" {
        return Shape::Fields(shape_fields(fields, &with_host_fields_inside(map)));
    }
    Shape::Fields(shape_fields(fields, map))
}

fn shape_fields(fields: &[Field], map: &Map<String, Value>) -> Vec<(String, Shape)> {
    let mut shown = Vec::new();
    for field in fields {
        let value = map.get(&field.name).filter(|value| !value.is_null());
        if let Holds::Inline(named) = field.holds {
            let inner = value.and_then(Value::as_object).cloned().unwrap_or_default();
            shown.extend(STRUCTS.get(named).map(|fields| shape_fields(fields, &inner)).unwrap_or_default());
            continue;
        }
        if value.is_none() && field.optional {
            continue;
        }
        shown.push((field.shown.to_owned(), field.holds.shape(value)));
    }
    shown
}

impl Holds {
    fn shape(self, value: Option<&Value>) -> Shape {
        match (self, value) {
            (Self::Pointer(named) | Self::Struct(named), Some(value)) => shape(named, value),
            (Self::Struct(named), None) => shape(named, &Value::Object(Map::new())),
            (Self::List(named), Some(Value::Array(items))) => {
                Shape::List(items.iter().map(|item| shape(named, item)).collect())
            }
            (_, Some(value)) => Shape::plain(value),
            (Self::Text, None) => Shape::Plain("\"\"".to_owned()),
            (Self::Number, None) => Shape::Plain("0".to_owned()),
            (Self::Flag, None) => Shape::Plain("false".to_owned()),
            (Self::Quantity, None) => Shape::Plain("\"0\"".to_owned()),
            (Self::Nullable | Self::Pointer(_) | Self::List(_) | Self::Inline(_), None) => {
                Shape::Plain("null".to_owned())
            }
        }
    }
}

/// The server keeps what a pod shares with its host in the pod's security context.
fn with_host_fields_inside(spec: &Map<String, Value>) -> Map<String, Value> {
    let mut spec = spec.clone();
    let mut lifted = Vec::new();
    for name in ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"] {
        lifted.extend(spec.remove_entry(name));
    }
    if let Some(Value::Object(context)) = spec.get_mut("securityContext") {
        context.extend(lifted);
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_struct_that_is_named_is_known() {
        for (name, fields) in STRUCTS.iter() {
            for field in fields {
                if let Holds::Pointer(named) | Holds::List(named) | Holds::Struct(named) | Holds::Inline(named) =
                    field.holds
                {
                    assert!(STRUCTS.contains_key(named), "{name} has {named}");
                }
            }
        }
    }

    #[test]
    fn a_struct_shows_every_field() {
        assert_eq!(
            printed("core.Volume", &json!({"name": "v", "emptyDir": {}})).replace(",\"", ", \"").get(..80),
            Some(r#"{"Name":"v", "HostPath":null, "EmptyDir":{"Medium":"", "SizeLimit":null}, "GCEPe"#)
        );
        assert_eq!(
            printed("core.PodTemplateSpec", &json!({"metadata": {"labels": {"a": "<"}}})).get(..53),
            Some(r#"{"labels":{"a":"\u003c"},"Spec":{"Volumes":null,"Init"#)
        );
        assert_eq!(
            printed("meta.OwnerReference", &json!({"kind": "A", "controller": true})),
            r#"{"apiVersion":"","kind":"A","name":"","uid":"","controller":true}"#
        );
    }

    #[test]
    fn lines_are_indented_by_one_space() {
        assert_eq!(
            pretty("rbac.RoleRef", &json!({"kind": "Role", "name": "r"})),
            "{\n \"APIGroup\": \"\",\n \"Kind\": \"Role\",\n \"Name\": \"r\"\n}"
        );
    }
}
