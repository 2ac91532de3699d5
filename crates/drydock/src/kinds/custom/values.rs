//! The values of custom resources against their OpenAPI schema, refused in the server's words
//! (kube-openapi `validation/validate`, apiextensions-apiserver v0.34).

use crate::field::{FieldError, Path};
use regex::Regex;
use serde_json::{Map, Value, json};

/// Schemas are trees that a server has accepted; none is deeper than this.
const DEPTH_LIMIT: usize = 64;

/// What is wrong with an object.
pub(super) fn check(schema: &Value, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    // The envelope is the server's business, not the schema's.
    let mut object = object.clone();
    if let Value::Object(map) = &mut object {
        for field in ["apiVersion", "kind", "metadata"] {
            map.remove(field);
        }
    }
    Checker { errors: &mut errors }.value(schema, &object, "", 0);
    errors
}

struct Checker<'a> {
    errors: &'a mut Vec<FieldError>,
}

fn path_of(path: &str) -> Path {
    if path.is_empty() { Path::root() } else { Path::new(path) }
}

fn join(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() && number.as_f64().is_some_and(|number| number.fract() != 0.0) => {
            "number"
        }
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

impl Checker<'_> {
    fn invalid(&mut self, path: &str, value: impl Into<Value>, what: &str) {
        self.errors.push(FieldError::invalid(&path_of(path), value, format!("{path} in body {what}")));
    }

    fn value(&mut self, schema: &Value, value: &Value, path: &str, depth: usize) {
        if depth > DEPTH_LIMIT
            || (value.is_null() && schema.get("nullable").and_then(Value::as_bool).unwrap_or_default())
        {
            return;
        }
        if !self.has_right_type(schema, value, path) {
            return;
        }
        self.enumerated(schema, value, path);
        match value {
            Value::String(text) => self.text(schema, text, path),
            Value::Number(number) => self.number(schema, number, path),
            Value::Array(items) => self.list(schema, items, path, depth),
            Value::Object(map) => self.object(schema, map, path, depth),
            Value::Null | Value::Bool(_) => {}
        }
        self.combined(schema, value, path, depth);
    }

    fn has_right_type(&mut self, schema: &Value, value: &Value, path: &str) -> bool {
        let found = type_of(value);
        let either = schema.get("x-kubernetes-int-or-string").and_then(Value::as_bool).unwrap_or_default();
        let wanted =
            if either { "integer,string" } else { schema.get("type").and_then(Value::as_str).unwrap_or_default() };
        let right = match wanted {
            "" => true,
            "integer,string" => matches!(found, "integer" | "string"),
            "number" => matches!(found, "number" | "integer"),
            wanted => wanted == found,
        };
        if !right {
            let what = format!("{path} in body must be of type {wanted}: {found:?}");
            self.errors.push(FieldError::type_invalid(&path_of(path), found, what));
        }
        right
    }

    fn enumerated(&mut self, schema: &Value, value: &Value, path: &str) {
        let Some(Value::Array(allowed)) = schema.get("enum") else { return };
        if !allowed.contains(value) {
            let names: Vec<String> =
                allowed.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            self.errors.push(FieldError::not_supported(&path_of(path), value.clone(), &names));
        }
    }

    fn text(&mut self, schema: &Value, text: &str, path: &str) {
        let length = text.chars().count();
        if let Some(limit) = limit(schema, "maxLength").filter(|limit| length > *limit) {
            self.errors.push(FieldError::too_long(&path_of(path), limit));
        }
        if let Some(limit) = limit(schema, "minLength").filter(|limit| length < *limit) {
            self.invalid(path, text, &format!("should be at least {limit} chars long"));
        }
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
            && !Regex::new(pattern).is_ok_and(|regex| regex.is_match(text))
        {
            self.invalid(path, text, &format!("should match '{pattern}'"));
        }
        if let Some(format) = schema.get("format").and_then(Value::as_str)
            && !fits_format(format, text)
        {
            let what = format!("{path} in body must be of type {format}: {text:?}");
            self.errors.push(FieldError::type_invalid(&path_of(path), text, what));
        }
    }

    fn number(&mut self, schema: &Value, number: &serde_json::Number, path: &str) {
        let Some(given) = number.as_f64() else { return };
        let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
        let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or_default();
        let shown = |name: &str| schema.get(name).map(ToString::to_string).unwrap_or_default();
        if let Some(maximum) = bound("maximum") {
            if flag("exclusiveMaximum") && given >= maximum {
                self.invalid(path, number.clone(), &format!("should be less than {}", shown("maximum")));
            } else if given > maximum {
                self.invalid(path, number.clone(), &format!("should be less than or equal to {}", shown("maximum")));
            }
        }
        if let Some(minimum) = bound("minimum") {
            if flag("exclusiveMinimum") && given <= minimum {
                self.invalid(path, number.clone(), &format!("should be greater than {}", shown("minimum")));
            } else if given < minimum {
                self.invalid(path, number.clone(), &format!("should be greater than or equal to {}", shown("minimum")));
            }
        }
        if let Some(factor) = bound("multipleOf").filter(|factor| *factor > 0.0) {
            let times = given / factor;
            if (times - times.round()).abs() > 1e-9 {
                self.invalid(path, number.clone(), &format!("should be a multiple of {}", shown("multipleOf")));
            }
        }
    }

    fn list(&mut self, schema: &Value, items: &[Value], path: &str, depth: usize) {
        if let Some(limit) = limit(schema, "maxItems").filter(|limit| items.len() > *limit) {
            self.errors.push(FieldError::too_many(&path_of(path), items.len(), limit));
        }
        if let Some(limit) = limit(schema, "minItems").filter(|limit| items.len() < *limit) {
            self.invalid(path, items.len(), &format!("should have at least {limit} items"));
        }
        if let Some(item_schema) = schema.get("items") {
            for (index, item) in items.iter().enumerate() {
                self.value(item_schema, item, &format!("{path}[{index}]"), depth + 1);
            }
        }
    }

    fn object(&mut self, schema: &Value, map: &Map<String, Value>, path: &str, depth: usize) {
        if let Some(limit) = limit(schema, "maxProperties").filter(|limit| map.len() > *limit) {
            self.errors.push(FieldError::too_many(&path_of(path), map.len(), limit));
        }
        if let Some(limit) = limit(schema, "minProperties").filter(|limit| map.len() < *limit) {
            self.invalid(path, map.len(), &format!("should have at least {limit} properties"));
        }
        for required in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
        {
            if !map.contains_key(required) {
                self.errors.push(FieldError::required(&Path::new(&join(path, required)), ""));
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, value) in map {
            let schema = properties
                .and_then(|properties| properties.get(name))
                .or_else(|| schema.get("additionalProperties").filter(|values| values.is_object()));
            if let Some(schema) = schema {
                self.value(schema, value, &join(path, name), depth + 1);
            }
        }
    }

    /// `allOf`, `anyOf`, `oneOf`, `not`.
    fn combined(&mut self, schema: &Value, value: &Value, path: &str, depth: usize) {
        let list = |name: &str| schema.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for part in list("allOf") {
            self.value(part, value, path, depth + 1);
        }
        let errors_of = |part: &Value| {
            let mut errors = Vec::new();
            Checker { errors: &mut errors }.value(part, value, path, depth + 1);
            errors
        };
        let whole = |what: String| FieldError::invalid(&Path::root(), "", format!("{path:?} {what}"));
        if !list("anyOf").is_empty() && list("anyOf").iter().all(|part| !errors_of(part).is_empty()) {
            self.errors.push(whole("must validate at least one schema (anyOf)".to_owned()));
            self.errors.extend(list("anyOf").first().map(errors_of).unwrap_or_default());
        }
        if !list("oneOf").is_empty() {
            match list("oneOf").iter().filter(|part| errors_of(part).is_empty()).count() {
                1 => {}
                0 => {
                    self.errors
                        .push(whole("must validate one and only one schema (oneOf). Found none valid".to_owned()));
                    self.errors.extend(list("oneOf").first().map(errors_of).unwrap_or_default());
                }
                several => self.errors.push(whole(format!(
                    "must validate one and only one schema (oneOf). Found {several} valid alternatives"
                ))),
            }
        }
        if schema.get("not").is_some_and(|not| errors_of(not).is_empty()) {
            self.errors.push(whole("must not validate the schema (not)".to_owned()));
        }
    }
}

fn limit(schema: &Value, name: &str) -> Option<usize> {
    schema.get(name).and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok())
}

