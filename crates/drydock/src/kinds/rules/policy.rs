//! PodDisruptionBudgets, PriorityClasses and Leases.

use super::fill::or;
use super::workload::{check_at_most_all, check_number_or_percent};
use super::{Generation, NameRule, PLAIN, Rules, WITH_STATUS};
use crate::field::{FieldError, Path};
use crate::object::Object;
use crate::validate::{At, Errors, format, printed, selector};

/// The highest priority that users may give.
const HIGHEST: i64 = 1_000_000_000;

pub(crate) static DISRUPTION_BUDGET: Rules = Rules {
    name: NameRule::Late,
    generation: Generation::WithSpec,
    check: |budget| check_budget(&At::top(budget, "spec")),
    check_update: |new, _| check_budget(&At::top(new, "spec")),
    check_status: |new, _| {
        let status = At::top(new, "status");
        let mut errors = Vec::new();
        check_conditions(&status.field("conditions"), &mut errors);
        for field in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
            status.field(field).check_not_negative(&mut errors);
        }
        errors
    },
    standard_finalizers: false,
    unconditional_update: false,
    ..WITH_STATUS
};

pub(crate) static PRIORITY_CLASS: Rules = Rules {
    generation: Generation::Once,
    default: |class| or(class.fields_mut(), "preemptionPolicy", "PreemptLowerPriority"),
    check: check_priority,
    check_update: |new, old| {
        let mut errors = Vec::new();
        if new.integer(&["value"]) != old.integer(&["value"]) {
            errors.push(FieldError::forbidden(&Path::new("value"), "may not be changed in an update."));
        }
        At::top(new, "preemptionPolicy").check_unchanged(&At::top(old, "preemptionPolicy"), &mut errors);
        errors
    },
    ..PLAIN
};

pub(crate) static LEASE: Rules = Rules {
    prepare_create: drop_disabled,
    prepare_update: |new, _| drop_disabled(new),
    check: |lease| check_lease(&At::top(lease, "spec")),
    check_update: |new, _| check_lease(&At::top(new, "spec")),
    standard_finalizers: false,
    create_on_update: true,
    unconditional_update: false,
    ..PLAIN
};

/// What coordinated leader election would need, which is off.
fn drop_disabled(lease: &mut Object) {
    lease.remove(&["spec", "strategy"]);
    lease.remove(&["spec", "preferredHolder"]);
}

fn check_budget(spec: &At<'_>) -> Errors {
    let mut errors = Vec::new();
    let (least, most) = (spec.field("minAvailable"), spec.field("maxUnavailable"));
    if least.is_set() && most.is_set() {
        let shown = printed("policy.PodDisruptionBudgetSpec", spec.value);
        let why = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid_printed(&spec.path, shown, why));
    }
    for limit in [least, most] {
        if limit.is_set() {
            check_number_or_percent(&limit, &mut errors);
            check_at_most_all(&limit, &mut errors);
        }
    }
    selector::check(&spec.field("selector"), &mut errors);
    spec.field("unhealthyPodEvictionPolicy").check_optional(&["AlwaysAllow", "IfHealthyBudget"], &mut errors);
    errors
}

/// Conditions of the common type (apimachinery v0.34 `apis/meta/v1/validation`).
pub(super) fn check_conditions(conditions: &At<'_>, errors: &mut Errors) {
    let mut kinds = Vec::new();
    for condition in conditions.items() {
        let (kind, reason) = (condition.field("type"), condition.field("reason"));
        if kinds.contains(&kind.text()) {
            errors.push(kind.duplicate());
        }
        kinds.push(kind.text());
        errors.extend(kind.all_invalid(format::qualified_name(kind.text())));
        let status = condition.field("status");
        if !matches!(status.text(), "True" | "False" | "Unknown") {
            errors.push(status.not_supported(&["False", "True", "Unknown"]));
        }
        let observed = condition.field("observedGeneration");
        if observed.number().is_some_and(|number| number < 0) {
            errors.push(observed.invalid("must be greater than or equal to zero"));
        }
        if condition.text_of("lastTransitionTime").is_empty() {
            errors.push(condition.field("lastTransitionTime").required(""));
        }
        if reason.text().is_empty() {
            errors.push(reason.required(""));
        } else if !is_reason(reason.text()) {
            errors.push(reason.invalid(format::mismatch(
                "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
                "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
                &["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"],
            )));
        }
        if reason.text().len() > 1024 {
            errors.push(FieldError::too_long(&reason.path, 1024));
        }
        if condition.text_of("message").len() > 32 * 1024 {
            errors.push(FieldError::too_long(&condition.path.child("message"), 32 * 1024));
        }
    }
}

fn is_reason(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(|last| is_word(*last))
        && bytes.iter().all(|byte| is_word(*byte) || matches!(byte, b',' | b':'))
}

fn check_priority(class: &Object) -> Errors {
    let mut errors = Vec::new();
    let (name, value) = (class.name(), class.integer(&["value"]).unwrap_or_default());
    if name.starts_with("system-") {
        if let Err(why) = check_system(class, name, value) {
            let why =
                format!("priority class names with 'system-' prefix are reserved for system use only. error: {why}");
            errors.push(At::top(class, "metadata").field("name").forbidden(why));
        }
    } else if value > HIGHEST {
        let why = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        errors.push(At::top(class, "value").forbidden(why));
    }
    let policy = At::top(class, "preemptionPolicy");
    if policy.is_set() {
        policy.check_one_of(&["PreemptLowerPriority", "Never"], &mut errors);
    }
    errors
}

/// The classes that every cluster has.
fn check_system(class: &Object, name: &str, value: i64) -> Result<(), String> {
    let expected = match name {
        "system-node-critical" => 2_000_001_000,
        "system-cluster-critical" => 2_000_000_000,
        _ => return Err(format!("{name} is not a known system priority class")),
    };
    if value != expected {
        return Err(format!("value of {name} PriorityClass must be {expected}"));
    }
    if At::top(class, "globalDefault").is_true() {
        return Err(format!("globalDefault of {name} PriorityClass must be false"));
    }
    Ok(())
}

fn check_lease(spec: &At<'_>) -> Errors {
    let mut errors = Vec::new();
    let duration = spec.field("leaseDurationSeconds");
    if duration.number().is_some_and(|seconds| seconds <= 0) {
        errors.push(duration.invalid("must be greater than 0"));
    }
    spec.field("leaseTransitions").check_not_negative(&mut errors);
    errors
}
