//! What is wanted: which Service, which Secret, who has to trust it, and for how long.

use super::error::Error;
use super::target::Kind;
use crate::mark::Mark;
use std::fmt;
use std::time::Duration;

/// A day.
const DAY: Duration = Duration::from_hours(24);

/// What is wanted of a certificate.
#[derive(Clone, Debug)]
pub struct Options {
    /// The namespace of the Service, the Secrets and the Deployments.
    pub namespace: String,
    /// The Services by which the API server reaches the webhook: one, or several that share the Secret.
    pub services: Vec<String>,
    /// The Secret that the server mounts: `tls.crt`, `tls.key`, `ca.crt`.
    pub secret: String,
    /// The Secret of the CA, which nobody mounts; `SECRET-ca` if none.
    pub authority_secret: Option<String>,
    /// How much of it is done.
    pub stage: Stage,
    /// Who has to trust it.
    pub targets: Targets,
    /// What is restarted when the pair has changed.
    pub deployments: Vec<String>,
    /// The domain of the cluster, if the Service is called by its full name, too.
    pub cluster_domain: Option<String>,
    /// How long a certificate is valid.
    pub validity: Duration,
    /// How long a CA is valid.
    pub authority_validity: Duration,
    /// When a certificate is renewed.
    pub renew_before: RenewBefore,
    /// How long all API servers may take to see a new bundle.
    pub settle: Duration,
    /// How long all of it may take.
    pub timeout: Duration,
    /// A new CA and a new certificate, whatever there is.
    pub force: bool,
    /// The same, but only once for each such text: it is remembered on the Secret. For those who are run again and again
    /// with the same arguments.
    pub again: Option<String>,
    /// The ConfigMap of the release that shows whether a deploy was forced: then there is a new CA and a new certificate.
    /// The inject stage does all of it in this case.
    pub mark: Option<Mark>,
    /// Issue nothing unless `mark` shows that a forced deploy asks for it. A forced deploy that asks for nothing has removed
    /// the CA from the bundles all the same: it is put back.
    pub only_if_forced: bool,
    /// The Lease that only one run holds at a time; one for the Secret if none.
    pub lock: Option<String>,
}

/// How much is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// Everything.
    #[default]
    All,
    /// Until the Secret is there: what a server needs before it starts.
    Secret,
    /// From the Secret on: bundles, restart, handshake.
    Inject,
}

impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::All => "all",
            Self::Secret => "secret",
            Self::Inject => "inject",
        })
    }
}

/// Who has to trust the certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// ValidatingWebhookConfigurations.
    pub validating_webhooks: Vec<String>,
    /// MutatingWebhookConfigurations.
    pub mutating_webhooks: Vec<String>,
    /// Webhook configurations of both kinds, by their labels.
    pub webhook_selector: Option<String>,
    /// CustomResourceDefinitions with a conversion webhook.
    pub definitions: Vec<String>,
    /// APIServices.
    pub api_services: Vec<String>,
}

/// When a certificate is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewBefore {
    /// When less than this part of its life is left.
    Fraction {
        /// Above the line.
        numerator: u32,
        /// Below the line.
        denominator: u32,
    },
    /// When less than this is left.
    Left(Duration),
}

impl RenewBefore {
    /// What has to be left of a life of this length.
    pub(super) fn of(self, life: Duration) -> Duration {
        match self {
            Self::Fraction { numerator, denominator } => life.saturating_mul(numerator) / denominator.max(1),
            Self::Left(left) => left,
        }
    }
}

impl Default for RenewBefore {
    fn default() -> Self {
        Self::Fraction { numerator: 1, denominator: 3 }
    }
}

impl fmt::Display for RenewBefore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fraction { numerator, denominator } => write!(formatter, "{numerator}/{denominator} of its life"),
            Self::Left(left) => formatter.write_str(&show(*left)),
        }
    }
}

impl Options {
    /// How long a certificate is valid unless told otherwise.
    pub const VALIDITY: Duration = DAY.saturating_mul(365);
    /// How long a CA is valid unless told otherwise.
    pub const AUTHORITY_VALIDITY: Duration = DAY.saturating_mul(3650);
    /// How long all API servers may take to see a new bundle unless told otherwise.
    pub const SETTLE: Duration = Duration::from_secs(10);
    /// How long all of it may take unless told otherwise.
    pub const TIMEOUT: Duration = Duration::from_mins(10);

