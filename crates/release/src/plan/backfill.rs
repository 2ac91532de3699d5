//! What a plan says of a backfill.

use super::check::{items, text};
use super::finding::Finding;
use super::period::Period;
use jobwright_jobs::backfill::{
    self, Address, BatchLimits, CheckpointPlace, Environment, Expression, Filters, KindName, Names, Naming,
    ObjectPlaces, Patience, Pattern, Patterns, Place, Selection, Task, TlsPlaces, Wait,
};
use jobwright_yaml::Node;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The state of the cluster, captured and uploaded.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Backfill {
    /// Where to: `file:PATH`, `http(s)://…`, `remote-write:URL`, `s3://BUCKET/PREFIX`
    pub sink: String,
    /// Only these kinds: `Pod`, `pods`, `po`, `deployments.apps`, `Job.v1.batch`
    #[serde(default)]
    pub kinds: Vec<String>,
    /// Not these kinds
    #[serde(default)]
    pub exclude_kinds: Vec<String>,
    /// Only these namespaces; kinds without namespaces only if they are named
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// Only objects with these labels
    #[serde(default)]
    pub selector: String,
    /// Only objects with these fields
    #[serde(default)]
    pub field_selector: String,
    /// Only objects whose names match one of these regular expressions
    #[serde(default)]
    pub names: Vec<String>,
    /// Not objects whose names match
    #[serde(default)]
    pub exclude_names: Vec<String>,
    /// Only the metadata of objects
    #[serde(default)]
    pub metadata_only: bool,
    /// Only labels that match: `REGEX` of keys, or `REGEX=REGEX` of keys and values
    #[serde(default)]
    pub labels: Vec<String>,
    /// Not labels that match
    #[serde(default)]
    pub exclude_labels: Vec<String>,
    /// Only annotations that match
    #[serde(default)]
    pub annotations: Vec<String>,
    /// Not annotations that match
    #[serde(default)]
    pub exclude_annotations: Vec<String>,
    /// How many objects a page has
    #[schemars(range(min = 1, max = 10000))]
    pub page_size: Option<u16>,
    /// How many kinds are listed at once
    #[schemars(range(min = 1, max = 64))]
    pub concurrency: Option<u16>,
    /// How large a batch is at most, in bytes
    #[schemars(range(min = 1024, max = 67_108_864))]
    pub batch_bytes: Option<u32>,
    /// How many objects a batch has at most
    #[schemars(range(min = 1, max = 100_000))]
    pub batch_records: Option<u32>,
    /// How lines are compressed; a file as its name says, if absent
    pub compress: Option<Compression>,
    /// How long calls and deliveries that fail are tried again
    pub retry_for: Option<Period>,
    /// What the sink wants to see
    pub auth: Option<Auth>,
    /// Certificates
    #[serde(default)]
    pub tls: Tls,
    /// What names of metrics begin with, for remote write
    pub metric_prefix: Option<String>,
    /// How labels are named, for remote write
    pub metric_names: Option<MetricNames>,
    /// How object storage is reached
    #[serde(default)]
    pub s3: ObjectStorage,
    /// Where to write down how far it has come: `configmap:NAME`, `file:PATH`
    pub checkpoint: Option<String>,
    /// How old that may be for the next run to go on from it
    pub resume_within: Option<Period>,
    /// What only one holds at a time; a ConfigMap as checkpoint is one
    pub lock: Option<String>,
    /// How long to wait for whoever holds it
    pub lock_wait: Option<Period>,
    /// What has to be there: `tcp:HOST:PORT`, `https://…`, `tls:HOST:PORT,ca=FILE`, `KIND/NAME=CONDITION`
    #[serde(default)]
    pub wait_for: Vec<String>,
    /// How long to wait for all of it
    pub wait_timeout: Option<Period>,
}

/// How lines are compressed.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Not at all
    None,
    /// A frame a batch
    Zstd,
    /// A member a batch
    Gzip,
}

/// How labels are named.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetricNames {
    /// As Prometheus takes them
    Legal,
    /// As keys are
    Verbatim,
}

/// What the sink wants to see: a bearer token, or another header; for object storage, its credentials.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Auth {
    /// The Secret that has it, in the namespace of the release
    pub secret: Option<String>,
    /// The key of the Secret; `token` if absent
    pub key: Option<String>,
    /// The file that has it, from the plan's directory on
    pub file: Option<PathBuf>,
    /// The header, instead of a bearer token
    pub header: Option<String>,
}

/// Certificates: files from the plan's directory on, or a Secret with `ca.crt`, `tls.crt` and `tls.key`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tls {
    /// Whom to trust, instead of those that the system trusts
    pub ca: Option<PathBuf>,
    /// A certificate to show
    pub cert: Option<PathBuf>,
    /// Its key
    pub key: Option<PathBuf>,
    /// A Secret whose `ca.crt` is trusted
    pub ca_secret: Option<String>,
    /// A Secret whose `tls.crt` and `tls.key` are shown
    pub cert_secret: Option<String>,
}

/// How object storage is reached.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectStorage {
    /// The address of a server, instead of Amazon's
    pub endpoint: Option<String>,
    /// The region of the bucket
    pub region: Option<String>,
    /// The bucket comes in the path
    #[serde(default)]
    pub path_style: bool,
}

