//! Services, endpoints, ingresses.

use super::{AGE, Column, NAME, column, labels, selector, text, text_or};
use crate::object::Object;
use serde_json::{Value, json};

static SERVICE: &[Column] = &[
    NAME,
    column("Type", |service, _| text(service, &["spec", "type"])),
    column("Cluster-IP", |service, _| text_or(service, &["spec", "clusterIP"], "<none>")),
    column("External-IP", |service, _| json!(external_address(service))),
    column("Port(s)", |service, _| json!(service_ports(service))),
    AGE,
    column("Selector", |service, _| json!(labels(service.at(&["spec", "selector"])))).wide(),
];

static ENDPOINTS: &[Column] = &[NAME, column("Endpoints", |object, _| json!(endpoints(object))), AGE];

static ENDPOINT_SLICE: &[Column] = &[
    NAME,
    column("AddressType", |object, _| text(object, &["addressType"])),
    column("Ports", |object, _| {
        json!(limited(object.list(&["ports"]).iter().map(|port| shown(&port["port"])).collect()))
    }),
    column("Endpoints", |object, _| {
        let addresses = object
            .list(&["endpoints"])
            .iter()
            .flat_map(|endpoint| endpoint["addresses"].as_array().into_iter().flatten());
        json!(limited(addresses.map(shown).collect()))
    }),
    AGE,
];

static INGRESS: &[Column] = &[
    NAME,
    column("Class", |object, _| text_or(object, &["spec", "ingressClassName"], "<none>")),
    column("Hosts", |object, _| json!(hosts(object))),
    column("Address", |object, _| json!(addresses(object.list(&["status", "loadBalancer", "ingress"])).join(","))),
    column("Ports", |object, _| json!(if object.list(&["spec", "tls"]).is_empty() { "80" } else { "80, 443" })),
    AGE,
];

static INGRESS_CLASS: &[Column] = &[
    NAME,
    column("Controller", |object, _| text(object, &["spec", "controller"])),
    column("Parameters", |object, _| {
        let parameter = |field| object.text(&["spec", "parameters", field]);
        json!(match (parameter("apiGroup"), parameter("kind"), parameter("name")) {
            (_, "", _) => "<none>".to_owned(),
            ("", kind, name) => format!("{kind}/{name}"),
            (group, kind, name) => format!("{kind}.{group}/{name}"),
        })
    }),
    AGE,
];

static NETWORK_POLICY: &[Column] =
    &[NAME, column("Pod-Selector", |object, _| json!(selector(object.at(&["spec", "podSelector"])))), AGE];

static IP_ADDRESS: &[Column] = &[
    NAME,
    column("ParentRef", |object, _| {
        let parent = |field| object.text(&["spec", "parentRef", field]);
        json!(format!("{}/{}/{}", parent("resource"), parent("namespace"), parent("name")))
    }),
];

static SERVICE_CIDR: &[Column] = &[
    NAME,
    column("CIDRs", |object, _| json!(object.list(&["spec", "cidrs"]).iter().map(shown).collect::<Vec<_>>().join(","))),
    AGE,
];

pub(super) fn of(plural: &str) -> Option<&'static [Column]> {
    Some(match plural {
        "services" => SERVICE,
        "endpoints" => ENDPOINTS,
        "endpointslices" => ENDPOINT_SLICE,
        "ingresses" => INGRESS,
        "ingressclasses" => INGRESS_CLASS,
        "networkpolicies" => NETWORK_POLICY,
        "ipaddresses" => IP_ADDRESS,
        "servicecidrs" => SERVICE_CIDR,
        _ => return None,
    })
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Three of them, and how many more there are.
fn limited(items: Vec<String>) -> String {
    match items.len() {
        0 => "<unset>".to_owned(),
        1..=3 => items.join(","),
        more => format!("{} + {} more...", items[..3].join(","), more - 3),
    }
}

fn addresses(ingress: &[Value]) -> Vec<String> {
    let address = |item: &Value| item.get("ip").or_else(|| item.get("hostname")).map(shown);
    ingress.iter().filter_map(address).collect()
}

fn external_address(service: &Object) -> String {
    let external: Vec<String> = service.list(&["spec", "externalIPs"]).iter().map(shown).collect();
    match service.text(&["spec", "type"]) {
        "LoadBalancer" => {
            let mut balanced = addresses(service.list(&["status", "loadBalancer", "ingress"]));
            balanced.extend(external);
            if balanced.is_empty() { "<pending>".to_owned() } else { balanced.join(",") }
        }
        "ExternalName" => service.text(&["spec", "externalName"]).to_owned(),
        _ if external.is_empty() => "<none>".to_owned(),
        _ => external.join(","),
    }
}

fn service_ports(service: &Object) -> String {
    let ports: Vec<String> = service
        .list(&["spec", "ports"])
        .iter()
        .map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            match port["nodePort"].as_i64().unwrap_or_default() {
                0 => format!("{}/{protocol}", port["port"]),
                node => format!("{}:{node}/{protocol}", port["port"]),
            }
        })
        .collect();
    if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") }
}

fn endpoints(object: &Object) -> String {
    let mut all = Vec::new();
    for subset in object.list(&["subsets"]) {
        let addresses = subset["addresses"].as_array().into_iter().flatten();
        for address in addresses {
            let ip = shown(&address["ip"]);
            match subset["ports"].as_array().filter(|ports| !ports.is_empty()) {
                None => all.push(ip),
                Some(ports) => all.extend(ports.iter().map(|port| format!("{ip}:{}", port["port"]))),
            }
        }
    }
    if all.is_empty() { "<none>".to_owned() } else { limited(all) }
}

fn hosts(object: &Object) -> String {
    let hosts: Vec<&str> = object.list(&["spec", "rules"]).iter().filter_map(|rule| rule["host"].as_str()).collect();
    if hosts.is_empty() { "*".to_owned() } else { hosts.join(",") }
}
