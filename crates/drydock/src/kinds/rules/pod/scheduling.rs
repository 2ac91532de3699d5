//! Where a pod may run: affinities, tolerations, spreading, gates.

use crate::field::FieldError;
use crate::validate::{At, Errors, all_invalid, format, selector};
use serde_json::Value;
use std::collections::BTreeSet;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Where a pod wants to be, or not.
pub(super) fn check_affinity(affinity: &At<'_>, errors: &mut Errors) {
    let nodes = affinity.field("nodeAffinity");
    if nodes.has(REQUIRED) {
        check_node_selector(&nodes.field(REQUIRED), errors);
    }
    for term in nodes.field(PREFERRED).items() {
        check_weight(&term, errors);
        check_node_term(&term.field("preference"), false, errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.field(kind);
        for term in pods.field(REQUIRED).items() {
            check_pod_term(&term, errors);
        }
        for term in pods.field(PREFERRED).items() {
            check_weight(&term, errors);
            check_pod_term(&term.field("podAffinityTerm"), errors);
        }
    }
}

fn check_weight(term: &At<'_>, errors: &mut Errors) {
    let weight = term.field("weight");
    let number = weight.number().unwrap_or_default();
    if !(1..=100).contains(&number) {
        errors.push(FieldError::invalid(&weight.path, number, "must be in the range 1-100"));
    }
}

/// A selector of nodes.
pub(in super::super) fn check_node_selector(selector: &At<'_>, errors: &mut Errors) {
    let terms = selector.field("nodeSelectorTerms");
    if terms.is_empty() {
        errors.push(terms.required("must have at least one node selector term"));
    }
    for term in terms.items() {
        check_node_term(&term, true, errors);
    }
}

fn check_node_term(term: &At<'_>, check_values: bool, errors: &mut Errors) {
    for expression in term.field("matchExpressions").items() {
        let values = expression.field("values");
        match expression.text_of("operator") {
            "In" | "NotIn" if values.is_empty() => {
                errors.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                errors.push(values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
            }
            "Gt" | "Lt" if values.len() != 1 => {
                errors.push(values.required("must be specified single value when `operator` is 'Lt' or 'Gt'"));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            _ => errors
                .extend(expression.field("operator").all_invalid(vec!["not a valid selector operator".to_owned()])),
        }
        let key = expression.field("key");
        errors.extend(key.all_invalid(format::qualified_name(key.text())));
        for value in values.items().filter(|_| check_values) {
            errors.extend(value.all_invalid(format::label_value(value.text())));
        }
    }
    for expression in term.field("matchFields").items() {
        let values = expression.field("values");
        match expression.text_of("operator") {
            "In" | "NotIn" => {
                if values.len() != 1 {
                    let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                    errors.push(values.required(why));
                }
            }
            _ => errors
                .extend(expression.field("operator").all_invalid(vec!["not a valid selector operator".to_owned()])),
        }
        let key = expression.field("key");
        if key.text() == "metadata.name" {
            for value in values.items() {
                errors.extend(value.all_invalid(format::dns_subdomain(value.text())));
            }
        } else {
            errors.extend(key.all_invalid(vec!["not a valid field selector key".to_owned()]));
        }
    }
}

fn check_pod_term(term: &At<'_>, errors: &mut Errors) {
    selector::check(&term.field("labelSelector"), errors);
    selector::check(&term.field("namespaceSelector"), errors);
    for namespace in term.field("namespaces").items() {
        let namespace = namespace.called(term.path.child("namespace"));
        errors.extend(namespace.all_invalid(format::dns_label(namespace.text())));
    }
    check_label_keys(term, errors);
    let key = term.field("topologyKey");
    if key.text().is_empty() {
        errors.push(key.required("can not be empty"));
    }
    errors.extend(key.all_invalid(format::qualified_name(key.text())));
}

/// Labels of the pod that become part of a selector.
fn check_label_keys(term: &At<'_>, errors: &mut Errors) {
    let selector = term.field("labelSelector");
    let (same, other) = (term.field("matchLabelKeys"), term.field("mismatchLabelKeys"));
    for keys in [&same, &other] {
        if keys.is_empty() {
            continue;
        }
        if !selector.is_set() {
            errors.push(keys.forbidden("must not be specified when labelSelector is not set"));
            continue;
        }
        for key in keys.items() {
            errors.extend(key.all_invalid(format::qualified_name(key.text())));
        }
    }
    let mut selected: BTreeSet<&str> = selector.field("matchLabels").entries().map(|(key, _)| key).collect();
    for expression in selector.field("matchExpressions").items() {
        let key = expression.text_of("key");
        let position = same.texts().collect::<Vec<_>>().iter().rposition(|same| *same == key);
        if let Some(index) = position
            && selected.contains(key)
        {
            let why = "exists in both matchLabelKeys and labelSelector";
            errors.push(FieldError::invalid(&term.path.index(index), key, why));
        }
        selected.insert(key);
    }
    for key in same.items() {
        if other.texts().any(|other| other == key.text()) {
            errors.push(key.invalid("exists in both matchLabelKeys and mismatchLabelKeys"));
        }
    }
}

/// What taints a pod tolerates.
pub(in super::super) fn check_tolerations(tolerations: &At<'_>, errors: &mut Errors) {
    for toleration in tolerations.items() {
        let (key, operator, effect) =
            (toleration.field("key"), toleration.field("operator"), toleration.field("effect"));
        let value = toleration.text_of("value");
        if key.text().is_empty() {
            if operator.text() != "Exists" {
                let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
                errors.extend(operator.all_invalid(vec![why.to_owned()]));
            }
        } else {
            errors.extend(key.all_invalid(format::qualified_name(key.text())));
        }
        if toleration.has("tolerationSeconds") && effect.text() != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.extend(effect.all_invalid(vec![why.to_owned()]));
        }
        match operator.text() {
            "Equal" | "" => {
                let messages = format::label_value(value);
                if !messages.is_empty() {
                    errors.extend(all_invalid(&operator.path, value, vec![messages.join(";")]));
                }
            }
            "Exists" if !value.is_empty() => {
                let why = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(&operator.path, value, why));
            }
            "Exists" => {}
            _ => errors.push(operator.not_supported(&["Equal", "Exists"])),
        }
        if !effect.text().is_empty() {
            check_effect(&effect, errors);
        }
    }
}

/// The effect of a taint.
pub(in super::super) fn check_effect(effect: &At<'_>, errors: &mut Errors) {
    effect.check_one_of(&["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
}

/// How pods are spread.
pub(super) fn check_spread(constraints: &At<'_>, errors: &mut Errors) {
    let pairs: Vec<(&str, &str)> = constraints
        .items()
        .map(|constraint| (constraint.text_of("topologyKey"), constraint.text_of("whenUnsatisfiable")))
        .collect();
    for (index, constraint) in constraints.items().enumerate() {
        let skew = constraint.field("maxSkew");
        let number = skew.number().unwrap_or_default();
        if number <= 0 {
            errors.push(FieldError::invalid(&skew.path, number, "must be greater than zero"));
        }
        if constraint.text_of("topologyKey").is_empty() {
            errors.push(constraint.field("topologyKey").required("can not be empty"));
        }
        let action = constraint.field("whenUnsatisfiable");
        if !matches!(action.text(), "DoNotSchedule" | "ScheduleAnyway") {
            errors.push(action.not_supported(&["DoNotSchedule", "ScheduleAnyway"]));
        }
        if let Some(pair) = pairs.get(index)
            && pairs[index + 1..].contains(pair)
        {
            let path = constraint.path.child("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(&path, format!("{{{}, {}}}", pair.0, pair.1)));
        }
        let domains = constraint.field("minDomains");
        if let Some(number) = domains.number() {
            if number <= 0 {
                errors.push(domains.invalid("must be greater than zero"));
            }
            if action.text() != "DoNotSchedule" {
                let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}", action.text());
                errors.push(domains.invalid(why));
            }
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            constraint.field(policy).check_optional(&["Honor", "Ignore"], errors);
        }
        check_label_keys(&constraint, errors);
        selector::check(&constraint.field("labelSelector"), errors);
    }
}

/// Merges labels of the pod into the selectors that ask for them.
pub(super) fn merge_label_keys(spec: &mut serde_json::Map<String, Value>, labels: &Value) {
    let mut terms: Vec<&mut Value> = Vec::new();
    for (field, value) in spec.iter_mut() {
        match field.as_str() {
            "topologySpreadConstraints" => terms.extend(value.as_array_mut().into_iter().flatten()),
            "affinity" => {
                let kinds = value.as_object_mut().into_iter().flatten();
                for (_, affinity) in kinds.filter(|(kind, _)| kind.starts_with("pod")) {
                    for (list, listed) in affinity.as_object_mut().into_iter().flatten() {
                        let listed = listed.as_array_mut().into_iter().flatten();
                        if list == PREFERRED {
                            terms.extend(listed.filter_map(|term| term.get_mut("podAffinityTerm")));
                        } else {
                            terms.extend(listed);
                        }
                    }
                }
            }
            _ => {}
        }
    }
    for term in terms {
        let mut added = Vec::new();
        for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
            for key in term.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
                if let Some(value) = labels.get(key) {
                    added.push(serde_json::json!({"key": key, "operator": operator, "values": [value]}));
                }
            }
        }
        if let (false, Some(Value::Object(selector))) = (added.is_empty(), term.get_mut("labelSelector")) {
            let list = selector.entry("matchExpressions").or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(list) = list {
                list.extend(added);
            }
        }
    }
}
