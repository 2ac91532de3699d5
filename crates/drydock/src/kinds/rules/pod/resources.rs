//! Resources of containers and pods: what they are called, how much is asked for.

use crate::field::FieldError;
use crate::quantity;
use crate::validate::{At, Errors, format};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

const COMPUTE: [&str; 2] = ["cpu", "memory"];
const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];
const WHOLE: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

pub(in super::super) fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Not of a domain of its own.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

pub(in super::super) fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && format::qualified_name(&format!("requests.{name}")).is_empty()
}

pub(in super::super) fn may_be_overcommitted(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

pub(in super::super) fn is_standard(name: &str) -> bool {
    STANDARD.contains(&name) || is_huge_page(name) || name.starts_with("requests.hugepages-")
}

/// What is wrong with the name of a resource.
pub(in super::super) fn check_name(name: &str, at: &At<'_>, errors: &mut Errors) -> bool {
    let messages = format::qualified_name(name);
    if !messages.is_empty() {
        errors.extend(crate::validate::all_invalid(&at.path, name, messages));
        return false;
    }
    if !name.contains('/') && !is_standard(name) {
        let why = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid(&at.path, name, why));
        return false;
    }
    true
}

pub(in super::super) fn check_container_name(name: &str, at: &At<'_>, errors: &mut Errors) {
    check_name(name, at, errors);
    if !name.contains('/') {
        if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !is_huge_page(name) {
            errors.push(FieldError::invalid(&at.path, name, "must be a standard resource for containers"));
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.push(FieldError::invalid(&at.path, name, "doesn't follow extended resource name standard"));
    }
}

fn check_pod_name(name: &str, at: &At<'_>, errors: &mut Errors) {
    if check_name(name, at, errors) && !COMPUTE.contains(&name) && !is_huge_page(name) {
        errors.push(FieldError::not_supported(&at.path, name, &["cpu", "hugepages-", "memory"]));
    }
}

/// The amount is not negative, and whole where parts make no sense.
pub(in super::super) fn check_amount(name: &str, at: &At<'_>, errors: &mut Errors) {
    let nano = nano(at.value);
    if nano < 0 {
        errors.push(at.invalid("must be greater than or equal to 0"));
    }
    if (WHOLE.contains(&name) || is_extended(name)) && nano % 1_000_000_000 != 0 {
        errors.push(at.invalid("must be an integer"));
    }
}

fn nano(value: &Value) -> i128 {
    value.as_str().and_then(quantity::nano_units).unwrap_or_default()
}

/// Limits and requests of a container.
pub(in super::super) fn check_container(resources: &At<'_>, claims: &BTreeSet<&str>, errors: &mut Errors) {
    check_requirements(resources, check_container_name, claims, errors);
}

/// Limits and requests of a whole pod.
pub(super) fn check_pod(spec: &At<'_>, claims: &BTreeSet<&str>, errors: &mut Errors) {
    let resources = spec.field("resources");
    if !resources.is_set() {
        return;
    }
    if spec.below(&["os", "name"]).text() == "windows" {
        errors.push(resources.forbidden("may not be set for a windows pod"));
        return;
    }
    if resources.has("claims") {
        errors.push(resources.field("claims").forbidden("claims may not be set for Resources at pod-level"));
    }
    check_requirements(&resources, check_pod_name, claims, errors);
    check_consistency(spec, &resources, errors);
}

/// A pod asks for at least what its containers ask for.
fn check_consistency(spec: &At<'_>, resources: &At<'_>, errors: &mut Errors) {
    let Some(fields) = spec.value.as_object() else { return };
    let (requests, limits) = (resources.field("requests"), resources.field("limits"));
    for (list, aggregate, word) in [(&requests, "requests", "requests"), (&limits, "limits", "limits")] {
        for (name, total) in of_containers(fields, aggregate) {
            let Some(own) = list.value.get(&name) else { continue };
            let applies = word == "requests" || is_huge_page(&name);
            if applies && quantity::nano_units(&total).unwrap_or_default() > nano(own) {
                errors.push(FieldError::invalid(
                    &list.path.key(&name),
                    own.clone(),
                    format!("must be greater than or equal to aggregate container {word} of {total}"),
                ));
            }
        }
    }
    for (index, container) in spec.field("containers").items().enumerate() {
        for (name, limit) in container.below(&["resources", "limits"]).entries() {
            let Some(own) = limits.value.get(name) else { continue };
            if nano(limit.value) > nano(own) {
                let path = resources.path.child("containers").index(index).key(name).child("limits");
                let own = own.as_str().unwrap_or_default();
                let why = format!("must be less than or equal to pod limits of {own}");
                errors.push(FieldError::invalid(&path, limit.value.clone(), why));
            }
        }
    }
}

fn check_requirements(
    resources: &At<'_>,
    check_name: fn(&str, &At<'_>, &mut Errors),
    claims: &BTreeSet<&str>,
    errors: &mut Errors,
) {
    let (limits, requests) = (resources.field("limits"), resources.field("requests"));
    let (mut compute, mut huge_pages) = (false, false);
    for (name, limit) in limits.entries() {
        check_name(name, &limit, errors);
        check_amount(name, &limit, errors);
        check_pages(name, &limit, errors);
        huge_pages |= is_huge_page(name);
        compute |= COMPUTE.contains(&name);
    }
    for (name, request) in requests.entries() {
        check_name(name, &request, errors);
        check_amount(name, &request, errors);
        check_against_limit(name, &request, &requests, &limits, errors);
        check_pages(name, &request, errors);
        huge_pages |= is_huge_page(name);
        compute |= COMPUTE.contains(&name);
    }
    if huge_pages && !compute {
        errors.push(resources.forbidden("HugePages require cpu or memory"));
    }
    check_claims(&resources.field("claims"), claims, errors);
}

fn check_against_limit(name: &str, request: &At<'_>, requests: &At<'_>, limits: &At<'_>, errors: &mut Errors) {
    let Some(limit) = limits.value.get(name) else {
        if !may_be_overcommitted(name) {
            errors.push(limits.required("Limit must be set for non overcommitable resources"));
        }
        return;
    };
    let relation = if nano(request.value) != nano(limit) && !may_be_overcommitted(name) {
        "equal to"
    } else if nano(request.value) > nano(limit) {
        "less than or equal to"
    } else {
        return;
    };
    let limit = limit.as_str().unwrap_or_default();
    let why = format!("must be {relation} {name} limit of {limit}");
    errors.push(FieldError::invalid(&requests.path, request.value.clone(), why));
}

fn check_pages(name: &str, amount: &At<'_>, errors: &mut Errors) {
    let Some(size) = name.strip_prefix("hugepages-") else { return };
    let size = quantity::nano_units(size).unwrap_or_default();
    let is_whole = size > 0 && size % 1_000_000_000 == 0 && nano(amount.value) % size == 0;
    if !is_whole {
        errors.push(amount.invalid(format!("{} is not positive integer multiple of {name}", amount.text())));
    }
}

/// The claims of a container name those of its pod.
fn check_claims(claims: &At<'_>, known: &BTreeSet<&str>, errors: &mut Errors) {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for claim in claims.items() {
        let (name, request) = (claim.text_of("name"), claim.text_of("request"));
        if name.is_empty() {
            errors.push(claim.required(""));
            continue;
        }
        if seen.contains(name) {
            errors.push(FieldError::duplicate(&claim.path, name));
        } else {
            let mut key = name.to_owned();
            if !request.is_empty() {
                errors.extend(claim.field("request").all_invalid(format::dns_label(request)));
                key = format!("{name}/{request}");
            }
            if seen.contains(&key) {
                errors.push(FieldError::duplicate(&claim.path, key.as_str()));
            } else if request.is_empty() {
                let others = seen.iter().filter(|other| other.split_once('/').is_some_and(|(other, _)| other == name));
                errors.extend(others.map(|_| FieldError::duplicate(&claim.path, name)));
            }
            seen.insert(key);
        }
        if !known.contains(name) {
            let names: Vec<&str> = known.iter().copied().collect();
            let rest = if names.is_empty() { " which is empty".to_owned() } else { format!(": {}", names.join(", ")) };
            let why = format!("must be one of the names in pod.spec.resourceClaims{rest}");
            errors.push(FieldError::not_found(&claim.path, name).because(why));
        }
    }
}

/// What all containers of a pod need together: those that run at the same time are added up.
pub(super) fn of_containers(spec: &Map<String, Value>, list: &str) -> BTreeMap<String, String> {
    let amounts = |container: &Value| -> Vec<(String, String)> {
        let amounts = container.get("resources").and_then(|resources| resources.get(list));
        crate::object::strings(amounts).map(|(name, amount)| (name.to_owned(), amount.to_owned())).collect()
    };
    let containers = |name: &str| spec.get(name).and_then(Value::as_array).into_iter().flatten();
    let mut running: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut sidecars: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut candidates: Vec<BTreeMap<String, Vec<String>>> = Vec::new();
    for (name, amount) in containers("containers").flat_map(&amounts) {
        running.entry(name).or_default().push(amount);
    }
    for container in containers("initContainers") {
        if container.get("restartPolicy").is_some_and(|policy| policy == "Always") {
            for (name, amount) in amounts(container) {
                running.entry(name.clone()).or_default().push(amount.clone());
                sidecars.entry(name).or_default().push(amount);
            }
            candidates.push(sidecars.clone());
        } else {
            let mut alone = sidecars.clone();
            for (name, amount) in amounts(container) {
                alone.entry(name).or_default().push(amount);
            }
            candidates.push(alone);
        }
    }
    let mut totals: BTreeMap<String, String> = BTreeMap::new();
    for (name, amounts) in std::iter::once(running).chain(candidates).flatten() {
        let Some(total) = quantity::sum(amounts.iter().map(String::as_str)) else { continue };
        let is_more = totals.get(&name).is_none_or(|known| quantity::nano_units(known) < quantity::nano_units(&total));
        if is_more {
            totals.insert(name, total);
        }
    }
    totals
}

/// The class of a pod by what it requests and is limited to.
pub(super) fn quality(spec: &Map<String, Value>) -> &'static str {
    let mut totals = [BTreeMap::new(), BTreeMap::new()];
    let mut all_limited = true;
    let mut add = |resources: Option<&Value>| {
        let mut limited = 0;
        for (total, list) in totals.iter_mut().zip(["requests", "limits"]) {
            let amounts = resources.and_then(|resources| resources.get(list));
            for (name, amount) in crate::object::strings(amounts) {
                let amount = quantity::nano_units(amount).unwrap_or_default();
                if COMPUTE.contains(&name) && amount > 0 {
                    *total.entry(name.to_owned()).or_insert(0i128) += amount;
                    limited += usize::from(list == "limits");
                }
            }
        }
        limited == COMPUTE.len()
    };
    let own = spec.get("resources").filter(|resources| resources.is_object());
    if own.is_some() {
        let has_limits =
            own.and_then(|own| own.get("limits")).and_then(Value::as_object).is_some_and(|list| !list.is_empty());
        all_limited = add(own) || !has_limits;
    } else {
        for list in ["containers", "initContainers"] {
            for container in spec.get(list).and_then(Value::as_array).into_iter().flatten() {
                all_limited &= add(container.get("resources"));
            }
        }
    }
    let [requests, limits] = totals;
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if all_limited && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_runs_together_is_added_up() {
        let spec = json!({
            "containers": [
                {"resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}},
                {"resources": {"requests": {"cpu": "1"}}},
            ],
            "initContainers": [
                {"resources": {"requests": {"cpu": "5", "memory": "1Mi"}}},
                {"restartPolicy": "Always", "resources": {"requests": {"cpu": "200m"}}},
            ],
        });
        let totals = of_containers(spec.as_object().unwrap(), "requests");
        assert_eq!(totals.get("cpu").map(String::as_str), Some("5"));
        assert_eq!(totals.get("memory").map(String::as_str), Some("1Gi"));
    }

    #[test]
    fn pods_have_a_class() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        for (spec, expected) in [
            (json!({"containers": [{}]}), "BestEffort"),
            (json!({"containers": [{"resources": {"requests": {"cpu": "1"}}}]}), "Burstable"),
            (json!({"containers": [{"resources": {"requests": both, "limits": both}}]}), "Guaranteed"),
            (json!({"containers": [{"resources": {"requests": both, "limits": both}}, {}]}), "Burstable"),
            (json!({"containers": [{}], "resources": {"requests": both, "limits": both}}), "Guaranteed"),
        ] {
            assert_eq!(quality(spec.as_object().unwrap()), expected, "{spec}");
        }
    }
}
