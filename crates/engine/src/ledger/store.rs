//! Where ledgers are: ConfigMaps that are written by compare-and-swap, under the fence of a lease.

use super::Ledger;
use crate::error::{Answer, Error, classify};
use crate::fence::{Fence, Known};
use crate::names::{self, FIELD_MANAGER, LEDGER, MANAGED_BY};
use crate::retry::{Outage, Retry};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt as _};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Who a ledger belongs to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owner {
    /// The namespace.
    pub(crate) namespace: String,
    /// The release, or the uid of what owns it.
    pub(crate) identity: String,
    /// What names begin with.
    pub(crate) base: String,
    /// The labels of what is made for it.
    pub(crate) labels: BTreeMap<String, String>,
    /// What it goes with.
    pub(crate) reference: Option<OwnerReference>,
}

impl Owner {
    /// The name of the ledger of a job.
    pub(crate) fn ledger_name(&self, job: &str) -> String {
        names::record(&format!("{}-{job}", self.base), &[&self.namespace, &self.identity, job])
    }
}

/// The ledgers of a release. Clones share them.
#[derive(Clone)]
pub(crate) struct Books {
    shelf: Shelf,
    owner: Owner,
    /// The holder that writes; none for those who only read.
    fence: Option<Fence>,
    retry: Retry,
}

#[derive(Clone)]
enum Shelf {
    Cluster {
        client: Client,
        known: Arc<Mutex<BTreeMap<String, ConfigMap>>>,
    },
    /// For embedding and measuring without a cluster.
    Memory(Arc<Mutex<BTreeMap<String, Ledger>>>),
}

/// The ledger of one job, as it was read last.
pub(crate) struct Book {
    books: Books,
    name: String,
    labels: BTreeMap<String, String>,
    /// What it was read from; none if there is none yet.
    stored: Option<ConfigMap>,
    ledger: Ledger,
    /// Writes that keep failing.
    outage: Outage,
}

/// Whether a ledger was written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// It was.
    Yes,
    /// Another client wrote in between, or the answer was lost: it has been read again.
    ReadAgain,
}

impl Books {
    /// The ledgers of a release, all read in one call. They are written under the fence, if there is one.
    pub(crate) async fn open(client: Client, owner: Owner, fence: Option<Fence>, retry: Retry) -> Result<Self, Error> {
        let known = list(&client, &owner.namespace, &selector(&owner.labels), &retry).await?;
        let known = known.into_iter().map(|stored| (stored.name_any(), stored)).collect();
        let shelf = Shelf::Cluster { client, known: Arc::new(Mutex::new(known)) };
        Ok(Self { shelf, owner, fence, retry })
    }

    /// The same ledgers, read again.
    pub(crate) async fn open_again(&self) -> Result<Self, Error> {
        match &self.shelf {
            Shelf::Memory(_) => Ok(self.clone()),
            Shelf::Cluster { client, .. } => {
                let (client, owner) = (client.clone(), self.owner.clone());
                Self::open(client, owner, self.fence.clone(), self.retry.clone()).await
            }
        }
    }

    /// Ledgers that are nowhere but in memory.
    pub(crate) fn in_memory(owner: Owner, retry: Retry) -> Self {
        Self { shelf: Shelf::Memory(Arc::default()), owner, fence: None, retry }
    }

    /// The fence of another Lease under which one of them was written.
    pub(crate) fn other_fence(&self) -> Option<Fence> {
        let ours = self.fence.as_ref().map(|fence| fence.lease.as_str());
        let fences = self.snapshot().into_values().flatten().filter_map(|ledger| ledger.head.fence);
        fences.into_iter().find(|fence| Some(fence.lease.as_str()) != ours)
    }

    /// The ledgers as they were read first, by the job they are of.
    pub(crate) fn snapshot(&self) -> BTreeMap<String, Result<Ledger, Error>> {
        match &self.shelf {
            Shelf::Memory(ledgers) => {
                lock(ledgers).iter().map(|(job, ledger)| (job.clone(), Ok(ledger.clone()))).collect()
            }
            Shelf::Cluster { known, .. } => lock(known)
                .values()
                .filter_map(|stored| Some((stored.labels().get(names::JOB)?.clone(), decode(stored))))
                .collect(),
        }
    }

    /// The ledger of a job.
    pub(crate) fn book(&self, job: &str, labels: BTreeMap<String, String>) -> Result<Book, Error> {
        let mut all = self.owner.labels.clone();
        all.extend(labels);
        all.insert(names::JOB.to_owned(), job.to_owned());
        all.insert(LEDGER.to_owned(), "1".to_owned());
        let (name, stored, ledger) = match &self.shelf {
            Shelf::Memory(ledgers) => (job.to_owned(), None, lock(ledgers).get(job).cloned().unwrap_or_default()),
            Shelf::Cluster { known, .. } => {
                let name = self.owner.ledger_name(job);
                let stored = lock(known).get(&name).cloned();
                let ledger = stored.as_ref().map(decode).transpose()?.unwrap_or_default();
                (name, stored, ledger)
            }
        };
        let book = Book { books: self.clone(), name, labels: all, stored, ledger, outage: Outage::default() };
        book.check_fence(Known::Nothing)?;
        Ok(book)
    }
}

impl Book {
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What tells this ledger's life from that of another one with the same name.
    pub(crate) fn uid(&self) -> String {
        self.stored.as_ref().and_then(kube::ResourceExt::uid).unwrap_or_default()
    }

