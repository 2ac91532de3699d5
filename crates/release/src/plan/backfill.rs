//! The fields of a `backfill` job.

use super::format::{PlanSink, Written, parsed, parsed_list, parsed_option};
use super::period::Period;
use super::rules;
use http::HeaderName;
use jobwright_jobs::backfill::{
    self, Address, BatchLimits, CheckpointPlace, Environment, Expression, Filters, KindName, Names, Naming,
    ObjectPlaces, Patience, Pattern, Patterns, Place, Selection, Task, TlsPlaces, Wait,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The state of the cluster, captured and uploaded.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Backfill {
    /// Where to: `file:PATH`, `http(s)://…`, `remote-write:URL`, `s3://BUCKET/PREFIX`
    #[serde(deserialize_with = "parsed")]
    #[schemars(with = "Written<PlanSink>")]
    pub(crate) sink: PlanSink,
    /// Only these kinds: `Pod`, `pods`, `po`, `deployments.apps`, `Job.v1.batch`
    #[serde(default)]
    pub kinds: Vec<String>,
    /// Not these kinds
    #[serde(default)]
    pub exclude_kinds: Vec<String>,
    /// Only these namespaces; cluster-scoped kinds only if `kinds` names them
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// Only objects with these labels
    #[serde(default)]
    pub selector: String,
    /// Only objects with these fields
    #[serde(default)]
    pub field_selector: String,
    /// Only objects whose names match one of these regular expressions
    #[serde(default, deserialize_with = "parsed_list")]
    #[schemars(with = "Vec<Written<Expression>>")]
    pub names: Vec<Expression>,
    /// Not objects whose names match
    #[serde(default, deserialize_with = "parsed_list")]
    #[schemars(with = "Vec<Written<Expression>>")]
    pub exclude_names: Vec<Expression>,
    /// Only the metadata of objects
    #[serde(default)]
    pub metadata_only: bool,
    /// Only labels that match: `REGEX` of keys, or `REGEX=REGEX` of keys and values
    #[serde(default, deserialize_with = "parsed_list")]
    #[schemars(with = "Vec<Written<Pattern>>")]
    pub labels: Vec<Pattern>,
    /// Not labels that match
    #[serde(default, deserialize_with = "parsed_list")]
    #[schemars(with = "Vec<Written<Pattern>>")]
    pub exclude_labels: Vec<Pattern>,
    /// Only annotations that match
    #[serde(default, deserialize_with = "parsed_list")]
    #[schemars(with = "Vec<Written<Pattern>>")]
    pub annotations: Vec<Pattern>,
    /// Not annotations that match
    #[serde(default, deserialize_with = "parsed_list")]
    #[schemars(with = "Vec<Written<Pattern>>")]
    pub exclude_annotations: Vec<Pattern>,
    /// Whether to read all Secrets and remove their values wherever they are
    pub secret_values: Option<SecretValues>,
    /// How many objects a page has
    #[schemars(range(min = 1, max = 10000))]
    pub page_size: Option<u16>,
    /// How many kinds are listed in parallel
    #[schemars(range(min = 1, max = 64))]
    pub concurrency: Option<u16>,
    /// Maximum size of a batch, in bytes
    #[schemars(range(min = 1024, max = 67_108_864))]
    pub batch_bytes: Option<u32>,
    /// Maximum number of objects in a batch
    #[schemars(range(min = 1, max = 100_000))]
    pub batch_records: Option<u32>,
    /// How lines are compressed; a file by its extension by default
    pub compress: Option<Compression>,
    /// How long failing calls and deliveries are retried
    pub retry_for: Option<Period>,
    /// Credentials for the sink
    #[schemars(with = "Option<AuthForm>")]
    pub auth: Option<Auth>,
    /// Certificates
    #[serde(default)]
    pub tls: Tls,
    /// Prefix of metric names, for remote write
    pub metric_prefix: Option<String>,
    /// How labels are named, for remote write
    pub metric_names: Option<MetricNames>,
    /// How object storage is reached
    #[serde(default)]
    pub s3: ObjectStorage,
    /// Where progress is saved: `configmap:NAME`, `file:PATH`
    #[serde(default, deserialize_with = "parsed_option")]
    #[schemars(with = "Option<Written<CheckpointPlace>>")]
    pub checkpoint: Option<CheckpointPlace>,
    /// How old saved progress may be for the next run to resume from it
    pub resume_within: Option<Period>,
    /// Name of the Lease that only one run holds at a time; a `configmap:` checkpoint has one by default
    pub lock: Option<String>,
    /// How long to wait while another run holds it
    pub lock_wait: Option<Period>,
    /// What has to be ready first: `tcp:HOST:PORT`, `https://…`, `tls:HOST:PORT,ca=FILE`, `KIND/NAME=CONDITION`
    #[serde(default, deserialize_with = "parsed_list")]
    #[schemars(with = "Vec<Written<Wait>>")]
    pub wait_for: Vec<Wait>,
    /// How long to wait for all of it
    pub wait_timeout: Option<Period>,
}

/// How lines are compressed.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Not compressed
    None,
    /// One frame per batch
    Zstd,
    /// One member per batch
    Gzip,
}

