//! The addresses and ports of Services.

use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::object::Object;
use serde_json::{Value, json};

impl Cluster {
    /// Gives a Service the addresses and ports that it needs and does not name.
    pub(super) fn allocate_addresses(&mut self, service: &mut Object, old: Option<&Object>) {
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
        self.store.list(&Storage::core("services"), None).map(AsRef::as_ref)
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
