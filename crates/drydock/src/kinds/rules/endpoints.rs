//! Endpoints and EndpointSlices.

use super::fill::{each, or, or_text};
use super::service::{PROTOCOLS, check_endpoint};
use super::{Generation, NameRule, PLAIN, Rules};
use crate::field::FieldError;
use crate::object::Object;
use crate::validate::{self, At, Errors, format, ip};
use std::collections::BTreeSet;

pub(crate) static ENDPOINTS: Rules = Rules {
    default: |endpoints| {
        each(endpoints.fields_mut(), "subsets", |subset| {
            each(subset, "ports", |port| or_text(port, "protocol", "TCP"));
        });
    },
    check: |endpoints| check_subsets(&At::top(endpoints, "subsets")),
    check_update: |new, old| {
        let mut errors = validate::metadata(new, NameRule::Subdomain, true);
        if new.get("subsets") != old.get("subsets") {
            errors.extend(check_subsets(&At::top(new, "subsets")));
        }
        errors
    },
    warnings: |_, _| vec!["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned()],
    create_on_update: true,
    ..PLAIN
};

pub(crate) static ENDPOINT_SLICE: Rules = Rules {
    generation: Generation::WithContentOrLabels,
    default: |slice| {
        each(slice.fields_mut(), "ports", |port| {
            or(port, "name", "");
            or(port, "protocol", "TCP");
        });
    },
    prepare_create: drop_topology,
    prepare_update: |new, _| drop_topology(new),
    check: check_slice,
    check_update: |new, old| {
        let mut errors = validate::metadata(new, NameRule::Subdomain, true);
        errors.extend(check_slice(new));
        At::top(new, "addressType").check_text_unchanged(&At::top(old, "addressType"), &mut errors);
        errors
    },
    warnings: |slice, old| {
        if old.is_none() && slice.text(&["addressType"]) == "FQDN" {
            return vec!["spec.addressType: FQDN endpoints are deprecated".to_owned()];
        }
        Vec::new()
    },
    ..PLAIN
};

/// An old way to say where an endpoint is.
fn drop_topology(slice: &mut Object) {
    each(slice.fields_mut(), "endpoints", |endpoint| {
        endpoint.remove("deprecatedTopology");
    });
}

fn check_subsets(subsets: &At<'_>) -> Errors {
    let mut errors = Vec::new();
    for subset in subsets.items() {
        let lists = ["addresses", "notReadyAddresses"];
        if lists.iter().all(|list| subset.field(list).is_empty()) {
            errors.push(subset.required("must specify `addresses` or `notReadyAddresses`"));
        }
        for list in lists {
            for address in subset.field(list).items() {
                check_address(&address, &mut errors);
            }
        }
        let ports = subset.field("ports");
        for port in ports.items() {
            check_port(&port, ports.len() > 1, &mut errors);
        }
    }
    errors
}

fn check_address(address: &At<'_>, errors: &mut Errors) {
    let ip = address.field("ip");
    errors.extend(ip.all_invalid(ip::address(ip.text())));
    let host = address.field("hostname");
    if !host.text().is_empty() {
        errors.extend(host.all_invalid(format::dns_label(host.text())));
    }
    let node = address.field("nodeName");
    if node.is_set() {
        errors.extend(node.all_invalid(format::dns_subdomain(node.text())));
    }
    check_endpoint(&ip, errors);
}

fn check_port(port: &At<'_>, needs_name: bool, errors: &mut Errors) {
    let name = port.field("name");
    if !name.text().is_empty() {
        errors.extend(name.all_invalid(format::dns_label(name.text())));
    } else if needs_name {
        errors.push(name.required(""));
    }
    let number = port.field("port").number().unwrap_or_default();
    let messages = format::port_number(number);
    errors.extend(messages.into_iter().map(|why| FieldError::invalid(&port.path.child("port"), number, why)));
    port.field("protocol").check_one_of(&PROTOCOLS, errors);
    let protocol = port.field("appProtocol");
    if protocol.is_set() {
        errors.extend(protocol.all_invalid(format::qualified_name(protocol.text())));
    }
}

fn check_slice(slice: &Object) -> Errors {
    let mut errors = Vec::new();
    let kind = At::top(slice, "addressType");
    kind.check_one_of(&["FQDN", "IPv4", "IPv6"], &mut errors);
    let mut names = BTreeSet::new();
    for port in At::top(slice, "ports").items() {
        let name = port.field("name");
        if !name.text().is_empty() {
            errors.extend(name.all_invalid(format::dns_label(name.text())));
        }
        if !names.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
        let protocol = port.field("protocol");
        if protocol.is_set() {
            protocol.check_optional(&PROTOCOLS, &mut errors);
        } else {
            errors.push(protocol.required(""));
        }
        let protocol = port.field("appProtocol");
        if protocol.is_set() {
            errors.extend(protocol.all_invalid(format::qualified_name(protocol.text())));
        }
    }
    let endpoints = At::top(slice, "endpoints");
    if endpoints.len() > 1000 {
        errors.push(FieldError::too_many(&endpoints.path, endpoints.len(), 1000));
        return errors;
    }
    for endpoint in endpoints.items() {
        check_slice_endpoint(&endpoint, kind.text(), &mut errors);
    }
    errors
}

fn check_slice_endpoint(endpoint: &At<'_>, kind: &str, errors: &mut Errors) {
    let addresses = endpoint.field("addresses");
    if addresses.is_empty() {
        errors.push(addresses.required("must contain at least 1 address"));
    } else if addresses.len() > 100 {
        errors.push(FieldError::too_many(&addresses.path, addresses.len(), 100));
    }
    for address in addresses.items() {
        match kind {
            "IPv4" | "IPv6" => check_slice_address(&addresses, &address, kind, errors),
            "FQDN" => check_domain(&address, errors),
            _ => {}
        }
    }
    let node = endpoint.field("nodeName");
    if node.is_set() {
        errors.extend(node.all_invalid(format::dns_subdomain(node.text())));
    }
    let host = endpoint.field("hostname");
    if host.is_set() {
        errors.extend(host.all_invalid(format::dns_label(host.text())));
    }
    for (list, check) in
        [("forZones", format::label_value as fn(&str) -> Vec<String>), ("forNodes", format::dns_subdomain)]
    {
        let hints = endpoint.below(&["hints", list]);
        if hints.len() > 8 {
            errors.push(FieldError::too_many(&hints.path, hints.len(), 8));
            return;
        }
        let mut seen = BTreeSet::new();
        for hint in hints.items() {
            let name = hint.field("name");
            if !seen.insert(name.text()) {
                errors.push(name.duplicate());
            }
            errors.extend(name.all_invalid(check(name.text())));
        }
    }
}

fn check_slice_address(addresses: &At<'_>, address: &At<'_>, kind: &str, errors: &mut Errors) {
    let check = if kind == "IPv6" { ip::strict_address } else { ip::address };
    let messages = check(address.text());
    if !messages.is_empty() {
        errors.extend(address.all_invalid(messages));
        return;
    }
    if ip::parse(address.text()).is_some_and(|parsed| parsed.is_ipv4() != (kind == "IPv4")) {
        errors.push(address.called(addresses.path.clone()).invalid(format!("must be an {kind} address")));
    }
    check_endpoint(address, errors);
}

fn check_domain(address: &At<'_>, errors: &mut Errors) {
    let name = address.text().strip_suffix('.').unwrap_or(address.text());
    let messages = format::dns_subdomain(name);
    if address.text().is_empty() {
        errors.push(address.required(""));
    } else if !messages.is_empty() {
        errors.push(FieldError::invalid(&address.path, name, messages.join(",")));
    } else if !name.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(&address.path, name, why));
    }
}