/// The formats that are checked; others are words for readers.
fn fits_format(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.parse::<jiff::civil::Date>().is_ok(),
        "ipv4" => text.parse::<std::net::Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<std::net::Ipv6Addr>().is_ok(),
        "cidr" => text.split_once('/').is_some_and(|(address, bits)| {
            bits.parse::<u8>().is_ok_and(|bits| match address.parse::<std::net::IpAddr>() {
                Ok(std::net::IpAddr::V4(_)) => bits <= 32,
                Ok(std::net::IpAddr::V6(_)) => bits <= 128,
                Err(_) => false,
            })
        }),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => {
            let plain: String = text.chars().filter(|character| *character != '-').collect();
            plain.len() == 32 && plain.chars().all(|character| character.is_ascii_hexdigit())
        }
        "byte" => base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text).is_ok(),
        "hostname" => {
            !text.is_empty()
                && text.len() <= 255
                && text.split('.').all(|label| {
                    !label.is_empty()
                        && label.len() <= 63
                        && label.chars().all(|character| character.is_ascii_alphanumeric() || character == '-')
                })
        }
        "email" => text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty()),
        "uri" => http::Uri::try_from(text).is_ok_and(|uri| uri.scheme().is_some()),
        _ => true,
    }
}

/// Items of sets and maps must be different.
pub(super) fn check_lists(schema: &Value, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    lists(schema, object, "", &mut errors, 0);
    errors
}

