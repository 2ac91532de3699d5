//! NetworkPolicies, IPAddresses and ServiceCIDRs.

use super::fill::{each, is_empty, make, or};
use super::{Generation, NameRule, PLAIN, Rules, WITH_STATUS, keep_all_but_bare_status};
use crate::field::FieldError;
use crate::object::Object;
use crate::validate::{At, Errors, IMMUTABLE, format, ip, printed, selector};
use serde_json::{Value, json};
use std::net::IpAddr;

pub(crate) static NETWORK_POLICY: Rules = Rules {
    generation: Generation::WithSpec,
    default: |policy| {
        let spec = make(policy.fields_mut(), "spec");
        for list in ["ingress", "egress"] {
            each(spec, list, |rule| each(rule, "ports", |port| or(port, "protocol", "TCP")));
        }
        if is_empty(spec, "policyTypes") {
            let types = if is_empty(spec, "egress") { json!(["Ingress"]) } else { json!(["Ingress", "Egress"]) };
            spec.insert("policyTypes".to_owned(), types);
        }
    },
    check: check_policy,
    check_update: |new, _| check_policy(new),
    ..PLAIN
};

pub(crate) static ADDRESS: Rules = Rules {
    name: NameRule::Address,
    check: check_address,
    check_update: |new, old| {
        let mut errors = check_address(new);
        let parent = At::top(new, "spec").field("parentRef");
        if parent.value != At::top(old, "spec").field("parentRef").value {
            let shown = printed("networking.ParentReference", parent.value);
            errors.push(FieldError::invalid_printed(&parent.path, shown, IMMUTABLE));
        }
        errors
    },
    ..PLAIN
};

fn check_address(address: &Object) -> Errors {
    let mut errors = Vec::new();
    let parent = At::top(address, "spec").field("parentRef");
    if !parent.is_set() {
        errors.push(parent.required(""));
        return errors;
    }
    let group = parent.field("group");
    if !group.text().is_empty() {
        errors.extend(group.all_invalid(format::dns_subdomain(group.text())));
    }
    for field in ["resource", "name", "namespace"] {
        let part = parent.field(field);
        if !part.text().is_empty() {
            errors.extend(part.all_invalid(format::path_segment(part.text(), false)));
        } else if field != "namespace" {
            errors.push(part.required(""));
        }
    }
    errors
}

pub(crate) static SERVICE_CIDR: Rules = Rules {
    prepare_create: |_| {},
    prepare_update: |_, _| {},
    prepare_status: keep_all_but_bare_status,
    check: |object| check_ranges(&At::top(object, "spec").field("cidrs")),
    check_update: |new, old| {
        let ranges = At::top(new, "spec").field("cidrs");
        let before = At::top(old, "spec").field("cidrs");
        let mut errors = Vec::new();
        if ranges.len() == before.len() {
            for (range, before) in ranges.items().zip(before.items()) {
                range.check_unchanged(&before, &mut errors);
            }
        } else if before.len() == 1 && ranges.len() == 2 {
            if let Some((range, before)) = ranges.items().zip(before.items()).next() {
                range.check_unchanged(&before, &mut errors);
            }
            errors.extend(check_ranges(&ranges));
        } else {
            errors.push(ranges.invalid(IMMUTABLE));
        }
        errors
    },
    ..WITH_STATUS
};

fn check_ranges(ranges: &At<'_>) -> Errors {
    if ranges.is_empty() {
        return vec![ranges.required("at least one CIDR required")];
    }
    if ranges.len() > 2 {
        let shown = format!("{{\"CIDRs\":{}}}", ranges.value);
        return vec![FieldError::invalid_printed(&ranges.path, shown, "may only hold up to 2 values")];
    }
    let mut errors = Vec::new();
    for range in ranges.items() {
        errors.extend(range.all_invalid(ip::strict_range(range.text())));
    }
    let families: Vec<bool> =
        ranges.texts().filter_map(ip::parse_range).map(|(address, _)| address.is_ipv6()).collect();
    if let [first, second] = families[..]
        && first == second
    {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(ranges.invalid(why));
    }
    errors
}

