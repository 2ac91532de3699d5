//! The canonical form of JSON, and of pod templates: equal for what means the same.

use serde_json::{Map, Value};

/// Labels and annotations that deployers and charts change when nothing else does, or that are never copied to pods.
const VOLATILE: &[&str] =
    &["helm.sh/chart", "app.kubernetes.io/version", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by"];
const VOLATILE_PREFIXES: &[&str] = &["checksum/", "argocd.argoproj.io/", "meta.helm.sh/", "jobwright.io/"];
const VOLATILE_DOMAIN: &str = ".toolkit.fluxcd.io/";

/// Whether a label or annotation says nothing of what a pod does.
pub(crate) fn is_volatile(key: &str) -> bool {
    VOLATILE.contains(&key)
        || VOLATILE_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
        || key.contains(VOLATILE_DOMAIN)
}

/// A pod template without what says nothing.
pub(super) fn template(template: &Value) -> Value {
    let mut template = without_nulls(template);
    if let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) {
        for part in ["labels", "annotations"] {
            if let Some(pairs) = metadata.get_mut(part).and_then(Value::as_object_mut) {
                pairs.retain(|key, _| !is_volatile(key));
            }
        }
        metadata.retain(|_, value| value.as_object().is_none_or(|pairs| !pairs.is_empty()));
    }
    if let Some(fields) = template.as_object_mut() {
        fields.retain(|key, value| key != "metadata" || *value != Value::Object(Map::new()));
    }
    template
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

/// JSON with its keys in order, whatever order they came in.
pub(super) fn text(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            write_all('{', '}', sorted.into_iter(), text, |(key, value), text| {
                write(&Value::String(key.clone()), text);
                text.push(':');
                write(value, text);
            });
        }
        Value::Array(items) => write_all('[', ']', items.iter(), text, write),
        // 1 and 1.0 are the same number to Kubernetes.
        Value::Number(number) => match number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e15) {
            Some(float) => text.push_str(&format!("{float}")),
            None => text.push_str(&number.to_string()),
        },
        other => text.push_str(&other.to_string()),
    }
}

fn write_all<T>(
    open: char,
    close: char,
    items: impl Iterator<Item = T>,
    text: &mut String,
    write: impl Fn(T, &mut String),
) {
    text.push(open);
    for (index, item) in items.enumerate() {
        if index > 0 {
            text.push(',');
        }
        write(item, text);
    }
    text.push(close);
}
