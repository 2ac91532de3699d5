//! HorizontalPodAutoscalers (`pkg/apis/autoscaling/validation/validation.go`).

use super::fill::{Fields, inside, is_empty, make, or};
use super::pod::resources::check_container_name;
use super::{Rules, WITH_STATUS};
use crate::field::FieldError;
use crate::object::Object;
use crate::quantity;
use crate::validate::{At, Errors, format};
use serde_json::{Value, json};

const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
/// The field of each type, in the order in which they are looked at.
const FIELDS: [&str; 5] = ["object", "external", "pods", "resource", "containerResource"];

pub(crate) static AUTOSCALER: Rules = Rules {
    default,
    prepare_create: |scaler| {
        super::clear_status(scaler);
        drop_disabled(scaler);
    },
    prepare_update: |new, old| {
        super::keep_status(new, old);
        drop_disabled(new);
    },
    check: |scaler| check(&At::top(scaler, "spec"), None),
    check_update: |new, old| check(&At::top(new, "spec"), Some(old)),
    check_status: |new, _| {
        let mut errors = Vec::new();
        for field in ["currentReplicas", "desiredReplicas"] {
            At::top(new, "status").field(field).check_not_negative(&mut errors);
        }
        errors
    },
    ..WITH_STATUS
};

/// The first version, which knows only of the CPU.
pub(crate) static AUTOSCALER_V1: Rules = Rules {
    default: |scaler| or(make(scaler.fields_mut(), "spec"), "minReplicas", 1),
    check: |scaler| check(&At::top(scaler, "spec"), None),
    check_update: |new, old| check(&At::top(new, "spec"), Some(old)),
    ..WITH_STATUS
};

fn default(scaler: &mut Object) {
    let spec = make(scaler.fields_mut(), "spec");
    or(spec, "minReplicas", 1);
    if is_empty(spec, "metrics") {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        spec.insert("metrics".to_owned(), json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]));
    }
    if let Some(behavior) = inside(spec, "behavior") {
        let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
        let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
        let up = make(behavior, "scaleUp");
        or(up, "stabilizationWindowSeconds", 0);
        default_rules(up, json!([pods, percent]));
        default_rules(make(behavior, "scaleDown"), json!([percent]));
    }
}

fn default_rules(rules: &mut Fields, policies: Value) {
    or(rules, "selectPolicy", "Max");
    if rules.get("policies").is_none_or(Value::is_null) {
        rules.insert("policies".to_owned(), policies);
    }
}

/// Tolerances belong to a feature that is off.
fn drop_disabled(scaler: &mut Object) {
    for rules in ["scaleUp", "scaleDown"] {
        scaler.remove(&["spec", "behavior", rules, "tolerance"]);
    }
}

fn check(spec: &At<'_>, old: Option<&Object>) -> Errors {
    let mut errors = Vec::new();
    let (least, most) = (spec.field("minReplicas"), spec.field("maxReplicas"));
    let highest = most.number().unwrap_or_default();
    if least.number().is_some_and(|number| number < 1) {
        errors.push(least.invalid("must be greater than or equal to 1"));
    }
    if highest < 1 {
        errors.push(FieldError::invalid(&most.path, highest, "must be greater than 0"));
    }
    if least.number().is_some_and(|number| highest < number) {
        errors.push(FieldError::invalid(&most.path, highest, "must be greater than or equal to `minReplicas`"));
    }
    let target = spec.field("scaleTargetRef");
    let is_known = old.is_some_and(|old| {
        ["apiVersion", "kind"].iter().all(|field| old.text(&["spec", "scaleTargetRef", field]) == target.text_of(field))
    });
    check_reference(&target, target.text_of("kind") == "ReplicationController", &mut errors);
    if is_known {
        errors.retain(|error| error.field != "spec.scaleTargetRef.apiVersion");
    }
    let metrics = spec.field("metrics");
    for metric in metrics.items() {
        check_metric(&metric, &mut errors);
    }
    let scales_from_zero = |metric: &At<'_>| matches!(metric.text_of("type"), "Object" | "External");
    if least.number() == Some(0) && !metrics.items().any(|metric| scales_from_zero(&metric)) {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(metrics.forbidden(why));
    }
    for rules in ["scaleUp", "scaleDown"] {
        let rules = spec.below(&["behavior", rules]);
        if rules.is_set() {
            check_rules(&rules, &mut errors);
        }
    }
    errors
}

/// What is scaled, or what a metric describes.
fn check_reference(reference: &At<'_>, may_be_core: bool, errors: &mut Errors) {
    for field in ["kind", "name"] {
        let part = reference.field(field);
        if part.text().is_empty() {
            errors.push(part.required(""));
        } else {
            errors.extend(part.all_invalid(format::path_segment(part.text(), false)));
        }
    }
    let version = reference.field("apiVersion");
    if version.text().matches('/').count() > 1 {
        let why = format!("unexpected GroupVersion string: {}", version.text());
        errors.push(version.invalid(why));
    } else if !may_be_core && !version.text().contains('/') {
        errors.extend(version.all_invalid(vec!["apiVersion must specify API group".to_owned()]));
    }
}

