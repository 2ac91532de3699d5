//! Services (`pkg/apis/core/validation/validation.go`, `pkg/registry/core/service`).
//!
//! Addresses and node ports are allocated before an object is judged; that is admission's business. What an update
//! leaves out of them is carried over here.

pub(crate) mod address;
pub(crate) mod change;

use super::fill::{each, make, or, or_text, text};
use super::pod::probe::check_port;
use super::{NameRule, Rules, WITH_STATUS, clear_status};
use crate::field::FieldError;
use crate::object::Object;
use crate::validate::{At, Errors, format, ip, labels, printed};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Three hours.
const AFFINITY_SECONDS: i64 = 10_800;
const LONGEST_AFFINITY_SECONDS: i64 = 86_400;
pub(super) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";

pub(crate) static SERVICE: Rules = Rules {
    name: NameRule::ServiceLabel,
    default,
    prepare_create: |service| {
        address::mirror_new(service);
        drop_unused(service);
        clear_status(service);
    },
    prepare_update: change::prepare,
    check: |service| check(service, None),
    check_update: |new, old| {
        let mut errors = change::check(new, old);
        errors.extend(check(new, Some(old)));
        errors
    },
    check_status,
    warnings: |service, _| warnings(service),
    create_on_update: true,
    ..WITH_STATUS
};

