//! Who trusts the certificate: webhook configurations, conversion webhooks, APIServices. What each says, and what it
//! should say, as data.

use super::certificate::{Certificate, alive, read_all, write_all};
use super::secrets::FIELD_MANAGER;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::fmt;

/// A kind of object that has a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Validating,
    Mutating,
    Definition,
    ApiService,
}

impl Kind {
    /// Group, version, kind, plural.
    pub(super) fn names(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Self::Validating => {
                let group = "admissionregistration.k8s.io";
                (group, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
            }
            Self::Mutating => {
                let group = "admissionregistration.k8s.io";
                (group, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
            }
            Self::Definition => ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions"),
            Self::ApiService => ("apiregistration.k8s.io", "v1", "APIService", "apiservices"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.names().2)
    }
}

/// What was named and is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    Named(Kind, String),
    /// Nothing that this selects leads to the Service.
    Selected(String),
}

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(kind, name) => write!(formatter, "{kind} `{name}`"),
            Self::Selected(selector) => {
                write!(formatter, "webhook configuration with `{selector}` that leads to the Service")
            }
        }
    }
}

/// An object that has to trust the certificate.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) version: String,
    /// What of it leads to our Services.
    pub(super) entries: Vec<Entry>,
    /// Why its bundles are not ours to fill.
    pub(super) obstacle: Option<String>,
    /// The names of entries that lead elsewhere.
    pub(super) elsewhere: Vec<String>,
    /// When we have last changed it, by the clock of the server.
    pub(super) changed_at: Option<Timestamp>,
    managers: Vec<Value>,
}

/// A bundle of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The place and the name of the webhook, where there are several.
    webhook: Option<(usize, String)>,
    pub(super) bundle: Vec<Certificate>,
    /// Whether it holds nothing but certificates that can be read.
    is_whole: bool,
    /// The Service that it leads to, and the port at which that is called.
    pub(super) service: String,
    pub(super) port: u16,
}

/// Annotations by which cert-manager fills bundles.
const CERT_MANAGER: [&str; 3] =
    ["cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca"];

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} `{}`", self.kind, self.name)
    }
}

impl Target {
    /// Reads an object, in which these Services are ours.
    pub(super) fn read(kind: Kind, object: &Value, (namespace, services): (&str, &[String])) -> Self {
        let metadata = &object["metadata"];
        let managers = metadata["managedFields"].as_array().cloned().unwrap_or_default();
        let mut target = Self {
            kind,
            name: text(&metadata["name"]),
            version: text(&metadata["resourceVersion"]),
            entries: Vec::new(),
            elsewhere: Vec::new(),
            obstacle: None,
            changed_at: changed_at(&managers),
            managers,
        };
        let is_ours = |reference: &Value| {
            reference["namespace"] == namespace && services.iter().any(|service| reference["name"] == **service)
        };
        match kind {
            Kind::Validating | Kind::Mutating => {
                for (index, webhook) in object["webhooks"].as_array().into_iter().flatten().enumerate() {
                    let (name, client) = (text(&webhook["name"]), &webhook["clientConfig"]);
                    if is_ours(&client["service"]) {
                        target.entries.push(Entry::read(Some((index, name)), client, &client["service"]));
                    } else {
                        target.elsewhere.push(name);
                    }
                }
            }
            Kind::Definition => {
                let client = &object["spec"]["conversion"]["webhook"]["clientConfig"];
                if is_ours(&client["service"]) {
                    target.entries.push(Entry::read(None, client, &client["service"]));
                }
            }
            Kind::ApiService => {
                let spec = &object["spec"];
                if is_ours(&spec["service"]) {
                    target.entries.push(Entry::read(None, spec, &spec["service"]));
                }
                if spec["insecureSkipTLSVerify"] == true && !target.entries.is_empty() {
                    target.obstacle = Some(format!(
                        "{target} skips verification (insecureSkipTLSVerify): a bundle is refused until that is gone"
                    ));
                }
            }
        }
        if let Some(key) = CERT_MANAGER.iter().find(|key| metadata["annotations"].get(**key).is_some()) {
            target.obstacle = Some(format!(
                "{target} has its bundle from cert-manager (annotation {key}): two would fight over it; take the \
                 annotation away, or leave the certificate to cert-manager"
            ));
        }
        target
    }

    /// Whether a bundle of it has this.
    pub(super) fn has_somewhere(&self, certificate: &Certificate) -> bool {
        self.entries.iter().any(|entry| entry.bundle.contains(certificate))
    }

    /// Whether every bundle of it has all of these.
    pub(super) fn has(&self, certificates: &[Certificate]) -> bool {
        self.entries.iter().all(|entry| certificates.iter().all(|wanted| entry.bundle.contains(wanted)))
    }

    /// Whether every bundle of it is exactly this.
    pub(super) fn is(&self, certificates: &[Certificate]) -> bool {
        self.has(certificates)
            && self.entries.iter().all(|entry| entry.is_whole && entry.bundle.len() == certificates.len())
    }

