//! Objects of the API, as far as the suite looks at them.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// An object of any kind.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Object {
    #[serde(default)]
    pub(crate) kind: String,
    pub(crate) metadata: Metadata,
    #[serde(default)]
    pub(crate) spec: Value,
    #[serde(default)]
    pub(crate) status: Value,
    #[serde(default)]
    pub(crate) data: Value,
    #[serde(default, rename = "type")]
    pub(crate) type_: String,
}

/// The metadata of an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) generate_name: Option<String>,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) deletion_timestamp: Option<String>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) owner_references: Vec<OwnerReference>,
}

/// Who owns an object.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct OwnerReference {
    pub(crate) kind: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) controller: bool,
}

/// A list of objects.
#[derive(Debug, Deserialize)]
pub(crate) struct List {
    #[serde(default)]
    pub(crate) metadata: Metadata,
    #[serde(default = "Vec::new")]
    pub(crate) items: Vec<Object>,
}

impl Object {
    /// The name, with a star for what the API made up: `g-*`.
    pub(crate) fn name(&self) -> String {
        match &self.metadata.generate_name {
            Some(start) if self.metadata.name.starts_with(start.as_str()) => format!("{start}*"),
            _ => self.metadata.name.clone(),
        }
    }

    pub(crate) fn controller(&self) -> Option<&OwnerReference> {
        self.metadata.owner_references.iter().find(|owner| owner.controller)
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether it stays although it is deleted: something holds it that no part of Kubernetes will let go.
    pub(crate) fn is_held(&self) -> bool {
        let own = ["foregroundDeletion", "orphan"];
        self.is_deleting() && self.metadata.finalizers.iter().any(|finalizer| !own.contains(&finalizer.as_str()))
    }

    /// The condition of this type that is true, with its reason.
    pub(crate) fn condition(&self, kind: &str) -> Option<&str> {
        let conditions = self.status.get("conditions")?.as_array()?;
        let condition = conditions.iter().find(|c| c["type"] == kind && c["status"] == "True")?;
        Some(condition["reason"].as_str().unwrap_or_default())
    }

    /// Whether a Job or a Deployment will not change any more by itself. A Deployment that stays is at rest enough.
    pub(crate) fn is_at_rest(&self) -> bool {
        if self.is_deleting() {
            return self.is_held();
        }
        if self.kind == "Deployment" {
            return true;
        }
        let finished = self.condition("Complete").is_some() || self.condition("Failed").is_some();
        let removed_soon = self.spec["ttlSecondsAfterFinished"].as_u64().is_some_and(|seconds| seconds < 30);
        finished && !removed_soon
    }
}
