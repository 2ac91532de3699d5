//! Who serves: the endpoints behind a Service, and what each of them shows.

use super::certificate::Certificate;
use super::dial::{Dialler, Peer};
use super::handshake::{Served, shake_hands};
use super::observe::Mishap;
use super::rollout::{self, Stamp};
use futures::StreamExt as _;
use jobwright_engine::{Answer, Clock, classify};
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use kube::core::Selector;
use kube::{Api, Client, ResourceExt};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How long a server may take to show its certificate.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many are asked at once.
const AT_ONCE: usize = 16;

/// The servers of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Servers {
    /// The addresses of the Service itself.
    pub(super) services: Vec<Peer>,
    /// Every server, and whether it is ready.
    pub(super) servers: Vec<(Peer, bool)>,
}

/// Who is behind a Service.
#[derive(Clone, Debug, Default)]
pub(super) struct Backends {
    pub(super) servers: Servers,
    /// The pods that may serve; none if they are not known.
    pub(super) pods: Option<Vec<Pod>>,
}

impl Backends {
    /// Whether every server is a pod that has surely started with a pair.
    pub(super) fn are_proven(&self, stamp: &Stamp) -> bool {
        let Some(pods) = &self.pods else { return false };
        let names: BTreeSet<String> = pods.iter().map(ResourceExt::name_any).collect();
        let is_known = |peer: &Peer| matches!(peer, Peer::Server { pod: Some(pod), .. } if names.contains(pod));
        self.servers.servers.iter().all(|(peer, _)| is_known(peer)) && rollout::is_proven(pods, stamp)
    }
}

/// What servers have shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// How many show what they should.
    pub(super) right: usize,
    /// Those that show something else.
    pub(super) wrong: Vec<(Peer, String)>,
    /// Those that could not be asked, and whether they are ready.
    pub(super) silent: Vec<(Peer, bool, String)>,
}

/// Finds out who is behind a Service, at the ports by which targets call it. None if there is no such Service.
///
/// A pod of a Job that has not got the Secret serves nobody, whatever its labels say.
pub(super) async fn find(
    client: &Client,
    namespace: &str,
    name: &str,
    ports: &BTreeSet<u16>,
    secret: &str,
) -> Result<Option<Backends>, Mishap> {
    let services = Api::<Service>::namespaced(client.clone(), namespace);
    let found = services.get_opt(name).await.map_err(|error| Mishap::new(format!("read Service `{name}`"), error))?;
    let Some(service) = found else { return Ok(None) };
    let slices = Api::<EndpointSlice>::namespaced(client.clone(), namespace);
    let parameters = ListParams::default().labels(&format!("kubernetes.io/service-name={name}"));
    let listed = slices.list(&parameters).await;
    let listed = listed.map_err(|error| Mishap::new(format!("list the endpoints of Service `{name}`"), error))?;
    let mut servers = read(&service, &listed.items, ports);
    let pods = pods(client, namespace, &service).await?;
    let (bystanders, pods) = match pods {
        Some(pods) => {
            let (bystanders, pods): (Vec<_>, Vec<_>) =
                pods.into_iter().partition(|pod| rollout::is_bystander(pod, secret));
            (bystanders.iter().map(ResourceExt::name_any).collect(), Some(pods))
        }
        None => (BTreeSet::new(), None),
    };
    servers
        .servers
        .retain(|(peer, _)| !matches!(peer, Peer::Server { pod: Some(pod), .. } if bystanders.contains(pod)));
    Ok(Some(Backends { servers, pods }))
}

/// The pods that a Service selects; none if it does not select any, or they may not be read.
async fn pods(client: &Client, namespace: &str, service: &Service) -> Result<Option<Vec<Pod>>, Mishap> {
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.clone()).filter(|selector| !selector.is_empty());
    let Some(selector) = selector.map(Selector::from_iter) else { return Ok(None) };
    let parameters = ListParams::default().labels_from(&selector);
    match Api::<Pod>::namespaced(client.clone(), namespace).list(&parameters).await {
        Ok(pods) => Ok(Some(pods.items)),
        Err(error) if classify(&error) == Answer::Refused => Ok(None),
        Err(error) => Err(Mishap::new(format!("list the pods of Service `{}`", service.name_any()), error)),
    }
}

