//! The helm on the search path, and the releases that it keeps in a cluster.

use crate::failure;
use jobwright_engine::Failure;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Preconditions};
use kube::{Resource, ResourceExt as _};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use tokio::sync::Mutex;

/// A helm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Helm {
    /// The program.
    pub program: PathBuf,
    /// What it calls itself: `3.17.3`.
    pub version: String,
    /// What every call gets: `--kubeconfig`, `--kube-context`.
    pub arguments: Vec<String>,
}

/// A helm that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HelmError {
    /// It cannot be started.
    #[error("helm cannot be started: {0}")]
    Missing(String),
    /// It is none that we know.
    #[error("`{program}` says that it is `{said}`, and Helm 3 and 4 are known")]
    Unknown {
        /// The program.
        program: String,
        /// What it says.
        said: String,
    },
}

impl Helm {
    /// Asks a helm what it is.
    pub async fn probe(program: &Path, arguments: Vec<String>) -> Result<Self, HelmError> {
        let output = tokio::process::Command::new(program)
            .args(["version", "--template", "{{.Version}}"])
            .stdin(Stdio::null())
            .output()
            .await
            .map_err(|error| HelmError::Missing(error.to_string()))?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let version = said.strip_prefix('v').unwrap_or(&said).to_owned();
        match version.split('.').next() {
            Some("3" | "4") => Ok(Self { program: program.to_owned(), version, arguments }),
            _ => Err(HelmError::Unknown { program: program.display().to_string(), said }),
        }
    }
}

/// A revision of a Helm release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Revision {
    pub(crate) number: u64,
    pub(crate) status: String,
    object: String,
    uid: String,
}

impl Revision {
    /// Whether a helm is at it, or was killed while it was.
    pub(crate) fn is_pending(&self) -> bool {
        self.status.starts_with("pending-") || self.status == "uninstalling"
    }
}

/// Where helm keeps its releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// In Secrets, as it does by itself.
    Secrets,
    /// In ConfigMaps.
    ConfigMaps,
}

/// The Helm releases of a namespace, listed once for all. Clones share the list.
#[derive(Clone)]
pub(crate) struct HelmReleases {
    client: Client,
    namespace: String,
    driver: Driver,
    listed: Arc<Mutex<Option<BTreeMap<String, Revision>>>>,
}

impl HelmReleases {
    /// The releases of a namespace.
    pub(crate) fn new(client: Client, namespace: &str, driver: Driver) -> Self {
        Self { client, namespace: namespace.to_owned(), driver, listed: Arc::default() }
    }

    /// The last revision of a release.
    pub(crate) async fn last(&self, release: &str) -> Result<Option<Revision>, Failure> {
        let mut listed = self.listed.lock().await;
        if listed.is_none() {
            *listed = Some(self.list("owner=helm").await?);
        }
        Ok(listed.as_ref().and_then(|releases| releases.get(release).cloned()))
    }

    /// The last revision of a release, asked for again.
    pub(crate) async fn last_now(&self, release: &str) -> Result<Option<Revision>, Failure> {
        Ok(self.list(&format!("owner=helm,name={release}")).await?.remove(release))
    }

    async fn list(&self, selector: &str) -> Result<BTreeMap<String, Revision>, Failure> {
        match self.driver {
            Driver::Secrets => self.list_of::<Secret>(selector).await,
            Driver::ConfigMaps => self.list_of::<ConfigMap>(selector).await,
        }
    }

    /// Only metadata: what is in a release is none of our business, and large.
    async fn list_of<K>(&self, selector: &str) -> Result<BTreeMap<String, Revision>, Failure>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope> + Clone + std::fmt::Debug,
        K: serde::de::DeserializeOwned,
    {
        let objects = Api::<K>::namespaced(self.client.clone(), &self.namespace);
        let doing = || format!("cannot list the Helm releases of namespace `{}`", self.namespace);
        let found = objects.list_metadata(&ListParams::default().labels(selector)).await;
        let mut releases: BTreeMap<String, Revision> = BTreeMap::new();
        for object in found.map_err(|error| failure(doing(), error))?.items {
            let label = |key: &str| object.labels().get(key).cloned().unwrap_or_default();
            let revision = Revision {
                number: label("version").parse().unwrap_or_default(),
                status: label("status"),
                object: object.name_any(),
                uid: object.uid().unwrap_or_default(),
            };
            let last = releases.entry(label("name")).or_insert_with(|| revision.clone());
            if revision.number > last.number {
                *last = revision;
            }
        }
        Ok(releases)
    }

    /// Takes away a revision that a killed helm has left half done, so that the one before it is the last again.
    pub(crate) async fn forget(&self, revision: &Revision) -> Result<(), Failure> {
        let parameters = DeleteParams {
            preconditions: Some(Preconditions { uid: Some(revision.uid.clone()), resource_version: None }),
            ..DeleteParams::default()
        };
        let (client, namespace) = (self.client.clone(), &self.namespace);
        let deleted = match self.driver {
            Driver::Secrets => {
                Api::<Secret>::namespaced(client, namespace).delete(&revision.object, &parameters).await.map(drop)
            }
            Driver::ConfigMaps => {
                Api::<ConfigMap>::namespaced(client, namespace).delete(&revision.object, &parameters).await.map(drop)
            }
        };
        match deleted {
            Ok(()) => Ok(()),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            Err(error) => Err(failure(format!("cannot take away `{}`", revision.object), error)),
        }
    }
}