    /// Whether a bundle of it has more than this.
    pub(super) fn has_besides(&self, certificate: &Certificate) -> bool {
        self.entries.iter().any(|entry| entry.bundle.iter().any(|other| other != certificate))
    }

    /// The operations of a JSON patch that gives each bundle these certificates, and with `keep` also what it has that has
    /// not expired by then. They change the values alone, and only of the very object that was read: a server-side apply
    /// would make us an owner of list entries and structures, which a deployer could then no longer remove.
    pub(super) fn bundle_operations(&self, certificates: &[Certificate], keep: Option<Timestamp>) -> Vec<Value> {
        let mut operations = vec![self.is_as_read()];
        for entry in &self.entries {
            let mut all = keep.map(|now| alive(&entry.bundle, now)).unwrap_or_default();
            for certificate in certificates {
                if !all.contains(certificate) {
                    all.push(certificate.clone());
                }
            }
            let client = match (&entry.webhook, self.kind) {
                (Some((index, name)), _) => {
                    operations.push(json!({"op": "test", "path": format!("/webhooks/{index}/name"), "value": name}));
                    format!("/webhooks/{index}/clientConfig")
                }
                (None, Kind::ApiService) => "/spec".to_owned(),
                (None, _) => "/spec/conversion/webhook/clientConfig".to_owned(),
            };
            let bundle = STANDARD.encode(write_all(&all));
            operations.push(json!({"op": "add", "path": format!("{client}/caBundle"), "value": bundle}));
        }
        operations
    }

    /// The operations of a JSON patch that gives up what we own of the object and need not own; none if there is no such
    /// thing. Earlier versions applied bundles, and so own the entries around them: a deployer that removes an entry would
    /// leave a stump behind that no server accepts. In a definition the value alone is enough for that.
    pub(super) fn release_operations(&self) -> Option<Vec<Value>> {
        let needless = |manager: &Value| {
            let is_ours = manager["manager"] == FIELD_MANAGER && manager.get("subresource").is_none();
            is_ours && (manager["operation"] == "Apply" || self.kind == Kind::Definition)
        };
        let found: Vec<usize> = (0..self.managers.len()).filter(|index| needless(&self.managers[*index])).collect();
        // Without any manager, the server would begin its books anew.
        if found.is_empty() || found.len() == self.managers.len() {
            return None;
        }
        let remove = |index: &usize| json!({"op": "remove", "path": format!("/metadata/managedFields/{index}")});
        Some(std::iter::once(self.is_as_read()).chain(found.iter().rev().map(remove)).collect())
    }

    fn is_as_read(&self) -> Value {
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": self.version})
    }

    /// Why nobody but its deployer can fill its bundles.
    pub(super) fn refusal(&self) -> Option<String> {
        let manager = self.claimed_by()?;
        Some(format!(
            "the bundle of {self} is applied by `{manager}`, which would put it back: leave `caBundle` out of what that \
             applies"
        ))
    }

    /// Who else applies the bundles of this target again and again: nobody can fill them but them. Whoever has only
    /// written them once may be written over.
    fn claimed_by(&self) -> Option<String> {
        let applies = self.managers.iter().filter(|entry| entry["operation"] == "Apply");
        let others = applies.filter(|entry| entry["manager"] != FIELD_MANAGER);
        let claims = |fields: &Value| self.entries.iter().any(|entry| owns(self.kind, entry, fields));
        others.filter(|entry| claims(&entry["fieldsV1"])).map(|entry| text(&entry["manager"])).next()
    }
}

impl Entry {
    fn read(webhook: Option<(usize, String)>, holder: &Value, service: &Value) -> Self {
        let encoded = holder["caBundle"].as_str().unwrap_or_default();
        let decoded = STANDARD.decode(encoded);
        let (bundle, is_whole) = decoded.as_deref().map_or_else(|_| (Vec::new(), false), read_all);
        let port = service["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(443);
        Self { webhook, bundle, is_whole, service: text(&service["name"]), port }
    }
}

/// When we have last changed the object, as far as its books tell.
fn changed_at(managers: &[Value]) -> Option<Timestamp> {
    let ours = managers.iter().filter(|entry| entry["manager"] == FIELD_MANAGER);
    ours.filter_map(|entry| entry["time"].as_str()?.parse().ok()).max()
}

/// Whether a set of fields has the bundle of an entry in it.
fn owns(kind: Kind, entry: &Entry, fields: &Value) -> bool {
    let client = match kind {
        Kind::Validating | Kind::Mutating => {
            let key = format!("k:{}", json!({"name": entry.webhook.as_ref().map(|(_, name)| name)}));
            &fields["f:webhooks"][key]["f:clientConfig"]
        }
        Kind::Definition => &fields["f:spec"]["f:conversion"]["f:webhook"]["f:clientConfig"],
        Kind::ApiService => &fields["f:spec"],
    };
    client.get("f:caBundle").is_some()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
