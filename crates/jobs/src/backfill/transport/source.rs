//! Where something secret is: in a file, or in a Secret. Arguments and plans only say where.

use jobwright_engine::Refusal;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Where something secret is.
#[derive(Clone)]
pub enum Source {
    /// In a file, which may be replaced at any time.
    File(PathBuf),
    /// In a key of a Secret, which is looked at again from time to time.
    Secret(Arc<SecretKey>),
}

/// A key of a Secret.
pub struct SecretKey {
    secrets: Api<Secret>,
    name: String,
    key: String,
    /// What was there, and when.
    seen: Mutex<Option<(Instant, Vec<u8>)>>,
}

/// How long what was seen in a Secret is good.
const FRESH: Duration = Duration::from_secs(30);
/// The largest file that can be a secret.
const LARGEST: u64 = 1024 * 1024;

impl Source {
    /// A key of a Secret.
    pub fn secret(client: &Client, namespace: &str, name: &str, key: &str) -> Self {
        let secrets = Api::namespaced(client.clone(), namespace);
        Self::Secret(Arc::new(SecretKey {
            secrets,
            name: name.to_owned(),
            key: key.to_owned(),
            seen: Mutex::default(),
        }))
    }

    /// Forgets what was seen.
    pub(crate) async fn forget(&self) {
        if let Self::Secret(secret) = self {
            *secret.seen.lock().await = None;
        }
    }

    /// What is there now.
    pub(crate) async fn read(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::File(path) => {
                let read = async {
                    let size = tokio::fs::metadata(path).await?.len();
                    if size > LARGEST {
                        return Err(std::io::Error::other("it is too large"));
                    }
                    tokio::fs::read(path).await
                };
                read.await.map_err(|error| format!("cannot read {self}: {error}"))
            }
            Self::Secret(secret) => secret.read().await,
        }
    }
}

impl SecretKey {
    async fn read(&self) -> Result<Vec<u8>, String> {
        let mut seen = self.seen.lock().await;
        if let Some((at, value)) = &*seen
            && at.elapsed() < FRESH
        {
            return Ok(value.clone());
        }
        let found = self.secrets.get(&self.name).await;
        let found = found.map_err(|error| format!("cannot read {self}: {}", Refusal::from(error)))?;
        let value = found.data.and_then(|mut data| data.remove(&self.key));
        let value = value.ok_or_else(|| format!("{self} is not there: the Secret has no such key"))?.0;
        *seen = Some((Instant::now(), value.clone()));
        Ok(value)
    }
}

impl fmt::Display for SecretKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "key `{}` of Secret `{}`", self.key, self.name)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(formatter, "`{}`", path.display()),
            Self::Secret(secret) => write!(formatter, "{secret}"),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Source({self})")
    }
}
