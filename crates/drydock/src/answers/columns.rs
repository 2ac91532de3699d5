//! The columns of tables, for kinds that are worth more than name and age.

mod access;
mod core;
mod custom;
mod network;
mod pods;
mod storage;
mod workloads;

use super::table::age;
use crate::kinds::Kind;
use crate::object::Object;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::borrow::Cow;

/// A column.
#[derive(Clone)]
pub(crate) struct Column {
    name: Cow<'static, str>,
    kind: &'static str,
    /// Shown only with `-o wide`.
    wide: bool,
    description: Cow<'static, str>,
    cell: Cell,
}

/// How a cell comes about.
#[derive(Clone)]
enum Cell {
    Computed(fn(&Object, Timestamp) -> Value),
    /// What a JSONPath finds, for custom columns.
    Path(custom::JsonPath),
}

const fn column(name: &'static str, cell: fn(&Object, Timestamp) -> Value) -> Column {
    Column {
        name: Cow::Borrowed(name),
        kind: "string",
        wide: false,
        description: Cow::Borrowed(""),
        cell: Cell::Computed(cell),
    }
}

impl Column {
    const fn wide(mut self) -> Self {
        self.wide = true;
        self
    }

    const fn typed(mut self, kind: &'static str) -> Self {
        self.kind = kind;
        self
    }

    pub(crate) fn cell(&self, object: &Object, now: Timestamp) -> Value {
        match &self.cell {
            Cell::Computed(cell) => cell(object, now),
            Cell::Path(path) => path.cell(object, self.kind, now),
        }
    }

    pub(crate) fn definition(&self) -> Value {
        json!({"name": self.name, "type": self.kind, "format": if self.name == "Name" { "name" } else { "" },
            "description": self.description, "priority": i32::from(self.wide)})
    }
}

const NAME: Column = column("Name", |object, _| json!(object.name()));
const AGE: Column = column("Age", |object, now| json!(age(object.text(&["metadata", "creationTimestamp"]), now)));
const CREATED: Column =
    column("Created At", |object, _| text(object, &["metadata", "creationTimestamp"])).typed("date");

static PLAIN: &[Column] = &[NAME, AGE];

/// The columns of a kind.
pub(crate) fn of(kind: &Kind) -> Cow<'_, [Column]> {
    if let Some(custom) = kind.custom() {
        return Cow::Owned(custom::columns(&custom.columns));
    }
    let columns = workloads::of(&kind.plural)
        .or_else(|| core::of(&kind.plural))
        .or_else(|| network::of(&kind.plural))
        .or_else(|| storage::of(&kind.plural))
        .or_else(|| access::of(&kind.plural));
    Cow::Borrowed(columns.unwrap_or(PLAIN))
}

/// The text at a path, empty when there is none.
fn text(object: &Object, path: &[&str]) -> Value {
    json!(object.text(path))
}

/// The text at a path, or `<unset>`, `<none>` and the like.
fn text_or(object: &Object, path: &[&str], absent: &str) -> Value {
    match object.text(path) {
        "" => json!(absent),
        text => json!(text),
    }
}

/// The number at a path, zero when there is none.
fn number(object: &Object, path: &[&str]) -> i64 {
    object.integer(path).unwrap_or_default()
}

fn length(object: &Object, path: &[&str]) -> usize {
    match object.at(path) {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(map)) => map.len(),
        _ => 0,
    }
}

/// `a=b,c=d`, or `<none>`.
fn labels(value: Option<&Value>) -> String {
    let pairs: Vec<String> = crate::object::strings(value).map(|(key, value)| format!("{key}={value}")).collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

/// A selector object as text, or `<none>`.
fn selector(value: Option<&Value>) -> String {
    let selector = value.and_then(crate::selector::LabelSelector::from_object).unwrap_or_default();
    if selector.is_empty() { "<none>".to_owned() } else { selector.to_string() }
}

/// One field of each item, joined by commas.
fn joined(items: &[Value], field: &str) -> String {
    let texts: Vec<&str> = items.iter().filter_map(|item| item.get(field).and_then(Value::as_str)).collect();
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;
    use proptest::prelude::*;

    #[test]
    fn every_table_has_one_cell_for_each_column_whatever_the_object() {
        for kind in Kinds::default().all() {
            for column in of(kind).iter() {
                column.cell(&Object::default(), Timestamp::UNIX_EPOCH);
            }
            assert!(of(kind).iter().any(|column| column.name == "Name"), "{}", kind.plural);
        }
    }

    proptest! {
        #[test]
        fn no_cell_panics(value in crate::testing::json_object()) {
            let object = Object::from_value(value).unwrap();
            for kind in Kinds::default().all() {
                for column in of(kind).iter() {
                    column.cell(&object, Timestamp::UNIX_EPOCH);
                }
            }
        }
    }
}
