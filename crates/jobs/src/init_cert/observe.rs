//! Reads what there is: targets, Secrets, Deployments with their pods.

use super::certificate::{Certificate, facts, read_all};
use super::decide::Trust;
use super::error::Error;
use super::inspect::{AuthorityState, PairState, inspect_authority, inspect_pair};
use super::objects::Objects;
use super::options::{Options, Stage};
use super::rollout;
use super::secrets;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::ListParams;
use kube::{Api, Client};

/// Something that went wrong while the cluster was looked at or changed.
#[derive(Debug)]
pub(super) enum Mishap {
    /// The cluster answered with an error, which may pass.
    Cluster { doing: String, error: kube::Error },
    /// Nothing will change that.
    Fatal(Error),
}

impl Mishap {
    pub(super) fn new(doing: impl Into<String>, error: kube::Error) -> Self {
        Self::Cluster { doing: doing.into(), error }
    }
}

impl From<Error> for Mishap {
    fn from(error: Error) -> Self {
        Self::Fatal(error)
    }
}

/// Reads Secrets, and those targets that are not known yet. Targets come first: whoever writes a new CA down does so before
/// bundles get it, so that what is in a bundle that was read is in a Secret that is read later.
pub(super) async fn trust(
    client: &Client,
    options: &Options,
    objects: &mut Objects,
    now: Timestamp,
) -> Result<Trust, Mishap> {
    objects.read(client, options).await?;
    let secrets = Api::<Secret>::namespaced(client.clone(), &options.namespace);
    let get = |name: String| {
        let secrets = secrets.clone();
        async move {
            let found = secrets.get_opt(&name).await;
            found.map_err(|error| Mishap::new(format!("read Secret `{name}`"), error))
        }
    };
    let pair_secret = get(options.secret.clone()).await?;
    let authority_secret = get(options.authority_secret()).await?;
    let found = objects.targets(options, &services(options, pair_secret.as_ref()))?;
    let authority = match &authority_secret {
        None => AuthorityState::Missing("is not there".to_owned()),
        Some(secret) => {
            let (certificate, key) = secrets::authority_data(secret);
            inspect_authority(&certificate, &key, now)
        }
    };
    let previous = authority_secret.as_ref().map(secrets::previous).unwrap_or_default();
    let mut known: Vec<Certificate> = authority.certificate().into_iter().chain(&previous).cloned().collect();
    known.extend(found.ready.iter().flat_map(|target| &target.entries).flat_map(|entry| entry.bundle.clone()));
    let name = &options.secret;
    let pair = match &pair_secret {
        None => PairState::Missing(format!("there is no Secret `{name}`")),
        Some(secret) => match inspect_pair(&secrets::pair_data(secret), &known, &options.names(), now) {
            PairState::Missing(what) => PairState::Missing(format!("Secret `{name}` {what}")),
            other => other,
        },
    };
    Ok(Trust {
        targets: found.ready,
        unready: found.unready,
        missing: found.missing,
        pair,
        pair_secret,
        authority,
        authority_secret,
        previous,
    })
}

/// The Services whose callers have to trust the certificate. Before a release, these are also those that it is for but that
/// are not wanted any more: until then they are called.
fn services(options: &Options, secret: Option<&Secret>) -> Vec<String> {
    let mut services = options.services.clone();
    if options.stage == Stage::Secret
        && let Some(secret) = secret
    {
        let leaf = read_all(&secrets::pair_data(secret).certificate).0.into_iter().next();
        let names = leaf.as_ref().and_then(facts).map(|facts| facts.names).unwrap_or_default();
        services.extend(options.other_services(&names));
    }
    services
}

/// A Deployment with its pods: those of its ReplicaSets, whatever labels others have. None if it is not there.
pub(super) async fn workload(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<Option<(Deployment, Vec<Pod>)>, Mishap> {
    let deployments = Api::<Deployment>::namespaced(client.clone(), namespace);
    let found = deployments.get_opt(name).await;
    let found = found.map_err(|error| Mishap::new(format!("read Deployment `{name}`"), error))?;
    let Some(deployment) = found else { return Ok(None) };
    let selector = rollout::selector(&deployment).ok_or_else(|| {
        Error::Refused(format!("Deployment `{name}` selects its pods in a way that is not understood"))
    })?;
    // Whatever a controller owns has the labels that it selects; not all that has them is owned by it.
    let parameters = ListParams::default().labels(&selector);
    let sets = Api::<ReplicaSet>::namespaced(client.clone(), namespace).list(&parameters).await;
    let sets = sets.map_err(|error| Mishap::new(format!("list the ReplicaSets of Deployment `{name}`"), error))?;
    let pods = Api::<Pod>::namespaced(client.clone(), namespace).list(&parameters).await;
    let pods = pods.map_err(|error| Mishap::new(format!("list the pods of Deployment `{name}`"), error))?;
    let owned = rollout::owned_pods(&deployment, &sets.items, pods.items);
    Ok(Some((deployment, owned)))
}
