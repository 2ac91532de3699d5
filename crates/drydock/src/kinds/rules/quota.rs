//! LimitRanges and ResourceQuotas.

use super::fill::{Fields, each, make, round_resources, text};
use super::pod::resources::{check_amount, check_container_name, check_name, is_huge_page, may_be_overcommitted};
use super::{PLAIN, Rules, WITH_STATUS};
use crate::field::FieldError;
use crate::object::Object;
use crate::quantity;
use crate::validate::{At, Errors, IMMUTABLE, format};
use serde_json::Value;
use std::collections::BTreeSet;

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];
const LISTS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];

pub(crate) static LIMIT_RANGE: Rules = Rules {
    default: |range| each(make(range.fields_mut(), "spec"), "limits", default_limit),
    check: check_range,
    check_update: |new, _| check_range(new),
    create_on_update: true,
    ..PLAIN
};

pub(crate) static RESOURCE_QUOTA: Rules = Rules {
    default: |quota| round_resources(make(quota.fields_mut(), "spec"), "hard"),
    check: |quota| check_quota(&At::top(quota, "spec")),
    check_update: |new, old| {
        let spec = At::top(new, "spec");
        let mut errors = check_quota(&spec);
        let scopes = spec.field("scopes");
        let before = At::top(old, "spec").field("scopes");
        if scopes.texts().collect::<BTreeSet<_>>() != before.texts().collect::<BTreeSet<_>>() {
            errors.push(scopes.invalid(IMMUTABLE));
        }
        errors
    },
    check_status: |new, _| {
        let mut errors = Vec::new();
        for list in ["hard", "used"] {
            check_amounts(&At::top(new, "status").field(list), &mut errors);
        }
        errors
    },
    ..WITH_STATUS
};

fn default_limit(limit: &mut Fields) {
    for list in LISTS {
        round_resources(limit, list);
    }
    if text(limit, "type") != "Container" {
        return;
    }
    for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
        let Some(Value::Object(from)) = limit.get(from).cloned() else { continue };
        let to = make(limit, to);
        for (name, amount) in from {
            to.entry(name).or_insert(amount);
        }
    }
}

fn check_range(range: &Object) -> Errors {
    let mut errors = Vec::new();
    let mut types = BTreeSet::new();
    for limit in At::top(range, "spec").field("limits").items() {
        let kind = limit.field("type");
        let messages = format::qualified_name(kind.text());
        if messages.is_empty() {
            if !kind.text().contains('/') && !matches!(kind.text(), "Pod" | "Container" | "PersistentVolumeClaim") {
                errors.push(kind.invalid("must be a standard limit type or fully qualified"));
            }
        } else {
            errors.extend(kind.all_invalid(messages));
        }
        if !types.insert(kind.text().to_owned()) {
            errors.push(kind.duplicate());
        }
        check_limit(&limit, kind.text(), &mut errors);
    }
    errors
}

fn check_limit(limit: &At<'_>, kind: &str, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for list in LISTS {
        let amounts = limit.field(list);
        if kind == "Pod" && list.starts_with("default") {
            if !amounts.is_empty() {
                errors.push(amounts.forbidden("may not be specified when `type` is 'Pod'"));
            }
            continue;
        }
        if list == "maxLimitRequestRatio" {
            let lacks = |list: &str| !limit.field(list).has("storage");
            if kind == "PersistentVolumeClaim" && lacks("min") && lacks("max") {
                let why = "either minimum or maximum storage value is required, but neither was provided";
                errors.push(limit.field("limits").required(why));
            }
        }
        for (name, amount) in amounts.entries() {
            if matches!(kind, "Pod" | "Container") {
                check_container_name(name, &amount, errors);
            } else {
                check_name(name, &amount, errors);
            }
            names.insert(name);
        }
    }
    for name in names {
        check_order(limit, kind, name, errors);
    }
}

