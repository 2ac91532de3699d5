//! What is known about what servers present: by a handshake with each, or by when their pods have started.

use super::super::certificate::fingerprint;
use super::super::decide::Trust;
use super::super::dial::{Dialling, Peer};
use super::super::inspect::Pair;
use super::super::observe::{self, Mishap};
use super::super::options::Options;
use super::super::rollout::{self, Rollout, Stamp};
use super::super::secrets;
use super::super::servers::{self, Backends, Shown};
use super::Rotation;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt as _;
use std::collections::BTreeMap;

/// What servers present, as far as it can be known.
pub(super) enum Seen {
    /// All of them present the pair.
    Verified,
    /// They could not be asked, and why.
    Unasked(String),
}

/// What came of asking servers once.
pub(super) enum Asked {
    Seen(Seen),
    /// There is nobody to ask, and what is missing.
    Nobody(String),
    /// Some present something else, or nothing.
    Trouble(String, Shown),
}

/// Whether every server presents the pair.
#[derive(Debug)]
pub(super) struct Proof {
    pub(super) is_safe: bool,
    pub(super) notes: Vec<String>,
}

/// Deployments that are rolled out.
#[derive(Debug)]
pub(in crate::init_cert) struct Workloads {
    pub(super) deployments: BTreeMap<String, Deployment>,
    /// The Deployment of each pod.
    pub(super) pods: BTreeMap<String, String>,
    /// Whether all pods have surely started with the pair.
    proven: bool,
}

impl Default for Workloads {
    fn default() -> Self {
        Self { deployments: BTreeMap::new(), pods: BTreeMap::new(), proven: true }
    }
}

impl Workloads {
    pub(super) fn add(&mut self, name: &str, deployment: Deployment, pods: &[Pod], proven: bool) {
        self.proven &= proven;
        self.pods.extend(pods.iter().map(|pod| (pod.name_any(), name.to_owned())));
        self.deployments.insert(name.to_owned(), deployment);
    }

    /// Whether anything should serve.
    fn want_servers(&self) -> bool {
        let replicas = |deployment: &Deployment| deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        self.deployments.values().any(|deployment| replicas(deployment) > 0)
    }
}

/// A pair, as Deployments and pods know it.
pub(super) fn stamp(pair: &Pair, secret: &Secret) -> Stamp {
    Stamp {
        fingerprint: fingerprint(&pair.leaf),
        written_at: secrets::written_at(secret),
        made_at: secrets::made_at(secret),
        is_unfinished: secrets::is_unfinished(secret),
    }
}

/// What is behind the Services that are there.
pub(super) type Behind = Vec<(String, Option<Backends>)>;

impl Rotation<'_> {
    /// Finds out who is behind each Service.
    pub(super) async fn behind(&self, trust: &Trust) -> Result<Behind, Mishap> {
        let Options { services, namespace, secret, .. } = self.options;
        let mut behind = Vec::new();
        for service in services {
            let found = servers::find(&self.around.client, namespace, service, &trust.ports(service), secret).await?;
            behind.push((service.clone(), found));
        }
        Ok(behind)
    }

    /// Asks every server once what it presents.
    pub(super) async fn ask(&self, trust: &Trust, pair: &Pair, workloads: &Workloads) -> Result<Asked, Mishap> {
        let dialler = match &self.around.dialling {
            Dialling::With(dialler) => dialler,
            Dialling::Not(why) => return Ok(Asked::Seen(Seen::Unasked(why.clone()))),
        };
        let Some(authority) = &pair.authority else { return Ok(Asked::Nobody("no CA signs the pair".to_owned())) };
        let (wanted, clock) = ((&pair.leaf, authority), &self.around.clock);
        let has_started =
            |peer: &Peer| matches!(peer, Peer::Server { pod: Some(pod), .. } if workloads.pods.contains_key(pod));
        for (service, backends) in self.behind(trust).await? {
            let Some(Backends { servers, .. }) = backends else {
                return Ok(Asked::Nobody(format!("there is no Service `{service}`")));
            };
            if servers.servers.is_empty() {
                if workloads.want_servers() {
                    return Ok(Asked::Nobody(format!("there is no server behind Service `{service}`")));
                }
                continue;
            }
            let name = self.options.called(&service);
            let shown = servers::ask(&**dialler, &servers.servers, &name, wanted, clock).await;
            if let Some(trouble) = shown.trouble(has_started) {
                return Ok(Asked::Trouble(trouble, shown));
            }
            if dialler.reaches_services() {
                let services: Vec<(Peer, bool)> = servers.services.into_iter().map(|peer| (peer, true)).collect();
                let shown = servers::ask(&**dialler, &services, &name, wanted, clock).await;
                if let Some(trouble) = shown.trouble(|_| true) {
                    return Ok(Asked::Trouble(trouble, Shown::default()));
                }
            }
        }
        Ok(Asked::Seen(Seen::Verified))
    }

    /// Judges whether every server presents the pair. Without a handshake, every pod has to have started with it: those of
    /// the Deployments, and those behind the Services, whoever they belong to.
    pub(super) async fn prove(
        &self,
        trust: &Trust,
        seen: Seen,
        stamp: &Stamp,
        workloads: &Workloads,
    ) -> Result<Proof, Mishap> {
        let why = match seen {
            Seen::Verified => return Ok(Proof { is_safe: true, notes: Vec::new() }),
            Seen::Unasked(why) => why,
        };
        // Without a Service nobody is called; without a Deployment either, nothing is known.
        let is_named = !self.options.deployments.is_empty();
        let are_proven = |backends: &Option<Backends>| match backends {
            Some(backends) => backends.are_proven(stamp),
            None => is_named,
        };
        let behind = self.behind(trust).await?;
        let is_safe = workloads.proven && behind.iter().all(|(_, backends)| are_proven(backends));
        Ok(Proof { is_safe, notes: vec![format!("not seen by a handshake: {why}")] })
    }

    /// Whether every server presents the pair at this moment. Nothing is restarted or waited for.
    pub(super) async fn is_everywhere(&self, trust: &Trust, pair: &Pair, secret: &Secret) -> Result<bool, Mishap> {
        let (stamp, mut workloads) = (stamp(pair, secret), Workloads::default());
        for name in &self.options.deployments {
            let found = observe::workload(&self.around.client, &self.options.namespace, name).await?;
            let Some((deployment, pods)) = found else { return Ok(false) };
            let Rollout::Done { proven } = rollout::judge(&deployment, &pods, &stamp) else { return Ok(false) };
            workloads.add(name, deployment, &pods, proven);
        }
        match self.ask(trust, pair, &workloads).await? {
            Asked::Seen(seen) => Ok(self.prove(trust, seen, &stamp, &workloads).await?.is_safe),
            Asked::Nobody(_) | Asked::Trouble(..) => Ok(false),
        }
    }
}
