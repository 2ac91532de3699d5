//! Arguments of `init-cert`.

#![allow(clippy::struct_excessive_bools, reason = "a flag is a bool, named as it is typed")]

use super::cluster::Cluster;
use super::deploy::Output;
use clap::{Args, ValueEnum};
use jobwright_jobs::Mark;
use jobwright_release::{Period, Renewal};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct InitCert {
    /// The Service by which the API server reaches the webhook; several that share the Secret are all named
    #[arg(long, value_name = "NAME", required = true, num_args = 1.., value_delimiter = ',')]
    pub(crate) service: Vec<String>,
    /// The Secret that the server mounts: tls.crt, tls.key, ca.crt
    #[arg(long, value_name = "NAME")]
    pub(crate) secret: String,
    /// The Secret of the CA, which nobody mounts; SECRET-ca if not given
    #[arg(long, value_name = "NAME")]
    pub(crate) ca_secret: Option<String>,
    /// How much of it is done
    #[arg(long, value_enum, default_value_t = Stage::All)]
    pub(crate) stage: Stage,
    #[command(flatten)]
    pub(crate) targets: Targets,
    /// Deployments that are restarted when the pair has changed
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) deployment: Vec<String>,
    /// The domain of the cluster, if the Service is called by its full name, too
    #[arg(long, value_name = "DOMAIN")]
    pub(crate) cluster_domain: Option<String>,
    /// How long a certificate is valid
    #[arg(long, value_name = "DURATION", default_value = "365d")]
    pub(crate) validity: Period,
    /// How long a CA is valid
    #[arg(long, value_name = "DURATION", default_value = "3650d")]
    pub(crate) ca_validity: Period,
    /// Renew when less than this is left: a part of its life, or a duration
    #[arg(long, value_name = "WHEN", default_value = "1/3")]
    pub(crate) renew_before: Renewal,
    /// How long all API servers may take to see a new bundle
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub(crate) settle: Period,
    /// How long it all may take
    #[arg(long, value_name = "DURATION", default_value = "10m")]
    pub(crate) timeout: Period,
    /// Make a new CA and a new pair, whatever there is
    #[arg(long, conflicts_with = "check")]
    pub(crate) force: bool,
    /// The same, but only once for each such text, which is remembered on the Secret
    #[arg(long, value_name = "NONCE")]
    pub(crate) again: Option<String>,
    /// The same once after a forced deploy, which removes the mark from this ConfigMap: configmap:NAME
    #[arg(long, value_name = "CONFIGMAP")]
    pub(crate) mark: Option<Mark>,
    /// Only put back what a forced deploy has removed, and issue what it asks for (see --mark)
    #[arg(long)]
    pub(crate) if_forced: bool,
    /// The Lease that only one run holds at a time; one for the Secret if not given
    #[arg(long, value_name = "NAME")]
    pub(crate) lock: Option<String>,
    /// Only say what would be done; fail if that is anything
    #[arg(long)]
    pub(crate) check: bool,
    /// Do not ask servers what they show
    #[arg(long)]
    pub(crate) no_handshake: bool,
    /// Only print the roles that it needs
    #[arg(long)]
    pub(crate) print_rbac: bool,
    /// Write this for Prometheus: the days left, the end, how it went
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) cluster: Cluster,
}

/// Who has to trust the certificate.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Who trusts it (each as often as needed, with commas or spaces between)")]
pub(crate) struct Targets {
    /// ValidatingWebhookConfigurations
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) validating_webhook: Vec<String>,
    /// MutatingWebhookConfigurations
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) mutating_webhook: Vec<String>,
    /// CustomResourceDefinitions with a conversion webhook
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) crd: Vec<String>,
    /// APIServices
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) apiservice: Vec<String>,
    /// Webhook configurations of both kinds, by their labels
    #[arg(long, value_name = "SELECTOR")]
    pub(crate) webhook_selector: Option<String>,
}

/// How much of it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stage {
    /// Everything
    All,
    /// Until the Secret is there: what a server needs before it starts
    Secret,
    /// From the Secret on: bundles, restart, handshake
    Inject,
}
