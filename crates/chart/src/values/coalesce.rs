//! How Helm puts a chart's values beneath those that are given (helm v3.17 `pkg/chartutil/coalesce.go`).

use super::Values;
use crate::package::Package;
use serde_json::Value;

const GLOBAL: &str = "global";

/// Whether `null` deletes what a chart gives, or stays for a later pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nulls {
    Delete,
    Keep,
}

/// Later files above earlier ones: tables are merged, anything else is replaced.
pub(super) fn overlay(below: &mut Values, above: Values) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => overlay(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

/// The values that a chart and the charts in it are rendered with; `Err` has Helm's message.
pub(crate) fn coalesce(package: &Package, given: Values) -> Result<Values, String> {
    let mut values = given;
    coalesce_into(package, &mut values, Nulls::Delete)?;
    Ok(values)
}

/// The same, with every `null` kept.
pub(crate) fn merge_values(package: &Package, given: Values) -> Result<Values, String> {
    let mut values = given;
    coalesce_into(package, &mut values, Nulls::Keep)?;
    Ok(values)
}

fn coalesce_into(package: &Package, values: &mut Values, nulls: Nulls) -> Result<(), String> {
    own_values(package, values, nulls);
    for subchart in &package.dependencies {
        let name = subchart.name();
        let inner = values.entry(name).or_insert_with(|| Value::Object(Values::new()));
        let Value::Object(inner) = inner else {
            return Err(format!("type mismatch on {name}: {}", go_bool(inner)));
        };
        let mut inner = std::mem::take(inner);
        globals(&mut inner, values);
        let result = coalesce_into(subchart, &mut inner, nulls);
        values.insert(name.to_owned(), Value::Object(inner));
        result?;
    }
    Ok(())
}

/// What Go's `%t` prints of something that is no boolean.
fn go_bool(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Null => "%!t(<nil>)".to_owned(),
        Value::String(text) => format!("%!t(string={text})"),
        Value::Number(number) => {
            let kind = if number.is_f64() { "float64" } else { "int64" };
            format!("%!t({kind}={number})")
        }
        other => format!("%!t({other})"),
    }
}

fn own_values(package: &Package, values: &mut Values, nulls: Nulls) {
    for (key, default) in &package.values {
        match values.get_mut(key) {
            None => {
                values.insert(key.clone(), default.clone());
            }
            Some(Value::Null) if nulls == Nulls::Delete => {
                values.remove(key);
            }
            Some(Value::Object(given)) => {
                if let Value::Object(default) = default {
                    // What a subchart's values delete is decided when that one is coalesced.
                    let is_subchart = package.dependencies.iter().any(|subchart| subchart.name() == key);
                    tables(given, default, if is_subchart { Nulls::Keep } else { nulls });
                }
            }
            Some(_) => {}
        }
    }
}

/// Puts a table beneath another one; what is `null` there stays.
pub(crate) fn tables_keeping_nulls(given: &mut Values, default: &Values) {
    tables(given, default, Nulls::Keep);
}

/// Puts a table beneath another one.
fn tables(given: &mut Values, default: &Values, nulls: Nulls) {
    for (key, value) in default {
        match (given.get_mut(key), value) {
            (Some(Value::Null), _) if nulls == Nulls::Delete => {
                given.remove(key);
            }
            (None, value) => {
                given.insert(key.clone(), value.clone());
            }
            (Some(Value::Object(given)), Value::Object(default)) => tables(given, default, nulls),
            (Some(_), _) => {}
        }
    }
}

/// Hands the globals of a chart to one in it, which keeps its own where they are not tables of both.
fn globals(inner: &mut Values, outer: &Values) {
    let mut own = match inner.get(GLOBAL) {
        None => Values::new(),
        Some(Value::Object(own)) => own.clone(),
        Some(_) => return,
    };
    let handed = match outer.get(GLOBAL) {
        None => Values::new(),
        Some(Value::Object(handed)) => handed.clone(),
        Some(_) => return,
    };
    for (key, value) in handed {
        match (own.get(&key), value) {
            (None, value @ Value::Object(_)) => {
                own.insert(key, value);
            }
            (Some(Value::Object(below)), Value::Object(mut above)) => {
                tables(&mut above, below, Nulls::Keep);
                own.insert(key, Value::Object(above));
            }
            (Some(_), Value::Object(_)) | (Some(Value::Object(_)), _) => {}
            (_, value) => {
                own.insert(key, value);
            }
        }
    }
    inner.insert(GLOBAL.to_owned(), Value::Object(own));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::{Package, PackageMetadata};
    use serde_json::json;

    fn package(name: &str, values: Value, dependencies: Vec<Package>) -> Package {
        let Value::Object(values) = values else { panic!("values are a table") };
        let metadata = PackageMetadata { name: name.to_owned(), ..PackageMetadata::default() };
        Package { metadata, values, schema: None, templates: Vec::new(), files: Vec::new(), dependencies }
    }

    fn table(value: Value) -> Values {
        let Value::Object(values) = value else { panic!("values are a table") };
        values
    }

    #[test]
    fn null_deletes_defaults_and_tables_merge() {
        let chart = package("a", json!({"x": {"y": 1, "z": 2}, "list": [1], "gone": 1, "s": "t"}), Vec::new());
        let given = table(json!({"x": {"y": null, "w": 3}, "list": [2], "gone": null, "s": {"no": 1}}));
        let found = coalesce(&chart, given).expect("values");
        assert_eq!(Value::Object(found), json!({"x": {"z": 2, "w": 3}, "list": [2], "s": {"no": 1}}));
    }

    #[test]
    fn globals_reach_every_chart_and_parents_decide() {
        let inner = package("inner", json!({"v": 1, "u": 1, "global": {"own": 1, "t": {"a": 1}}}), Vec::new());
        let outer =
            package("outer", json!({"inner": {"v": 2, "u": null}, "global": {"g": 1, "t": {"b": 2}}}), vec![inner]);
        let found = coalesce(&outer, Values::new()).expect("values");
        assert_eq!(
            Value::Object(found),
            json!({
                "global": {"g": 1, "t": {"b": 2}},
                "inner": {"v": 2, "global": {"g": 1, "own": 1, "t": {"a": 1, "b": 2}}},
            })
        );
    }

    #[test]
    fn what_is_no_table_cannot_be_a_subcharts_values() {
        let outer = package("outer", json!({}), vec![package("inner", json!({}), Vec::new())]);
        let found = coalesce(&outer, table(json!({"inner": "text"})));
        assert_eq!(found, Err("type mismatch on inner: %!t(string=text)".to_owned()));
    }
}