/// Minimum, default and maximum are in order.
fn check_order(limit: &At<'_>, kind: &str, name: &str, errors: &mut Errors) {
    let amount = |list: &str| {
        let amounts = limit.field(list);
        let amount = At::new(amounts.field(name).value, amounts.path.key(name));
        let applies = amount.is_set() && !(kind == "Pod" && list.starts_with("default"));
        applies.then_some(amount)
    };
    let nano = |at: &At<'_>| quantity::nano_units(at.text()).unwrap_or_default();
    let [max, min, default, request, ratio] = LISTS.map(amount);
    let mut order =
        |low: &Option<At<'_>>, high: &Option<At<'_>>, at: &Option<At<'_>>, shown: &Option<At<'_>>, words: [&str; 2]| {
            if let (Some(low), Some(high), Some(at), Some(shown)) = (low, high, at, shown)
                && nano(low) > nano(high)
            {
                let why =
                    format!("{} value {} is greater than {} value {}", words[0], low.text(), words[1], high.text());
                errors.push(FieldError::invalid(&at.path, shown.value.clone(), why));
            }
        };
    order(&min, &max, &min, &min, ["min", "max"]);
    order(&min, &request, &request, &request, ["min", "default request"]);
    order(&request, &max, &request, &request, ["default request", "max"]);
    order(&request, &default, &request, &request, ["default request", "default limit"]);
    order(&min, &default, &default, &min, ["min", "default"]);
    order(&default, &max, &default, &max, ["default", "max"]);
    if let Some(ratio) = &ratio
        && nano(ratio) < 1_000_000_000
    {
        errors.push(ratio.invalid(format!("ratio {} is less than 1", ratio.text())));
    }
    if let (false, Some(default), Some(request)) = (may_be_overcommitted(name), &default, &request)
        && nano(default) != nano(request)
    {
        let why =
            format!("default value {} must equal to defaultRequest value {} in {name}", default.text(), request.text());
        errors.push(request.invalid(why));
    }
}

fn is_of_quota(name: &str) -> bool {
    const KNOWN: [&str; 19] = [
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "persistentvolumeclaims",
        "configmaps",
        "services.nodeports",
        "services.loadbalancers",
    ];
    KNOWN.contains(&name) || is_huge_page(name) || name.starts_with("requests.hugepages-")
}

fn check_amounts(amounts: &At<'_>, errors: &mut Errors) {
    for (name, amount) in amounts.entries() {
        check_name(name, &amount, errors);
        if !name.contains('/') && !is_of_quota(name) {
            errors.push(FieldError::invalid(&amount.path, name, "must be a standard resource for quota"));
        }
        check_amount(name, &amount, errors);
    }
}

fn check_quota(spec: &At<'_>) -> Errors {
    let mut errors = Vec::new();
    let hard = spec.field("hard");
    check_amounts(&hard, &mut errors);
    let scopes = spec.field("scopes");
    for scope in scopes.texts() {
        if !SCOPES.contains(&scope) {
            errors.push(scopes.invalid("unsupported scope"));
        }
        for _ in hard.entries().filter(|(name, _)| is_of_quota(name) && !applies(scope, name)) {
            errors.push(scopes.invalid("unsupported scope applied to resource"));
        }
    }
    check_conflicts(&scopes, scopes.texts().collect(), &scopes, &mut errors);
    check_selector(spec, &hard, &mut errors);
    errors
}

fn check_conflicts(at: &At<'_>, found: BTreeSet<&str>, shown: &At<'_>, errors: &mut Errors) {
    for pair in [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]] {
        if pair.iter().all(|scope| found.contains(scope)) {
            errors.push(shown.called(at.path.clone()).invalid("conflicting scopes"));
        }
    }
}

/// Whether a scope says anything about a resource.
fn applies(scope: &str, name: &str) -> bool {
    const COMPUTE: [&str; 6] = ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
    match scope {
        "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass" | "CrossNamespacePodAffinity" => {
            name == "pods" || COMPUTE.contains(&name)
        }
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => matches!(name, "persistentvolumeclaims" | "requests.storage"),
        _ => true,
    }
}

fn check_selector(spec: &At<'_>, hard: &At<'_>, errors: &mut Errors) {
    let selector = spec.field("scopeSelector");
    let expressions = selector.field("matchExpressions");
    for expression in expressions.items() {
        // These stand at the list, not at the item.
        let expression = expression.called(expressions.path.clone());
        let scope = expression.field("scopeName");
        let (operator, values) = (expression.field("operator"), expression.field("values"));
        if !SCOPES.contains(&scope.text()) {
            errors.extend(scope.all_invalid(vec!["unsupported scope".to_owned()]));
        }
        for _ in hard.entries().filter(|(name, _)| is_of_quota(name) && !applies(scope.text(), name)) {
            let shown = crate::validate::printed("core.ScopeSelector", selector.value);
            let why = "unsupported scope applied to resource";
            errors.push(FieldError::invalid_printed(&expressions.path, shown, why));
        }
        let is_plain =
            !matches!(scope.text(), "PriorityClass" | "VolumeAttributesClass") && SCOPES.contains(&scope.text());
        if is_plain && operator.text() != "Exists" {
            let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.extend(operator.all_invalid(vec![why.to_owned()]));
        }
        match operator.text() {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.push(values.required(why));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                errors.push(values.invalid(why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.extend(operator.all_invalid(vec!["not a valid selector operator".to_owned()])),
        }
    }
    let found = expressions.items().map(|expression| expression.text_of("scopeName")).collect();
    check_conflicts(&expressions, found, &spec.field("scopes"), errors);
}
