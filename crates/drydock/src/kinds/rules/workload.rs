//! Kinds that keep pods running: Deployments, ReplicaSets, DaemonSets and ReplicationControllers
//! (`pkg/apis/apps/validation/validation.go`).

use super::fill::{Fields, make, or, or_text, text};
use super::pod::{defaults, template};
use super::{Generation, PLAIN, Rules, WITH_STATUS, clear_status, keep_status};
use crate::field::FieldError;
use crate::object::Object;
use crate::validate::{At, Errors, IMMUTABLE, format, printed, selector};
use serde_json::{Value, json};

pub(super) const TEMPLATE: [&str; 2] = ["spec", "template"];
/// A DaemonSet counts its templates in an annotation, for a field that is gone from the API.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The rules of kinds with a pod template.
pub(super) const WITH_TEMPLATE: Rules = Rules {
    generation: Generation::WithSpec,
    prepare_create: |object| {
        clear_status(object);
        template::drop_disabled(object, &TEMPLATE);
    },
    prepare_update: |new, old| {
        keep_status(new, old);
        template::drop_disabled(new, &TEMPLATE);
    },
    warnings: |new, old| {
        let changed = old.is_none_or(|old| old.get("spec") != new.get("spec"));
        if changed { template::warnings(new, old, &TEMPLATE) } else { Vec::new() }
    },
    ..WITH_STATUS
};

pub(crate) static DEPLOYMENT: Rules = Rules {
    generation: Generation::WithSpecOrAnnotations,
    default: default_deployment,
    prepare_status: |new, old| {
        super::keep_all_but_status(new, old);
        match old.at(&["metadata", "labels"]) {
            Some(labels) => new.set(&["metadata", "labels"], labels.clone()),
            None => {
                new.remove(&["metadata", "labels"]);
            }
        }
    },
    check: |deployment| check_deployment(&At::top(deployment, "spec")),
    check_update: |new, old| {
        let mut errors = check_deployment(&At::top(new, "spec"));
        check_selector_unchanged(new, old, &mut errors);
        errors
    },
    check_status: |new, old| {
        let counts = [
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ];
        check_counts(new, old, &counts, &["updatedReplicas", "readyReplicas", "availableReplicas"], "readyReplicas")
    },
    warnings: warnings_with_name,
    ..WITH_TEMPLATE
};

pub(crate) static REPLICA_SET: Rules = Rules {
    default: |set| {
        let spec = make(set.fields_mut(), "spec");
        or(spec, "replicas", 1);
        defaults::template(make(spec, "template"));
    },
    check: |set| check_replica_set(&At::top(set, "spec")),
    check_update: |new, old| {
        let mut errors = check_replica_set(&At::top(new, "spec"));
        check_selector_unchanged(new, old, &mut errors);
        errors
    },
    check_status: check_replica_status,
    warnings: warnings_with_name,
    ..WITH_TEMPLATE
};

pub(crate) static DAEMON_SET: Rules = Rules {
    default: default_daemon_set,
    prepare_create: |set| {
        (WITH_TEMPLATE.prepare_create)(set);
        let counted = template_generation(set).max(1);
        set.set(&["metadata", "annotations", TEMPLATE_GENERATION], counted.to_string());
    },
    prepare_update: |new, old| {
        (WITH_TEMPLATE.prepare_update)(new, old);
        let changed = new.at(&TEMPLATE) != old.at(&TEMPLATE);
        let counted = template_generation(old) + i64::from(changed);
        new.set(&["metadata", "annotations", TEMPLATE_GENERATION], counted.to_string());
    },
    check: |set| check_daemon_set(&At::top(set, "spec")),
    check_update: |new, old| {
        let mut errors = Vec::new();
        check_selector_unchanged(new, old, &mut errors);
        errors.extend(check_daemon_set(&At::top(new, "spec")));
        errors
    },
    check_status: |new, old| {
        let counts = [
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ];
        check_counts(new, old, &counts, &[], "")
    },
    ..WITH_TEMPLATE
};