fn check_metric(metric: &At<'_>, errors: &mut Errors) {
    let kind = metric.field("type");
    if kind.text().is_empty() {
        errors.push(kind.required("must specify a metric source type"));
    }
    if !TYPES.contains(&kind.text()) {
        errors.push(kind.not_supported(&TYPES));
    }
    let present: Vec<&str> = FIELDS.into_iter().filter(|field| metric.has(field)).collect();
    if let Some(first) = present.first() {
        check_source(first, &metric.field(first), errors);
    }
    let expected = match kind.text() {
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "External" => "external",
        "ContainerResource" => "containerResource",
        _ => {
            errors.push(kind.not_supported(&TYPES));
            ""
        }
    };
    if !expected.is_empty() && !metric.has(expected) {
        errors.push(metric.field(expected).required("must populate information for the given metric source"));
    }
    if present.len() != 1 {
        for field in present.into_iter().filter(|field| *field != expected) {
            errors.push(metric.field(field).forbidden("must populate the given metric source only"));
        }
    }
}

fn check_source(kind: &str, source: &At<'_>, errors: &mut Errors) {
    let target = source.field("target");
    let (value, average) = (target.field("value"), target.field("averageValue"));
    let utilization = target.field("averageUtilization");
    if kind == "object" {
        check_reference(&source.field("describedObject"), true, errors);
    }
    match kind {
        "object" | "external" | "pods" => check_identifier(&source.below(&["metric", "name"]), errors),
        _ => check_resource(kind, source, errors),
    }
    check_target(&target, errors);
    match kind {
        "object" if !value.is_set() && !average.is_set() => {
            errors.push(average.required("must set either a target value or averageValue"));
        }
        "external" => match (value.is_set(), average.is_set()) {
            (false, false) => {
                let why = "must set either a target value for metric or a per-pod target";
                errors.push(average.required(why));
            }
            (true, true) => {
                let why = "may not set both a target value for metric and a per-pod target";
                errors.push(value.forbidden(why));
            }
            _ => {}
        },
        "pods" if !average.is_set() => {
            errors.push(average.required("must specify a positive target averageValue"));
        }
        "resource" | "containerResource" => match (utilization.is_set(), average.is_set()) {
            (false, false) => {
                errors.push(utilization.required("must set either a target raw value or a target utilization"));
            }
            (true, true) => {
                errors.push(average.forbidden("may not set both a target raw value and a target utilization"));
            }
            _ => {}
        },
        _ => {}
    }
}

fn check_identifier(name: &At<'_>, errors: &mut Errors) {
    if name.text().is_empty() {
        errors.push(name.required("must specify a metric name"));
    } else {
        errors.extend(name.all_invalid(format::path_segment(name.text(), false)));
    }
}

fn check_resource(kind: &str, source: &At<'_>, errors: &mut Errors) {
    let (name, container) = (source.field("name"), source.field("container"));
    if name.text().is_empty() {
        errors.push(name.required("must specify a resource name"));
    } else if kind == "containerResource" {
        check_container_name(name.text(), &name, errors);
    }
    if kind == "containerResource" {
        if container.text().is_empty() {
            errors.push(container.required("must specify a container"));
        } else {
            errors.extend(container.all_invalid(format::dns_label(container.text())));
        }
    }
}

fn check_target(target: &At<'_>, errors: &mut Errors) {
    let kind = target.field("type");
    if kind.text().is_empty() {
        errors.push(kind.required("must specify a metric target type"));
    }
    if !matches!(kind.text(), "Utilization" | "Value" | "AverageValue") {
        let why = "must be either Utilization, Value, or AverageValue";
        errors.extend(kind.all_invalid(vec![why.to_owned()]));
    }
    for field in ["value", "averageValue"] {
        let amount = target.field(field);
        if amount.is_set() && quantity::nano_units(amount.text()).is_none_or(|nano| nano <= 0) {
            errors.push(amount.invalid("must be positive"));
        }
    }
    let utilization = target.field("averageUtilization");
    if utilization.number().is_some_and(|number| number < 1) {
        errors.push(utilization.invalid("must be greater than 0"));
    }
}

fn check_rules(rules: &At<'_>, errors: &mut Errors) {
    let window = rules.field("stabilizationWindowSeconds");
    match window.number() {
        Some(seconds) if seconds < 0 => errors.push(window.invalid("must be greater than or equal to zero")),
        Some(seconds) if seconds > 3600 => errors.push(window.invalid("must be less than or equal to 3600")),
        _ => {}
    }
    rules.field("selectPolicy").check_optional(&["Disabled", "Max", "Min"], errors);
    let policies = rules.field("policies");
    if policies.is_empty() {
        errors.push(policies.required("must specify at least one Policy"));
    }
    for policy in policies.items() {
        let kind = policy.field("type");
        if !matches!(kind.text(), "Pods" | "Percent") {
            errors.push(kind.not_supported(&["Percent", "Pods"]));
        }
        for field in ["value", "periodSeconds"] {
            let number = policy.field(field).number().unwrap_or_default();
            if number <= 0 {
                errors.push(FieldError::invalid(&policy.path.child(field), number, "must be greater than zero"));
            }
        }
        let period = policy.field("periodSeconds");
        if period.number().is_some_and(|seconds| seconds > 1800) {
            errors.push(period.invalid("must be less than or equal to 1800"));
        }
    }
}
