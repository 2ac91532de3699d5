//! The part of JSONPath that names one field: `{.data.version}`, `.status.conditions[0].status`, `['a.b']`.

use serde_json::Value;
use std::str::FromStr;

/// A path to one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPath {
    text: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(usize),
}

/// A text that is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no path to a field: {problem}; `{{.data.version}}` is one")]
pub struct NoPath {
    text: String,
    problem: &'static str,
}

impl JsonPath {
    /// What is there; none if nothing is.
    pub fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.steps.iter().try_fold(value, |value, step| match step {
            Step::Field(name) => value.get(name),
            Step::Index(index) => value.get(index),
        })
    }
}

impl FromStr for JsonPath {
    type Err = NoPath;

    fn from_str(text: &str) -> Result<Self, NoPath> {
        let refuse = |problem| NoPath { text: text.to_owned(), problem };
        let inner = match (text.strip_prefix('{'), text.ends_with('}')) {
            (Some(rest), true) => &rest[..rest.len() - 1],
            (None, false) => text,
            _ => return Err(refuse("its brackets do not match")),
        };
        let mut steps = Vec::new();
        let mut rest = inner.strip_prefix('$').unwrap_or(inner);
        while !rest.is_empty() {
            let (step, after) = if let Some(after) = rest.strip_prefix("['") {
                let (name, after) = after.split_once("']").ok_or_else(|| refuse("a quote is not closed"))?;
                (Step::Field(name.to_owned()), after)
            } else if let Some(after) = rest.strip_prefix('[') {
                let (index, after) = after.split_once(']').ok_or_else(|| refuse("a bracket is not closed"))?;
                (Step::Index(index.parse().map_err(|_| refuse("only numbers and names can be in brackets"))?), after)
            } else if let Some(after) = rest.strip_prefix('.') {
                field(after).ok_or_else(|| refuse("a name is missing after a dot"))?
            } else {
                return Err(refuse("it has to begin with a dot"));
            };
            steps.push(step);
            rest = after;
        }
        Ok(Self { text: text.to_owned(), steps })
    }
}

/// A name up to the next dot or bracket that no backslash stands before.
fn field(text: &str) -> Option<(Step, &str)> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    let mut end = text.len();
    while let Some((index, character)) = characters.next() {
        match character {
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            '.' | '[' => {
                end = index;
                break;
            }
            plain => name.push(plain),
        }
    }
    (!name.is_empty() && name != "*").then(|| (Step::Field(name), &text[end..]))
}

impl std::fmt::Display for JsonPath {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_leads_to_one_field() {
        let object = json!({"data": {"version": "14", "a.b": "x"}, "list": [{"n": 1}, {"n": 2}]});
        for (path, found) in [
            ("{.data.version}", Some(json!("14"))),
            (".data.version", Some(json!("14"))),
            ("{.data['a.b']}", Some(json!("x"))),
            (r"{.data.a\.b}", Some(json!("x"))),
            ("{$.list[1].n}", Some(json!(2))),
            ("{.list[7].n}", None),
            ("{.data.version.more}", None),
            ("{}", Some(object.clone())),
        ] {
            assert_eq!(path.parse::<JsonPath>().unwrap().find(&object), found.as_ref(), "{path}");
        }
    }

    #[test]
    fn what_names_more_than_one_field_is_refused() {
        for path in ["{.data", "data", "{..data}", "{.list[*].n}", "{.list[?(@.n==1)]}", "{.a['b}", "{.*}", "."] {
            assert!(path.parse::<JsonPath>().is_err(), "{path}");
        }
    }
}
