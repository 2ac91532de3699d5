//! Arguments of `backfill`.

use super::cluster::Cluster;
use super::deploy::Output;
use crate::failure::{Failure, Kind};
use clap::Args;
use http::HeaderName;
use jobwright_jobs::Mark;
use jobwright_jobs::backfill::{Address, CheckpointPlace, Expression, Pattern, Wait};
use jobwright_release::Period;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Args, Debug)]
pub(crate) struct Backfill {
    /// Where to: stdout, file:PATH, http(s)://…, remote-write:URL, s3://BUCKET/PREFIX
    #[arg(long, value_name = "SINK")]
    pub(crate) sink: Typed<Address>,
    /// Only show which kinds would be listed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Only print the roles that whoever runs this needs, and no others
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) print_rbac: bool,
    /// Serve /metrics here while it runs; a port alone is on loopback
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = read_listen)]
    pub(crate) metrics_listen: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) what: What,
    #[command(flatten)]
    pub(crate) way: Way,
    #[command(flatten)]
    pub(crate) delivery: Delivery,
    #[command(flatten)]
    pub(crate) start: Start,
    #[command(flatten)]
    pub(crate) cluster: Cluster,
}

/// What was typed, or why it cannot be: told by us, since what is typed may hold a password by mistake, and whoever
/// parses arguments says it again.
#[derive(Clone, Debug)]
pub(crate) struct Typed<T>(Result<T, String>);

impl<T: FromStr<Err: ToString>> FromStr for Typed<T> {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.parse().map_err(|error: T::Err| error.to_string())))
    }
}

impl<T: Clone> Typed<T> {
    pub(crate) fn read(&self) -> Result<T, Failure> {
        self.0.clone().map_err(|problem| Failure::new(Kind::Usage, problem))
    }
}

/// What is captured.
#[derive(Args, Debug)]
#[command(next_help_heading = "What")]
pub(crate) struct What {
    /// Only these kinds, with commas between: Pod, pods, po, deployments.apps, Job.v1.batch
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub(crate) kinds: Vec<String>,
    /// Not these kinds, with commas between
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub(crate) exclude_kinds: Vec<String>,
    /// Only these namespaces, with commas between; kinds without namespaces only if they are named
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) namespaces: Vec<String>,
    /// Only objects with these labels
    #[arg(short = 'l', long, value_name = "SELECTOR", default_value = "", hide_default_value = true)]
    pub(crate) selector: String,
    /// Only objects with these fields
    #[arg(long, value_name = "SELECTOR", default_value = "", hide_default_value = true)]
    pub(crate) field_selector: String,
    /// Only objects whose names match; may be given more than once
    #[arg(long, value_name = "REGEX")]
    pub(crate) names: Vec<Expression>,
    /// Not objects whose names match
    #[arg(long, value_name = "REGEX")]
    pub(crate) exclude_names: Vec<Expression>,
    /// Only the metadata of objects
    #[arg(long)]
    pub(crate) metadata_only: bool,
    /// Only labels whose keys match, or keys and values
    #[arg(long, value_name = "REGEX[=REGEX]")]
    pub(crate) labels: Vec<Pattern>,
    /// Not labels that match
    #[arg(long, value_name = "REGEX[=REGEX]")]
    pub(crate) exclude_labels: Vec<Pattern>,
    /// Only annotations whose keys match, or keys and values
    #[arg(long, value_name = "REGEX[=REGEX]")]
    pub(crate) annotations: Vec<Pattern>,
    /// Not annotations that match
    #[arg(long, value_name = "REGEX[=REGEX]")]
    pub(crate) exclude_annotations: Vec<Pattern>,
    /// Whether to read all Secrets, and remove their values wherever they are
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) secret_values: SecretValues,
}

/// Whether the values of Secrets are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SecretValues {
    /// Where they may be listed; otherwise the summary says that names alone decided
    Auto,
    /// Fail if they may not be listed; `--print-rbac` allows it
    Require,
    /// Never: names alone decide
    Never,
}

/// How it is listed and sent.
#[derive(Args, Debug)]
#[command(next_help_heading = "How")]
pub(crate) struct Way {
    /// How many objects a page has
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) page_size: u16,
    /// How many kinds are listed at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) concurrency: u16,
    /// How large a batch is at most, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1024..=64 << 20))]
    pub(crate) batch_bytes: u32,
    /// How many objects a batch has at most
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) batch_records: u32,
    /// How lines are compressed; a file as its name says, if not given
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) compress: Option<Compress>,
    /// How long calls and deliveries that fail are tried again
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub(crate) retry_for: Period,
    /// How long it all may take
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<Period>,
}

/// How lines are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Compress {
    /// Not at all
    None,
    /// A frame a batch
    Zstd,
    /// A member a batch
    Gzip,
}

