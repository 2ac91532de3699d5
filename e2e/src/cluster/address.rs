//! The addresses inside a cluster, which are the same in every one.

/// The node, the API server and all that serves.
pub(super) const NODE: &str = "10.88.0.1";
/// The network of the node.
pub(super) const NODE_RANGE: &str = "10.88.0.1/24";
/// The network of pods.
pub(super) const PODS: &str = "10.244.0.0/24";
/// The network of Services.
pub(super) const SERVICES: &str = "10.96.0.0/16";
/// The Service of the API server.
pub(super) const API_SERVICE: &str = "10.96.0.1";
/// The port of the API server.
pub(super) const API_PORT: u16 = 6443;
/// The port of the git and chart server.
pub(super) const FILES_PORT: u16 = 8090;
/// The port of the OCI registry.
pub(super) const REGISTRY_PORT: u16 = 5000;
