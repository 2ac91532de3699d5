//! The columns that a CustomResourceDefinition asks for.

use super::super::table::age;
use super::{AGE, Cell, Column, NAME};
use crate::object::Object;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::borrow::Cow;

/// A simple JSONPath: fields, indices and filters are what columns use (`.status.conditions[?(@.type=="Ready")].status`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(usize),
    All,
    /// Items whose field has a value.
    Where(Vec<String>, String),
}

/// The columns of a definition's `additionalPrinterColumns`, or name and age.
pub(super) fn columns(definitions: &[Value]) -> Vec<Column> {
    let mut columns = vec![NAME];
    if definitions.is_empty() {
        columns.push(AGE);
    }
    let text =
        |definition: &Value, field: &str| definition.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    columns.extend(definitions.iter().map(|definition| Column {
        name: Cow::Owned(text(definition, "name")),
        kind: match text(definition, "type").as_str() {
            "integer" => "integer",
            "number" => "number",
            "boolean" => "boolean",
            "date" => "date",
            _ => "string",
        },
        wide: definition.get("priority").and_then(Value::as_i64).unwrap_or_default() > 0,
        description: Cow::Owned(text(definition, "description")),
        cell: Cell::Path(JsonPath::parse(&text(definition, "jsonPath"))),
    }));
    columns
}

impl JsonPath {
    pub(crate) fn parse(text: &str) -> Self {
        let mut steps = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('[') {
                let end = closing(after);
                let (inside, after) = after.split_at(end);
                steps.push(bracket(inside));
                rest = after.strip_prefix(']').unwrap_or(after);
            } else {
                let after = rest.strip_prefix('.').unwrap_or(rest);
                let end = field_end(after);
                let name = after[..end].replace("\\.", ".");
                if !name.is_empty() {
                    steps.push(if name == "*" { Step::All } else { Step::Field(name) });
                } else if end == 0 && !after.starts_with('[') {
                    break;
                }
                rest = &after[end..];
            }
        }
        Self(steps)
    }

    fn find<'a>(&self, object: &'a Object) -> Vec<&'a Value> {
        let Some((Step::Field(first), rest)) = self.0.split_first() else { return Vec::new() };
        let mut found: Vec<&Value> = object.get(first).into_iter().collect();
        for step in rest {
            found = found
                .into_iter()
                .flat_map(|value| -> Vec<&Value> {
                    match step {
                        Step::Field(name) => value.get(name).into_iter().collect(),
                        Step::Index(index) => value.get(index).into_iter().collect(),
                        Step::All => match value {
                            Value::Array(items) => items.iter().collect(),
                            Value::Object(map) => map.values().collect(),
                            _ => Vec::new(),
                        },
                        Step::Where(path, wanted) => value
                            .as_array()
                            .into_iter()
                            .flatten()
                            .filter(|item| {
                                let field = path.iter().try_fold(*item, |value, name| value.get(name));
                                field.is_some_and(|field| {
                                    field.as_str().map_or_else(|| field.to_string(), str::to_owned) == *wanted
                                })
                            })
                            .collect(),
                    }
                })
                .collect();
        }
        found
    }

    pub(super) fn cell(&self, object: &Object, kind: &str, now: Timestamp) -> Value {
        let found = self.find(object);
        let Some(first) = found.first() else { return Value::Null };
        match kind {
            "date" => first.as_str().map_or(Value::Null, |time| json!(age(time, now))),
            "integer" => first.as_i64().map_or(Value::Null, Value::from),
            "number" => first.as_f64().map_or(Value::Null, Value::from),
            "boolean" => first.as_bool().map_or(Value::Null, Value::from),
            _ => json!(found.iter().map(|value| shown(value)).collect::<Vec<_>>().join(" ")),
        }
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Where the bracket ends, past quoted text.
fn closing(text: &str) -> usize {
    let mut quote = None;
    for (index, character) in text.char_indices() {
        match (quote, character) {
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            (None, ']') => return index,
            _ => {}
        }
    }
    text.len()
}

fn field_end(text: &str) -> usize {
    let mut escaped = false;
    for (index, character) in text.char_indices() {
        if !escaped && matches!(character, '.' | '[') {
            return index;
        }
        escaped = character == '\\' && !escaped;
    }
    text.len()
}

fn bracket(inside: &str) -> Step {
    let inside = inside.trim();
    if inside == "*" {
        return Step::All;
    }
    if let Ok(index) = inside.parse() {
        return Step::Index(index);
    }
    let filter = inside.strip_prefix("?(").and_then(|filter| filter.strip_suffix(')'));
    if let Some((path, value)) = filter.and_then(|filter| filter.split_once("==")) {
        let path = path.trim().trim_start_matches('@').split('.').filter(|name| !name.is_empty()).map(str::to_owned);
        return Step::Where(path.collect(), unquote(value));
    }
    Step::Field(unquote(inside))
}

fn unquote(text: &str) -> String {
    text.trim().trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_find_what_columns_ask_for() {
        let object = json!({"spec": {"a.b": 1, "list": [{"n": "x"}, {"n": "y"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let object = Object::from_value(object).unwrap();
        let cell = |path: &str, kind: &str| JsonPath::parse(path).cell(&object, kind, Timestamp::UNIX_EPOCH);
        assert_eq!(cell(r#".status.conditions[?(@.type=="Ready")].status"#, "string"), json!("True"));
        assert_eq!(cell(r".spec.a\.b", "integer"), json!(1));
        assert_eq!(cell(".spec['a.b']", "integer"), json!(1));
        assert_eq!(cell(".spec.list[*].n", "string"), json!("x y"));
        assert_eq!(cell(".spec.list[1].n", "string"), json!("y"));
        assert_eq!(cell(".missing", "string"), Value::Null);
        assert_eq!(cell("..", "string"), Value::Null);
    }
}