    /// The usual certificate of a Service, in a Secret.
    pub fn new(namespace: &str, service: &str, secret: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            services: vec![service.to_owned()],
            secret: secret.to_owned(),
            authority_secret: None,
            stage: Stage::All,
            targets: Targets::default(),
            deployments: Vec::new(),
            cluster_domain: None,
            validity: Self::VALIDITY,
            authority_validity: Self::AUTHORITY_VALIDITY,
            renew_before: RenewBefore::default(),
            settle: Self::SETTLE,
            timeout: Self::TIMEOUT,
            force: false,
            again: None,
            mark: None,
            only_if_forced: false,
            lock: None,
        }
    }

    /// The same for a run that only gives bundles what they lack.
    pub(super) fn for_bundles(&self) -> Self {
        Self { stage: Stage::Inject, force: false, again: None, ..self.clone() }
    }

    /// The Secret of the CA.
    pub fn authority_secret(&self) -> String {
        self.authority_secret.clone().unwrap_or_else(|| format!("{}-ca", self.secret))
    }

    /// The names by which the Services are called.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for name in self.services.iter().flat_map(|service| self.names_of(service)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    fn names_of(&self, service: &str) -> Vec<String> {
        let namespace = &self.namespace;
        let mut names = vec![service.to_owned(), format!("{service}.{namespace}"), self.called(service)];
        names.extend(self.cluster_domain.as_ref().map(|domain| format!("{}.{domain}", self.called(service))));
        names
    }

    /// The name by which the API server calls a Service.
    pub(super) fn called(&self, service: &str) -> String {
        format!("{service}.{}.svc", self.namespace)
    }

    /// The Services of the namespace that are among these names, but not wanted.
    pub(super) fn other_services(&self, names: &[String]) -> Vec<String> {
        let end = format!(".{}.svc", self.namespace);
        let services = names.iter().filter_map(|name| name.strip_suffix(&end));
        let others = services.filter(|service| jobwright_engine::is_identifier(service));
        others.filter(|service| !self.services.iter().any(|wanted| wanted == service)).map(str::to_owned).collect()
    }

    /// Those of some names by which a Service is called, whatever the domain of the cluster is.
    pub(super) fn names_among(&self, names: &[String], service: &str) -> Vec<String> {
        let called = self.called(service);
        let full = format!("{called}.");
        let short = [service.to_owned(), format!("{service}.{}", self.namespace), called];
        names.iter().filter(|name| short.contains(name) || name.starts_with(&full)).cloned().collect()
    }

    /// The Services, in words.
    pub(super) fn tell_services(&self) -> String {
        let quoted: Vec<String> = self.services.iter().map(|service| format!("`{service}`")).collect();
        let word = if quoted.len() == 1 { "Service" } else { "Services" };
        format!("{word} {}", quoted.join(", "))
    }

    /// Says what cannot work, before anything is looked at.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |message: String| Err(Error::Options(message));
        if self.services.is_empty() {
            return refuse("a certificate needs a Service by which it is called".to_owned());
        }
        let services = self.services.iter().map(|service| ("service", service));
        for (what, name) in services.chain([("namespace", &self.namespace)]) {
            if !jobwright_engine::is_identifier(name) {
                return refuse(format!("`{name}` cannot be the name of a {what}"));
            }
        }
        let authority = self.authority_secret();
        let objects =
            [&self.secret, &authority].into_iter().chain(&self.lock).chain(&self.deployments).map(String::as_str);
        let objects = objects.chain(self.mark.as_ref().map(|mark| mark.config_map.as_str()));
        for name in objects.chain(self.targets.names().map(|(_, name)| name)) {
            if !is_object_name(name) {
                return refuse(format!("`{name}` cannot be the name of an object"));
            }
        }
        if let Some(domain) = self.cluster_domain.as_ref().filter(|domain| !is_domain(domain)) {
            return refuse(format!("`{domain}` cannot be the domain of a cluster: cluster.local is one"));
        }
        if authority == self.secret {
            return refuse(format!("the CA needs a Secret of its own: `{}` is mounted by the server", self.secret));
        }
        if self.again.as_ref().is_some_and(|text| text.is_empty() || text.len() > 253) {
            return refuse("what is remembered of a forced renewal has one to 253 characters".to_owned());
        }
        if self.validity < Duration::from_mins(1) {
            return refuse("a certificate has to be valid for a minute at least".to_owned());
        }
        if self.authority_validity < self.validity {
            let (authority, validity) = (show(self.authority_validity), show(self.validity));
            return refuse(format!("a CA that is valid for {authority} cannot vouch for {validity}"));
        }
        // Later no calendar goes on.
        if self.authority_validity > DAY * 36_500 {
            return refuse("a CA is valid for a hundred years at most".to_owned());
        }
        match self.renew_before {
            RenewBefore::Fraction { numerator, denominator } if numerator == 0 || numerator >= denominator => {
                refuse(format!("{numerator}/{denominator} is no part of a certificate's life: 1/3 is one"))
            }
            RenewBefore::Left(left) if left >= self.validity => {
                let (left, validity) = (show(left), show(self.validity));
                refuse(format!(
                    "a certificate that is valid for {validity} cannot have {left} left: it would be renewed by every run"
                ))
            }
            _ => Ok(()),
        }
    }
}

