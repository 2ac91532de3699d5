//! A backfill with everything that goes with it: where it goes, what it waits for, what it keeps, and the lock.

use super::checkpoint::{self, CheckpointStore, ConfigMapCheckpoint, FileCheckpoint, Kept};
use super::force;
use super::rbac::Needs;
use super::secrets::SecretValues;
use super::sinks::{Address, Compression, Naming, Objects, Sinks};
use super::stopping::Stop;
use super::transport::{Credentials, Source, TlsSources};
use super::wait::{Wait, Waiter};
use super::{Backfill, Error, Summary, Surroundings};
use crate::mark::Mark;
use http::HeaderName;
use jobwright_engine::{Claim, Lease, Retry, bounded, record_name};
use kube::Client;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A backfill with everything that goes with it, as a command line or a plan says it.
#[derive(Clone, Debug)]
pub struct Task {
    /// What is captured, and how.
    pub backfill: Backfill,
    /// Where it goes.
    pub sink: Address,
    /// How lines are compressed; a file by what its name says, if nothing is said.
    pub compression: Option<Compression>,
    /// What requests are allowed by.
    pub auth: Option<Auth>,
    /// Certificates.
    pub tls: TlsPlaces,
    /// How series are named.
    pub naming: Naming,
    /// How object storage is reached.
    pub objects: ObjectPlaces,
    /// Where it is written down how far it has come.
    pub checkpoint: Option<CheckpointPlace>,
    /// The ConfigMap of the release that shows whether a deploy was forced: then what was complete is done again. Needs
    /// a checkpoint in a ConfigMap, and [`Backfill::once`].
    pub mark: Option<Mark>,
    /// Do nothing unless a forced deploy asks for it. Needs `mark`.
    pub only_if_forced: bool,
    /// The Lease that only one holds at a time. A checkpoint in a ConfigMap has one of its own, if nothing is said.
    pub lock: Option<String>,
    /// How long to wait for whoever holds it.
    pub lock_wait: Duration,
    /// What has to be there before it begins.
    pub waits: Vec<Wait>,
    /// How long to wait for that.
    pub wait_timeout: Duration,
}

/// Where something secret is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a file.
    File(PathBuf),
    /// In a key of a Secret, in the namespace of the backfill.
    Secret {
        /// The Secret.
        name: String,
        /// The key.
        key: String,
    },
}

/// What requests are allowed by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    /// The header; `Authorization` with a bearer token if none.
    pub header: Option<HeaderName>,
    /// Where its value is.
    pub secret: Place,
}

/// Where certificates are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsPlaces {
    /// Whom to trust, instead of those that the system trusts.
    pub authority: Option<Place>,
    /// Who we are: a certificate with its chain, and its key.
    pub identity: Option<(Place, Place)>,
}

/// How object storage is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectPlaces {
    /// The address of a server, instead of the provider's own.
    pub endpoint: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// The bucket comes in the path.
    pub path_style: bool,
    /// What the environment says: `AWS_…` and the like. It may be secret.
    pub environment: Environment,
}

/// Variables of the environment. Their values are not shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(pub BTreeMap<String, String>);

impl std::fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

/// Where it is written down how far a backfill has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointPlace {
    /// In a file.
    File(PathBuf),
    /// In a ConfigMap.
    ConfigMap(String),
}

/// A text that names no place for a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no place for a checkpoint: file:PATH and configmap:NAME are")]
pub struct NoCheckpointPlace(String);

impl std::str::FromStr for CheckpointPlace {
    type Err = NoCheckpointPlace;

    fn from_str(text: &str) -> Result<Self, NoCheckpointPlace> {
        match text.split_once(':') {
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            Some(("configmap", name)) if !name.is_empty() && !name.contains('/') => {
                Ok(Self::ConfigMap(name.to_owned()))
            }
            _ => Err(NoCheckpointPlace(text.to_owned())),
        }
    }
}

/// Where a task is carried out.
pub struct Setting {
    /// The cluster, the clock, and who listens.
    pub surroundings: Surroundings,
    /// The namespace of checkpoint, lock and Secrets.
    pub namespace: String,
    /// Who carries it out: a text that nobody else has.
    pub holder: String,
    /// Where lines go that are to be printed.
    pub stdout: Box<dyn Write + Send>,
    /// Tells it to stop.
    pub cancellation: CancellationToken,
}

