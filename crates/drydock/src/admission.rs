//! Admission: what the API server refuses or fills in after looking at other objects.

mod claims;
mod pods;
mod services;

use crate::cluster::Cluster;
use crate::kinds::Kind;
use crate::object::Object;
use crate::status::Status;
use serde_json::json;

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

pub(crate) use claims::{CLAIM_PROTECTION, VOLUME_PROTECTION};

impl Cluster {
    /// Lets a new (`old` absent) or changed object pass, with what the cluster fills in.
    pub(crate) fn admit(&mut self, kind: &Kind, object: &mut Object, old: Option<&Object>) -> Result<(), Status> {
        if old.is_none() && kind.namespaced {
            self.admit_into_namespace(kind, object)?;
        }
        match (kind.group.as_str(), kind.kind.as_str()) {
            ("", "Service") => self.admit_service(kind, object, old)?,
            ("", "Pod") if old.is_none() && self.lives() => self.admit_pod(kind, object)?,
            ("", "PersistentVolumeClaim") if old.is_none() && self.lives() => self.admit_claim(object),
            ("", "PersistentVolume") if old.is_none() && self.lives() => {
                object.set(&["metadata", "finalizers"], json!([claims::VOLUME_PROTECTION]));
            }
            _ => {}
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
        Err(Status::forbidden(kind, asked_name(object), &why).with_causes(vec![cause]))
    }
}

/// The name of an object, or the beginning of the one that it will get.
fn asked_name(object: &Object) -> &str {
    match object.name() {
        "" => object.text(&["metadata", "generateName"]),
        name => name,
    }
}

/// Whether an object may be deleted at all.
pub(crate) fn admit_deletion(kind: &Kind, name: &str) -> Result<(), Status> {
    if kind.is_namespace() && IMMORTAL.contains(&name) {
        return Err(Status::forbidden(kind, name, "this namespace may not be deleted"));
    }
    Ok(())
}
