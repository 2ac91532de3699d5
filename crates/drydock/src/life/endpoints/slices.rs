//! EndpointSlices: up to a hundred endpoints each, of pods that share their ports.

use super::{can_be_reached, hostname, labels, ports, publishes_unready, reference};
use crate::kinds::Storage;
use crate::life::client::Client;
use crate::life::workload::{is_controlled_by, pods, reference_to};
use crate::object::Object;
use crate::store::Key;
use serde_json::{Value, json};
use std::sync::Arc;

/// No slice holds more.
const FULL: usize = 100;

/// What a slice says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Slice {
    ports: Vec<Value>,
    endpoints: Vec<Value>,
}

/// The slices of a Service. There is always one, if an empty one.
pub(super) fn wanted(service: &Object, selected: &[Arc<Object>]) -> Vec<Slice> {
    let mut slices: Vec<Slice> = Vec::new();
    for pod in selected.iter().filter(|pod| can_be_reached(pod)) {
        let ports = ports(service, pod);
        let open = slices.iter().position(|slice| slice.ports == ports && slice.endpoints.len() < FULL);
        let index = open.unwrap_or_else(|| {
            slices.push(Slice { ports, endpoints: Vec::new() });
            slices.len() - 1
        });
        slices[index].endpoints.push(endpoint(service, pod));
    }
    if slices.is_empty() {
        slices.push(Slice::default());
    }
    for slice in &mut slices {
        for port in &mut slice.ports {
            if port.get("name").is_none() {
                port["name"] = json!("");
            }
        }
    }
    slices
}

fn endpoint(service: &Object, pod: &Object) -> Value {
    let (serving, terminating) = (pods::is_ready(pod), pod.is_being_deleted());
    let ready = publishes_unready(service) || (serving && !terminating);
    let mut endpoint = json!({"addresses": [pod.text(&["status", "podIP"])],
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating}, "targetRef": reference(pod)});
    let node = pod.text(&["spec", "nodeName"]);
    if !node.is_empty() {
        endpoint["nodeName"] = json!(node);
    }
    if let Some(hostname) = hostname(service, pod) {
        endpoint["hostname"] = json!(hostname);
    }
    endpoint
}

fn storage() -> Storage {
    Storage::new("discovery.k8s.io", "endpointslices")
}

/// Makes the slices of a Service what they should be: those that are there first.
pub(super) fn write(client: &mut Client<'_>, service: &Object, mut wanted: Vec<Slice>) {
    let mut known = client.owned(&storage(), service);
    known.retain(|slice| is_controlled_by(slice, service) && !slice.is_being_deleted());
    let own = [
        ("endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io"),
        ("kubernetes.io/service-name", service.name()),
    ];
    let labels = labels(service, &own);
    let fill = |object: &mut Object, slice: Slice| {
        object.set(&["metadata", "labels"], labels.clone());
        object.set(&["ports"], slice.ports);
        object.set(&["endpoints"], slice.endpoints);
    };
    // A slice keeps its ports where it can.
    let mut left = Vec::new();
    for slice in known {
        let ports = slice.list(&["ports"]);
        match wanted.iter().position(|wanted| wanted.ports == ports) {
            Some(index) => {
                let wanted = wanted.remove(index);
                // It is gone meanwhile.
                let _ = client.change(&storage(), &Key::of(&slice), |object| fill(object, wanted));
            }
            None => left.push(slice),
        }
    }
    let mut wanted = wanted.into_iter();
    for slice in left {
        let _ = match wanted.next() {
            Some(wanted) => client.change(&storage(), &Key::of(&slice), |object| fill(object, wanted)).map(|_| ()),
            None => client.delete(&storage(), &Key::of(&slice)).map(|_| ()),
        };
    }
    for slice in wanted {
        let mut object = Object::default();
        object.set(&["apiVersion"], "discovery.k8s.io/v1");
        object.set(&["kind"], "EndpointSlice");
        object.set(&["metadata", "generateName"], format!("{}-", service.name()));
        object.set(&["metadata", "namespace"], service.namespace());
        object.set(&["metadata", "ownerReferences"], json!([reference_to(service)]));
        object.set(&["addressType"], "IPv4");
        fill(&mut object, slice);
        // A namespace that is going takes none.
        let _ = client.create(&storage(), object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_always_a_slice_and_none_is_overfull() {
        let service = Object::from_value(json!({"metadata": {"name": "web"}, "spec": {"clusterIP": "10.0.0.1",
            "ports": [{"port": 80, "targetPort": 8080, "protocol": "TCP"}]}}))
        .unwrap();
        assert_eq!(wanted(&service, &[]), [Slice::default()]);
        let pod = |number: usize| {
            let pod = json!({"metadata": {"name": format!("p{number}")}, "status": {"podIP": "10.1.1.1", "phase": "Running"}});
            Arc::new(Object::from_value(pod).unwrap())
        };
        let pods: Vec<Arc<Object>> = (0..250).map(pod).collect();
        let sizes: Vec<usize> = wanted(&service, &pods).iter().map(|slice| slice.endpoints.len()).collect();
        assert_eq!(sizes, [100, 100, 50]);
    }
}
