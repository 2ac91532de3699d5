//! Label selectors as objects hold them: `matchLabels` and `matchExpressions`.

use super::at::{At, Errors};
use super::{format, labels};
use crate::object::strings;
use serde_json::Value;

/// What is wrong with a `LabelSelector`.
pub(crate) fn check(selector: &At<'_>, errors: &mut Errors) {
    labels(&selector.field("matchLabels"), errors);
    for expression in selector.field("matchExpressions").items() {
        check_requirement(&expression, errors);
    }
}

fn check_requirement(requirement: &At<'_>, errors: &mut Errors) {
    let values = requirement.field("values");
    match requirement.text_of("operator") {
        "In" | "NotIn" => {
            if values.is_empty() {
                errors.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
            }
        }
        "Exists" | "DoesNotExist" => {
            if !values.is_empty() {
                errors.push(values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
            }
        }
        _ => errors.extend(requirement.field("operator").all_invalid(vec!["not a valid selector operator".to_owned()])),
    }
    let key = requirement.field("key");
    errors.extend(key.all_invalid(format::qualified_name(key.text())));
    for value in values.items() {
        errors.extend(value.all_invalid(format::label_value(value.text())));
    }
}

/// Whether labels are selected. No selector selects nothing, an empty one everything; one that makes no sense has no
/// answer.
pub(crate) fn matches(selector: &Value, labels: Option<&Value>) -> Option<bool> {
    let Some(selector) = selector.as_object() else { return Some(false) };
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    for (key, value) in strings(selector.get("matchLabels")) {
        if !format::qualified_name(key).is_empty() || !format::label_value(value).is_empty() {
            return None;
        }
    }
    let mut all = strings(selector.get("matchLabels")).all(|(key, value)| label(key) == Some(value));
    for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = expression.get("key").and_then(Value::as_str).unwrap_or_default();
        let values = expression.get("values").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let is_right = |value: &Value| format::label_value(value.as_str().unwrap_or_default()).is_empty();
        if !format::qualified_name(key).is_empty() || !values.iter().all(is_right) {
            return None;
        }
        let is_in = label(key).is_some_and(|label| values.iter().any(|value| value == label));
        all &= match expression.get("operator").and_then(Value::as_str).unwrap_or_default() {
            "In" | "NotIn" if values.is_empty() => return None,
            "Exists" | "DoesNotExist" if !values.is_empty() => return None,
            "In" => is_in,
            "NotIn" => !is_in,
            "Exists" => label(key).is_some(),
            "DoesNotExist" => label(key).is_none(),
            _ => return None,
        };
    }
    Some(all)
}

/// Whether the selector is absent or selects everything.
pub(crate) fn is_empty(selector: &At<'_>) -> bool {
    selector.field("matchLabels").is_empty() && selector.field("matchExpressions").is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Path;
    use serde_json::json;

    #[test]
    fn selectors_are_judged_as_the_server_judges_them() {
        let selector = json!({
            "matchLabels": {"a": "b"},
            "matchExpressions": [
                {"key": "a", "operator": "In"},
                {"key": "/b", "operator": "Exists", "values": ["x"]},
                {"key": "c", "operator": "Is", "values": ["-"]},
                {"key": "d"},
            ],
        });
        let mut errors = Vec::new();
        check(&At::new(&selector, Path::new("s")), &mut errors);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "s.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'".to_owned(),
                "s.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'".to_owned(),
                r#"s.matchExpressions[1].key: Invalid value: "/b": prefix part must be non-empty"#.to_owned(),
                r#"s.matchExpressions[2].operator: Invalid value: "Is": not a valid selector operator"#.to_owned(),
                format!(r#"s.matchExpressions[2].values[0]: Invalid value: "-": {}"#, format::label_value("-")[0]),
                r#"s.matchExpressions[3].operator: Invalid value: "": not a valid selector operator"#.to_owned(),
            ]
        );
    }

    #[test]
    fn labels_are_selected() {
        let labels = json!({"app": "web", "tier": "front"});
        for (selector, expected) in [
            (json!(null), Some(false)),
            (json!({}), Some(true)),
            (json!({"matchLabels": {"app": "web"}}), Some(true)),
            (json!({"matchLabels": {"app": "db"}}), Some(false)),
            (json!({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["back", "front"]}]}), Some(true)),
            (json!({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}), Some(true)),
            (json!({"matchExpressions": [{"key": "zone", "operator": "Exists"}]}), Some(false)),
            (json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), Some(false)),
            (json!({"matchExpressions": [{"key": "app", "operator": "Gt"}]}), None),
        ] {
            assert_eq!(matches(&selector, Some(&labels)), expected, "{selector}");
        }
        assert_eq!(matches(&json!({"matchLabels": {"a": "b"}}), None), Some(false));
    }
}