impl Targets {
    /// Those that have names, by their kinds.
    pub(super) fn names(&self) -> impl Iterator<Item = (Kind, &str)> {
        let all = [
            (Kind::Validating, &self.validating_webhooks),
            (Kind::Mutating, &self.mutating_webhooks),
            (Kind::Definition, &self.definitions),
            (Kind::ApiService, &self.api_services),
        ];
        all.into_iter().flat_map(|(kind, names)| names.iter().map(move |name| (kind, name.as_str())))
    }
}

/// Names of objects are domains whose parts may be of any length.
fn is_object_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_part =
        |part: &str| !part.is_empty() && !part.starts_with('-') && !part.ends_with('-') && part.bytes().all(inner);
    text.len() <= 253 && text.split('.').all(is_part)
}

fn is_domain(text: &str) -> bool {
    text.len() <= 253 && !text.is_empty() && text.split('.').all(jobwright_engine::is_identifier)
}

/// A duration in days, where it is one.
pub(super) fn show(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 86_400, seconds % 86_400) {
        (days @ 1.., 0) => format!("{days} days"),
        _ => format!("{duration:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_an_objects_name_may_be_long() {
        let long = "a".repeat(200);
        for (name, fits) in [
            ("a", true),
            (&*long, true),
            ("a.b-c", true),
            ("", false),
            ("a..b", false),
            ("-a", false),
            ("a-", false),
            ("A", false),
        ] {
            assert_eq!(is_object_name(name), fits, "{name}");
        }
        assert!(!is_object_name(&"a".repeat(254)) && !is_domain(&long));
    }

    fn problem(change: impl FnOnce(&mut Options)) -> String {
        let mut options = Options::new("shop", "hook", "hook-tls");
        change(&mut options);
        options.check().err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_cannot_work_is_said_first() {
        assert_eq!(problem(|_| ()), "");
        assert_eq!(problem(|options| options.cluster_domain = Some("cluster.local".to_owned())), "");
        for (part, change) in [
            (
                "`-hook` cannot be the name of a service",
                (|options| options.services = vec!["-hook".to_owned()]) as fn(&mut Options),
            ),
            ("needs a Service", |options| options.services.clear()),
            ("cannot be the name of a namespace", |options| options.namespace.clear()),
            ("cannot be the name of an object", |options| options.deployments = vec!["a b".to_owned()]),
            ("cannot be the domain", |options| options.cluster_domain = Some(".local".to_owned())),
            ("a Secret of its own", |options| options.authority_secret = Some("hook-tls".to_owned())),
            ("one to 253 characters", |options| options.again = Some(String::new())),
            ("a minute at least", |options| options.validity = Duration::ZERO),
            ("cannot vouch for 365 days", |options| options.authority_validity = DAY),
            ("a hundred years", |options| options.authority_validity = Duration::MAX),
            ("3/3 is no part", |options| {
                options.renew_before = RenewBefore::Fraction { numerator: 3, denominator: 3 };
            }),
            ("renewed by every run", |options| options.renew_before = RenewBefore::Left(DAY * 365)),
        ] {
            let said = problem(change);
            assert!(said.contains(part), "{part}: {said}");
        }
    }

    #[test]
    fn a_service_is_called_by_all_its_names() {
        let options =
            Options { cluster_domain: Some("cluster.local".to_owned()), ..Options::new("shop", "hook", "tls") };
        assert_eq!(options.names(), ["hook", "hook.shop", "hook.shop.svc", "hook.shop.svc.cluster.local"]);
        assert_eq!(options.authority_secret(), "tls-ca");
        let both = Options { services: vec!["hook".to_owned(), "stock".to_owned()], ..Options::new("shop", "", "tls") };
        assert_eq!(both.names(), ["hook", "hook.shop", "hook.shop.svc", "stock", "stock.shop", "stock.shop.svc"]);
        let found: Vec<String> = [
            "old",
            "old.shop",
            "old.shop.svc",
            "old.shop.svc.cluster.local",
            "hook.shop.svc",
            "a.b.shop.svc",
            "old.other.svc",
        ]
        .map(str::to_owned)
        .to_vec();
        assert_eq!(both.other_services(&found), ["old"]);
        assert_eq!(both.names_among(&found, "old"), found[..4]);
    }

    #[test]
    fn a_part_of_a_life_is_a_time() {
        assert_eq!(RenewBefore::default().of(DAY * 3), DAY);
        assert_eq!(RenewBefore::Left(DAY).of(DAY * 3), DAY);
    }
}