    /// Writes the next ledger, if this one is still the last.
    pub(crate) async fn write(&mut self, mut next: Ledger) -> Result<Written, Error> {
        next.head.fence.clone_from(&self.books.fence);
        let client = match &self.books.shelf {
            Shelf::Memory(ledgers) => {
                lock(ledgers).insert(self.name.clone(), next.clone());
                self.ledger = next;
                return Ok(Written::Yes);
            }
            Shelf::Cluster { client, .. } => client.clone(),
        };
        let maps = Api::<ConfigMap>::namespaced(client, &self.books.owner.namespace);
        let result = match self.put(&maps, &next).await {
            // What has happened is recorded in any case, if need be without what was printed.
            Err(error) if is_too_large(&error) => {
                next = next.without_logs();
                self.put(&maps, &next).await
            }
            result => result,
        };
        let error = match result {
            Ok(stored) => {
                self.stored = Some(stored);
                self.ledger = next;
                self.outage = Outage::default();
                return Ok(Written::Yes);
            }
            Err(error) => error,
        };
        let doing = format!("write ledger `{}`", self.name);
        match classify(&error) {
            Answer::Refused | Answer::LostLease => return Err(Error::cluster(doing, error)),
            // The namespace is missing.
            Answer::NotFound if self.stored.is_none() => return Err(Error::cluster(doing, error)),
            Answer::TryAgain(_) | Answer::NotFound | Answer::AlreadyExists | Answer::Conflict => {
                self.books.retry.pause(&mut self.outage, &doing, error).await?;
            }
        }
        self.read().await
    }

    async fn put(&self, maps: &Api<ConfigMap>, next: &Ledger) -> kube::Result<ConfigMap> {
        let post = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let retry = &self.books.retry;
        match &self.stored {
            None => retry.attempt(maps.create(&post, &self.config_map(next))).await,
            Some(stored) => {
                let mut changed = stored.clone();
                changed.data = Some(next.encode());
                changed.metadata.managed_fields = None;
                retry.attempt(maps.replace(&self.name, &post, &changed)).await
            }
        }
    }

    /// Reads the ledger again.
    async fn read(&mut self) -> Result<Written, Error> {
        let Shelf::Cluster { client, .. } = &self.books.shelf else { return Ok(Written::Yes) };
        let maps = Api::<ConfigMap>::namespaced(client.clone(), &self.books.owner.namespace);
        let doing = format!("read ledger `{}`", self.name);
        let before = self.ledger.head.fence.clone();
        self.stored = self.books.retry.call(&doing, || maps.get_opt(&self.name)).await?;
        self.ledger = self.stored.as_ref().map(decode).transpose()?.unwrap_or_default();
        self.check_fence(Known::Fence(before.as_ref()))?;
        Ok(Written::ReadAgain)
    }

    /// A ledger that another holder has written since is that holder's.
    fn check_fence(&self, known: Known<'_>) -> Result<(), Error> {
        let written = self.ledger.head.fence.as_ref();
        if self.books.fence.as_ref().is_some_and(|ours| ours.is_broken_by(written, known)) {
            return Err(Error::LostLease { name: self.name.clone() });
        }
        Ok(())
    }

    fn config_map(&self, ledger: &Ledger) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(self.labels.clone()),
                owner_references: self.books.owner.reference.clone().map(|reference| vec![reference]),
                ..ObjectMeta::default()
            },
            data: Some(ledger.encode()),
            ..ConfigMap::default()
        }
    }
}

/// Ledgers in a namespace, by the labels of what they belong to. For those who only read.
pub async fn read_ledgers(
    client: &Client,
    namespace: &str,
    labels: &BTreeMap<String, String>,
    retry: &Retry,
) -> Result<Vec<(BTreeMap<String, String>, Result<Ledger, Error>)>, Error> {
    let found = list(client, namespace, &selector(labels), retry).await?;
    Ok(found.into_iter().map(|stored| (stored.labels().clone(), decode(&stored))).collect())
}

fn selector(labels: &BTreeMap<String, String>) -> String {
    let ledger = (LEDGER.to_owned(), "1".to_owned());
    let all = labels.iter().filter(|(key, _)| *key != MANAGED_BY).chain(std::iter::once((&ledger.0, &ledger.1)));
    all.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

async fn list(client: &Client, namespace: &str, selector: &str, retry: &Retry) -> Result<Vec<ConfigMap>, Error> {
    let maps = Api::<ConfigMap>::namespaced(client.clone(), namespace);
    let parameters = ListParams::default().labels(selector);
    let doing = format!("list the ledgers in namespace `{namespace}`");
    Ok(retry.call(&doing, || maps.list(&parameters)).await?.items)
}

/// Whether the API server refuses an object for its size: 413 from a limit on requests, 422 from the one on ConfigMaps.
fn is_too_large(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let is_too_long = causes.into_iter().any(|cause| cause.reason == "FieldValueTooLong");
    status.code == 413 || (status.code == 422 && is_too_long)
}

fn decode(stored: &ConfigMap) -> Result<Ledger, Error> {
    let nothing = BTreeMap::new();
    Ledger::decode(stored.data.as_ref().unwrap_or(&nothing))
        .map_err(|source| Error::Ledger { name: stored.name_any(), source })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