/// Whether the values of Secrets are read.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SecretValues {
    /// Where they may be listed (default)
    Auto,
    /// Always; the job fails if they may not be listed
    Require,
    /// Never
    Never,
}

/// How labels are named.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetricNames {
    /// As Prometheus accepts them
    Legal,
    /// Unchanged
    Verbatim,
}

/// Credentials for the sink: a bearer token, or another header; for object storage, its access key.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "AuthForm")]
pub struct Auth {
    /// Where the value is.
    pub place: AuthPlace,
    /// The header, instead of a bearer token.
    pub header: Option<HeaderName>,
}

/// Where credentials are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthPlace {
    /// In a Secret in the namespace of the release.
    Secret {
        /// The Secret.
        name: String,
        /// Its key.
        key: String,
    },
    /// In a file, relative to the plan.
    File(PathBuf),
}

/// Credentials for the sink: a bearer token, or another header; for object storage, its access key.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(
    rename = "Auth",
    extend("allOf" = [rules::exactly_one(&["secret", "file"]), rules::only_with("key", &["secret"])])
)]
struct AuthForm {
    /// The Secret that has the value, in the namespace of the release
    secret: Option<String>,
    /// The key of the Secret; `token` by default
    key: Option<String>,
    /// The file that has the value, relative to the plan
    file: Option<PathBuf>,
    /// The header, instead of a bearer token
    #[serde(default, deserialize_with = "parsed_option")]
    #[schemars(with = "Option<Written<HeaderName>>")]
    header: Option<HeaderName>,
}

impl TryFrom<AuthForm> for Auth {
    type Error = &'static str;

    fn try_from(form: AuthForm) -> Result<Self, &'static str> {
        let AuthForm { secret, key, file, header } = form;
        let place = match (secret, key, file) {
            (Some(name), key, None) => AuthPlace::Secret { name, key: key.unwrap_or_else(|| "token".to_owned()) },
            (None, None, Some(file)) => AuthPlace::File(file),
            _ => return Err("`auth` needs a `secret`, perhaps with a `key`, or a `file`"),
        };
        Ok(Self { place, header })
    }
}

/// Certificates: files relative to the plan, or a Secret with `ca.crt`, `tls.crt` and `tls.key`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("allOf" = [
    rules::only_with("cert", &["key"]),
    rules::only_with("key", &["cert"]),
]))]
pub struct Tls {
    /// CA certificates to trust instead of the system's
    pub ca: Option<PathBuf>,
    /// Client certificate
    pub cert: Option<PathBuf>,
    /// Its key
    pub key: Option<PathBuf>,
    /// A Secret whose `ca.crt` is trusted
    pub ca_secret: Option<String>,
    /// A Secret whose `tls.crt` and `tls.key` are the client certificate
    pub cert_secret: Option<String>,
}

/// How object storage is reached.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectStorage {
    /// URL of a server, instead of Amazon's
    pub endpoint: Option<String>,
    /// Region of the bucket
    pub region: Option<String>,
    /// Put the bucket into the path
    #[serde(default)]
    pub path_style: bool,
}

