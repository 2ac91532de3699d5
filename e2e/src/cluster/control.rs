//! The control plane: etcd, the API server, the controller manager, the scheduler; and the way in from the host.

use super::place::Place;
use super::process::{self, Daemon};
use super::site::{Site, answers};
use super::{address, authority};
use crate::error::Error;
use crate::install::catalogue;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

/// Listens on loopback of the host for who asks the API server, unless somebody does. Called before the namespace is
/// entered: a socket stays in the one that it was made in.
pub(super) fn listen(place: &Place) -> Result<Option<TcpListener>, Error> {
    if process::running(place, "forward").is_some() {
        return Ok(None);
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::io("listen on a port of loopback"))?;
    Ok(Some(listener))
}

/// Starts to forward what comes in from the host, and writes the kubeconfig that goes that way.
pub(super) fn start_forwarding(site: &Site<'_>, listener: Option<TcpListener>) -> Result<(), Error> {
    let Some(listener) = listener else { return Ok(()) };
    let port = listener.local_addr().map_err(Error::io("ask for the port of a socket"))?.port();
    authority::kubeconfig_for_host(site.place, port)?;
    Daemon::own("forward")
        .words(&format!("forward {}:{}", address::NODE, address::API_PORT))
        .stdin(listener.into())
        .start(site.place)
}

/// Starts etcd and the API server, which then takes a moment.
pub(super) fn start(site: &Site<'_>) -> Result<(), Error> {
    let data = site.directory("etcd")?;
    Daemon::new("etcd", &site.program(&catalogue::ETCD, "etcd"))
        .path("--data-dir", &data)
        .words("--name=node --unsafe-no-fsync --log-level=warn")
        .words("--listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379")
        .words("--listen-peer-urls=http://127.0.0.1:2380 --initial-advertise-peer-urls=http://127.0.0.1:2380")
        .words("--initial-cluster=node=http://127.0.0.1:2380")
        .start(site.place)?;
    site.until("etcd", "etcd", Duration::from_secs(30), || answers("127.0.0.1:2379", "/health"))?;
    let certificates = site.place.certificates();
    Daemon::new("kube-apiserver", &site.kube("kube-apiserver"))
        .words("--etcd-servers=http://127.0.0.1:2379 --authorization-mode=Node,RBAC --allow-privileged=true")
        .words(&format!("--bind-address={} --advertise-address={}", address::NODE, address::NODE))
        .words(&format!("--secure-port={} --service-cluster-ip-range={}", address::API_PORT, address::SERVICES))
        .words("--kubelet-preferred-address-types=InternalIP")
        .words("--service-account-issuer=https://kubernetes.default.svc")
        .path("--client-ca-file", &certificates.join("ca.crt"))
        .path("--tls-cert-file", &certificates.join("apiserver.crt"))
        .path("--tls-private-key-file", &certificates.join("apiserver.key"))
        .path("--kubelet-client-certificate", &certificates.join("apiserver-kubelet-client.crt"))
        .path("--kubelet-client-key", &certificates.join("apiserver-kubelet-client.key"))
        .path("--kubelet-certificate-authority", &certificates.join("ca.crt"))
        .path("--service-account-key-file", &certificates.join("sa.pub"))
        .path("--service-account-signing-key-file", &certificates.join("sa.key"))
        .start(site.place)
}

/// Waits for the API server and starts the controllers.
pub(super) fn finish(site: &Site<'_>) -> Result<(), Error> {
    let kubectl = site.kubectl("default");
    site.until("kube-apiserver", "API server", Duration::from_mins(2), || {
        kubectl.run(&["get", "--raw", "/readyz"]).is_ok()
    })?;
    let certificates = site.place.certificates();
    let kubeconfig = site.place.kubeconfig_of("controller-manager");
    Daemon::new("kube-controller-manager", &site.kube("kube-controller-manager"))
        .path("--kubeconfig", &kubeconfig)
        .path("--authentication-kubeconfig", &kubeconfig)
        .path("--authorization-kubeconfig", &kubeconfig)
        .path("--root-ca-file", &certificates.join("ca.crt"))
        .path("--service-account-private-key-file", &certificates.join("sa.key"))
        .path("--cluster-signing-cert-file", &certificates.join("ca.crt"))
        .path("--cluster-signing-key-file", &certificates.join("ca.key"))
        .words("--bind-address=127.0.0.1 --leader-elect=false --use-service-account-credentials=true")
        // With the usual limits the first service accounts come five seconds later.
        .words("--kube-api-qps=300 --kube-api-burst=600")
        .words(&format!("--service-cluster-ip-range={}", address::SERVICES))
        .start(site.place)?;
    let kubeconfig = site.place.kubeconfig_of("scheduler");
    Daemon::new("kube-scheduler", &site.kube("kube-scheduler"))
        .path("--kubeconfig", &kubeconfig)
        .path("--authentication-kubeconfig", &kubeconfig)
        .path("--authorization-kubeconfig", &kubeconfig)
        .words("--bind-address=127.0.0.1 --leader-elect=false")
        .start(site.place)
}

/// Waits until pods can be made in the namespace `default`.
pub(super) fn wait_for_accounts(site: &Site<'_>) -> Result<(), Error> {
    let kubectl = site.kubectl("default");
    site.until("kube-controller-manager", "service accounts", Duration::from_mins(1), || {
        kubectl.run(&["get", "serviceaccount", "default"]).is_ok()
    })
}