impl Task {
    /// A backfill to an address, and nothing that goes with it.
    pub fn new(sink: Address) -> Self {
        Self {
            backfill: Backfill::default(),
            sink,
            compression: None,
            auth: None,
            tls: TlsPlaces::default(),
            naming: Naming::default(),
            objects: ObjectPlaces::default(),
            checkpoint: None,
            mark: None,
            only_if_forced: false,
            lock: None,
            lock_wait: Duration::from_mins(10),
            waits: Vec::new(),
            wait_timeout: Duration::from_mins(10),
        }
    }

    /// Carries it out: waits for what has to be there and for the lock, and runs.
    pub async fn run(&self, setting: Setting) -> Result<Summary, Error> {
        // It is large, and would make everything large that waits for it.
        Box::pin(self.carry_out(setting)).await
    }

    async fn carry_out(&self, setting: Setting) -> Result<Summary, Error> {
        let Setting { surroundings, namespace, holder, stdout, cancellation } = setting;
        let client = bounded(&surroundings.client);
        let store = self.store(&client, &namespace, surroundings.retry(&CancellationToken::new()));
        let lost = CancellationToken::new();
        let stop = Stop::new(cancellation.clone(), lost.clone());
        // Neither what it would wait for nor the lock is needed to see that there is nothing to do.
        let forced = self.after_forced_deploys(&surroundings, &namespace, &cancellation);
        let backfill = Box::pin(stop.begin(forced)).await?;
        let kept = match store {
            Some(store) => Some(stop.begin(Kept::open(store, &surroundings)).await?),
            None => None,
        };
        if let (Some(once), Some(kept)) = (&backfill.once, &kept) {
            let found = stop.begin(async { Ok(kept.load().await?) }).await?;
            if let Some(completed) = checkpoint::find_completed(found.as_ref(), Some(once), surroundings.clock.now()) {
                return Ok(Summary::keep(completed, self.sink.to_string()));
            }
            if self.only_if_forced && !force::is_owed(found.as_ref(), once) {
                return Ok(Summary::skip("no deploy was forced", self.sink.to_string()));
            }
        }
        let tls = self.tls.open(&client, &namespace);
        let waiter = Waiter { client: &client, namespace: &namespace, tls: &tls, listener: &surroundings.listener };
        waiter.wait(&self.waits, self.wait_timeout, &cancellation).await?;
        let sinks = self.sinks(&client, &namespace, tls, &surroundings);
        let sink = stop.begin(async { Ok(sinks.open(&self.sink, stdout).await?) }).await?;
        let Some(name) = self.lock_name(&namespace) else {
            return Box::pin(backfill.run_until(surroundings, sink, kept, stop)).await;
        };
        let claim = Claim {
            namespace,
            name: name.clone(),
            holder,
            labels: BTreeMap::from([("jobwright.io/backfill".to_owned(), "1".to_owned())]),
            patience: self.lock_wait,
        };
        let lease = take(&surroundings, claim, &cancellation).await?;
        let mut run = pin!(backfill.run_until(surroundings, sink, kept, stop));
        let result = tokio::select! {
            result = &mut run => {
                lease.release().await;
                return result;
            }
            () = lease.lost() => {
                lost.cancel();
                run.await
            }
        };
        match result {
            Err(Error::Cancelled) => Err(Error::Lock(jobwright_engine::Error::LostLease { name })),
            result => result.map(|summary| Summary {
                stopped: Some(
                    "the lock was lost: it could not be renewed in time, or another process took it".to_owned(),
                ),
                ..summary
            }),
        }
    }

    /// What it does in a cluster.
    pub async fn needs(&self, client: &Client, namespace: &str, retry: &Retry) -> Result<Needs, Error> {
        let (_, kinds) = self.backfill.discover(client, retry).await?;
        let TlsPlaces { authority, identity } = &self.tls;
        let identity = identity.iter().flat_map(|(certificate, key)| [certificate, key]);
        let places = self.auth.iter().map(|auth| &auth.secret).chain(authority).chain(identity);
        let secrets: BTreeSet<String> = places
            .filter_map(|place| match place {
                Place::Secret { name, .. } => Some(name.clone()),
                Place::File(_) => None,
            })
            .collect();
        Ok(Needs {
            kinds,
            namespaces: self.backfill.namespaces.clone(),
            namespace: namespace.to_owned(),
            checkpoint: match &self.checkpoint {
                Some(CheckpointPlace::ConfigMap(name)) => Some(name.clone()),
                _ => None,
            },
            identity: self.checkpoint.is_some(),
            mark: self.mark.as_ref().map(|mark| mark.config_map.clone()),
            lock: self.lock_name(namespace),
            secret_values: self.backfill.secret_values == SecretValues::Require,
            secrets,
        })
    }