fn read(service: &Service, slices: &[EndpointSlice], ports: &BTreeSet<u16>) -> Servers {
    let spec = service.spec.clone().unwrap_or_default();
    // Without anybody who calls it, all of its ports are as good.
    let called = |port: i32| ports.is_empty() || u16::try_from(port).is_ok_and(|port| ports.contains(&port));
    let wanted: Vec<_> = spec.ports.iter().flatten().filter(|port| called(port.port)).collect();
    let mut servers = Servers::default();
    for text in spec.cluster_ips.iter().flatten() {
        // A headless Service has no address.
        let Ok(address) = text.parse::<IpAddr>() else { continue };
        let ports = wanted.iter().filter_map(|port| u16::try_from(port.port).ok());
        servers.services.extend(ports.map(|port| Peer::Service(SocketAddr::new(address, port))));
    }
    let names: BTreeSet<&str> = wanted.iter().map(|port| port.name.as_deref().unwrap_or_default()).collect();
    for slice in slices {
        let ports = slice.ports.iter().flatten();
        let named = ports.filter(|port| names.contains(port.name.as_deref().unwrap_or_default()));
        let numbers: Vec<u16> = named.filter_map(|port| u16::try_from(port.port?).ok()).collect();
        for endpoint in &slice.endpoints {
            let conditions = endpoint.conditions.clone().unwrap_or_default();
            let is_ready = conditions.ready.unwrap_or(true) || conditions.serving.unwrap_or_default();
            let reference = endpoint.target_ref.as_ref().filter(|target| target.kind.as_deref() == Some("Pod"));
            let pod = reference.and_then(|target| target.name.clone());
            // All addresses of an endpoint are the same server.
            let Some(address) = endpoint.addresses.iter().find_map(|text| text.parse::<IpAddr>().ok()) else {
                continue;
            };
            for port in &numbers {
                let peer = Peer::Server { pod: pod.clone(), address: SocketAddr::new(address, *port) };
                servers.servers.push((peer, is_ready));
            }
        }
    }
    servers.servers.sort();
    servers.servers.dedup_by(|one, other| one.0 == other.0);
    servers
}

/// Asks servers what they show.
pub(super) async fn ask(
    dialler: &dyn Dialler,
    peers: &[(Peer, bool)],
    name: &str,
    (expected, authority): (&Certificate, &Certificate),
    clock: &Clock,
) -> Shown {
    let ask = |(peer, is_ready): (Peer, bool)| async move {
        let talk = async {
            match dialler.dial(&peer).await {
                Ok(stream) => shake_hands(stream, name, expected, authority, clock).await,
                Err(error) => Served::Nothing(format!("it cannot be reached: {error}")),
            }
        };
        let silence = || Served::Nothing(format!("it says nothing for {PATIENCE:?}"));
        let served = tokio::time::timeout(PATIENCE, talk).await.unwrap_or_else(|_| silence());
        (peer, is_ready, served)
    };
    let mut answers = futures::stream::iter(peers.iter().cloned().map(ask)).buffer_unordered(AT_ONCE);
    let mut shown = Shown::default();
    while let Some((peer, is_ready, served)) = answers.next().await {
        match served {
            Served::Right => shown.right += 1,
            Served::Wrong(what) => shown.wrong.push((peer, what)),
            Served::Nothing(why) => shown.silent.push((peer, is_ready, why)),
        }
    }
    shown.wrong.sort();
    shown.silent.sort();
    shown
}