pub(crate) static REPLICATION_CONTROLLER: Rules = Rules {
    default: default_controller,
    check: check_controller,
    check_update: |new, _| check_controller(new),
    check_status: check_replica_status,
    warnings: warnings_with_name,
    ..WITH_TEMPLATE
};

pub(crate) static CONTROLLER_REVISION: Rules = Rules {
    check: |revision| {
        let mut errors = Vec::new();
        At::top(revision, "revision").check_not_negative(&mut errors);
        match revision.get("data") {
            None | Some(Value::Null) => errors.push(At::top(revision, "data").required("data is mandatory")),
            Some(Value::Object(_)) => {}
            Some(_) => errors.push(At::top(revision, "data").required("data must be a valid JSON object")),
        }
        errors
    },
    check_update: |new, old| {
        let mut errors = Vec::new();
        At::top(new, "revision").check_not_negative(&mut errors);
        At::top(new, "data").check_unchanged(&At::top(old, "data"), &mut errors);
        errors
    },
    ..PLAIN
};

fn warnings_with_name(new: &Object, old: Option<&Object>) -> Vec<String> {
    let name = if old.is_none() { super::job::name_warning(new.name()) } else { None };
    name.into_iter().chain((WITH_TEMPLATE.warnings)(new, old)).collect()
}

fn default_deployment(deployment: &mut Object) {
    let spec = make(deployment.fields_mut(), "spec");
    or(spec, "replicas", 1);
    let strategy = make(spec, "strategy");
    or_text(strategy, "type", "RollingUpdate");
    default_rolling(strategy, json!("25%"), json!("25%"));
    or(spec, "revisionHistoryLimit", 10);
    or(spec, "progressDeadlineSeconds", 600);
    defaults::template(make(spec, "template"));
}

fn default_daemon_set(set: &mut Object) {
    let spec = make(set.fields_mut(), "spec");
    let strategy = make(spec, "updateStrategy");
    or_text(strategy, "type", "RollingUpdate");
    default_rolling(strategy, json!(1), json!(0));
    or(spec, "revisionHistoryLimit", 10);
    defaults::template(make(spec, "template"));
}

fn default_rolling(strategy: &mut Fields, unavailable: Value, surge: Value) {
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = make(strategy, "rollingUpdate");
        or(rolling, "maxUnavailable", unavailable);
        or(rolling, "maxSurge", surge);
    }
}

fn default_controller(controller: &mut Object) {
    let labels = controller.at(&["spec", "template", "metadata", "labels"]).cloned();
    let has_labels = controller.labels().next().is_some();
    let spec = make(controller.fields_mut(), "spec");
    or(spec, "replicas", 1);
    if let Some(template) = super::fill::inside(spec, "template") {
        defaults::template(template);
    }
    if let Some(labels @ Value::Object(_)) = labels {
        if super::fill::is_empty(spec, "selector") {
            spec.insert("selector".to_owned(), labels.clone());
        }
        if !has_labels {
            controller.set(&["metadata", "labels"], labels);
        }
    }
}

