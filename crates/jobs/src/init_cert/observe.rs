//! Reads what there is: targets, Secrets, Deployments with their pods.

use super::certificate::Certificate;
use super::decide::Trust;
use super::error::Error;
use super::inspect::{AuthorityState, PairState, inspect_authority, inspect_pair};
use super::options::Options;
use super::rollout;
use super::secrets;
use super::target::{Kind, Missing, Target};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::Value;

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

/// Where the objects of a kind are.
pub(super) fn targets_of(client: &Client, kind: Kind) -> Api<DynamicObject> {
    let (group, version, name, plural) = kind.names();
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, name), plural);
    Api::all_with(client.clone(), &resource)
}

/// Reads Secrets and targets. Targets come first: whoever writes a new CA down does so before bundles get it, so that
/// what is in a bundle that was read is in a Secret that is read later.
pub(super) async fn trust(client: &Client, options: &Options, now: Timestamp) -> Result<Trust, Mishap> {
    let (targets, missing) = targets(client, options).await?;
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
    let authority = match &authority_secret {
        None => AuthorityState::Missing("is not there".to_owned()),
        Some(secret) => {
            let (certificate, key) = secrets::authority_data(secret);
            inspect_authority(&certificate, &key, now)
        }
    };
    let previous = authority_secret.as_ref().map(secrets::previous).unwrap_or_default();
    let mut known: Vec<Certificate> = authority.certificate().into_iter().chain(&previous).cloned().collect();
    known.extend(targets.iter().flat_map(|target| &target.entries).flat_map(|entry| entry.bundle.clone()));
    let name = &options.secret;
    let pair = match &pair_secret {
        None => PairState::Missing(format!("there is no Secret `{name}`")),
        Some(secret) => match inspect_pair(&secrets::pair_data(secret), &known, &options.names(), now) {
            PairState::Missing(what) => PairState::Missing(format!("Secret `{name}` {what}")),
            other => other,
        },
    };
    Ok(Trust { targets, missing, pair, pair_secret, authority, authority_secret, previous })
}

/// The targets that are there, and those that are not.
async fn targets(client: &Client, options: &Options) -> Result<(Vec<Target>, Vec<Missing>), Mishap> {
    let service = (options.namespace.as_str(), options.service.as_str());
    let (mut found, mut missing) = (Vec::<Target>::new(), Vec::new());
    for (kind, name) in options.targets.names() {
        let object = targets_of(client, kind).get_opt(name).await;
        let object = object.map_err(|error| Mishap::new(format!("read {kind} `{name}`"), error))?;
        let Some(object) = object else {
            missing.push(Missing::Named(kind, name.to_owned()));
            continue;
        };
        let target = Target::read(kind, &to_value(&object), service).map_err(Error::Refused)?;
        if target.entries.is_empty() {
            let (namespace, name) = service;
            let message = format!("no entry of {target} leads to Service `{name}` in namespace `{namespace}`");
            return Err(Error::Refused(message).into());
        }
        found.push(target);
    }
    if let Some(selector) = &options.targets.webhook_selector {
        let mut selected = Vec::new();
        for kind in [Kind::Validating, Kind::Mutating] {
            let list = targets_of(client, kind).list(&ListParams::default().labels(selector)).await;
            let list = list.map_err(|error| Mishap::new(format!("list {kind}s with `{selector}`"), error))?;
            for object in list.items {
                let target = Target::read(kind, &to_value(&object), service).map_err(Error::Refused)?;
                if !target.entries.is_empty() {
                    selected.push(target);
                }
            }
        }
        if selected.is_empty() {
            missing.push(Missing::Selected(selector.clone()));
        }
        selected.retain(|target| !found.iter().any(|known| (known.kind, &known.name) == (target.kind, &target.name)));
        found.append(&mut selected);
    }
    Ok((found, missing))
}

fn to_value(object: &DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

/// A Deployment with the pods that it selects; none if it is not there.
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
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    let list = pods.list(&ListParams::default().labels(&selector)).await;
    let list = list.map_err(|error| Mishap::new(format!("list the pods of Deployment `{name}`"), error))?;
    Ok(Some((deployment, list.items)))
}