impl Backfill {
    /// What is to be done. Paths begin where `resolve` says.
    pub(crate) fn task(&self, resolve: impl Fn(&Path) -> PathBuf, environment: Environment) -> Result<Task, String> {
        let usual = backfill::Backfill::default();
        let size = |number: Option<u32>, usual: usize| number.map_or(usual, |number| number as usize);
        let kinds = |names: &[String]| names.iter().map(|name| KindName::from(name.as_str())).collect();
        let patterns = |only: &[String], without: &[String]| -> Result<Patterns, String> {
            Ok(Patterns { only: parse_all::<Pattern>(only)?, without: parse_all(without)? })
        };
        let names = Names { only: parse_all::<Expression>(&self.names)?, without: parse_all(&self.exclude_names)? };
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
                names,
                labels: patterns(&self.labels, &self.exclude_labels)?,
                annotations: patterns(&self.annotations, &self.exclude_annotations)?,
            },
            page_size: self.page_size.map_or(usual.page_size, usize::from),
            concurrency: self.concurrency.map_or(usual.concurrency, usize::from),
            batches: BatchLimits {
                bytes: size(self.batch_bytes, usual.batches.bytes),
                records: size(self.batch_records, usual.batches.records),
            },
            patience: Patience {
                total: self.retry_for.map_or(usual.patience.total, Period::duration),
                ..usual.patience
            },
            resume_within: self.resume_within.map_or(usual.resume_within, Period::duration),
            // A plan says itself when a job runs again.
            once: None,
        };
        let address = match parse::<Address>(&self.sink)? {
            Address::File(path) => Address::File(resolve(&path)),
            address => address,
        };
        let checkpoint = match self.checkpoint.as_deref().map(parse::<CheckpointPlace>).transpose()? {
            Some(CheckpointPlace::File(path)) => Some(CheckpointPlace::File(resolve(&path))),
            place => place,
        };
        let plain = Task::new(address);
        let usual = Naming::default();
        Ok(Task {
            backfill,
            compression: self.compress.map(|compress| match compress {
                Compression::None => backfill::Compression::None,
                Compression::Zstd => backfill::Compression::Zstd,
                Compression::Gzip => backfill::Compression::Gzip,
            }),
            auth: self.auth.as_ref().map(|auth| auth.read(&resolve)).transpose()?,
            tls: self.tls.read(&resolve),
            naming: Naming {
                prefix: self.metric_prefix.clone().unwrap_or(usual.prefix),
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
            waits: parse_all::<Wait>(&self.wait_for)?,
            wait_timeout: self.wait_timeout.map_or(plain.wait_timeout, Period::duration),
            ..plain
        })
    }

    /// The Secrets that it reads.
    pub(crate) fn has_secrets(&self) -> bool {
        let auth = self.auth.as_ref().is_some_and(|auth| auth.secret.is_some());
        auth || self.tls.ca_secret.is_some() || self.tls.cert_secret.is_some()
    }
}

impl Auth {
    fn read(&self, resolve: &impl Fn(&Path) -> PathBuf) -> Result<backfill::Auth, String> {
        let secret = match (&self.secret, &self.file) {
            (Some(name), None) => secret(name, self.key.as_deref().unwrap_or("token")),
            (None, Some(file)) => Place::File(resolve(file)),
            _ => return Err("`auth` has either a `secret` or a `file`".to_owned()),
        };
        let header =
            self.header.as_deref().map(|header| header.parse().map_err(|_| format!("`{header}` is no header")));
        Ok(backfill::Auth { header: header.transpose()?, secret })
    }
}

impl Tls {
    fn read(&self, resolve: &impl Fn(&Path) -> PathBuf) -> TlsPlaces {
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

fn parse<T: FromStr<Err: ToString>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn parse_all<T: FromStr<Err: ToString>>(texts: &[String]) -> Result<Vec<T>, String> {
    texts.iter().map(|text| parse(text)).collect()
}

/// What no schema says of a backfill.
pub(super) fn check(backfill: &Node) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut check_texts = |keys: &[&str], parse: &dyn Fn(&str) -> Result<(), String>| {
        for node in keys.iter().flat_map(|key| items(backfill, key).iter().chain(backfill.get(key))) {
            if let Some(Err(problem)) = node.as_str().map(parse) {
                findings.push(Finding::new(node.span.clone(), problem));
            }
        }
    };
    check_texts(&["sink"], &|text| match parse::<Address>(text)? {
        Address::Stdout => Err("a deploy prints other things: a plan cannot send to stdout".to_owned()),
        _ => Ok(()),
    });
    check_texts(&["names", "excludeNames"], &|text| parse::<Expression>(text).map(drop));
    let patterns = ["labels", "excludeLabels", "annotations", "excludeAnnotations"];
    check_texts(&patterns, &|text| parse::<Pattern>(text).map(drop));
    check_texts(&["checkpoint"], &|text| parse::<CheckpointPlace>(text).map(drop));
    check_texts(&["waitFor"], &|text| parse::<Wait>(text).map(drop));
    if let Some(auth) = backfill.get("auth") {
        if auth.get("secret").is_some() == auth.get("file").is_some() {
            findings.push(Finding::new(auth.span.clone(), "`auth` has either a `secret` or a `file`"));
        }
        if let Some((node, header)) = text(auth, "header")
            && header.parse::<http::HeaderName>().is_err()
        {
            findings.push(Finding::new(node.span.clone(), format!("`{header}` is no header")));
        }
    }
    if let Some(tls) = backfill.get("tls")
        && tls.get("cert").is_some() != tls.get("key").is_some()
    {
        findings.push(Finding::new(tls.span.clone(), "a `cert` and its `key` go together"));
    }
    findings
}
