//! What the pod failure policy and the success policy of a Job say
//! (Kubernetes v1.34 `job/pod_failure_policy.go`, `job/success_policy.go`).

use super::indexes::Indexes;
use super::pod::Pod;
use serde_json::Value;

/// What becomes of a failed pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Handling {
    /// It counts against the limits.
    Count,
    Ignore,
    /// Its index has failed for good.
    FailIndex,
    /// The Job has failed, with this message.
    FailJob(String),
}

impl Handling {
    pub(super) fn counts(&self) -> bool {
        *self != Self::Ignore
    }
}

fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// What the rules make of a failed pod.
pub(super) fn handle(rules: &[Value], pod: &Pod) -> Handling {
    let matching = rules.iter().enumerate().find_map(|(place, rule)| Some((place, rule, cause(rule, pod)?)));
    let Some((place, rule, cause)) = matching else { return Handling::Count };
    match text(rule, "action") {
        "Ignore" => Handling::Ignore,
        "FailIndex" => Handling::FailIndex,
        "FailJob" => Handling::FailJob(format!("{cause} matching FailJob rule at index {place}")),
        _ => Handling::Count,
    }
}

/// In which way a rule matches a pod.
fn cause(rule: &Value, pod: &Pod) -> Option<String> {
    let (namespace, name) = (pod.0.namespace(), pod.0.name());
    if let Some(codes) = rule.get("onExitCodes") {
        let lists = ["containerStatuses", "initContainerStatuses"];
        let mut statuses = lists.iter().flat_map(|list| pod.0.list(&["status", list]));
        return statuses.find_map(|status| {
            let code = status.pointer("/state/terminated/exitCode")?.as_i64().filter(|code| *code != 0)?;
            let container = text(status, "name");
            let wanted = codes.get("containerName").and_then(Value::as_str);
            let listed = items(codes, "values").any(|value| value.as_i64() == Some(code));
            let fits = match text(codes, "operator") {
                "In" => listed,
                "NotIn" => !listed,
                _ => false,
            };
            (fits && wanted.is_none_or(|wanted| wanted == container))
                .then(|| format!("Container {container} for pod {namespace}/{name} failed with exit code {code}"))
        });
    }
    let condition = pod.0.list(&["status", "conditions"]).iter().find(|condition| {
        items(rule, "onPodConditions")
            .any(|wanted| ["type", "status"].iter().all(|field| text(wanted, field) == text(condition, field)))
    })?;
    Some(format!("Pod {namespace}/{name} has condition {}", text(condition, "type")))
}

/// Which rule of a success policy is met, as a message.
pub(super) fn success(rules: &[Value], completions: i64, succeeded: &Indexes) -> Option<String> {
    let is_met = |rule: &Value| {
        let count = rule.get("succeededCount").and_then(Value::as_i64);
        match rule.get("succeededIndexes").and_then(Value::as_str) {
            Some(indexes) => {
                let wanted = Indexes::parse(indexes, completions);
                let there = wanted.in_common(succeeded);
                !wanted.is_empty() && (there == wanted.total() || count.is_some_and(|count| there >= count))
            }
            None => count.is_some_and(|count| succeeded.total() >= count),
        }
    };
    if succeeded.is_empty() {
        return None;
    }
    rules.iter().position(is_met).map(|place| format!("Matched rules at index {place}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Object;
    use serde_json::json;
    use std::sync::Arc;

    fn failed(code: i64) -> Pod {
        let pod = json!({"metadata": {"name": "p", "namespace": "n"}, "status": {"phase": "Failed",
            "conditions": [{"type": "DisruptionTarget", "status": "True"}],
            "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": code}}}]}});
        Pod(Arc::new(Object::from_value(pod).unwrap()))
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let codes = |operator: &str, values: Value, action: &str| json!({"action": action, "onExitCodes": {"operator": operator, "values": values}});
        let disrupted =
            json!({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]});
        let rules = [codes("In", json!([3]), "FailJob"), codes("In", json!([4]), "FailIndex"), disrupted];
        let message = "Container main for pod n/p failed with exit code 3 matching FailJob rule at index 0";
        assert_eq!(handle(&rules, &failed(3)), Handling::FailJob(message.to_owned()));
        assert_eq!(handle(&rules, &failed(4)), Handling::FailIndex);
        assert_eq!(handle(&rules, &failed(1)), Handling::Ignore);
        assert_eq!(handle(&rules[..2], &failed(1)), Handling::Count);
        assert_eq!(handle(&[codes("NotIn", json!([1]), "Ignore")], &failed(1)), Handling::Count);
        assert_eq!(handle(&[codes("NotIn", json!([1]), "Ignore")], &failed(0)), Handling::Count);
    }

    #[test]
    fn a_success_rule_wants_indexes_or_a_count_or_some_of_the_indexes() {
        let met = |rule: Value, succeeded: &str| success(&[json!({}), rule], 10, &Indexes::parse(succeeded, 10));
        let message = Some("Matched rules at index 1".to_owned());
        assert_eq!(met(json!({"succeededIndexes": "0,2-3"}), "0,2-4"), message);
        assert_eq!(met(json!({"succeededIndexes": "0,2-3"}), "0,3-4"), None);
        assert_eq!(met(json!({"succeededIndexes": "0,2-3", "succeededCount": 2}), "0,3-4"), message);
        assert_eq!(met(json!({"succeededCount": 3}), "0,3,4"), message);
        assert_eq!(met(json!({"succeededCount": 0}), ""), None);
    }
}