impl Backfill {
    /// What is to be done. `resolve` makes paths relative to the plan.
    pub(crate) fn task(&self, resolve: impl Fn(&Path) -> PathBuf, environment: Environment) -> Task {
        let default = backfill::Backfill::default();
        let size = |number: Option<u32>, default: usize| number.map_or(default, |number| number as usize);
        let kinds = |names: &[String]| names.iter().map(|name| KindName::from(name.as_str())).collect();
        let patterns =
            |only: &[Pattern], without: &[Pattern]| Patterns { only: only.to_vec(), without: without.to_vec() };
        let backfill = backfill::Backfill {
            run: None,
            kinds: kinds(&self.kinds),
            exclude_kinds: kinds(&self.exclude_kinds),
            namespaces: self.namespaces.clone(),
            selection: Selection {
                labels: self.selector.clone(),
                fields: self.field_selector.clone(),
                metadata_only: self.metadata_only,
            },
            filters: Filters {
                names: Names { only: self.names.clone(), without: self.exclude_names.clone() },
                labels: patterns(&self.labels, &self.exclude_labels),
                annotations: patterns(&self.annotations, &self.exclude_annotations),
            },
            secret_values: match self.secret_values {
                None | Some(SecretValues::Auto) => backfill::SecretValues::Auto,
                Some(SecretValues::Require) => backfill::SecretValues::Require,
                Some(SecretValues::Never) => backfill::SecretValues::Never,
            },
            page_size: self.page_size.map_or(default.page_size, usize::from),
            concurrency: self.concurrency.map_or(default.concurrency, usize::from),
            batches: BatchLimits {
                bytes: size(self.batch_bytes, default.batches.bytes),
                records: size(self.batch_records, default.batches.records),
            },
            patience: Patience {
                total: self.retry_for.map_or(default.patience.total, Period::duration),
                ..default.patience
            },
            resume_within: self.resume_within.map_or(default.resume_within, Period::duration),
            // The plan's `run` says when a job runs again.
            once: None,
        };
        let sink = match self.sink.0.clone() {
            Address::File(path) => Address::File(resolve(&path)),
            address => address,
        };
        let checkpoint = match self.checkpoint.clone() {
            Some(CheckpointPlace::File(path)) => Some(CheckpointPlace::File(resolve(&path))),
            place => place,
        };
        let plain = Task::new(sink);
        let default = Naming::default();
        Task {
            backfill,
            compression: self.compress.map(|compress| match compress {
                Compression::None => backfill::Compression::None,
                Compression::Zstd => backfill::Compression::Zstd,
                Compression::Gzip => backfill::Compression::Gzip,
            }),
            auth: self.auth.as_ref().map(|auth| auth.resolve(&resolve)),
            tls: self.tls.resolve(&resolve),
            naming: Naming {
                prefix: self.metric_prefix.clone().unwrap_or(default.prefix),
                is_legal: !matches!(self.metric_names, Some(MetricNames::Verbatim)),
            },
            objects: ObjectPlaces {
                endpoint: self.s3.endpoint.clone(),
                region: self.s3.region.clone(),
                path_style: self.s3.path_style,
                environment,
            },
            checkpoint,
            lock: self.lock.clone(),
            lock_wait: self.lock_wait.map_or(plain.lock_wait, Period::duration),
            waits: self.wait_for.clone(),
            wait_timeout: self.wait_timeout.map_or(plain.wait_timeout, Period::duration),
            ..plain
        }
    }

    /// Whether it reads Secrets.
    pub(crate) fn has_secrets(&self) -> bool {
        let auth = self.auth.as_ref().is_some_and(|auth| matches!(auth.place, AuthPlace::Secret { .. }));
        auth || self.tls.ca_secret.is_some() || self.tls.cert_secret.is_some()
    }
}

impl Auth {
    fn resolve(&self, resolve: &impl Fn(&Path) -> PathBuf) -> backfill::Auth {
        let place = match &self.place {
            AuthPlace::Secret { name, key } => secret(name, key),
            AuthPlace::File(path) => Place::File(resolve(path)),
        };
        backfill::Auth { header: self.header.clone(), secret: place }
    }
}

impl Tls {
    fn resolve(&self, resolve: &impl Fn(&Path) -> PathBuf) -> TlsPlaces {
        let file = |path: &Option<PathBuf>| path.as_deref().map(|path| Place::File(resolve(path)));
        let identity = file(&self.cert).zip(file(&self.key));
        let from_secret = |name: &String| (secret(name, "tls.crt"), secret(name, "tls.key"));
        TlsPlaces {
            authority: file(&self.ca).or_else(|| self.ca_secret.as_deref().map(|name| secret(name, "ca.crt"))),
            identity: identity.or_else(|| self.cert_secret.as_ref().map(from_secret)),
        }
    }
}

fn secret(name: &str, key: &str) -> Place {
    Place::Secret { name: name.to_owned(), key: key.to_owned() }
}
