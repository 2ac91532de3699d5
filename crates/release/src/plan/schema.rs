//! Checks a plan against its schema, and reports every error in one pass.
//!
//! It supports the part of JSON Schema that `schemars` makes of our types, the formats of `format` and the rules of
//! `rules`: enough to report what is unknown, missing, mistyped or misspelt.

use super::finding::{Finding, did_you_mean};
use super::format::Format;
use super::rules;
use jobwright_yaml::{Node, Value as Yaml};
use serde_json::Value;
use std::ops::Range;

/// Everything in which a value differs from its schema.
pub(super) fn check(node: &Node, schema: &Value) -> Vec<Finding> {
    let mut checker = Checker { root: schema, findings: Vec::new() };
    checker.check(node, schema, &node.span, "the file");
    checker.findings
}

struct Checker<'a> {
    root: &'a Value,
    findings: Vec<Finding>,
}

impl<'a> Checker<'a> {
    fn resolve(&self, schema: &'a Value) -> &'a Value {
        let target = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/"));
        target.map_or(schema, |name| &self.root["$defs"][name])
    }

    /// `at` is where to point if the value itself is null or empty: at its key.
    fn check(&mut self, node: &Node, schema: &'a Value, at: &Range<usize>, name: &str) {
        let schema = self.resolve(schema);
        if let Some(choices) = schema["anyOf"].as_array() {
            // What schemars makes of an option: the value itself, or null.
            if node.value != Yaml::Null
                && let Some(choice) = choices.iter().find(|choice| choice["type"] != "null")
            {
                self.check(node, choice, at, name);
            }
            return;
        }
        if let Some(names) = names_of(schema) {
            self.check_choice(node, &names, name);
            return;
        }
        if !self.has_right_type(node, schema, at, name) {
            return;
        }
        match &node.value {
            Yaml::Map(_) => self.check_map(node, schema, at, name),
            Yaml::List(items) => {
                if let Some(least) = schema["minItems"].as_u64().filter(|least| (items.len() as u64) < *least) {
                    self.add(&node.span, format!("`{name}` needs at least {least} item"));
                }
                for item in items {
                    self.check(item, &schema["items"], &item.span, name);
                }
            }
            Yaml::String(text) => self.check_text(node, text, schema),
            Yaml::Number(number) => {
                let number = number.as_f64().unwrap_or_default();
                let least = schema["minimum"].as_f64().filter(|least| number < *least);
                let most = schema["maximum"].as_f64().filter(|most| number > *most);
                if let Some(bound) =
                    least.map(|least| format!("at least {least}")).or(most.map(|most| format!("at most {most}")))
                {
                    self.add(&node.span, format!("`{name}` must be {bound}"));
                }
            }
            Yaml::Null | Yaml::Bool(_) => {}
        }
    }

    fn has_right_type(&mut self, node: &Node, schema: &'a Value, at: &Range<usize>, name: &str) -> bool {
        let types: Vec<&str> = match &schema["type"] {
            Value::String(one) => vec![one],
            Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
            _ => return true,
        };
        let (is, fits): (&str, &[&str]) = match &node.value {
            Yaml::Null => ("null", &["null"]),
            Yaml::Bool(_) => ("a boolean", &["boolean"]),
            Yaml::Number(number) if number.is_f64() => ("a number with a fraction", &["number"]),
            Yaml::Number(_) => ("a number", &["number", "integer"]),
            Yaml::String(_) => ("a string", &["string"]),
            Yaml::List(_) => ("a list", &["array"]),
            Yaml::Map(_) => ("a map", &["object"]),
        };
        if fits.iter().any(|kind| types.contains(kind)) {
            return true;
        }
        let format = Format::of(schema);
        let is_text = types.first() == Some(&"string");
        let wanted = match types.first() {
            Some(&"string") => format.map_or("a string", Format::noun),
            Some(&"boolean") => "true or false",
            Some(&"integer") => "a whole number",
            Some(&"array") => "a list",
            Some(&"object") => "a map",
            _ => "of another type",
        };
        let span = if node.value == Yaml::Null { at } else { &node.span };
        let finding = Finding::new(span.clone(), format!("`{name}` must be {wanted}, not {is}"));
        let is_scalar = matches!(node.value, Yaml::Bool(_) | Yaml::Number(_));
        // A duration in quotes is still none.
        let helps = is_text && is_scalar && format != Some(Format::Duration);
        self.findings.push(if helps { finding.help("put it in quotes") } else { finding });
        false
    }

    fn check_map(&mut self, node: &Node, schema: &'a Value, at: &Range<usize>, name: &str) {
        let properties = schema["properties"].as_object();
        let known = || properties.into_iter().flat_map(|properties| properties.keys()).map(String::as_str);
        for entry in node.entries() {
            match (properties.and_then(|properties| properties.get(&entry.key)), &schema["additionalProperties"]) {
                (Some(schema), _) => self.check(&entry.value, schema, &entry.key_span, &entry.key),
                (None, Value::Bool(false)) => {
                    let finding = Finding::new(entry.key_span.clone(), format!("unknown field `{}`", entry.key));
                    let listed =
                        || format!("known: {}", known().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "));
                    let help = did_you_mean(&entry.key, known()).unwrap_or_else(listed);
                    self.findings.push(finding.help(help));
                }
                (None, Value::Object(_)) => {
                    self.check(&entry.value, &schema["additionalProperties"], &entry.key_span, &entry.key);
                }
                (None, _) => {}
            }
        }
        for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if node.get(required).is_none() {
                // The whole map would be too much to point at.
                let first = node.entries().first().map_or_else(|| at.clone(), |entry| entry.key_span.clone());
                let place = if name == "the file" { "the file".to_owned() } else { format!("`{name}`") };
                self.add(&first, format!("{place} lacks the field `{required}`"));
            }
        }
        self.findings.extend(rules::check(node, schema, at, name));
    }

    fn check_text(&mut self, node: &Node, text: &str, schema: &Value) {
        if let Some(problem) = Format::of(schema).and_then(|format| format.problem(text)) {
            self.add(&node.span, problem);
        }
    }

    fn check_choice(&mut self, node: &Node, names: &[&str], name: &str) {
        let text = node.as_str().map_or_else(|| node.to_json().to_string(), str::to_owned);
        if names.contains(&text.as_str()) {
            return;
        }
        let finding = Finding::new(node.span.clone(), format!("invalid `{name}`: `{text}`"));
        let listed = || {
            let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            match quoted.split_last() {
                Some((last, [])) => format!("use {last}"),
                Some((last, others)) => format!("use {} or {last}", others.join(", ")),
                None => String::new(),
            }
        };
        let help = did_you_mean(&text, names.iter().copied()).unwrap_or_else(listed);
        self.findings.push(finding.help(help));
    }

    fn add(&mut self, span: &Range<usize>, message: String) {
        self.findings.push(Finding::new(span.clone(), message));
    }
}

/// The names that an enumeration allows.
fn names_of(schema: &Value) -> Option<Vec<&str>> {
    if let Some(names) = schema["enum"].as_array() {
        return Some(names.iter().filter_map(Value::as_str).collect());
    }
    if let Some(name) = schema["const"].as_str() {
        return Some(vec![name]);
    }
    let choices = schema["oneOf"].as_array()?;
    choices.iter().map(|choice| choice["const"].as_str()).collect()
}
