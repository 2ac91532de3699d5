//! The releases that helm keeps in a cluster: Secrets or ConfigMaps, one for each revision.

use crate::component::caller::{Caller, existing};
use jiff::Timestamp;
use jobwright_engine::{Answer, Failure, classify};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, ListParams, Preconditions};
use kube::{Resource, ResourceExt as _};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// The label of revisions by which a helm that Jobwright started is recognised. Helm hands it on to later revisions, so each
/// helm gets a value of its own.
pub(crate) const MARK: &str = "jobwright.io/helm";

/// A revision of a Helm release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Revision {
    pub(crate) number: u64,
    pub(crate) status: String,
    pub(crate) uid: String,
    pub(crate) created: Option<Timestamp>,
    /// What the helm that created it was started with, or an earlier one.
    pub(crate) mark: Option<String>,
    object: String,
    resource_version: Option<String>,
}

impl Revision {
    /// Whether a helm is changing it, or was killed while it was.
    pub(crate) fn is_pending(&self) -> bool {
        self.status.starts_with("pending-") || self.status == "uninstalling"
    }

    #[cfg(test)]
    pub(crate) fn example(number: u64, status: &str, created: Timestamp) -> Self {
        Self {
            number,
            status: status.to_owned(),
            uid: format!("uid-{number}"),
            created: Some(created),
            mark: None,
            object: format!("sh.helm.release.v1.api.v{number}"),
            resource_version: None,
        }
    }
}

/// Where helm keeps its releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// In Secrets, its default.
    Secrets,
    /// In ConfigMaps.
    ConfigMaps,
}

/// The Helm releases of a namespace, listed once for all components. Clones share the list.
#[derive(Clone)]
pub(crate) struct HelmReleases {
    namespace: String,
    driver: Driver,
    listed: Arc<Mutex<Option<BTreeMap<String, Revision>>>>,
}

impl HelmReleases {
    /// The releases of a namespace.
    pub(crate) fn new(namespace: &str, driver: Driver) -> Self {
        Self { namespace: namespace.to_owned(), driver, listed: Arc::default() }
    }

    /// The last revision of a release, as it was when the first component asked.
    pub(crate) async fn last(&self, caller: &Caller, release: &str) -> Result<Option<Revision>, Failure> {
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let releases = match listed {
            Some(releases) => releases,
            None => self.list(caller, "owner=helm").await?,
        };
        let last = releases.get(release).cloned();
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = Some(releases);
        Ok(last)
    }

    /// The last revision of a release, as it is now.
    pub(crate) async fn last_now(&self, caller: &Caller, release: &str) -> Result<Option<Revision>, Failure> {
        Ok(self.list(caller, &format!("owner=helm,name={release}")).await?.remove(release))
    }

    async fn list(&self, caller: &Caller, selector: &str) -> Result<BTreeMap<String, Revision>, Failure> {
        match self.driver {
            Driver::Secrets => self.list_of::<Secret>(caller, selector).await,
            Driver::ConfigMaps => self.list_of::<ConfigMap>(caller, selector).await,
        }
    }

    fn api<K>(&self, caller: &Caller) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(caller.client().clone(), &self.namespace)
    }

    /// Only metadata: what is in a release is large, and may be secret.
    async fn list_of<K>(&self, caller: &Caller, selector: &str) -> Result<BTreeMap<String, Revision>, Failure>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope> + Clone + Debug,
        K: serde::de::DeserializeOwned,
    {
        let objects = self.api::<K>(caller);
        let doing = format!("list the Helm releases of namespace `{}`", self.namespace);
        let parameters = ListParams::default().labels(selector);
        let found = caller.call(&doing, || objects.list_metadata(&parameters)).await?;
        let mut releases: BTreeMap<String, Revision> = BTreeMap::new();
        for object in found.items {
            let label = |key: &str| object.labels().get(key).cloned().unwrap_or_default();
            let revision = Revision {
                number: label("version").parse().unwrap_or_default(),
                status: label("status"),
                uid: object.uid().unwrap_or_default(),
                created: object.creation_timestamp().map(|time| time.0),
                mark: object.labels().get(MARK).cloned(),
                object: object.name_any(),
                resource_version: object.resource_version(),
            };
            let last = releases.entry(label("name")).or_insert_with(|| revision.clone());
            if revision.number > last.number {
                *last = revision;
            }
        }
        Ok(releases)
    }

    /// Deletes a revision that a killed helm has left pending, so that the one before it is the last again. If it has
    /// changed since it was judged, nothing is deleted.
    pub(crate) async fn forget(&self, caller: &Caller, revision: &Revision) -> Result<(), Failure> {
        match self.driver {
            Driver::Secrets => self.forget_of::<Secret>(caller, revision).await,
            Driver::ConfigMaps => self.forget_of::<ConfigMap>(caller, revision).await,
        }
    }

    async fn forget_of<K>(&self, caller: &Caller, revision: &Revision) -> Result<(), Failure>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope> + Clone + Debug,
        K: serde::de::DeserializeOwned,
    {
        let objects = self.api::<K>(caller);
        let (uid, resource_version) = (Some(revision.uid.clone()), revision.resource_version.clone());
        let preconditions = Preconditions { uid, resource_version };
        let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let delete = || async {
            match existing(objects.delete(&revision.object, &parameters).await) {
                // It is judged again by the caller.
                Err(error) if classify(&error) == Answer::Conflict => Ok(()),
                answered => answered.map(drop),
            }
        };
        caller.call(&format!("delete the pending Helm revision `{}`", revision.object), delete).await
    }
}
