//! The job of a release that sees to a certificate.

use super::dial::Dialling;
use super::options::{Options, Stage};
use super::{Surroundings, check, init_cert};
use crate::place::{Place, placed};
use jobwright_engine::{Context, Failure, Job, Needed, async_trait};
use serde_json::{Value, json};
use std::sync::Arc;

/// Sees to the certificate by which the API server reaches a webhook. There is nothing to do while it is good.
#[derive(Clone, Debug)]
pub struct InitCert {
    /// What every job has.
    pub place: Place,
    /// What is wanted; the namespace is that of the deploy.
    pub options: Options,
    /// How servers are asked what they show.
    pub dialling: Dialling,
    /// Who deploys: a text that nobody else has.
    pub holder: String,
}

impl InitCert {
    fn options(&self, context: &Context) -> Options {
        // A wish to run once more is granted once, however often the job is tried.
        let again =
            self.options.again.clone().or_else(|| Some(context.nonce().to_owned()).filter(|text| !text.is_empty()));
        let timeout = self.place.timeout;
        Options { namespace: context.namespace().to_owned(), timeout, again, ..self.options.clone() }
    }

    fn surroundings(&self, context: &Context) -> Surroundings {
        let teller = context.clone();
        Surroundings {
            client: context.client().clone(),
            clock: context.clock().clone(),
            dialling: self.dialling.clone(),
            holder: Some(self.holder.clone()),
            tell: Arc::new(move |line| teller.log(line)),
            cancellation: context.cancellation().clone(),
        }
    }
}

#[async_trait]
impl Job for InitCert {
    placed!();

    fn inputs(&self) -> Value {
        let Options { services, secret, targets, deployments, cluster_domain, .. } = &self.options;
        // One Service is what it was before there could be several.
        let service = match services.as_slice() {
            [service] => json!(service),
            services => json!(services),
        };
        json!({
            "service": service, "secret": secret, "stage": self.options.stage.to_string(),
            "targets": format!("{targets:?}"), "deployments": deployments, "clusterDomain": cluster_domain,
        })
    }

    async fn needed(&self, context: &Context) -> Result<Needed, Failure> {
        let options = self.options(context);
        // What it waits for comes while it runs.
        if options.force && options.stage != Stage::Inject {
            return Ok(Needed::Yes);
        }
        let report = check(&self.surroundings(context), &options).await?;
        Ok(if report.is_good() { Needed::No(report.whole_reason()) } else { Needed::Yes })
    }

    async fn run(&self, context: &Context) -> Result<(), Failure> {
        let report = init_cert(&self.surroundings(context), &self.options(context)).await?;
        context.log(format!("{}: {}", report.action, report.whole_reason()));
        Ok(())
    }
}
