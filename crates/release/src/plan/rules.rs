//! What the fields of a map need of each other: exactly one of some, one only with another. The schema carries these
//! rules in standard keywords, so that editors and we check the same.

use super::finding::Finding;
use jobwright_yaml::{Entry, Node, Value as Yaml};
use serde_json::{Value, json};
use std::ops::Range;

/// The map has exactly one of these fields.
pub(super) fn exactly_one(fields: &[&str]) -> Value {
    json!({"description": format!("Exactly one of {}", list(fields)), "oneOf": alternatives(fields)})
}

/// The map has at least one of these fields. `about` is what is reported if it has not.
pub(super) fn at_least_one(fields: &[&str], about: &str) -> Value {
    json!({"description": about, "anyOf": alternatives(fields)})
}

/// The map has the field only together with one of the others.
pub(super) fn only_with(field: &str, others: &[&str]) -> Value {
    let about = format!("`{field}` requires {}", list_or(others));
    json!({"description": about, "dependentSchemas": {field: {"anyOf": alternatives(others)}}})
}

fn alternatives(fields: &[&str]) -> Vec<Value> {
    fields.iter().map(|field| json!({"required": [field]})).collect()
}

fn list(fields: &[&str]) -> String {
    fields.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(", ")
}

fn list_or(fields: &[&str]) -> String {
    fields.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(" or ")
}

/// The rules of a schema that a map breaks. `at` is where to point if the map is empty, `name` what it is called.
pub(super) fn check(node: &Node, schema: &Value, at: &Range<usize>, name: &str) -> Vec<Finding> {
    let map = Map { node, at, name };
    schema["allOf"].as_array().into_iter().flatten().flat_map(|rule| map.check(rule)).collect()
}

struct Map<'a> {
    node: &'a Node,
    at: &'a Range<usize>,
    name: &'a str,
}

impl Map<'_> {
    /// The entry of a field that is not null.
    fn entry(&self, field: &str) -> Option<&Entry> {
        self.node.entry(field).filter(|entry| entry.value.value != Yaml::Null)
    }

    /// The map by its id or name, and where that is.
    fn subject(&self) -> (String, Range<usize>) {
        let own = ["id", "name"].iter().find_map(|key| {
            let value = self.node.get(key)?;
            Some((value.as_str()?.to_owned(), value.span.clone()))
        });
        own.unwrap_or_else(|| (self.name.to_owned(), self.at.clone()))
    }

    fn check(&self, rule: &Value) -> Vec<Finding> {
        let about = rule["description"].as_str().unwrap_or_default();
        let (subject, span) = self.subject();
        if let Some(fields) = required(&rule["oneOf"]) {
            let mut found: Vec<&Entry> = fields.iter().filter_map(|field| self.entry(field)).collect();
            found.sort_by_key(|entry| entry.key_span.start);
            return match found.split_first() {
                None => {
                    let message = format!("`{subject}` has none of {}", list(&fields));
                    vec![Finding::new(span, message).help("add exactly one of them")]
                }
                Some((first, more)) => {
                    let both = |entry: &&Entry| {
                        let message = format!("`{subject}` has both `{}` and `{}`", first.key, entry.key);
                        let help = format!("keep exactly one of {}", list(&fields));
                        Finding::new(entry.key_span.clone(), message).help(help)
                    };
                    more.iter().map(both).collect()
                }
            };
        }
        if let Some(fields) = required(&rule["anyOf"]) {
            let is_kept = fields.iter().any(|field| self.entry(field).is_some());
            return if is_kept { Vec::new() } else { vec![Finding::new(span, format!("`{subject}`: {about}"))] };
        }
        let dependents = rule["dependentSchemas"].as_object().into_iter().flatten();
        dependents
            .filter_map(|(field, needs)| {
                let entry = self.entry(field)?;
                let is_kept = required(&needs["anyOf"])?.iter().any(|field| self.entry(field).is_some());
                (!is_kept).then(|| Finding::new(entry.key_span.clone(), about))
            })
            .collect()
    }
}

/// The fields of alternatives that each require one.
fn required(alternatives: &Value) -> Option<Vec<&str>> {
    let alternatives = alternatives.as_array()?;
    alternatives.iter().map(|alternative| alternative["required"][0].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(text: &str, rule: Value) -> Vec<String> {
        let document = jobwright_yaml::parse(text).unwrap().remove(0);
        let schema = json!({"allOf": [rule]});
        let findings = check(&document.root, &schema, &(0..0), "thing");
        findings.iter().map(|finding| format!("{} {}", finding.span.start, finding.message)).collect()
    }

    #[test]
    fn exactly_one_means_one_that_is_not_null() {
        let rule = || exactly_one(&["a", "b", "c"]);
        assert_eq!(broken("{a: 1}", rule()), [""; 0]);
        assert_eq!(broken("{a: null, b: 1}", rule()), [""; 0]);
        assert_eq!(broken("{d: 1}", rule()), ["0 `thing` has none of `a`, `b`, `c`"]);
        assert_eq!(broken("{id: x, a: null}", rule()), ["5 `x` has none of `a`, `b`, `c`"]);
        assert_eq!(
            broken("{b: 1, a: 2, c: 3}", rule()),
            ["7 `thing` has both `b` and `a`", "13 `thing` has both `b` and `c`"]
        );
    }

    #[test]
    fn a_field_that_needs_another_is_found_where_it_stands() {
        let rule = || only_with("b", &["a", "c"]);
        assert_eq!(broken("{c: 1, b: 1}", rule()), [""; 0]);
        assert_eq!(broken("{d: 1, b: 1}", rule()), ["7 `b` requires `a` or `c`"]);
        assert_eq!(broken("{d: 1}", at_least_one(&["a"], "`a` is required")), ["0 `thing`: `a` is required"]);
    }
}
