//! Pods: their account, their priority, and what they tolerate.

use crate::cluster::Cluster;
use crate::kinds::{Kind, Storage};
use crate::object::Object;
use crate::status::Status;
use serde_json::{Value, json};

/// Where pods find the token of their account.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// How long pods stay on a node that is in trouble.
const TROUBLE: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

impl Cluster {
    pub(super) fn admit_pod(&mut self, kind: &Kind, pod: &mut Object) -> Result<(), Status> {
        self.give_account(kind, pod)?;
        self.give_priority(kind, pod)?;
        let class = pod.text(&["spec", "runtimeClassName"]);
        if !class.is_empty() && self.find("node.k8s.io", "runtimeclasses", "", class).is_none() {
            return Err(Status::forbidden(
                kind,
                pod.name(),
                &format!("pod rejected: RuntimeClass {class:?} not found"),
            ));
        }
        tolerate_trouble(pod);
        Ok(())
    }

    fn give_account(&mut self, kind: &Kind, pod: &mut Object) -> Result<(), Status> {
        if pod.text(&["spec", "serviceAccountName"]).is_empty() {
            pod.set(&["spec", "serviceAccountName"], "default");
            pod.set(&["spec", "serviceAccount"], "default");
        }
        let name = pod.text(&["spec", "serviceAccountName"]).to_owned();
        let account = self.find("", "serviceaccounts", pod.namespace(), &name).cloned().ok_or_else(|| {
            let why = format!(
                "error looking up service account {}/{name}: serviceaccount {name:?} not found",
                pod.namespace()
            );
            Status::forbidden(kind, asked_name(pod), &why)
        })?;
        let wants = |object: &Object, path: &[&str]| object.at(path).and_then(Value::as_bool);
        let mounts = wants(pod, &["spec", "automountServiceAccountToken"])
            .or_else(|| wants(&account, &["automountServiceAccountToken"]))
            .unwrap_or(true);
        if mounts {
            let volume = format!("kube-api-access-{}", self.new_suffix());
            mount_token(pod, &volume);
        }
        let secrets = account.list(&["imagePullSecrets"]);
        if pod.list(&["spec", "imagePullSecrets"]).is_empty() && !secrets.is_empty() {
            pod.set(&["spec", "imagePullSecrets"], secrets.to_vec());
        }
        Ok(())
    }

    fn give_priority(&self, kind: &Kind, pod: &mut Object) -> Result<(), Status> {
        let name = pod.text(&["spec", "priorityClassName"]).to_owned();
        let class = match name.as_str() {
            "" => {
                let mut classes = self.store.list(&Storage::new("scheduling.k8s.io", "priorityclasses"), None);
                classes.find(|class| class.at(&["globalDefault"]) == Some(&json!(true))).cloned()
            }
            // The two that every cluster has.
            "system-cluster-critical" | "system-node-critical" => None,
            name => Some(self.find("scheduling.k8s.io", "priorityclasses", "", name).cloned().ok_or_else(|| {
                let why = format!("no PriorityClass with name {name} was found");
                Status::forbidden(kind, pod.name(), &why)
            })?),
        };
        let priority = match (&class, name.as_str()) {
            (Some(class), _) => class.integer(&["value"]).unwrap_or_default(),
            (None, "system-cluster-critical") => 2_000_000_000,
            (None, "system-node-critical") => 2_000_001_000,
            (None, _) => 0,
        };
        if let Some(given) = pod.integer(&["spec", "priority"]).filter(|given| *given != priority) {
            let why = format!(
                "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
                 computed {priority} from the given PriorityClass name"
            );
            return Err(Status::forbidden(kind, pod.name(), &why));
        }
        if let Some(class) = &class {
            pod.set(&["spec", "priorityClassName"], class.name());
        }
        pod.set(&["spec", "priority"], priority);
        if pod.text(&["spec", "preemptionPolicy"]).is_empty() {
            let policy =
                class.as_ref().map(|class| class.text(&["preemptionPolicy"])).filter(|policy| !policy.is_empty());
            pod.set(&["spec", "preemptionPolicy"], policy.unwrap_or("PreemptLowerPriority"));
        }
        Ok(())
    }
}

/// The name that was asked for. Where a name is generated, a real server has not done so yet when it refuses.
fn asked_name(pod: &Object) -> &str {
    match pod.text(&["metadata", "generateName"]) {
        "" => pod.name(),
        prefix => prefix,
    }
}

/// Mounts the token of the pod's account into every container that has nothing there.
fn mount_token(pod: &mut Object, volume: &str) {
    let mut mounted = false;
    for field in ["initContainers", "containers"] {
        let Some(Value::Array(containers)) = pod.map_at(&["spec"]).get_mut(field) else { continue };
        for container in containers.iter_mut().filter_map(Value::as_object_mut) {
            let mounts = container.entry("volumeMounts").or_insert_with(|| json!([]));
            let Value::Array(mounts) = mounts else { continue };
            if mounts.iter().any(|mount| mount["mountPath"] == TOKEN_PATH) {
                continue;
            }
            mounts.push(json!({"name": volume, "readOnly": true, "mountPath": TOKEN_PATH}));
            mounted = true;
        }
    }
    if mounted {
        let volumes = pod.map_at(&["spec"]).entry("volumes").or_insert_with(|| json!([]));
        if let Value::Array(volumes) = volumes {
            volumes.push(json!({"name": volume, "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
            ]}}));
        }
    }
}

fn tolerate_trouble(pod: &mut Object) {
    let tolerations = pod.map_at(&["spec"]).entry("tolerations").or_insert_with(|| json!([]));
    let Value::Array(tolerations) = tolerations else { return };
    for key in TROUBLE {
        let tolerated = tolerations.iter().any(|toleration| {
            let effect = toleration["effect"].as_str().unwrap_or_default();
            (toleration["key"] == key || toleration.get("key").is_none()) && matches!(effect, "" | "NoExecute")
        });
        if !tolerated {
            tolerations
                .push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
}
