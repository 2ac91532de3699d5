//! Admission: what the API server refuses or fills in after looking at other objects.

use crate::cluster::Cluster;
use crate::kinds::Kind;
use crate::object::Object;
use crate::status::Status;
use serde_json::{Value, json};

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

impl Cluster {
    /// Lets a new (`old` absent) or changed object pass, with what the cluster fills in.
    pub(crate) fn admit(&mut self, kind: &Kind, object: &mut Object, old: Option<&Object>) -> Result<(), Status> {
        if old.is_none() && kind.namespaced {
            self.admit_into_namespace(kind, object)?;
        }
        if kind.group.is_empty() && kind.kind == "Service" {
            self.allocate_addresses(object, old);
        }
        Ok(())
    }

    /// Whether a namespace takes new objects.
    fn admit_into_namespace(&self, kind: &Kind, object: &Object) -> Result<(), Status> {
        let name = object.namespace();
        let namespaces = self.kinds.by_kind("v1", "Namespace").ok_or_else(Status::unknown_resource)?;
        let namespace = self.find("", "namespaces", "", name).ok_or_else(|| Status::not_found(namespaces, name))?;
        if !namespace.is_being_deleted() {
            return Ok(());
        }
        let why = format!("unable to create new content in namespace {name} because it is being terminated");
        let cause = json!({"reason": "NamespaceTerminating", "message": format!("namespace {name} is being terminated"),
            "field": "metadata.namespace"});
        Err(Status::forbidden(kind, object.name(), &why).with_causes(vec![cause]))
    }

    /// Whether an object may be deleted at all.
    pub(crate) fn admit_deletion(&self, kind: &Kind, name: &str) -> Result<(), Status> {
        if kind.is_namespace() && IMMORTAL.contains(&name) {
            return Err(Status::forbidden(kind, name, "this namespace may not be deleted"));
        }
        Ok(())
    }

    /// Gives a Service the addresses and ports that it needs and does not name.
    fn allocate_addresses(&mut self, service: &mut Object, old: Option<&Object>) {
        let kind = service.text(&["spec", "type"]);
        if kind == "ExternalName" {
            return;
        }
        let needs_ports = matches!(kind, "NodePort" | "LoadBalancer");
        if service.text(&["spec", "clusterIP"]).is_empty() {
            let kept = old.map(|old| old.text(&["spec", "clusterIP"])).filter(|address| !address.is_empty());
            let address = kept.map_or_else(|| self.free_address(), str::to_owned);
            service.set(&["spec", "clusterIP"], address);
        }
        if service.list(&["spec", "clusterIPs"]).is_empty() {
            let address = service.text(&["spec", "clusterIP"]).to_owned();
            service.set(&["spec", "clusterIPs"], json!([address]));
        }
        if service.list(&["spec", "ipFamilies"]).is_empty() {
            service.set(&["spec", "ipFamilies"], json!(["IPv4"]));
        }
        if service.text(&["spec", "ipFamilyPolicy"]).is_empty() {
            service.set(&["spec", "ipFamilyPolicy"], "SingleStack");
        }
        if needs_ports {
            self.allocate_node_ports(service);
        }
    }

    fn allocate_node_ports(&mut self, service: &mut Object) {
        let mut taken = self.services().flat_map(|service| node_ports(service).collect::<Vec<_>>()).collect::<Vec<_>>();
        taken.extend(node_ports(service));
        if let Some(Value::Array(ports)) = service.map_at(&["spec"]).get_mut("ports") {
            for port in ports.iter_mut().filter_map(Value::as_object_mut) {
                if port.get("nodePort").and_then(Value::as_i64).unwrap_or_default() == 0 {
                    let free = (30000..32768).find(|port| !taken.contains(port)).unwrap_or(32767);
                    taken.push(free);
                    port.insert("nodePort".to_owned(), free.into());
                }
            }
        }
    }

    fn services(&self) -> impl Iterator<Item = &Object> {
        self.store.list(&crate::kinds::Storage::core("services"), None).map(AsRef::as_ref)
    }

    fn free_address(&self) -> String {
        let taken: Vec<&str> = self.services().map(|service| service.text(&["spec", "clusterIP"])).collect();
        let addresses = (0..=255u8).flat_map(|third| (1..=254u8).map(move |fourth| format!("10.96.{third}.{fourth}")));
        addresses.into_iter().find(|address| !taken.contains(&address.as_str())).unwrap_or_default()
    }
}

fn node_ports(service: &Object) -> impl Iterator<Item = i64> {
    let ports = service.list(&["spec", "ports"]).iter();
    ports.filter_map(|port| port.get("nodePort").and_then(Value::as_i64)).filter(|port| *port != 0)
}