fn lists(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>, depth: usize) {
    if depth > DEPTH_LIMIT {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let below = schema.pointer("/properties").and_then(|properties| properties.get(name));
                if let Some(schema) =
                    below.or_else(|| schema.get("additionalProperties").filter(|values| values.is_object()))
                {
                    lists(schema, value, &join(path, name), errors, depth + 1);
                }
            }
        }
        Value::Array(items) => {
            if let Some(keys) = keys(schema, items) {
                for (index, key) in keys.iter().enumerate() {
                    if keys[..index].contains(key) {
                        errors.push(FieldError::duplicate(&Path::new(&format!("{path}[{index}]")), key.clone()));
                    }
                }
            }
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    lists(schema, item, &format!("{path}[{index}]"), errors, depth + 1);
                }
            }
        }
        _ => {}
    }
}

/// What the items of a set or map are told apart by.
fn keys(schema: &Value, items: &[Value]) -> Option<Vec<Value>> {
    match schema.get("x-kubernetes-list-type")?.as_str()? {
        "set" => Some(items.to_vec()),
        "map" => {
            let names: Vec<&str> =
                schema.get("x-kubernetes-list-map-keys")?.as_array()?.iter().filter_map(Value::as_str).collect();
            let key = |item: &Value| {
                let fields = names.iter().filter_map(|name| Some(((*name).to_owned(), item.get(name)?.clone())));
                json!(fields.collect::<Map<_, _>>())
            };
            Some(items.iter().map(key).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn schema() -> Value {
        json!({"type": "object", "properties": {"spec": {"type": "object", "required": ["image"], "properties": {
            "image": {"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^[a-z]+$"},
            "replicas": {"type": "integer", "minimum": 0, "maximum": 10},
            "mode": {"type": "string", "enum": ["a", "b"]},
            "list": {"type": "array", "maxItems": 2, "minItems": 1, "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
            "port": {"x-kubernetes-int-or-string": true},
            "map": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 1},
            "num": {"type": "number", "multipleOf": 0.5, "exclusiveMinimum": true, "minimum": 0},
            "when": {"type": "string", "format": "date-time"},
            "nul": {"type": "string", "nullable": true},
            "any": {"type": "object", "oneOf": [{"required": ["x"]}, {"required": ["y"]}]},
        }}}})
    }

    fn errors(spec: Value) -> Vec<String> {
        let object = json!({"spec": spec});
        let mut all = check(&schema(), &object);
        all.extend(check_lists(&schema(), &object));
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn wrong_values_are_refused_in_the_servers_words() {
        for (spec, expected) in [
            (json!({"image": "x", "nul": null, "port": "http", "num": 1}), vec![]),
            (json!({}), vec!["spec.image: Required value"]),
            (
                json!({"image": 5}),
                vec![r#"spec.image: Invalid value: "integer": spec.image in body must be of type string: "integer""#],
            ),
            (
                json!({"image": ""}),
                vec![
                    r#"spec.image: Invalid value: "": spec.image in body should be at least 1 chars long"#,
                    r#"spec.image: Invalid value: "": spec.image in body should match '^[a-z]+$'"#,
                ],
            ),
            (json!({"image": "toolong"}), vec!["spec.image: Too long: may not be more than 5 bytes"]),
            (
                json!({"image": "x", "replicas": 11}),
                vec!["spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10"],
            ),
            (
                json!({"image": "x", "replicas": -1}),
                vec!["spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0"],
            ),
            (
                json!({"image": "x", "mode": "q"}),
                vec![r#"spec.mode: Unsupported value: "q": supported values: "a", "b""#],
            ),
            (
                json!({"image": "x", "list": ["a", "a", "b"]}),
                vec!["spec.list: Too many: 3: must have at most 2 items", r#"spec.list[1]: Duplicate value: "a""#],
            ),
            (
                json!({"image": "x", "list": []}),
                vec!["spec.list: Invalid value: 0: spec.list in body should have at least 1 items"],
            ),
            (
                json!({"image": "x", "items": [{"name": "a"}, {"name": "a"}]}),
                vec![r#"spec.items[1]: Duplicate value: {"name":"a"}"#],
            ),
            (
                json!({"image": "x", "port": 1.5}),
                vec![
                    r#"spec.port: Invalid value: "number": spec.port in body must be of type integer,string: "number""#,
                ],
            ),
            (
                json!({"image": "x", "map": {"a": "1", "b": "2"}}),
                vec!["spec.map: Too many: 2: must have at most 1 item"],
            ),
            (
                json!({"image": "x", "num": 0.3}),
                vec!["spec.num: Invalid value: 0.3: spec.num in body should be a multiple of 0.5"],
            ),
            (
                json!({"image": "x", "when": "zz"}),
                vec![r#"spec.when: Invalid value: "zz": spec.when in body must be of type date-time: "zz""#],
            ),
            (
                json!({"image": "x", "any": {}}),
                vec![
                    r#"<nil>: Invalid value: "": "spec.any" must validate one and only one schema (oneOf). Found none valid"#,
                    "spec.any.x: Required value",
                ],
            ),
            (
                json!({"image": "x", "any": {"x": 1, "y": 1}}),
                vec![
                    r#"<nil>: Invalid value: "": "spec.any" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
                ],
            ),
        ] {
            assert_eq!(errors(spec.clone()), expected, "{spec}");
        }
    }

    proptest! {
        #[test]
        fn any_value_against_any_schema(schema in crate::testing::json(), value in crate::testing::json()) {
            check(&schema, &value);
            check_lists(&schema, &value);
        }
    }
}
