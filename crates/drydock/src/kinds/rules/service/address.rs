//! The addresses of services and their families.

use crate::object::Object;
use crate::validate::{At, Errors, ip};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// `clusterIPs` follows `clusterIP` in new objects.
pub(super) fn mirror_new(service: &mut Object) {
    let address = service.text(&["spec", "clusterIP"]).to_owned();
    if !address.is_empty() && service.list(&["spec", "clusterIPs"]).is_empty() {
        service.set(&["spec", "clusterIPs"], json!([address]));
    }
}

/// Sets the families of a service that leaves them out, in a cluster of one family, that of IPv4. Admission calls this
/// before it allocates addresses.
pub(crate) fn set_families(service: &mut Object, old: Option<&Object>) {
    if old.is_none() {
        mirror_new(service);
    }
    if service.text(&["spec", "type"]) == "ExternalName" {
        return;
    }
    let is_bare = is_bare(service);
    let policy = ["spec", "ipFamilyPolicy"];
    if service.at(&policy).is_none() {
        let before = old.and_then(|old| old.at(&policy)).cloned();
        let default = if is_bare { "RequireDualStack" } else { "SingleStack" };
        service.set(&policy, before.unwrap_or_else(|| Value::from(default)));
    }
    let families = ["spec", "ipFamilies"];
    if service.list(&families).is_empty() {
        let both = is_bare && service.text(&policy) != "SingleStack";
        service.set(&families, if both { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) });
    }
}

/// What is wrong with the addresses and families of a service, in a cluster of one family, that of IPv4. Admission asks
/// this before it allocates addresses, and the server says nothing else then.
pub(crate) fn refuse_families(service: &Object) -> Errors {
    let spec = At::top(service, "spec");
    let mut errors = Vec::new();
    if spec.text_of("type") == "ExternalName" {
        return errors;
    }
    check(&spec, &mut errors);
    if !errors.is_empty() {
        return errors;
    }
    let (policy, families) = (spec.field("ipFamilyPolicy"), spec.field("ipFamilies"));
    if policy.text() == "SingleStack" {
        for (list, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
            if spec.field(list).len() == 2 {
                let why = format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
                errors.push(policy.invalid(why));
            }
        }
    }
    if !errors.is_empty() || is_bare(service) {
        return errors;
    }
    if policy.text() == "RequireDualStack" {
        errors.push(policy.invalid("this cluster is not configured for dual-stack services"));
    }
    for family in families.items().filter(|family| family.text() != "IPv4") {
        errors.push(family.invalid("not configured on this cluster"));
    }
    errors
}

/// Without an address and without pods of its own.
fn is_bare(service: &Object) -> bool {
    let selector = service.at(&["spec", "selector"]).and_then(Value::as_object);
    service.text(&["spec", "clusterIP"]) == "None" && selector.is_none_or(serde_json::Map::is_empty)
}

/// Addresses that are right and fit their families.
pub(super) fn check(spec: &At<'_>, errors: &mut Errors) {
    if spec.text_of("type") == "ExternalName" {
        return;
    }
    let (addresses, families) = (spec.field("clusterIPs"), spec.field("ipFamilies"));
    let single = spec.text_of("clusterIP");
    match (single.is_empty(), addresses.texts().next()) {
        (false, None) => errors.push(addresses.required("")),
        (false, Some(first)) if first != single => {
            errors.push(addresses.invalid("first value must match `clusterIP`"));
        }
        (true, Some(_)) => errors.push(addresses.invalid("must be empty when `clusterIP` is not specified")),
        _ => {}
    }
    let mut seen = BTreeSet::new();
    for family in families.items() {
        if !matches!(family.text(), "IPv4" | "IPv6") {
            errors.push(family.not_supported(&["IPv4", "IPv6"]));
        }
        if !seen.insert(family.text()) {
            errors.push(family.duplicate());
        }
    }
    spec.field("ipFamilyPolicy").check_optional(&["PreferDualStack", "RequireDualStack", "SingleStack"], errors);
    let mut wrong = false;
    for (index, address) in addresses.items().enumerate() {
        if index == 0 && address.text() == "None" {
            if addresses.len() > 1 {
                wrong = true;
                errors.push(addresses.invalid("'None' must be the first and only value"));
            }
            continue;
        }
        let messages = ip::address(address.text());
        wrong |= !messages.is_empty();
        errors.extend(address.all_invalid(messages));
    }
    if addresses.len() > 2 {
        errors.push(addresses.invalid("may only hold up to 2 values"));
    }
    if wrong {
        return;
    }
    check_families(&addresses, &families, errors);
}

fn check_families(addresses: &At<'_>, families: &At<'_>, errors: &mut Errors) {
    let is_v6 = |text: &str| ip::parse(text).is_some_and(|address| address.is_ipv6());
    if addresses.len() > 1 {
        let found: BTreeSet<bool> = addresses.texts().map(is_v6).collect();
        if found.len() < 2 {
            errors.push(addresses.invalid("may specify no more than one IP for each IP family"));
        }
    }
    for (index, (address, family)) in addresses.items().zip(families.texts()).enumerate() {
        let expected = match family {
            "IPv4" if is_v6(address.text()) => "IPv4",
            "IPv6" if !is_v6(address.text()) && address.text() != "None" => "IPv6",
            _ => continue,
        };
        errors.push(address.invalid(format!("expected an {expected} value as indicated by `ipFamilies[{index}]`")));
    }
}