/// How the sink is reached. Nothing here is secret: it says where secrets are.
#[derive(Args, Debug)]
#[command(next_help_heading = "Sink")]
pub(crate) struct Delivery {
    /// A file with a bearer token, or with credentials of object storage; read again when it is replaced
    #[arg(long, value_name = "FILE")]
    pub(crate) auth_file: Option<PathBuf>,
    /// The same in a Secret of the namespace; its key is `token` if not given
    #[arg(long, value_name = "SECRET[/KEY]", conflicts_with = "auth_file")]
    pub(crate) auth_secret: Option<String>,
    /// The header that has it, instead of a bearer token
    #[arg(long, value_name = "HEADER")]
    pub(crate) auth_header: Option<HeaderName>,
    /// Whom to trust, instead of those that the system trusts
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// A certificate to show
    #[arg(long, value_name = "FILE", requires = "client_key")]
    pub(crate) client_cert: Option<PathBuf>,
    /// Its key
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    pub(crate) client_key: Option<PathBuf>,
    /// What names of metrics begin with, for remote write
    #[arg(long, value_name = "PREFIX", default_value = "cloudzero")]
    pub(crate) metric_prefix: String,
    /// How labels are named, for remote write
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Names::Legal)]
    pub(crate) metric_names: Names,
    /// The address of an S3 server, instead of Amazon's
    #[arg(long, value_name = "URL")]
    pub(crate) s3_endpoint: Option<String>,
    /// The region of the bucket
    #[arg(long, value_name = "REGION")]
    pub(crate) s3_region: Option<String>,
    /// The bucket comes in the path, as it does with an address of its own
    #[arg(long)]
    pub(crate) s3_path_style: bool,
}

/// How labels are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Names {
    /// As Prometheus takes them
    Legal,
    /// As keys are, which the CloudZero collector takes
    Verbatim,
}

/// How it begins.
#[derive(Args, Debug)]
#[command(next_help_heading = "Start")]
pub(crate) struct Start {
    /// Where to write down how far it has come: file:PATH, configmap:NAME; the next one goes on from there
    #[arg(long, value_name = "PLACE")]
    pub(crate) checkpoint: Option<CheckpointPlace>,
    /// How old that may be
    #[arg(long, value_name = "DURATION", default_value = "1h")]
    pub(crate) resume_within: Period,
    /// Do nothing if the checkpoint says that a run with this key was complete
    #[arg(long, value_name = "KEY", requires = "checkpoint", value_parser = read_key)]
    pub(crate) unless_complete: Option<String>,
    /// How long that holds
    #[arg(long, value_name = "DURATION", requires = "unless_complete")]
    pub(crate) complete_for: Option<Period>,
    /// Do it all the same
    #[arg(long, requires = "unless_complete")]
    pub(crate) force: bool,
    /// Run again once after a forced deploy, which removes the mark from this ConfigMap: configmap:NAME
    #[arg(long, value_name = "CONFIGMAP", requires = "unless_complete")]
    pub(crate) mark: Option<Mark>,
    /// Do nothing unless a forced deploy asks for it
    #[arg(long, requires = "mark")]
    pub(crate) if_forced: bool,
    /// The Lease that only one holds at a time; a ConfigMap as checkpoint has one of its own
    #[arg(long, value_name = "NAME")]
    pub(crate) lock: Option<String>,
    /// How long to wait for whoever holds it
    #[arg(long, value_name = "DURATION", default_value = "10m")]
    pub(crate) lock_wait: Period,
    /// Wait for tcp:HOST:PORT, http(s)://…, tls:HOST:PORT[,ca=FILE] or KIND/NAME=CONDITION; may be given more than once
    #[arg(long, value_name = "WHAT")]
    pub(crate) wait_for: Vec<Typed<Wait>>,
    /// How long to wait for all of it
    #[arg(long, value_name = "DURATION", default_value = "10m")]
    pub(crate) wait_timeout: Period,
}

/// A key is written down, so it has an end.
fn read_key(text: &str) -> Result<String, String> {
    let is_fine = (1..=256).contains(&text.len()) && text.chars().all(|one| !one.is_control());
    is_fine.then(|| text.to_owned()).ok_or_else(|| "a key is a line of at most 256 bytes".to_owned())
}

/// An address to listen on: on loopback, unless it says otherwise.
fn read_listen(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    text.parse().map_err(|_| "9090 and 0.0.0.0:9090 are addresses to listen on".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_line_with_an_end() {
        assert_eq!(read_key("sha256:ab 1").unwrap(), "sha256:ab 1");
        for text in ["", "a\nb", &"a".repeat(257)] {
            assert!(read_key(text).is_err(), "{text}");
        }
    }

    #[test]
    fn metrics_are_for_this_machine_unless_told_otherwise() {
        for (text, address) in [
            ("9090", "127.0.0.1:9090"),
            (":9090", "127.0.0.1:9090"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("[::1]:7", "[::1]:7"),
        ] {
            assert_eq!(read_listen(text).unwrap().to_string(), address);
        }
        assert!(read_listen("host:9090").is_err() && read_listen("").is_err());
    }
}
