//! What the parts of a node are told.

use crate::cluster::address;
use crate::cluster::place::Place;
use serde_json::{Value, json};

/// containerd: root, state, socket, the state of runc and the namespaces of pods are all below the cluster's directory.
pub(super) fn containerd(place: &Place, pause: &str) -> String {
    let directory = place.directory().display();
    let socket = place.containerd_socket();
    let socket = socket.display();
    // Without CAP_SYS_RESOURCE no container starts unless its score for the out-of-memory killer is left alone.
    format!(
        r#"version = 2
root = "{directory}/containerd/root"
state = "{directory}/containerd/state"
oom_score = 0
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  disable_tcp_service = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
        Root = "{directory}/runc"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{directory}/registries"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{directory}/network"
"#
    )
}

/// Whatever registry an image names, ours answers.
pub(super) fn registry() -> String {
    let url = format!("http://{}:{}", address::NODE, address::REGISTRY_PORT);
    format!("server = \"{url}\"\n[host.\"{url}\"]\n  capabilities = [\"pull\", \"resolve\"]\n")
}

/// The network of pods. Its name tells the files of clusters apart that the plugins leave in one directory.
pub(super) fn network(place: &Place) -> Value {
    json!({
        "cniVersion": "0.4.0",
        "name": place.owned_name(),
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": false,
                "mtu": 1500,
                "ipam": {
                    "type": "host-local",
                    "dataDir": place.directory().join("addresses"),
                    "ranges": [[{"subnet": address::PODS}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
}

/// DNS at the address of the node.
pub(super) fn dns(place: &Place) -> String {
    let kubeconfig = place.kubeconfig_of("admin");
    format!(
        ".:53 {{\n  bind {}\n  errors\n  kubernetes cluster.local in-addr.arpa {{\n    kubeconfig {}\n  }}\n}}\n",
        address::NODE,
        kubeconfig.display()
    )
}

/// The kubelet. It keeps away from what belongs to the host, and never finds the machine too small.
pub(super) fn kubelet(place: &Place) -> Value {
    let certificates = place.certificates();
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": address::NODE,
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": certificates.join("ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": certificates.join("kubelet-server.crt"),
        "tlsPrivateKeyFile": certificates.join("kubelet-server.key"),
        "containerRuntimeEndpoint": format!("unix://{}", place.containerd_socket().display()),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", place.owned_name()),
        "cgroupsPerQOS": true,
        "enforceNodeAllocatable": [],
        "failSwapOn": false,
        "failCgroupV1": false,
        "makeIPTablesUtilChains": false,
        "oomScoreAdj": 0,
        "resolvConf": "",
        "clusterDomain": "cluster.local",
        "clusterDNS": [address::NODE],
        // Not a share: a hundredth of a large disk is more than a cluster for tests ever needs.
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "100Mi", "imagefs.available": "100Mi"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "podLogsDir": place.directory().join("pod-logs"),
        "volumePluginDir": place.directory().join("volume-plugins"),
        "syncFrequency": "10s",
    })
}

/// kube-proxy, with nothing that a namespace may not set.
pub(super) fn proxy(place: &Place) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": place.kubeconfig_of("kube-proxy")},
        "clusterCIDR": address::PODS,
        "bindAddress": address::NODE,
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "hostnameOverride": place.node(),
        "oomScoreAdj": 0,
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
            "udpTimeout": "0s",
            "udpStreamTimeout": "0s",
        },
        "nodePortAddresses": ["primary"],
    })
}