fn template_generation(set: &Object) -> i64 {
    set.annotation(TEMPLATE_GENERATION).and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn check_selector_unchanged(new: &Object, old: &Object, errors: &mut Errors) {
    let (now, before) = (At::top(new, "spec").field("selector"), At::top(old, "spec").field("selector"));
    if now.value != before.value {
        errors.push(invalid_selector(&now, IMMUTABLE));
    }
}

fn invalid_selector(selector: &At<'_>, why: impl Into<String>) -> FieldError {
    FieldError::invalid_printed(&selector.path, printed("meta.LabelSelector", selector.value), why)
}

/// A selector that is there, selects something and is right; says whether it can be asked.
pub(super) fn check_selector(selector: &At<'_>, kind: &str, senseless: &str, errors: &mut Errors) -> bool {
    if selector.is_set() {
        selector::check(selector, errors);
        if selector::is_empty(selector) {
            errors.push(invalid_selector(selector, format!("empty selector is invalid for {kind}")));
        }
    } else {
        errors.push(selector.required(""));
    }
    let makes_sense = selector::matches(selector.value, None).is_some();
    if !makes_sense {
        errors.push(invalid_selector(selector, senseless));
    }
    makes_sense
}

fn check_deployment(spec: &At<'_>) -> Errors {
    let mut errors = Vec::new();
    spec.field("replicas").check_not_negative(&mut errors);
    check_selector_and_template(spec, &mut errors);
    check_deployment_strategy(&spec.field("strategy"), &mut errors);
    let ready = spec.field("minReadySeconds");
    ready.check_not_negative(&mut errors);
    spec.field("revisionHistoryLimit").check_not_negative(&mut errors);
    let deadline = spec.field("progressDeadlineSeconds");
    deadline.check_not_negative(&mut errors);
    if deadline.number().is_some_and(|seconds| seconds <= ready.number().unwrap_or_default()) {
        errors.push(deadline.invalid("must be greater than minReadySeconds"));
    }
    errors
}

fn check_selector_and_template(spec: &At<'_>, errors: &mut Errors) {
    let (selector, pods) = (spec.field("selector"), spec.field("template"));
    if check_selector(&selector, "deployment", "invalid label selector", errors) {
        template::check_selected(&selector, &pods, errors);
        template::check(&pods, errors);
        template::check_runs_for_ever(&pods, "ReplicaSet", errors);
    }
}

fn check_replica_set(spec: &At<'_>) -> Errors {
    let mut errors = Vec::new();
    spec.field("replicas").check_not_negative(&mut errors);
    spec.field("minReadySeconds").check_not_negative(&mut errors);
    check_selector_and_template(spec, &mut errors);
    errors
}

fn check_deployment_strategy(strategy: &At<'_>, errors: &mut Errors) {
    let rolling = strategy.field("rollingUpdate");
    match strategy.text_of("type") {
        "Recreate" => {
            if rolling.is_set() {
                errors.push(rolling.forbidden("may not be specified when strategy `type` is 'Recreate'"));
            }
        }
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.field("maxUnavailable"), rolling.field("maxSurge"));
            check_number_or_percent(&unavailable, errors);
            check_number_or_percent(&surge, errors);
            if amount(unavailable.value) == 0 && amount(surge.value) == 0 {
                errors.push(unavailable.invalid("may not be 0 when `maxSurge` is 0"));
            }
            check_at_most_all(&unavailable, errors);
        }
        _ => errors.push(
            FieldError::not_supported(&strategy.path, "", &["Recreate", "RollingUpdate"])
                .showing(printed("apps.DeploymentStrategy", strategy.value)),
        ),
    }
}

fn check_daemon_set(spec: &At<'_>) -> Errors {
    let mut errors = Vec::new();
    let (selector, pods) = (spec.field("selector"), spec.field("template"));
    selector::check(&selector, &mut errors);
    template::check_selected(&selector, &pods, &mut errors);
    if selector.is_set() && selector::is_empty(&selector) {
        errors.push(invalid_selector(&selector, "empty selector is invalid for daemonset"));
    }
    template::check(&pods, &mut errors);
    template::check_runs_for_ever(&pods, "DaemonSet", &mut errors);
    spec.field("minReadySeconds").check_not_negative(&mut errors);
    check_daemon_strategy(&spec.field("updateStrategy"), &mut errors);
    spec.field("revisionHistoryLimit").check_not_negative(&mut errors);
    errors
}