fn check_policy(policy: &Object) -> Errors {
    let mut errors = Vec::new();
    let spec = At::top(policy, "spec");
    selector::check(&spec.field("podSelector"), &mut errors);
    for (list, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.field(list).items() {
            for port in rule.field("ports").items() {
                check_port(&port, &mut errors);
            }
            for peer in rule.field(peers).items() {
                check_peer(&peer, &mut errors);
            }
        }
    }
    let types = spec.field("policyTypes");
    if types.len() > 2 {
        errors.push(types.invalid("may not specify more than two policyTypes"));
        return errors;
    }
    for kind in types.items() {
        if !matches!(kind.text(), "Ingress" | "Egress") {
            errors.push(kind.not_supported(&["Ingress", "Egress"]));
        }
    }
    errors
}

fn check_port(port: &At<'_>, errors: &mut Errors) {
    port.field("protocol").check_optional(&["TCP", "UDP", "SCTP"], errors);
    let (number, end) = (port.field("port"), port.field("endPort"));
    match number.value {
        Value::Null => {
            if end.is_set() {
                errors.push(end.invalid("may not be specified when `port` is not specified"));
            }
        }
        Value::String(name) => {
            if end.is_set() {
                errors.push(end.invalid("may not be specified when `port` is non-numeric"));
            }
            errors.extend(number.all_invalid(format::port_name(name)));
        }
        other => {
            let first = other.as_i64().unwrap_or_default();
            errors.extend(number.all_invalid(format::port_number(first)));
            if let Some(last) = end.number() {
                if last < first {
                    let why = "must be greater than or equal to `port`";
                    errors.push(FieldError::invalid(&end.path, first, why));
                }
                errors.extend(end.all_invalid(format::port_number(last)));
            }
        }
    }
}

fn check_peer(peer: &At<'_>, errors: &mut Errors) {
    let mut found = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if peer.has(field) {
            found += 1;
            selector::check(&peer.field(field), errors);
        }
    }
    let block = peer.field("ipBlock");
    if block.is_set() {
        found += 1;
        check_block(&block, errors);
    }
    if found == 0 {
        errors.push(peer.required("must specify a peer"));
    } else if found > 1 && block.is_set() {
        errors.push(peer.forbidden("may not specify both ipBlock and another peer"));
    }
}

fn check_block(block: &At<'_>, errors: &mut Errors) {
    let range = block.field("cidr");
    if range.text().is_empty() {
        errors.push(range.required(""));
        return;
    }
    let Some(outer) = ip::parse_range(range.text()) else {
        errors.extend(range.all_invalid(ip::range(range.text())));
        return;
    };
    for except in block.field("except").items() {
        match ip::parse_range(except.text()) {
            None => errors.extend(except.all_invalid(ip::range(except.text()))),
            Some(inner) if !is_within(inner, outer) => {
                errors.push(except.invalid("must be a strict subset of `cidr`"));
            }
            Some(_) => {}
        }
    }
}

/// Whether a range is a part of another, and not all of it.
fn is_within(inner: (IpAddr, u8), outer: (IpAddr, u8)) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    let ((inner_bits, inner_width), (outer_bits, outer_width)) = (bits(inner.0), bits(outer.0));
    let mask = if outer.1 == 0 { 0 } else { u128::MAX << (128 - u32::from(outer.1.min(128))) };
    inner_width == outer_width && inner.1 > outer.1 && inner_bits & mask == outer_bits & mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_lie_in_ranges() {
        let range = |text: &str| ip::parse_range(text).unwrap();
        for (inner, outer, expected) in [
            ("10.1.0.0/16", "10.0.0.0/8", true),
            ("10.0.0.0/8", "10.0.0.0/8", false),
            ("11.0.0.0/16", "10.0.0.0/8", false),
            ("10.0.0.0/16", "0.0.0.0/0", true),
            ("2001:db8:1::/48", "2001:db8::/32", true),
            ("2001:db8::/33", "10.0.0.0/8", false),
        ] {
            assert_eq!(is_within(range(inner), range(outer)), expected, "{inner} in {outer}");
        }
    }
}
