//! What a plan says of a certificate.

use super::period::Period;
use super::renewal::Renewal;
use jobwright_jobs::init_cert::{Options, RenewBefore, Stage, Targets};
use schemars::JsonSchema;
use serde::Deserialize;

/// The certificate by which the API server reaches a webhook. Without a `phase` its Secret is made before, and what
/// trusts it is told after; with one, all of it is done then.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InitCert {
    /// The Service by which the API server reaches the webhook
    pub service: String,
    /// The Secret that the server mounts: `tls.crt`, `tls.key`, `ca.crt`
    pub secret: String,
    /// The Secret of the CA, which nobody mounts; `SECRET-ca` if absent
    pub ca_secret: Option<String>,
    /// ValidatingWebhookConfigurations that trust it
    #[serde(default)]
    pub validating_webhooks: Vec<String>,
    /// MutatingWebhookConfigurations that trust it
    #[serde(default)]
    pub mutating_webhooks: Vec<String>,
    /// Webhook configurations of both kinds, by their labels
    pub webhook_selector: Option<String>,
    /// CustomResourceDefinitions whose conversion webhook trusts it
    #[serde(default)]
    pub crds: Vec<String>,
    /// APIServices that trust it
    #[serde(default)]
    pub api_services: Vec<String>,
    /// Deployments that are restarted when it has changed
    #[serde(default)]
    pub deployments: Vec<String>,
    /// The domain of the cluster, if the Service is called by its full name, too
    pub cluster_domain: Option<String>,
    /// How long a certificate is valid: 365d if absent
    pub validity: Option<Period>,
    /// How long a CA is valid: 3650d if absent
    pub ca_validity: Option<Period>,
    /// When it is renewed: 1/3 if absent
    pub renew_before: Option<Renewal>,
    /// How long all API servers may take to see a new bundle: 10s if absent
    pub settle: Option<Period>,
    /// Ask servers what they show
    #[serde(default = "yes")]
    pub handshake: bool,
}

fn yes() -> bool {
    true
}

impl InitCert {
    /// What is wanted in a namespace.
    pub fn options(&self, namespace: &str, stage: Stage) -> Options {
        let period = |period: Option<Period>, usual| period.map_or(usual, Period::duration);
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
            ..Options::new(namespace, &self.service, &self.secret)
        }
    }
}
