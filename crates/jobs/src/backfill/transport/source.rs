//! Where something secret is: in a file, or in a Secret. Arguments and plans only say where.

use jobwright_engine::{Refusal, bounded};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
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
/// How long a file may take.
const LIMIT: Duration = Duration::from_secs(10);

impl Source {
    /// A key of a Secret.
    pub fn secret(client: &Client, namespace: &str, name: &str, key: &str) -> Self {
        let secrets = Api::namespaced(bounded(client), namespace);
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
                // It may be a pipe, of which neither an end nor a size is known.
                let read = async {
                    let mut bytes = Vec::new();
                    tokio::fs::File::open(path).await?.take(LARGEST + 1).read_to_end(&mut bytes).await?;
                    std::io::Result::Ok(bytes)
                };
                match tokio::time::timeout(LIMIT, read).await {
                    Ok(Ok(bytes)) if bytes.len() as u64 > LARGEST => {
                        Err(format!("cannot read {self}: it is too large"))
                    }
                    Ok(Ok(bytes)) => Ok(bytes),
                    Ok(Err(error)) => Err(format!("cannot read {self}: {error}")),
                    Err(_) => Err(format!("cannot read {self}: no answer within {}s", LIMIT.as_secs())),
                }
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