impl Shown {
    /// What is not as it should be, in words; none if everything is. Whoever is not ready and says nothing does not matter
    /// if it `has_started` with the pair.
    pub(super) fn trouble(&self, has_started: impl Fn(&Peer) -> bool) -> Option<String> {
        if let Some((peer, what)) = self.wrong.first() {
            return Some(format!("{peer}: {what}"));
        }
        let matters = self.silent.iter().find(|(peer, is_ready, _)| *is_ready || !has_started(peer));
        matters.map(|(peer, _, why)| format!("{peer}: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn servers(ports: &[u16]) -> Servers {
        let service = json!({"metadata": {"name": "hook"}, "spec": {"clusterIPs": ["10.96.0.9"], "ports": [
            {"name": "https", "port": 443, "targetPort": 8443}, {"name": "metrics", "port": 8080}]}});
        let endpoint = |name: &str, address: &str, ready: bool, serving: bool| {
            json!({"addresses": [address], "conditions": {"ready": ready, "serving": serving},
                "targetRef": {"kind": "Pod", "name": name}})
        };
        let slice = json!({"metadata": {"name": "hook-1"}, "addressType": "IPv4",
            "ports": [{"name": "https", "port": 8443}, {"name": "metrics", "port": 8080}],
            "endpoints": [endpoint("b", "10.0.0.2", false, false), endpoint("a", "10.0.0.1", true, true),
                endpoint("c", "10.0.0.3", false, true)]});
        let parse = |value| serde_json::from_value(value).unwrap();
        read(&serde_json::from_value(service).unwrap(), &[parse(slice)], &ports.iter().copied().collect())
    }

    #[test]
    fn the_servers_of_a_service_are_its_endpoints_at_the_port_that_is_called() {
        let found = servers(&[443]);
        assert_eq!(found.services, [Peer::Service("10.96.0.9:443".parse().unwrap())]);
        let shown: Vec<String> = found.servers.iter().map(|(peer, ready)| format!("{peer:?} {ready}")).collect();
        assert_eq!(
            shown,
            [
                "Server { pod: Some(\"a\"), address: 10.0.0.1:8443 } true",
                "Server { pod: Some(\"b\"), address: 10.0.0.2:8443 } false",
                "Server { pod: Some(\"c\"), address: 10.0.0.3:8443 } true",
            ]
        );
        assert_eq!(servers(&[]).servers.len(), 6);
        assert!(servers(&[9]).servers.is_empty());
    }

    #[test]
    fn a_service_may_have_addresses_of_version_6_alone() {
        let service = json!({"metadata": {"name": "hook"}, "spec": {"clusterIP": "fd00::9", "clusterIPs": ["fd00::9"],
            "ipFamilies": ["IPv6"], "ports": [{"port": 443, "targetPort": 8443}]}});
        let slice = json!({"metadata": {"name": "hook-1"}, "addressType": "IPv6", "ports": [{"name": "", "port": 8443}],
            "endpoints": [{"addresses": ["fd00:1::7"], "targetRef": {"kind": "Pod", "name": "a"}}]});
        let slices = [serde_json::from_value(slice).unwrap()];
        let found = read(&serde_json::from_value(service).unwrap(), &slices, &BTreeSet::from([443]));
        assert_eq!(found.services, [Peer::Service("[fd00::9]:443".parse().unwrap())]);
        let server = Peer::Server { pod: Some("a".to_owned()), address: "[fd00:1::7]:8443".parse().unwrap() };
        assert_eq!(found.servers, [(server, true)]);
    }

    #[test]
    fn who_is_not_ready_and_silent_matters_only_if_it_may_have_an_older_pair() {
        let peer = |name: &str| Peer::Server { pod: Some(name.to_owned()), address: "10.0.0.1:1".parse().unwrap() };
        let mut shown = Shown { right: 1, silent: vec![(peer("a"), false, "gone".to_owned())], ..Shown::default() };
        assert_eq!(shown.trouble(|_| true), None);
        assert_eq!(shown.trouble(|_| false), Some("pod `a`: gone".to_owned()));
        shown.silent[0].1 = true;
        assert_eq!(shown.trouble(|_| true), Some("pod `a`: gone".to_owned()));
        shown.wrong.push((peer("b"), "it serves another".to_owned()));
        assert_eq!(shown.trouble(|_| true), Some("pod `b`: it serves another".to_owned()));
    }
}
