//! The subsets of Endpoints: addresses that share their ports.

use super::{can_be_reached, hostname, is_headless, ports, publishes_unready, reference};
use crate::life::workload::pods;
use crate::object::Object;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Default)]
struct Subset {
    ports: Vec<Value>,
    ready: Vec<Value>,
    unready: Vec<Value>,
}

pub(super) fn subsets(service: &Object, selected: &[Arc<Object>]) -> Vec<Value> {
    let mut subsets: Vec<Subset> = Vec::new();
    let anyhow = publishes_unready(service);
    for pod in selected.iter().filter(|pod| can_be_reached(pod) && (anyhow || !pod.is_being_deleted())) {
        let ports = ports(service, pod);
        if ports.is_empty() && !(is_headless(service) && service.list(&["spec", "ports"]).is_empty()) {
            continue;
        }
        let index = subsets.iter().position(|subset| subset.ports == ports).unwrap_or_else(|| {
            subsets.push(Subset { ports, ..Subset::default() });
            subsets.len() - 1
        });
        let addresses =
            if anyhow || pods::is_ready(pod) { &mut subsets[index].ready } else { &mut subsets[index].unready };
        addresses.push(address(service, pod));
    }
    subsets.into_iter().map(Subset::into_value).collect()
}

fn address(service: &Object, pod: &Object) -> Value {
    let mut address = json!({"ip": pod.text(&["status", "podIP"]), "targetRef": reference(pod)});
    let node = pod.text(&["spec", "nodeName"]);
    if !node.is_empty() {
        address["nodeName"] = json!(node);
    }
    if let Some(hostname) = hostname(service, pod) {
        address["hostname"] = json!(hostname);
    }
    address
}

impl Subset {
    fn into_value(self) -> Value {
        let mut subset = json!({});
        for (field, mut list) in [("addresses", self.ready), ("notReadyAddresses", self.unready), ("ports", self.ports)]
        {
            if field != "ports" {
                list.sort_by_cached_key(|address| {
                    address["ip"].as_str().and_then(|ip| ip.parse::<std::net::IpAddr>().ok())
                });
            }
            if !list.is_empty() {
                subset[field] = json!(list);
            }
        }
        subset
    }
}
