//! Where Services lead: Endpoints and EndpointSlices of the pods that they select.

mod slices;
mod subsets;

use super::client::Client;
use super::reconciler::Reconciler;
use super::workload::selection::Selection;
use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::object::{Object, strings};
use crate::selector::LabelSelector;
use crate::store::{Change, Key};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Services whose endpoints have to be looked at.
#[derive(Debug)]
pub(crate) struct Endpoints {
    selection: Selection,
}

impl Endpoints {
    pub(crate) fn new() -> Self {
        Self { selection: Selection::new(services(), selector) }
    }
}

impl Reconciler for Endpoints {
    fn concerned(&mut self, storage: &Storage, change: &Change, cluster: &mut Cluster) -> Vec<Key> {
        self.selection.observe(storage, change, cluster)
    }

    fn reconcile(&mut self, cluster: &mut Cluster, key: &Key) -> Option<Timestamp> {
        let Some(service) = cluster.store.get(&services(), key).cloned() else {
            // Slices have an owner; these do not.
            let mut client = Client::of_controller(cluster, "endpoint-controller");
            let _ = client.delete(&Storage::core("endpoints"), key);
            return None;
        };
        if selector(&service).is_none() || service.is_being_deleted() {
            return None;
        }
        let pods = self.selection.pods(cluster, key);
        let mut client = Client::of_controller(cluster, "endpoint-controller");
        write_endpoints(&mut client, &service, subsets::subsets(&service, &pods));
        let mut client = Client::of_controller(client.cluster, "endpoint-slice-controller");
        slices::write(&mut client, &service, slices::wanted(&service, &pods));
        None
    }
}

fn services() -> Storage {
    Storage::core("services")
}

/// What a Service selects. One without a selector, or for a name outside, leads nowhere by itself.
fn selector(service: &Object) -> Option<LabelSelector> {
    let selector = service.at(&["spec", "selector"]).filter(|_| service.text(&["spec", "type"]) != "ExternalName")?;
    LabelSelector::from_object(&json!({"matchLabels": selector})).filter(|selector| !selector.is_empty())
}

fn is_headless(service: &Object) -> bool {
    matches!(service.text(&["spec", "clusterIP"]), "None" | "")
}

fn publishes_unready(service: &Object) -> bool {
    service.at(&["spec", "publishNotReadyAddresses"]) == Some(&json!(true))
}

/// The labels of a Service, with others of the controller's.
fn labels(service: &Object, own: &[(&str, &str)]) -> Map<String, Value> {
    let mut labels: Map<String, Value> =
        strings(service.at(&["metadata", "labels"])).map(|(key, value)| (key.to_owned(), json!(value))).collect();
    labels.remove("service.kubernetes.io/headless");
    if is_headless(service) {
        labels.insert("service.kubernetes.io/headless".to_owned(), json!(""));
    }
    labels.extend(own.iter().map(|(key, value)| ((*key).to_owned(), json!(value))));
    labels
}

/// The ports of a pod that a Service leads to.
fn ports(service: &Object, pod: &Object) -> Vec<Value> {
    let ports = service.list(&["spec", "ports"]).iter();
    ports
        .filter_map(|port| {
            let mut resolved = json!({"port": target(port, pod)?, "protocol": port["protocol"]});
            for field in ["name", "appProtocol"] {
                if let Some(value) = port.get(field) {
                    resolved[field] = value.clone();
                }
            }
            Some(resolved)
        })
        .collect()
}

fn target(port: &Value, pod: &Object) -> Option<i64> {
    let name = match port.get("targetPort") {
        None => return port["port"].as_i64(),
        Some(Value::String(name)) => name,
        Some(number) => return number.as_i64(),
    };
    let sidecars =
        pod.list(&["spec", "initContainers"]).iter().filter(|container| container["restartPolicy"] == "Always");
    let containers = pod.list(&["spec", "containers"]).iter().chain(sidecars);
    let mut ports = containers.filter_map(|container| container["ports"].as_array()).flatten();
    let found = ports.find(|known| known["name"] == name.as_str() && known["protocol"] == port["protocol"])?;
    found["containerPort"].as_i64()
}

/// Whether traffic may go to a pod at all.
fn can_be_reached(pod: &Object) -> bool {
    !super::workload::pods::is_finished(pod) && !pod.text(&["status", "podIP"]).is_empty()
}

fn reference(pod: &Object) -> Value {
    json!({"kind": "Pod", "namespace": pod.namespace(), "name": pod.name(), "uid": pod.uid()})
}

/// The name under which a pod is found within a headless Service.
fn hostname<'a>(service: &Object, pod: &'a Object) -> Option<&'a str> {
    let hostname = pod.text(&["spec", "hostname"]);
    (!hostname.is_empty() && pod.text(&["spec", "subdomain"]) == service.name()).then_some(hostname)
}

fn write_endpoints(client: &mut Client<'_>, service: &Object, subsets: Vec<Value>) {
    let (storage, key) = (Storage::core("endpoints"), Key::of(service));
    let labels = labels(service, &[("endpoints.kubernetes.io/managed-by", "endpoint-controller")]);
    let fill = |endpoints: &mut Object| {
        endpoints.set(&["metadata", "labels"], labels);
        if subsets.is_empty() {
            endpoints.remove(&["subsets"]);
        } else {
            endpoints.set(&["subsets"], subsets);
        }
    };
    if client.get(&storage, &key).is_some() {
        // It is gone meanwhile, and so is its Service.
        let _ = client.change(&storage, &key, fill);
        return;
    }
    let mut endpoints = Object::default();
    endpoints.set(&["apiVersion"], "v1");
    endpoints.set(&["kind"], "Endpoints");
    endpoints.set(&["metadata", "name"], service.name());
    endpoints.set(&["metadata", "namespace"], service.namespace());
    fill(&mut endpoints);
    // A namespace that is going takes none.
    let _ = client.create(&storage, endpoints);
}
