//! What a pod template names: the objects without which its pods do not start.

use serde_json::Value;
use std::collections::BTreeSet;

/// The objects that a pod template names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// ConfigMaps.
    pub config_maps: BTreeSet<String>,
    /// Secrets.
    pub secrets: BTreeSet<String>,
}

impl References {
    /// What this template names.
    pub fn of(template: &Value) -> Self {
        let mut found = Self::default();
        let spec = &template["spec"];
        for list in ["initContainers", "containers"] {
            for container in items(&spec[list]) {
                for source in items(&container["envFrom"]) {
                    found.config_map(&source["configMapRef"]["name"]);
                    found.secret(&source["secretRef"]["name"]);
                }
                for variable in items(&container["env"]) {
                    found.config_map(&variable["valueFrom"]["configMapKeyRef"]["name"]);
                    found.secret(&variable["valueFrom"]["secretKeyRef"]["name"]);
                }
            }
        }
        for volume in items(&spec["volumes"]) {
            found.config_map(&volume["configMap"]["name"]);
            found.secret(&volume["secret"]["secretName"]);
            for source in items(&volume["projected"]["sources"]) {
                found.config_map(&source["configMap"]["name"]);
                found.secret(&source["secret"]["name"]);
            }
        }
        found
    }

    fn config_map(&mut self, name: &Value) {
        self.config_maps.extend(name.as_str().map(str::to_owned));
    }

    fn secret(&mut self, name: &Value) {
        self.secrets.extend(name.as_str().map(str::to_owned));
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
