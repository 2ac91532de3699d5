//! Values in the words of Go's `fmt`, which the server's refusals quote.

use serde_json::{Number, Value};

/// A value as `%v` shows it: `map[a:1 b:[x <nil>]]`.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => whole_or_float(number),
        Value::String(text) => text.clone(),
        Value::Array(items) => plain_list(items),
        Value::Object(map) => {
            let entries: Vec<String> = map.iter().map(|(key, value)| format!("{key}:{}", plain(value))).collect();
            format!("map[{}]", entries.join(" "))
        }
    }
}

/// A list as `%v` shows it.
pub(super) fn plain_list(items: &[Value]) -> String {
    format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" "))
}

/// A value as `%s` shows it, which is meant for strings: `%!s(int64=1)`.
pub(super) fn text(value: &Value) -> String {
    if value.is_null() { "%!s(<nil>)".to_owned() } else { text_within(value) }
}

fn text_within(value: &Value) -> String {
    match value {
        Value::Null => plain(value),
        Value::Bool(_) | Value::Number(_) => format!("%!s({}={})", type_name(value), plain(value)),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(text_within).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let entries: Vec<String> = map.iter().map(|(key, value)| format!("{key}:{}", text_within(value))).collect();
            format!("map[{}]", entries.join(" "))
        }
    }
}

/// A value as `%#v` shows it: `map[string]interface {}{"a":1}`. All numbers are floating-point ones.
pub(super) fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => float(number.as_f64().unwrap_or_default()),
        Value::String(text) => crate::field::quote(text),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{}:{}", crate::field::quote(key), syntax(value))).collect();
            format!("map[string]interface {{}}{{{}}}", entries.join(", "))
        }
    }
}

/// The Go type that holds a value.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// What Go's JSON reader calls a value that it did not expect.
pub(super) fn json_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn whole_or_float(number: &Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() => float(value),
        _ => number.to_string(),
    }
}

/// A floating-point number as `%v` shows it: the shortest digits, with an exponent from a million on.
pub(super) fn float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn floats_are_shown_as_go_shows_them() {
        for (value, text) in [
            (1.0, "1"),
            (-3.5, "-3.5"),
            (100_000.0, "100000"),
            (1_000_000.0, "1e+06"),
            (1_234_567.0, "1.234567e+06"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (0.0, "0"),
        ] {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn values_are_shown_as_go_shows_them() {
        let value = json!({"b": [1, 1.5, null, "x"], "a": {"c": true}});
        assert_eq!(plain(&value), "map[a:map[c:true] b:[1 1.5 <nil> x]]");
        assert_eq!(text(&value), "map[a:map[c:%!s(bool=true)] b:[%!s(int64=1) %!s(float64=1.5) <nil> x]]");
        assert_eq!(
            syntax(&value),
            r#"map[string]interface {}{"a":map[string]interface {}{"c":true}, "b":[]interface {}{1, 1.5, interface {}(nil), "x"}}"#
        );
    }
}
