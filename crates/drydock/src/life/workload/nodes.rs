//! Whether a pod may be on a node: selectors, affinities, taints.

use crate::object::{Object, strings};
use serde_json::Value;

/// Whether a node fits the pod's selector and its required affinity.
pub(crate) fn fits_affinity(spec: &Value, node: &Object) -> bool {
    if strings(spec.get("nodeSelector")).any(|(key, value)| node.label(key) != Some(value)) {
        return false;
    }
    let required = spec.pointer("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
    let Some(terms) = required.and_then(|required| required.get("nodeSelectorTerms")).and_then(Value::as_array) else {
        return required.is_none();
    };
    terms.iter().any(|term| fits_term(term, node))
}

fn fits_term(term: &Value, node: &Object) -> bool {
    let expressions = |field: &str| term.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let (labels, fields) = (expressions("matchExpressions"), expressions("matchFields"));
    if labels.is_empty() && fields.is_empty() {
        return false;
    }
    let text = |expression: &Value, field: &str| expression[field].as_str().unwrap_or_default().to_owned();
    labels.iter().all(|expression| fits_expression(expression, node.label(&text(expression, "key"))))
        && fields.iter().all(|expression| {
            let value = (text(expression, "key") == "metadata.name").then(|| node.name());
            fits_expression(expression, value)
        })
}

fn fits_expression(expression: &Value, value: Option<&str>) -> bool {
    let values: Vec<&str> = expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let listed = value.is_some_and(|value| values.contains(&value));
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
    let pair = || number(value).zip(number(values.first().copied()));
    match expression["operator"].as_str() {
        Some("In") => listed,
        Some("NotIn") => !listed,
        Some("Exists") => value.is_some(),
        Some("DoesNotExist") => value.is_none(),
        Some("Gt") => pair().is_some_and(|(number, bound)| number > bound),
        Some("Lt") => pair().is_some_and(|(number, bound)| number < bound),
        _ => false,
    }
}

/// The first taint of a node, of those with some effects, that a pod does not tolerate.
pub(crate) fn untolerated<'a>(node: &'a Object, tolerations: &[Value], effects: &[&str]) -> Option<&'a Value> {
    node.list(&["spec", "taints"]).iter().find(|taint| {
        taint["effect"].as_str().is_some_and(|effect| effects.contains(&effect))
            && !tolerations.iter().any(|toleration| tolerates(toleration, taint))
    })
}

/// Whether a toleration covers a taint.
pub(crate) fn tolerates(toleration: &Value, taint: &Value) -> bool {
    fn text<'a>(value: &'a Value, field: &str) -> &'a str {
        value.get(field).and_then(Value::as_str).unwrap_or_default()
    }
    let covers = |field: &str| text(toleration, field).is_empty() || text(toleration, field) == text(taint, field);
    if !covers("effect") || !covers("key") {
        return false;
    }
    match text(toleration, "operator") {
        "Exists" => true,
        "" | "Equal" => !text(toleration, "key").is_empty() && text(toleration, "value") == text(taint, "value"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node() -> Object {
        Object::from_value(json!({"metadata": {"name": "n1", "labels": {"zone": "a", "cores": "8"}},
            "spec": {"taints": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]}}))
        .unwrap()
    }

    #[test]
    fn required_terms_are_alternatives_of_conjunctions() {
        let affinity = |terms: Value| json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}});
        let label =
            |key: &str, operator: &str, values: Value| json!({"key": key, "operator": operator, "values": values});
        let zone = |value: &str| json!({"matchExpressions": [label("zone", "In", json!([value]))]});
        assert!(fits_affinity(&json!({}), &node()));
        assert!(fits_affinity(&affinity(json!([zone("b"), zone("a")])), &node()));
        assert!(!fits_affinity(&affinity(json!([zone("b"), {}])), &node()));
        assert!(fits_affinity(
            &affinity(json!([{"matchExpressions": [label("cores", "Gt", json!(["4"]))],
            "matchFields": [label("metadata.name", "In", json!(["n1"]))]}])),
            &node()
        ));
        assert!(!fits_affinity(&json!({"nodeSelector": {"zone": "b"}}), &node()));
    }

    #[test]
    fn taints_are_tolerated_by_key_value_and_effect() {
        let untolerated = |toleration: Value| untolerated(&node(), &[toleration], &["NoSchedule"]).is_some();
        assert!(!untolerated(json!({"operator": "Exists"})));
        assert!(!untolerated(json!({"key": "dedicated", "operator": "Equal", "value": "db"})));
        assert!(untolerated(json!({"key": "dedicated", "value": "web"})));
        assert!(untolerated(json!({"key": "dedicated", "operator": "Exists", "effect": "NoExecute"})));
    }
}