    /// The Lease of whoever carries it out.
    fn lock_name(&self, namespace: &str) -> Option<String> {
        match (&self.lock, &self.checkpoint) {
            (Some(name), _) => Some(name.clone()),
            (None, Some(CheckpointPlace::ConfigMap(name))) => Some(record_name(name, &["backfill", namespace, name])),
            (None, _) => None,
        }
    }

    fn store(&self, client: &Client, namespace: &str, retry: Retry) -> Option<Arc<dyn CheckpointStore>> {
        Some(match self.checkpoint.as_ref()? {
            CheckpointPlace::File(path) => Arc::new(FileCheckpoint::new(path)),
            CheckpointPlace::ConfigMap(name) => Arc::new(ConfigMapCheckpoint::new(client, namespace, name, retry)),
        })
    }

    fn sinks(&self, client: &Client, namespace: &str, tls: TlsSources, surroundings: &Surroundings) -> Sinks {
        let credentials = self.auth.as_ref().map(|auth| {
            let secret = auth.secret.open(client, namespace);
            match &auth.header {
                Some(header) => Credentials { header: header.clone(), prefix: String::new(), secret },
                None => Credentials::bearer(secret),
            }
        });
        let ObjectPlaces { endpoint, region, path_style, environment } = self.objects.clone();
        Sinks {
            compression: self.compression,
            tls,
            naming: self.naming.clone(),
            objects: Objects {
                endpoint,
                region,
                path_style,
                credentials: credentials.as_ref().map(|credentials| credentials.secret.clone()),
                environment: environment.0,
            },
            credentials,
            has_checkpoint: self.checkpoint.is_some(),
            clock: surroundings.clock.clone(),
        }
    }
}

impl Place {
    fn open(&self, client: &Client, namespace: &str) -> Source {
        match self {
            Self::File(path) => Source::File(path.clone()),
            Self::Secret { name, key } => Source::secret(client, namespace, name, key),
        }
    }
}

impl TlsPlaces {
    fn open(&self, client: &Client, namespace: &str) -> TlsSources {
        let open = |place: &Place| place.open(client, namespace);
        TlsSources {
            authority: self.authority.as_ref().map(open),
            identity: self.identity.as_ref().map(|(certificate, key)| (open(certificate), open(key))),
        }
    }
}

/// Takes the lock. The listener hears which process it waits for.
async fn take(surroundings: &Surroundings, claim: Claim, cancellation: &CancellationToken) -> Result<Lease, Error> {
    let (name, events) = (claim.name.clone(), surroundings.events());
    let taken = tokio::select! {
        taken = Lease::take(&surroundings.client, claim, &surroundings.clock, &events) => taken,
        () = cancellation.cancelled() => return Err(Error::Cancelled),
    };
    taken.map_err(|error| match error {
        jobwright_engine::Error::Busy { holder, waited } => Error::Busy { name, holder, waited },
        error => Error::Lock(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_checkpoints_are_read() {
        assert_eq!("file:/tmp/a".parse(), Ok(CheckpointPlace::File("/tmp/a".into())));
        assert_eq!("configmap:a".parse(), Ok(CheckpointPlace::ConfigMap("a".to_owned())));
        for text in ["", "file:", "configmap:", "configmap:a/b", "secret:a", "a"] {
            assert!(text.parse::<CheckpointPlace>().is_err(), "{text}");
        }
    }

    #[test]
    fn who_keeps_a_checkpoint_in_a_cluster_is_alone_and_so_is_who_asks_for_it() {
        let task = Task::new(Address::Stdout);
        assert_eq!(task.lock_name("shop"), None);
        let file = Task { checkpoint: Some(CheckpointPlace::File("a".into())), ..task.clone() };
        assert_eq!(file.lock_name("shop"), None);
        let map = Task { checkpoint: Some(CheckpointPlace::ConfigMap("a".to_owned())), ..task.clone() };
        let named = Task { lock: Some("a".to_owned()), ..task };
        assert_eq!(named.lock_name("shop").as_deref(), Some("a"));
        assert_ne!(map.lock_name("shop"), map.lock_name("other"));
    }

    #[test]
    fn what_the_environment_says_is_not_shown() {
        let environment = Environment(BTreeMap::from([("AWS_SECRET_ACCESS_KEY".to_owned(), "s3cret".to_owned())]));
        assert_eq!(format!("{environment:?}"), "{\"AWS_SECRET_ACCESS_KEY\"}");
    }
}