fn default(service: &mut Object) {
    let spec = make(service.fields_mut(), "spec");
    or_text(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let config = spec.get("sessionAffinityConfig").and_then(|config| config.get("clientIP"));
            if config.and_then(|config| config.get("timeoutSeconds")).is_none_or(Value::is_null) {
                let config = json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}});
                spec.insert("sessionAffinityConfig".to_owned(), config);
            }
        }
        _ => {}
    }
    or_text(spec, "type", "ClusterIP");
    each(spec, "ports", |port| {
        or_text(port, "protocol", "TCP");
        let target = port.get("targetPort");
        if target.is_none_or(|target| target.is_null() || target == &json!(0) || target == &json!("")) {
            let number = port.get("port").cloned().unwrap_or(json!(0));
            port.insert("targetPort".to_owned(), number);
        }
    });
    let has_external_addresses = !super::fill::is_empty(spec, "externalIPs");
    let kind = text(spec, "type").to_owned();
    if is_exposed(&kind, has_external_addresses) {
        or_text(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        or(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        or(spec, "allocateLoadBalancerNodePorts", true);
        if let Some(balancer) = service.fields_mut().get_mut("status").and_then(|status| status.get_mut("loadBalancer"))
            && let Some(balancer) = balancer.as_object_mut()
        {
            each(balancer, "ingress", |ingress| {
                if !text(ingress, "ip").is_empty() {
                    or(ingress, "ipMode", "VIP");
                }
            });
        }
    }
}

/// A name outside has no traffic inside.
fn drop_unused(service: &mut Object) {
    if service.text(&["spec", "type"]) == "ExternalName" {
        service.remove(&["spec", "internalTrafficPolicy"]);
    }
}

/// Whether a service can be reached from outside the cluster.
fn is_exposed(kind: &str, has_external_addresses: bool) -> bool {
    matches!(kind, "LoadBalancer" | "NodePort") || (kind == "ClusterIP" && has_external_addresses)
}

fn is_headless(spec: &At<'_>) -> bool {
    let addresses = spec.field("clusterIPs");
    addresses.len() == 1 && addresses.texts().next() == Some("None")
}

fn needs_health_check(spec: &At<'_>) -> bool {
    spec.text_of("type") == "LoadBalancer" && spec.text_of("externalTrafficPolicy") == "Local"
}

fn check(service: &Object, old: Option<&Object>) -> Errors {
    let mut errors = Vec::new();
    let spec = At::top(service, "spec");
    if let (Some(mode), Some(hints)) = (service.annotation(TOPOLOGY_MODE), service.annotation(TOPOLOGY_HINTS))
        && mode != hints
    {
        let path = At::top(service, "metadata").field("annotations").path.key(TOPOLOGY_MODE);
        let why = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
        errors.push(FieldError::invalid(&path, mode, why));
    }
    let ports = spec.field("ports");
    if ports.is_empty() && !is_headless(&spec) && spec.text_of("type") != "ExternalName" {
        errors.push(ports.required(""));
    }
    check_type(&spec, &mut errors);
    let mut names = BTreeSet::new();
    for port in ports.items() {
        check_service_port(&port, ports.len() > 1, &mut names, &mut errors);
    }
    labels(&spec.field("selector"), &mut errors);
    check_affinity(&spec, &mut errors);
    address::check(&spec, &mut errors);
    for address in spec.field("externalIPs").items() {
        let messages = ip::address(address.text());
        if messages.is_empty() {
            check_endpoint(&address, &mut errors);
        }
        errors.extend(address.all_invalid(messages));
    }
    spec.field("type").check_one_of(&["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], &mut errors);
    check_ports(&spec, &mut errors);
    check_balancer(service, &spec, old, &mut errors);
    check_traffic(&spec, &mut errors);
    errors
}

fn check_type(spec: &At<'_>, errors: &mut Errors) {
    let kind = spec.text_of("type");
    match kind {
        "LoadBalancer" | "NodePort" if is_headless(spec) => {
            let path = spec.path.child("clusterIPs").index(0);
            errors.push(FieldError::invalid(&path, "None", format!("may not be set to 'None' for {kind} services")));
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if !spec.field(field).is_empty() {
                    errors.push(spec.field(field).forbidden("may not be set for ExternalName services"));
                }
            }
            let name = spec.field("externalName");
            let host = name.text().strip_suffix('.').unwrap_or(name.text());
            if host.is_empty() {
                errors.push(name.required(""));
            } else {
                errors.extend(crate::validate::all_invalid(&name.path, host, format::dns_subdomain(host)));
            }
        }
        _ => {}
    }
}

fn check_service_port<'a>(port: &At<'a>, needs_name: bool, names: &mut BTreeSet<&'a str>, errors: &mut Errors) {
    let name = port.field("name");
    if needs_name && name.text().is_empty() {
        errors.push(name.required(""));
    } else if !name.text().is_empty() {
        errors.extend(name.all_invalid(format::dns_label(name.text())));
        if !names.insert(name.text()) {
            errors.push(name.duplicate());
        }
    }
    let number = port.field("port").number().unwrap_or_default();
    let messages = format::port_number(number);
    errors.extend(messages.into_iter().map(|why| FieldError::invalid(&port.path.child("port"), number, why)));
    port.field("protocol").check_one_of(&PROTOCOLS, errors);
    check_port(&port.field("targetPort"), errors);
    let protocol = port.field("appProtocol");
    if protocol.is_set() {
        errors.extend(protocol.all_invalid(format::qualified_name(protocol.text())));
    }
}

fn check_affinity(spec: &At<'_>, errors: &mut Errors) {
    let (affinity, config) = (spec.field("sessionAffinity"), spec.field("sessionAffinityConfig"));
    affinity.check_one_of(&["ClientIP", "None"], errors);
    match affinity.text() {
        "ClientIP" => {
            let timeout = config.below(&["clientIP", "timeoutSeconds"]);
            if timeout.number().is_some_and(|seconds| seconds <= 0 || seconds > LONGEST_AFFINITY_SECONDS) {
                let why = format!("must be greater than 0 and less than {LONGEST_AFFINITY_SECONDS}");
                errors.push(timeout.invalid(why));
            }
        }
        "None" if config.is_set() => {
            errors.push(config.forbidden("must not be set when session affinity is None"));
        }
        _ => {}
    }
}

/// An address that traffic can go to.
pub(super) fn check_endpoint(address: &At<'_>, errors: &mut Errors) {
    let Some(parsed) = ip::parse(address.text()) else {
        errors.extend(address.all_invalid(vec!["must be a valid IP address".to_owned()]));
        return;
    };
    let (is_local, is_local_multicast) = match parsed {
        std::net::IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        std::net::IpAddr::V6(v6) => (v6.is_unicast_link_local(), v6.segments()[0] & 0xff0f == 0xff02),
    };
    if parsed.is_unspecified() {
        errors.push(address.invalid(format!("may not be unspecified ({})", address.text())));
    }
    if parsed.is_loopback() {
        errors.push(address.invalid("may not be in the loopback range (127.0.0.0/8, ::1/128)"));
    }
    if is_local {
        errors.push(address.invalid("may not be in the link-local range (169.254.0.0/16, fe80::/10)"));
    }
    if is_local_multicast {
        errors.push(address.invalid("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"));
    }
}

fn check_ports(spec: &At<'_>, errors: &mut Errors) {
    let ports = spec.field("ports");
    let node_port = |port: &At<'_>| port.field("nodePort").number().filter(|number| *number != 0);
    if spec.text_of("type") == "ClusterIP" {
        for port in ports.items().filter(|port| node_port(port).is_some()) {
            errors.push(port.field("nodePort").forbidden("may not be used when `type` is 'ClusterIP'"));
        }
    }
    let mut taken = BTreeSet::new();
    for port in ports.items() {
        if let Some(number) = node_port(&port)
            && !taken.insert((port.text_of("protocol"), number))
        {
            errors.push(port.field("nodePort").duplicate());
        }
    }
    let mut taken = BTreeSet::new();
    for port in ports.items() {
        let (protocol, number) = (port.text_of("protocol"), port.field("port").number().unwrap_or_default());
        if !taken.insert((protocol, number)) {
            let shown = printed("core.ServicePort", &json!({"protocol": protocol, "port": number}));
            errors.push(FieldError::duplicate(&port.path, "").showing(shown));
        }
    }
}

fn check_balancer(service: &Object, spec: &At<'_>, old: Option<&Object>, errors: &mut Errors) {
    let is_balancer = spec.text_of("type") == "LoadBalancer";
    let why = "may only be used when `type` is 'LoadBalancer'";
    let ranges = spec.field("loadBalancerSourceRanges").called(spec.path.child("LoadBalancerSourceRanges"));
    if !ranges.is_empty() {
        if !is_balancer {
            errors.push(ranges.forbidden(why));
        }
        for range in ranges.items() {
            let text = range.text().trim();
            errors.extend(crate::validate::all_invalid(&range.path, text, ip::range(text)));
        }
    } else if let Some(annotation) = service.annotation(SOURCE_RANGES) {
        let path = At::top(service, "metadata").field("annotations").path.key(SOURCE_RANGES);
        if !is_balancer {
            errors.push(FieldError::forbidden(&path, why));
        }
        let is_new = old.is_none_or(|old| old.annotation(SOURCE_RANGES) != Some(annotation));
        for range in annotation.trim().split(',').filter(|_| is_new && !annotation.trim().is_empty()) {
            errors.extend(crate::validate::all_invalid(&path, range.trim(), ip::range(range.trim())));
        }
    }
    if spec.has("allocateLoadBalancerNodePorts") && !is_balancer {
        errors.push(spec.field("allocateLoadBalancerNodePorts").forbidden(why));
    }
    check_class(spec, errors);
}

/// The class of a load balancer.
fn check_class(spec: &At<'_>, errors: &mut Errors) {
    let class = spec.field("loadBalancerClass");
    if class.is_set() {
        if spec.text_of("type") == "LoadBalancer" {
            errors.extend(class.all_invalid(format::qualified_name(class.text())));
        } else {
            errors.push(class.forbidden("may only be used when `type` is 'LoadBalancer'"));
        }
    }
}

fn check_traffic(spec: &At<'_>, errors: &mut Errors) {
    let kind = spec.text_of("type");
    let external = spec.field("externalTrafficPolicy");
    if is_exposed(kind, !spec.field("externalIPs").is_empty()) {
        external.check_one_of(&["Cluster", "Local"], errors);
    } else if !external.text().is_empty() {
        errors.push(external.invalid("may only be set for externally-accessible services"));
    }
    let health = spec.field("healthCheckNodePort");
    let number = health.number().unwrap_or_default();
    if !needs_health_check(spec) {
        if number != 0 {
            let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.push(health.invalid(why));
        }
    } else if number == 0 {
        errors.push(health.required(""));
    } else {
        errors.extend(health.all_invalid(format::port_number(number)));
    }
    let internal = spec.field("internalTrafficPolicy");
    if !internal.is_set() && matches!(kind, "NodePort" | "LoadBalancer" | "ClusterIP") {
        errors.push(internal.required(""));
    }
    internal.check_optional(&["Cluster", "Local"], errors);
    spec.field("trafficDistribution").check_optional(&["PreferClose", "PreferSameZone", "PreferSameNode"], errors);
}

fn check_status(new: &Object, _old: &Object) -> Errors {
    let mut errors = Vec::new();
    let ingress = At::top(new, "status").below(&["loadBalancer", "ingress"]);
    if new.text(&["spec", "type"]) != "LoadBalancer" && !ingress.is_empty() {
        errors.push(ingress.forbidden("may only be used when `spec.type` is 'LoadBalancer'"));
        return errors;
    }
    for point in ingress.items() {
        let (address, mode, host) = (point.field("ip"), point.field("ipMode"), point.field("hostname"));
        if !address.text().is_empty() {
            errors.extend(address.all_invalid(ip::address(address.text())));
        }
        match (address.text().is_empty(), mode.is_set()) {
            (false, false) => errors.push(mode.required("must be specified when `ip` is set")),
            (true, true) => errors.push(mode.forbidden("may not be specified when `ip` is not set")),
            _ => mode.check_optional(&["Proxy", "VIP"], &mut errors),
        }
        if !host.text().is_empty() {
            errors.extend(host.all_invalid(format::dns_subdomain(host.text())));
            if ip::parse(host.text()).is_some() {
                errors.push(host.invalid("must be a DNS name, not an IP address"));
            }
        }
    }
    errors
}

fn warnings(service: &Object) -> Vec<String> {
    let spec = At::top(service, "spec");
    let mut warnings = Vec::new();
    if service.annotation(TOPOLOGY_HINTS).is_some() {
        warnings.push(format!("annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"));
    }
    let kind = spec.text_of("type");
    let mut warn = |applies: bool, text: &str| {
        if applies {
            warnings.push(text.to_owned());
        }
    };
    let headless = kind == "ClusterIP" && spec.text_of("clusterIP") == "None";
    let has_external = !spec.field("externalIPs").is_empty();
    warn(
        headless && !spec.text_of("loadBalancerIP").is_empty(),
        "spec.loadBalancerIP is ignored for headless services",
    );
    warn(headless && has_external, "spec.externalIPs is ignored for headless services");
    warn(
        headless && spec.text_of("sessionAffinity") != "None",
        "spec.SessionAffinity is ignored for headless services",
    );
    warn(kind == "ExternalName" && has_external, "spec.externalIPs is ignored when spec.type is \"ExternalName\"");
    warn(
        kind != "ExternalName" && !spec.text_of("externalName").is_empty(),
        "spec.externalName is ignored when spec.type is not \"ExternalName\"",
    );
    warnings
}
