//! The fields of an `initCert` job.

use super::form::yes;
use super::period::Period;
use super::renewal::Renewal;
use jobwright_jobs::init_cert::{Options, RenewBefore, Stage, Targets};
use schemars::JsonSchema;
use serde::Deserialize;

/// The serving certificate of a webhook. Without a `phase`, its Secret is created before and everything that trusts it is
/// updated after the deploy; with one, all of it is done then.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InitCert {
    /// The Service by which the API server reaches the webhook
    pub service: String,
    /// Further Services that share the Secret
    #[serde(default)]
    pub services: Vec<String>,
    /// The Secret that the server mounts: `tls.crt`, `tls.key`, `ca.crt`
    pub secret: String,
    /// The Secret of the CA, which no pod mounts; `SECRET-ca` by default
    pub ca_secret: Option<String>,
    /// ValidatingWebhookConfigurations that trust it
    #[serde(default)]
    pub validating_webhooks: Vec<String>,
    /// MutatingWebhookConfigurations that trust it
    #[serde(default)]
    pub mutating_webhooks: Vec<String>,
    /// Label selector of webhook configurations of both kinds
    pub webhook_selector: Option<String>,
    /// CustomResourceDefinitions whose conversion webhook trusts it
    #[serde(default)]
    pub crds: Vec<String>,
    /// APIServices that trust it
    #[serde(default)]
    pub api_services: Vec<String>,
    /// Deployments to restart when the certificate has changed
    #[serde(default)]
    pub deployments: Vec<String>,
    /// Domain of the cluster, if the Service is also called by its full name
    pub cluster_domain: Option<String>,
    /// Validity of the certificate; 365d by default
    pub validity: Option<Period>,
    /// Validity of the CA; 3650d by default
    pub ca_validity: Option<Period>,
    /// When it is renewed: when 1/3 of its validity is left (default), or a duration before it expires
    pub renew_before: Option<Renewal>,
    /// How long all API servers may take to see a new bundle; 10s by default
    pub settle: Option<Period>,
    /// Check by TLS handshakes which certificate the servers present
    #[serde(default = "yes")]
    pub handshake: bool,
}

impl InitCert {
    /// The certificate that is wanted in a namespace.
    pub fn options(&self, namespace: &str, stage: Stage) -> Options {
        let period = |period: Option<Period>, default| period.map_or(default, Period::duration);
        Options {
            authority_secret: self.ca_secret.clone(),
            stage,
            targets: Targets {
                validating_webhooks: self.validating_webhooks.clone(),
                mutating_webhooks: self.mutating_webhooks.clone(),
                webhook_selector: self.webhook_selector.clone(),
                definitions: self.crds.clone(),
                api_services: self.api_services.clone(),
            },
            deployments: self.deployments.clone(),
            cluster_domain: self.cluster_domain.clone(),
            validity: period(self.validity, Options::VALIDITY),
            authority_validity: period(self.ca_validity, Options::AUTHORITY_VALIDITY),
            renew_before: self.renew_before.map_or_else(RenewBefore::default, |renewal| renewal.0),
            settle: period(self.settle, Options::SETTLE),
            services: std::iter::once(&self.service).chain(&self.services).cloned().collect(),
            ..Options::new(namespace, &self.service, &self.secret)
        }
    }
}