fn check_daemon_strategy(strategy: &At<'_>, errors: &mut Errors) {
    match strategy.text_of("type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let rolling = strategy.field("rollingUpdate");
            let (unavailable, surge) = (rolling.field("maxUnavailable"), rolling.field("maxSurge"));
            check_number_or_percent(&unavailable, errors);
            check_number_or_percent(&surge, errors);
            check_at_most_all(&unavailable, errors);
            check_at_most_all(&surge, errors);
            match (amount(unavailable.value) != 0, amount(surge.value) != 0) {
                (true, true) => errors.push(surge.invalid("may not be set when maxUnavailable is non-zero")),
                (false, false) => errors.push(unavailable.required("cannot be 0 when maxSurge is 0")),
                _ => {}
            }
        }
        _ => errors.push(
            FieldError::not_supported(&strategy.path, "", &["RollingUpdate", "OnDelete"])
                .showing(printed("apps.DaemonSetUpdateStrategy", strategy.value)),
        ),
    }
}

fn check_controller(controller: &Object) -> Errors {
    let spec = At::top(controller, "spec");
    let mut errors = Vec::new();
    spec.field("minReadySeconds").check_not_negative(&mut errors);
    let selector = spec.field("selector");
    if selector.is_empty() {
        errors.push(selector.required(""));
    }
    spec.field("replicas").check_not_negative(&mut errors);
    let pods = spec.field("template");
    if !pods.is_set() {
        errors.push(pods.required(""));
        return errors;
    }
    let labels = pods.below(&["metadata", "labels"]);
    let missing = |(key, value): (&str, At<'_>)| labels.value.get(key) != Some(value.value);
    if selector.entries().any(missing) {
        errors.push(labels.invalid("`selector` does not match template `labels`"));
    }
    template::check(&pods, &mut errors);
    template::check_runs_for_ever(&pods, "ReplicationController", &mut errors);
    errors
}

/// A number that is not negative, or a percentage.
pub(super) fn check_number_or_percent(at: &At<'_>, errors: &mut Errors) {
    match at.value {
        Value::String(text) => errors.extend(at.all_invalid(format::percent(text))),
        _ => at.check_not_negative(errors),
    }
}

/// Not more than 100%.
pub(super) fn check_at_most_all(at: &At<'_>, errors: &mut Errors) {
    if percentage(at.value).is_some_and(|percent| percent > 100) {
        errors.push(at.invalid("must not be greater than 100%"));
    }
}

fn percentage(value: &Value) -> Option<i64> {
    let text = value.as_str().filter(|text| format::percent(text).is_empty())?;
    Some(text.trim_end_matches('%').parse().unwrap_or(i64::MAX))
}

/// The number, or that of a percentage.
pub(super) fn amount(value: &Value) -> i64 {
    percentage(value).or_else(|| value.as_i64()).or_else(|| value.as_str()?.parse().ok()).unwrap_or_default()
}

fn check_replica_status(new: &Object, old: &Object) -> Errors {
    let counts = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    check_counts(new, old, &counts, &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"], "readyReplicas")
}

/// Counts of pods that are not negative and fit together.
pub(super) fn check_counts(new: &Object, old: &Object, counts: &[&str], of_all: &[&str], ready: &str) -> Errors {
    let status = At::top(new, "status");
    let mut errors = Vec::new();
    for field in counts {
        status.field(field).check_not_negative(&mut errors);
    }
    let count = |field: &str| status.field(field).number().unwrap_or_default();
    for field in of_all.iter().filter(|field| count(field) > count("replicas")) {
        errors.push(status.field(field).invalid("cannot be greater than status.replicas"));
    }
    if !of_all.is_empty() && count("availableReplicas") > count("readyReplicas") {
        errors.push(status.field("availableReplicas").invalid(format!("cannot be greater than {ready}")));
    }
    let collisions = |object: &Object| object.integer(&["status", "collisionCount"]);
    if counts.contains(&"collisionCount")
        && let Some(before) = collisions(old)
        && collisions(new).unwrap_or_default() < before
    {
        let path = status.path.child("collisionCount");
        errors.push(FieldError::invalid(&path, collisions(new).unwrap_or_default(), "cannot be decremented"));
    }
    errors
}
