//! What a cluster runs for itself.

use serde_json::{Value, json};

/// The cluster's DNS: a Deployment that runs and a Service that leads to it. It answers no questions.
pub(super) fn dns() -> impl Iterator<Item = Value> {
    let labels = json!({"k8s-app": "kube-dns"});
    let metadata = |name: &str| json!({"name": name, "namespace": "kube-system", "labels": labels});
    let port = |name: &str, protocol: &str| json!({"name": name, "protocol": protocol, "port": 53, "targetPort": 53});
    let container_port = |name: &str, protocol: &str| json!({"name": name, "protocol": protocol, "containerPort": 53});
    [
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "coredns", "namespace": "kube-system"}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata("kube-dns"),
            "spec": {"clusterIP": "10.96.0.10", "selector": labels,
                "ports": [port("dns", "UDP"), port("dns-tcp", "TCP")]}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("coredns"),
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"serviceAccountName": "coredns", "priorityClassName": "system-cluster-critical",
                    "containers": [{"name": "coredns", "image": "coredns/coredns:1.12.4",
                        "ports": [container_port("dns", "UDP"), container_port("dns-tcp", "TCP")]}]}}}}),
    ]
    .into_iter()
}

/// Where the API's own Service leads.
pub(super) fn api_endpoints() -> impl Iterator<Item = Value> {
    let address = "10.88.0.1";
    [
        json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "kubernetes", "namespace": "default",
                "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
            "subsets": [{"addresses": [{"ip": address}], "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}]}]}),
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "kubernetes", "namespace": "default",
                "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
            "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}]}),
    ]
    .into_iter()
}

/// The classes of pods that a cluster cannot do without.
pub(super) fn priority_classes() -> impl Iterator<Item = Value> {
    let class = |name: &str, value: i64, description: &str| {
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value, "description": description, "preemptionPolicy": "PreemptLowerPriority"})
    };
    let cluster =
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.";
    let node = "Used for system critical pods that must not be moved from their current node.";
    [class("system-cluster-critical", 2_000_000_000, cluster), class("system-node-critical", 2_000_001_000, node)]
        .into_iter()
}

/// How the parts of the control plane are: well, always.
pub(super) fn components() -> impl Iterator<Item = Value> {
    ["scheduler", "controller-manager", "etcd-0"].into_iter().map(|name| {
        json!({"apiVersion": "v1", "kind": "ComponentStatus", "metadata": {"name": name},
            "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}]})
    })
}
