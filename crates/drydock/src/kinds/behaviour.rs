//! How particular kinds behave under the verbs.

use super::custom::CustomKind;
use super::{Kind, Origin};
use crate::field::FieldError;
use crate::object::Object;
use std::sync::Arc;

/// Where a kind keeps its replicas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    pub(crate) spec: Vec<String>,
    pub(crate) status: Vec<String>,
    pub(crate) selector: Vec<String>,
}

/// Kinds whose deletion is answered with the object, not with a `Status`.
const RETURN_DELETED: &[&str] = &[
    "csidrivers",
    "csinodes",
    "namespaces",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "resourcequotas",
    "serviceaccounts",
    "services",
    "storageclasses",
    "volumeattachments",
    "volumeattributesclasses",
];

impl Kind {
    pub(crate) fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.plural == "namespaces"
    }

    pub(crate) fn is_pod(&self) -> bool {
        self.group.is_empty() && self.plural == "pods"
    }

    /// What it owns stays when it is deleted without a word on that: a legacy of the first versions.
    pub(crate) fn orphans_by_default(&self) -> bool {
        matches!((self.group.as_str(), self.plural.as_str()), ("batch", "jobs") | ("", "replicationcontrollers"))
    }

    pub(crate) fn returns_deleted(&self) -> bool {
        matches!(self.origin, Origin::BuiltIn { .. }) && RETURN_DELETED.contains(&self.plural.as_str())
    }

    /// Where the kind keeps its replicas, if it can be scaled.
    pub(crate) fn scale_paths(&self) -> Option<ScalePaths> {
        if let Some(custom) = self.custom() {
            return custom.scale.clone();
        }
        let path = |text: &str| text.split('.').map(str::to_owned).collect();
        self.has("scale").then(|| ScalePaths {
            spec: path("spec.replicas"),
            status: path("status.replicas"),
            selector: path("spec.selector"),
        })
    }

    /// Fills in what was left out.
    pub(crate) fn default(&self, object: &mut Object) {
        (self.rules().default)(object);
        if let Some(custom) = self.custom() {
            custom.default(object);
        }
    }

    /// What a custom resource's schema and rules say against it.
    pub(crate) fn check_custom(&self, new: &Object, old: Option<&Object>) -> Vec<FieldError> {
        self.custom().map_or_else(Vec::new, |custom| custom.check(new, old))
    }

    /// A stored object in the words of this version.
    pub(crate) fn served(&self, stored: &Arc<Object>) -> Arc<Object> {
        match &self.origin {
            Origin::BuiltIn { row, .. } if row.stored_as.is_none() => Arc::clone(stored),
            Origin::BuiltIn { .. } => Arc::new(super::convert::served(self, stored)),
            Origin::Custom(custom) => custom.served(self, stored),
        }
    }

    /// An object of this version as it is stored.
    pub(crate) fn stored(&self, object: Object) -> Object {
        match &self.origin {
            Origin::BuiltIn { row, .. } if row.stored_as.is_none() => object,
            Origin::BuiltIn { .. } => super::convert::stored(self, object),
            Origin::Custom(custom) => custom.stored(self, object),
        }
    }
}

impl CustomKind {
    /// A stored object in the words of a version: with its name, and with defaults that came after it was stored.
    fn served(&self, kind: &Kind, stored: &Arc<Object>) -> Arc<Object> {
        let mut object = Object::clone(stored);
        object.set(&["apiVersion"], kind.api_version());
        self.default(&mut object);
        if object == **stored { Arc::clone(stored) } else { Arc::new(object) }
    }

    fn stored(&self, kind: &Kind, mut object: Object) -> Object {
        let version = if kind.group.is_empty() {
            self.storage_version.clone()
        } else {
            format!("{}/{}", kind.group, self.storage_version)
        };
        object.set(&["apiVersion"], version);
        object
    }
}
