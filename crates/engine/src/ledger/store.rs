//! Where ledgers are: ConfigMaps that are written by compare-and-swap, under the epoch of a lease.

use super::{Ledger, later};
use crate::clock::Clock;
use crate::error::{Answer, Error, classify};
use crate::names::{self, FIELD_MANAGER, LEDGER, MANAGED_BY};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt as _};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a cluster that does not answer is asked again.
const PATIENCE: Duration = Duration::from_mins(5);

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
    epoch: u64,
    clock: Clock,
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
}

/// Whether a ledger was written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// It was.
    Yes,
    /// Somebody else wrote in between, or nobody knows: it has been read again.
    ReadAgain,
}

impl Books {
    /// The ledgers of a release, all read at once.
    pub(crate) async fn open(client: Client, owner: Owner, clock: Clock) -> Result<Self, Error> {
        let known = list(&client, &owner.namespace, &selector(&owner.labels), &clock).await?;
        let known = known.into_iter().map(|stored| (stored.name_any(), stored)).collect();
        let shelf = Shelf::Cluster { client, known: Arc::new(Mutex::new(known)) };
        Ok(Self { shelf, owner, epoch: 0, clock })
    }

    /// Ledgers that are nowhere but in memory.
    pub(crate) fn in_memory(owner: Owner, clock: Clock) -> Self {
        Self { shelf: Shelf::Memory(Arc::default()), owner, epoch: 0, clock }
    }

    /// The highest epoch under which any of them was written.
    pub(crate) fn highest_epoch(&self) -> u64 {
        let ledgers = self.snapshot();
        ledgers.values().filter_map(|ledger| ledger.as_ref().ok()).map(|ledger| ledger.head.epoch).max().unwrap_or(0)
    }

    /// The same ledgers, written under this epoch from now on.
    #[must_use]
    pub(crate) fn under(mut self, epoch: u64) -> Self {
        self.epoch = epoch;
        self
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
        let book = Book { books: self.clone(), name, labels: all, stored, ledger };
        book.check_epoch()?;
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
        next.head.epoch = self.books.epoch;
        let client = match &self.books.shelf {
            Shelf::Memory(ledgers) => {
                lock(ledgers).insert(self.name.clone(), next.clone());
                self.ledger = next;
                return Ok(Written::Yes);
            }
            Shelf::Cluster { client, .. } => client.clone(),
        };
        let maps = Api::<ConfigMap>::namespaced(client, &self.books.owner.namespace);
        let post = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let result = match &self.stored {
            None => maps.create(&post, &self.config_map(&next)).await,
            Some(stored) => {
                let mut changed = stored.clone();
                changed.data = Some(next.encode());
                changed.metadata.managed_fields = None;
                maps.replace(&self.name, &post, &changed).await
            }
        };
        match result {
            Ok(stored) => {
                self.stored = Some(stored);
                self.ledger = next;
                Ok(Written::Yes)
            }
            Err(error) => match classify(&error) {
                Answer::Refused => Err(Error::cluster(format!("write ledger `{}`", self.name), error)),
                // The namespace may be missing, too: then reading finds nothing and creating is refused with the reason.
                Answer::NotFound if self.stored.is_none() => {
                    Err(Error::cluster(format!("create ledger `{}`", self.name), error))
                }
                Answer::TryAgain(after) => {
                    tokio::time::sleep(after.unwrap_or(Duration::from_millis(500))).await;
                    self.read().await
                }
                Answer::NotFound | Answer::AlreadyExists | Answer::Conflict => self.read().await,
            },
        }
    }

    /// Reads the ledger again.
    async fn read(&mut self) -> Result<Written, Error> {
        let Shelf::Cluster { client, .. } = &self.books.shelf else { return Ok(Written::Yes) };
        let maps = Api::<ConfigMap>::namespaced(client.clone(), &self.books.owner.namespace);
        let doing = format!("read ledger `{}`", self.name);
        self.stored = patiently(&self.books.clock, &doing, || maps.get_opt(&self.name)).await?;
        self.ledger = self.stored.as_ref().map(decode).transpose()?.unwrap_or_default();
        self.check_epoch()?;
        Ok(Written::ReadAgain)
    }

    /// Whoever has written last under a higher epoch holds the lease now.
    fn check_epoch(&self) -> Result<(), Error> {
        if self.ledger.head.epoch > self.books.epoch && self.books.epoch > 0 {
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
    clock: &Clock,
) -> Result<Vec<(BTreeMap<String, String>, Result<Ledger, Error>)>, Error> {
    let found = list(client, namespace, &selector(labels), clock).await?;
    Ok(found.into_iter().map(|stored| (stored.labels().clone(), decode(&stored))).collect())
}

fn selector(labels: &BTreeMap<String, String>) -> String {
    let ledger = (LEDGER.to_owned(), "1".to_owned());
    let all = labels.iter().filter(|(key, _)| *key != MANAGED_BY).chain(std::iter::once((&ledger.0, &ledger.1)));
    all.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

async fn list(client: &Client, namespace: &str, selector: &str, clock: &Clock) -> Result<Vec<ConfigMap>, Error> {
    let maps = Api::<ConfigMap>::namespaced(client.clone(), namespace);
    let parameters = ListParams::default().labels(selector);
    let doing = format!("list the ledgers in namespace `{namespace}`");
    Ok(patiently(clock, &doing, || maps.list(&parameters)).await?.items)
}

/// Asks until the cluster answers, within reason.
pub(crate) async fn patiently<T, F>(clock: &Clock, doing: &str, mut ask: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = kube::Result<T>>,
{
    let end = later(clock.now(), PATIENCE);
    let mut wait = Duration::from_millis(250);
    loop {
        let error = match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        match classify(&error) {
            Answer::TryAgain(after) if clock.now() < end => {
                tokio::time::sleep(after.unwrap_or(wait)).await;
                wait = (wait * 2).min(Duration::from_secs(10));
            }
            Answer::Conflict if clock.now() < end => tokio::time::sleep(wait).await,
            _ => return Err(Error::cluster(doing, error)),
        }
    }
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
