//! From an address and what goes with it to a sink.

use super::{Address, Compression, FileSink, HttpSink, ObjectStorageSink, RemoteWriteSink, Sink, WriterSink};
use crate::backfill::transport::{Credentials, Source, TlsSources, Transport};
use jobwright_engine::Clock;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// How series are named.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Naming {
    /// What names of metrics begin with.
    pub prefix: String,
    /// Whether names are made to fit Prometheus. Otherwise keys stay as they are, as the CloudZero agent sends them.
    pub is_legal: bool,
}

impl Default for Naming {
    fn default() -> Self {
        Self { prefix: "cloudzero".to_owned(), is_legal: true }
    }
}

/// How object storage is reached.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// The address of a server, instead of the provider's own.
    pub endpoint: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// The bucket comes in the path instead of in the name of the host.
    pub path_style: bool,
    /// A file with credentials: `NAME=VALUE`, or as the provider's own tools write it.
    pub credentials: Option<Source>,
    /// What the environment says: `AWS_…` and the like.
    pub environment: BTreeMap<String, String>,
}

/// What goes with an address.
#[derive(Clone)]
pub struct Sinks {
    /// How lines are compressed; a file by what its name says, if nothing is said.
    pub compression: Option<Compression>,
    /// What requests are allowed by.
    pub credentials: Option<Credentials>,
    /// Certificates.
    pub tls: TlsSources,
    /// How series are named.
    pub naming: Naming,
    /// How object storage is reached.
    pub objects: Objects,
    /// Whether a checkpoint is kept, so that a file that is half done can be gone on with.
    pub has_checkpoint: bool,
    /// What time it is.
    pub clock: Clock,
}

/// Why a sink cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(pub String);

impl Sinks {
    /// Nothing goes with it.
    pub fn plain(clock: Clock) -> Self {
        Self {
            compression: None,
            credentials: None,
            tls: TlsSources::default(),
            naming: Naming::default(),
            objects: Objects::default(),
            has_checkpoint: false,
            clock,
        }
    }

    /// Opens a sink. `stdout` is where lines go that are to be printed.
    pub async fn open(
        &self,
        address: &Address,
        stdout: impl Write + Send + 'static,
    ) -> Result<Arc<dyn Sink>, OpenError> {
        let compression = self.compression.unwrap_or_default();
        let transport = || Transport::new(self.tls.clone());
        let (credentials, clock) = (self.credentials.clone(), self.clock.clone());
        Ok(match address {
            Address::Stdout => Arc::new(WriterSink::new("stdout", compression, Arc::new(Mutex::new(stdout)))),
            Address::File(path) => {
                let compression = self.compression.unwrap_or_else(|| guess(path));
                Arc::new(FileSink::new(path, compression, self.has_checkpoint))
            }
            Address::Http(uri) => Arc::new(HttpSink::new(uri.clone(), compression, transport(), credentials, clock)),
            Address::RemoteWrite(_) if compression != Compression::None => {
                return Err(OpenError("remote write has a compression of its own".to_owned()));
            }
            Address::RemoteWrite(uri) => {
                Arc::new(RemoteWriteSink::new(uri.clone(), self.naming.clone(), transport(), credentials, clock))
            }
            Address::Objects { scheme, bucket, prefix } => {
                let store = self.objects.open(scheme, bucket, transport()).await?;
                let name = address.to_string();
                let (server, secrets) = (self.objects.server().await?, self.objects.secrets().await?);
                Arc::new(ObjectStorageSink::new(store, &name, prefix, compression).at(server).hiding(secrets))
            }
        })
    }
}

/// What the name of a file says of its compression.
fn guess(path: &Path) -> Compression {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("zst") => Compression::Zstd,
        Some("gz") => Compression::Gzip,
        _ => Compression::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "one"), ("AWS_SECRET_ACCESS_KEY", "s3cret")];

    async fn identity(change: impl Fn(&mut Objects)) -> serde_json::Value {
        let mut sinks = Sinks::plain(Clock::new(|| Timestamp::UNIX_EPOCH));
        sinks.objects = Objects {
            endpoint: Some("http://one.example".to_owned()),
            region: Some("eu".to_owned()),
            environment: KEYS.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            ..Objects::default()
        };
        change(&mut sinks.objects);
        let sink = sinks.open(&"s3://bucket/prefix".parse().unwrap(), std::io::sink()).await.unwrap();
        sink.identity()
    }

    async fn identity_with(name: &str, value: &str) -> serde_json::Value {
        identity(|objects| drop(objects.environment.insert(name.to_owned(), value.to_owned()))).await
    }

    #[tokio::test]
    async fn buckets_of_two_servers_or_regions_are_two_destinations() {
        let one = identity(|_| {}).await;
        assert_eq!(identity(|_| {}).await, one);
        assert_ne!(identity(|objects| objects.endpoint = Some("http://two.example".to_owned())).await, one);
        assert_ne!(identity(|objects| objects.region = Some("us".to_owned())).await, one);
        assert_ne!(identity_with("AWS_ENDPOINT_URL", "http://three.example").await, one);
        assert_eq!(identity_with("AWS_SECRET_ACCESS_KEY", "other").await, one, "keys are replaced while a run goes on");
    }
}
