//! The kinds of a cluster, discovered one API version at a time.
//!
//! A kind that is gone and a kind that cannot be discovered are two things: an aggregated API whose server is down still
//! has its objects. Its group is listed, and its version answers 503, which is an error here.

use super::caller::{Caller, existing};
use jobwright_engine::{DeployContext, Failure};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResourceList};
use kube::api::{Api, DynamicObject};
use kube::core::discovery::ApiResource;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A kind, and how its objects are addressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) api: ApiResource,
    pub(crate) is_namespaced: bool,
}

/// The kinds of a cluster, as far as they were asked for. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Kinds {
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    /// The kinds of an API version; none if the cluster does not serve it.
    versions: BTreeMap<String, Option<Arc<Vec<Resource>>>>,
    groups: Option<Arc<Vec<APIGroup>>>,
}

/// How long a kind that has just been defined may take to be served.
const SETTLING: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(500);

impl Kinds {
    /// A kind of exactly this API version; none if the cluster does not serve it.
    pub(crate) async fn find(
        &self,
        caller: &Caller,
        api_version: &str,
        kind: &str,
    ) -> Result<Option<Resource>, Failure> {
        let served = self.version(caller, api_version).await?;
        Ok(served.and_then(|kinds| kinds.iter().find(|resource| resource.api.kind == kind).cloned()))
    }

    /// A kind of this API version, or of another one of its group; none if the cluster serves it in none.
    pub(crate) async fn find_any(
        &self,
        caller: &Caller,
        api_version: &str,
        kind: &str,
    ) -> Result<Option<Resource>, Failure> {
        if let Some(found) = self.find(caller, api_version, kind).await? {
            return Ok(Some(found));
        }
        let group = group_of(api_version);
        let groups = self.groups(caller).await?;
        let versions = groups.iter().filter(|one| one.name == group).flat_map(|one| &one.versions);
        for version in versions.filter(|version| version.group_version != api_version) {
            if let Some(found) = self.find(caller, &version.group_version, kind).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// A kind of exactly this API version, waiting for one that has just been defined.
    pub(crate) async fn wait_for(
        &self,
        context: &DeployContext,
        api_version: &str,
        kind: &str,
    ) -> Result<Resource, Failure> {
        let caller = Caller::of(context);
        let mut missing_since: Option<tokio::time::Instant> = None;
        loop {
            if let Some(found) = self.find(&caller, api_version, kind).await? {
                return Ok(found);
            }
            if missing_since.get_or_insert_with(tokio::time::Instant::now).elapsed() > SETTLING {
                return Err(Failure::new(format!("the cluster has no kind `{kind}` in `{api_version}`")).for_good());
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => self.forget(api_version),
                () = context.cancellation().cancelled() => {
                    let problem = format!("cancelled while waiting for kind `{kind}` in `{api_version}`, which the cluster does not have");
                    return Err(Failure::new(problem));
                }
            }
        }
    }

    /// Asks again for the kinds of an API version.
    pub(crate) fn forget(&self, api_version: &str) {
        let mut known = self.lock();
        known.versions.remove(api_version);
        known.groups = None;
    }

    /// Asks again for all kinds.
    pub(crate) fn forget_all(&self) {
        *self.lock() = Known::default();
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn version(&self, caller: &Caller, api_version: &str) -> Result<Option<Arc<Vec<Resource>>>, Failure> {
        let known = self.lock().versions.get(api_version).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let client = caller.client();
        let ask = || async {
            existing(match api_version.split_once('/') {
                Some(_) => client.list_api_group_resources(api_version).await,
                None => client.list_core_api_resources(api_version).await,
            })
        };
        let listed = caller.call(&format!("discover the kinds of `{api_version}`"), ask).await?;
        let kinds = listed.map(|list| Arc::new(resources(api_version, list)));
        self.lock().versions.insert(api_version.to_owned(), kinds.clone());
        Ok(kinds)
    }

    async fn groups(&self, caller: &Caller) -> Result<Arc<Vec<APIGroup>>, Failure> {
        let known = self.lock().groups.clone();
        if let Some(known) = known {
            return Ok(known);
        }
        let client = caller.client();
        let listed = caller.call("discover the API groups of the cluster", || client.list_api_groups()).await?;
        let groups = Arc::new(listed.groups);
        self.lock().groups = Some(groups.clone());
        Ok(groups)
    }
}

impl Resource {
    /// A kind that a CustomResourceDefinition defines.
    pub(crate) fn defined(api_version: &str, kind: &str, plural: &str, is_namespaced: bool) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let api = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        Self { api, is_namespaced }
    }

    /// The objects of a namespace, or without one those of the cluster.
    pub(crate) fn api(&self, caller: &Caller, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) => Api::namespaced_with(caller.client().clone(), namespace, &self.api),
            None => Api::all_with(caller.client().clone(), &self.api),
        }
    }
}

/// The group of an API version; empty for the core group.
pub(crate) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

fn resources(api_version: &str, list: APIResourceList) -> Vec<Resource> {
    let whole = list.resources.into_iter().filter(|resource| !resource.name.contains('/'));
    whole.map(|resource| Resource::defined(api_version, &resource.kind, &resource.name, resource.namespaced)).collect()
}
