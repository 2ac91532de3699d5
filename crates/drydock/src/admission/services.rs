//! The addresses and ports of Services.

use crate::cluster::Cluster;
use crate::field::{FieldError, Path};
use crate::kinds::rules::service::address::{refuse_families, set_families};
use crate::kinds::rules::service::change::carry_allocated;
use crate::kinds::{Kind, Storage};
use crate::object::Object;
use crate::status::Status;
use serde_json::{Value, json};

/// The ports of nodes that Services may have.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30000..=32767;

impl Cluster {
    /// Gives a Service the addresses and ports that it needs and does not name, or keeps those that it has.
    pub(super) fn admit_service(
        &mut self,
        kind: &Kind,
        service: &mut Object,
        old: Option<&Object>,
    ) -> Result<(), Status> {
        if let Some(old) = old {
            carry_allocated(service, old);
        }
        set_families(service, old);
        let errors = refuse_families(service);
        if !errors.is_empty() {
            return Err(Status::invalid(kind, service.name(), &errors));
        }
        self.refuse_taken(kind, service, old)?;
        let service_type = service.text(&["spec", "type"]).to_owned();
        if service_type != "ExternalName" && service.text(&["spec", "clusterIP"]).is_empty() {
            let address = self.free_address();
            service.set(&["spec", "clusterIPs"], json!([address]));
            service.set(&["spec", "clusterIP"], address);
        }
        if matches!(service_type.as_str(), "NodePort" | "LoadBalancer") {
            self.allocate_node_ports(service);
        }
        let is_local = service_type == "LoadBalancer" && service.text(&["spec", "externalTrafficPolicy"]) == "Local";
        if is_local && service.integer(&["spec", "healthCheckNodePort"]).is_none() {
            let taken: Vec<i64> = self.services().flat_map(ports_of).collect();
            service.set(&["spec", "healthCheckNodePort"], free_port(&taken));
        }
        Ok(())
    }

    /// What a Service asks for has to be in range and nobody else's.
    fn refuse_taken(&self, kind: &Kind, service: &Object, old: Option<&Object>) -> Result<(), Status> {
        let spec = Path::new("spec");
        let is_mine = |other: &&Object| other.uid() == old.map_or("", Object::uid);
        let mut errors = Vec::new();
        let address = service.text(&["spec", "clusterIP"]);
        let had = old.map_or("", |old| old.text(&["spec", "clusterIP"]));
        // One that was given is never changed, which is for the rules to say.
        if !address.is_empty() && address != "None" && had.is_empty() {
            let is_taken = self.services().any(|other| other.text(&["spec", "clusterIP"]) == address);
            let why = match address.starts_with("10.96.") {
                true if is_taken => Some("provided IP is already allocated"),
                true => None,
                false => Some("the provided network does not match the current range"),
            };
            let detail = why.map(|why| format!("failed to allocate IP {address}: {why}"));
            errors
                .extend(detail.map(|detail| FieldError::invalid(&spec.child("clusterIPs"), json!([address]), detail)));
        }
        let taken: Vec<i64> = self.services().filter(|other| !is_mine(other)).flat_map(ports_of).collect();
        for (index, port) in service.list(&["spec", "ports"]).iter().enumerate() {
            let path = spec.child("ports").index(index).child("nodePort");
            let Some(number) = port.get("nodePort").and_then(Value::as_i64).filter(|number| *number != 0) else {
                continue;
            };
            if !NODE_PORTS.contains(&number) {
                let why = "provided port is not in the valid range. The range of valid ports is 30000-32767";
                errors.push(FieldError::invalid(&path, number, why));
            } else if taken.contains(&number) {
                errors.push(FieldError::invalid(&path, number, "provided port is already allocated"));
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(Status::invalid(kind, service.name(), &errors)) }
    }

    fn allocate_node_ports(&mut self, service: &mut Object) {
        let mut taken: Vec<i64> = self.services().flat_map(ports_of).chain(ports_of(service)).collect();
        if let Some(Value::Array(ports)) = service.map_at(&["spec"]).get_mut("ports") {
            for port in ports.iter_mut().filter_map(Value::as_object_mut) {
                if port.get("nodePort").and_then(Value::as_i64).unwrap_or_default() == 0 {
                    let free = free_port(&taken);
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

/// A port of nodes that nobody has. There are more of them than any cluster in memory has Services.
fn free_port(taken: &[i64]) -> i64 {
    NODE_PORTS.into_iter().find(|port| !taken.contains(port)).unwrap_or(32767)
}

fn ports_of(service: &Object) -> Vec<i64> {
    let ports = service.list(&["spec", "ports"]).iter();
    let ports = ports.filter_map(|port| port.get("nodePort").and_then(Value::as_i64));
    ports.chain(service.integer(&["spec", "healthCheckNodePort"])).filter(|port| *port != 0).collect()
}
