//! Values: what users give, and how what charts give is put beneath it.

mod coalesce;
mod strvals;

use coalesce::overlay;
pub(crate) use coalesce::{coalesce, merge_values, tables_keeping_nulls};
pub use strvals::{Assignment, AssignmentError};

use serde_json::{Map, Number, Value};
use std::path::PathBuf;

/// A table of values. Numbers from YAML are floats, as they are in Helm; those of `--set` are integers.
pub type Values = Map<String, Value>;

/// Reads a values file; `Err` has a message with the line.
pub(crate) fn read_values(data: &[u8]) -> Result<Values, String> {
    let text = String::from_utf8_lossy(data);
    let documents = jobwright_yaml::parse(&text)
        .map_err(|error| format!("error converting YAML to JSON: yaml: {}", error.in_go(&text)))?;
    match documents.first().map_or(Value::Null, |document| document.root.to_json()) {
        Value::Object(values) => Ok(values.into_iter().map(|(key, value)| (key, with_floats(value))).collect()),
        Value::Null => Ok(Values::new()),
        other => {
            let kind = match other {
                Value::Array(_) => "array",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                _ => "number",
            };
            Err(format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            ))
        }
    }
}

/// All numbers as floats, as Go's JSON decoder reads them.
pub(crate) fn with_floats(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().and_then(Number::from_f64).map_or(Value::Null, Value::Number),
        Value::Array(items) => items.into_iter().map(with_floats).collect(),
        Value::Object(entries) => entries.into_iter().map(|(key, item)| (key, with_floats(item))).collect(),
        other => other,
    }
}

/// What a user gives: files first, then assignments, each kind in Helm's order.
#[derive(Clone, Debug, Default)]
pub struct UserValues {
    /// `-f`: the texts of files, by their names.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// `--set-json`, `--set`, `--set-string`, `--set-file` and `--set-literal`.
    pub assignments: Vec<Assignment>,
}

/// Values that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValuesError {
    /// A file is no values file.
    #[error("failed to parse {}: {message}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// An assignment cannot be parsed.
    #[error(transparent)]
    Assignment(#[from] AssignmentError),
}

impl UserValues {
    /// All of it in one table.
    pub fn merged(&self) -> Result<Values, ValuesError> {
        let mut merged = Values::new();
        for (path, data) in &self.files {
            let read = read_values(data).map_err(|message| ValuesError::File { path: path.clone(), message })?;
            overlay(&mut merged, read);
        }
        let mut assignments: Vec<&Assignment> = self.assignments.iter().collect();
        assignments.sort_by_key(|assignment| assignment.order());
        for assignment in assignments {
            assignment.apply(&mut merged)?;
        }
        Ok(merged)
    }
}

/// The value at a path of keys with dots between them, if it is no table.
pub(crate) fn at_path<'v>(values: &'v Values, path: &str) -> Option<&'v Value> {
    let (tables, key) = path.rsplit_once('.').map_or((None, path), |(tables, key)| (Some(tables), key));
    let table = match tables {
        Some(tables) => table(values, tables)?,
        None => values,
    };
    table.get(key).filter(|value| !value.is_object())
}

/// The table at a path.
pub(crate) fn table<'v>(values: &'v Values, path: &str) -> Option<&'v Values> {
    path.split('.').try_fold(values, |table, key| table.get(key)?.as_object())
}
