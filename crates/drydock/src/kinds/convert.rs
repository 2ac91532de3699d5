//! Kinds that are served in more than one form: events of both groups, autoscalers of both versions.

use super::Kind;
use crate::object::Object;
use serde_json::{Map, Value, json};

/// A stored object in the words of another group or version.
pub(crate) fn served(kind: &Kind, stored: &Object) -> Object {
    let mut object = match kind.kind.as_str() {
        "Event" => rename(stored, EVENT_FIELDS, false),
        "HorizontalPodAutoscaler" => autoscaler_v1(stored),
        _ => stored.clone(),
    };
    object.set(&["apiVersion"], kind.api_version());
    object
}

/// An object of another group or version as it is stored.
pub(crate) fn stored(kind: &Kind, object: Object) -> Object {
    match kind.kind.as_str() {
        "Event" => {
            let mut event = rename(&object, EVENT_FIELDS, true);
            event.set(&["apiVersion"], "v1");
            event
        }
        "HorizontalPodAutoscaler" => autoscaler_v2(object),
        _ => object,
    }
}

/// The names of an event's fields in `events.k8s.io/v1` and in `v1`.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

fn rename(object: &Object, names: &[(&str, &str)], to_second: bool) -> Object {
    let renamed = object.fields().iter().map(|(field, value)| {
        let name = names.iter().find_map(|(first, second)| {
            let (from, to) = if to_second { (first, second) } else { (second, first) };
            (from == field).then_some(*to)
        });
        (name.unwrap_or(field).to_owned(), value.clone())
    });
    Object::from(renamed.collect::<Map<String, Value>>())
}

fn is_cpu(metric: &Value) -> bool {
    metric.pointer("/type") == Some(&json!("Resource"))
        && metric.pointer("/resource/name") == Some(&json!("cpu"))
        && metric.pointer("/resource/target/type") == Some(&json!("Utilization"))
}

fn autoscaler_v1(stored: &Object) -> Object {
    let mut object = stored.clone();
    let metrics = stored.list(&["spec", "metrics"]);
    let target = metrics
        .iter()
        .find(|metric| is_cpu(metric))
        .and_then(|metric| metric.pointer("/resource/target/averageUtilization"));
    if let Some(target) = target {
        object.set(&["spec", "targetCPUUtilizationPercentage"], target.clone());
    }
    let others: Vec<Value> = metrics.iter().filter(|metric| !is_cpu(metric)).cloned().collect();
    if !others.is_empty() {
        object.set(
            &["metadata", "annotations", "autoscaling.alpha.kubernetes.io/metrics"],
            Value::Array(others).to_string(),
        );
    }
    for field in ["metrics", "behavior"] {
        object.remove(&["spec", field]);
    }
    for field in ["currentMetrics", "conditions"] {
        object.remove(&["status", field]);
    }
    object
}

fn autoscaler_v2(mut object: Object) -> Object {
    object.set(&["apiVersion"], "autoscaling/v2");
    let mut metrics = Vec::new();
    if let Some(target) = object.remove(&["spec", "targetCPUUtilizationPercentage"]) {
        metrics.push(json!({"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": target}}}));
    }
    let others = object.remove(&["metadata", "annotations", "autoscaling.alpha.kubernetes.io/metrics"]);
    if let Some(Ok(Value::Array(others))) = others.as_ref().and_then(Value::as_str).map(serde_json::from_str) {
        metrics.extend(others);
    }
    if !metrics.is_empty() {
        object.set(&["spec", "metrics"], metrics);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;

    #[test]
    fn an_event_reads_the_same_in_both_groups() {
        let kinds = Kinds::default();
        let kind = kinds.by_kind("events.k8s.io/v1", "Event").unwrap();
        let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "note": "text", "regarding": {"name": "x"}, "reason": "R"});
        let event = Object::from_value(event).unwrap();
        let core = stored(kind, event.clone());
        assert_eq!((core.api_version(), core.text(&["message"])), ("v1", "text"));
        assert_eq!(core.text(&["involvedObject", "name"]), "x");
        assert_eq!(served(kind, &core), event);
    }

    #[test]
    fn an_autoscaler_keeps_its_target() {
        let kinds = Kinds::default();
        let kind = kinds.by_kind("autoscaling/v1", "HorizontalPodAutoscaler").unwrap();
        let first = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
            "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 80}});
        let first = Object::from_value(first).unwrap();
        let second = stored(kind, first.clone());
        assert_eq!(second.list(&["spec", "metrics"]).len(), 1);
        assert_eq!(served(kind, &second), first);
    }
}
