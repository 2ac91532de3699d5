//! What every cluster has from the start.

mod system;

use crate::cluster::Cluster;
use crate::object::Object;
use crate::store::Key;
use crate::verbs::write::{Source, Write};
use serde_json::{Value, json};

/// What a cluster that lives has besides the API.
pub(crate) struct Furniture {
    /// How many nodes.
    pub(crate) nodes: u32,
    /// Whether it runs what clusters run for themselves.
    pub(crate) system: bool,
}

/// Fills an empty cluster. Objects that could not be made would be a mistake in this room; its test would show it.
pub(crate) fn fill(cluster: &mut Cluster, furniture: Option<&Furniture>) {
    let mut objects: Vec<Value> = namespaces()
        .chain(access())
        .chain([api_service()])
        .chain(system::api_endpoints())
        .chain(system::priority_classes())
        .chain(system::components())
        .collect();
    if let Some(furniture) = furniture {
        objects.extend((1..=furniture.nodes).flat_map(|number| node(number, cluster.now)));
        objects.push(storage_class());
        if furniture.system {
            objects.extend(system::dns());
        }
    }
    for object in objects {
        let status = object.get("status").cloned();
        let Ok(object) = Object::from_value(object) else { continue };
        let Some(kind) = cluster.kinds.by_kind(object.api_version(), object.kind()).cloned() else { continue };
        let namespace = object.namespace().to_owned();
        let key = Key::of(&object);
        let _ = cluster.insert(&kind, &namespace, object, &Write::internal("kube-apiserver"));
        if let Some(status) = status {
            let write = Write::internal("kubelet").through("status");
            let _ = cluster.modify(&kind, &key, &write, Source::Patch, |_, old| {
                let mut new = Object::clone(old);
                new.set(&["status"], status);
                Ok(new)
            });
        }
    }
}

/// A node. The first one is called like the house, and often runs everything.
fn node(number: u32, now: jiff::Timestamp) -> [Value; 2] {
    let name = if number == 1 { "drydock".to_owned() } else { format!("drydock-{number}") };
    let address = format!("10.88.{}.{}", number / 256, number % 256);
    let range = format!("10.244.{}.0/24", number % 256);
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": crate::clock::micro_time(now)}});
    let now = crate::clock::time(now);
    let room = json!({"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "10000"});
    let condition = |kind: &str, good: bool, reason: &str, message: &str| {
        json!({"type": kind, "status": if good { "True" } else { "False" }, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now})
    };
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64"}},
        "spec": {"podCIDR": range, "podCIDRs": [range]},
        "status": {"capacity": room, "allocatable": room,
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "conditions": [
                condition("MemoryPressure", false, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                condition("DiskPressure", false, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", false, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                condition("Ready", true, "KubeletReady", "kubelet is posting ready status")],
            "nodeInfo": {"kubeletVersion": crate::answers::health::VERSION, "osImage": "drydock", "kernelVersion": "6.1.0",
                "containerRuntimeVersion": "drydock://1", "operatingSystem": "linux", "architecture": "amd64", "machineID": "",
                "systemUUID": "", "bootID": "", "kubeProxyVersion": ""}}});
    [node, lease]
}

/// Where volumes come from.
fn storage_class() -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "jobwright.io/drydock",
        "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", "allowVolumeExpansion": true})
}

fn namespaces() -> impl Iterator<Item = Value> {
    ["kube-system", "kube-public", "kube-node-lease", "default"]
        .into_iter()
        .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
}

/// The Service by which pods reach the API.
fn api_service() -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kubernetes", "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
            "sessionAffinity": "None", "type": "ClusterIP"}})
}

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];

/// The standard roles, and who has them.
fn access() -> impl Iterator<Item = Value> {
    let everything =
        json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}]);
    let namespaced = |verbs: &[&str]| {
        json!([
            {"apiGroups": [""], "resources": ["bindings", "configmaps", "endpoints", "events", "limitranges", "namespaces",
                "persistentvolumeclaims", "pods", "pods/log", "pods/status", "podtemplates", "replicationcontrollers",
                "replicationcontrollers/scale", "resourcequotas", "serviceaccounts", "services"], "verbs": verbs},
            {"apiGroups": ["apps", "autoscaling", "batch", "policy", "networking.k8s.io", "discovery.k8s.io"],
                "resources": ["*"], "verbs": verbs},
        ])
    };
    let with = |mut rules: Value, more: Value| {
        if let (Value::Array(rules), Value::Array(more)) = (&mut rules, more) {
            rules.extend(more);
        }
        rules
    };
    let change: Vec<&str> = READ.iter().chain(WRITE).copied().collect();
    let edit = with(
        namespaced(&change),
        json!([{"apiGroups": [""], "resources": ["secrets", "pods/eviction"], "verbs": change}]),
    );
    let admin = with(
        edit.clone(),
        json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": change}]),
    );
    let reviews = json!([
        {"apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"], "verbs": ["create"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]},
    ]);
    let paths = json!([{"nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*",
        "/readyz", "/version", "/version/"], "verbs": ["get"]}]);
    let roles = [
        ("cluster-admin", everything),
        ("admin", admin),
        ("edit", edit),
        ("view", namespaced(READ)),
        ("system:basic-user", reviews),
        ("system:discovery", paths),
    ];
    let bindings = [
        ("cluster-admin", "system:masters"),
        ("system:basic-user", "system:authenticated"),
        ("system:discovery", "system:authenticated"),
    ];
    let labels = json!({"kubernetes.io/bootstrapping": "rbac-defaults"});
    let roles = roles.map(|(name, rules)| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name, "labels": labels}, "rules": rules})
    });
    let bindings = bindings.map(|(role, group)| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": role, "labels": labels},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}]})
    });
    roles.into_iter().chain(bindings)
}
