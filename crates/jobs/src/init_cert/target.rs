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
    uid: String,
    pub(super) version: String,
    /// What of it leads to our Service.
    pub(super) entries: Vec<Entry>,
    /// The names of entries that lead elsewhere.
    pub(super) elsewhere: Vec<String>,
    /// When we have last changed it, by the clock of the server.
    pub(super) changed_at: Option<Timestamp>,
    managers: Vec<Value>,
}

/// A bundle of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The name of the webhook, where there are several.
    name: Option<String>,
    pub(super) bundle: Vec<Certificate>,
    is_empty: bool,
    /// Whether it holds nothing but certificates that can be read.
    is_whole: bool,
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
    /// Reads an object. The error is why its bundle is not ours to fill.
    pub(super) fn read(kind: Kind, object: &Value, (namespace, service): (&str, &str)) -> Result<Self, String> {
        let metadata = &object["metadata"];
        let managers = metadata["managedFields"].as_array().cloned().unwrap_or_default();
        let mut target = Self {
            kind,
            name: text(&metadata["name"]),
            uid: text(&metadata["uid"]),
            version: text(&metadata["resourceVersion"]),
            entries: Vec::new(),
            elsewhere: Vec::new(),
            changed_at: applied_at(&managers),
            managers,
        };
        if let Some(key) = CERT_MANAGER.iter().find(|key| metadata["annotations"].get(**key).is_some()) {
            return Err(format!(
                "{target} has its bundle from cert-manager (annotation {key}): two would fight over it; take the \
                 annotation away, or leave the certificate to cert-manager"
            ));
        }
        let is_ours = |reference: &Value| reference["namespace"] == namespace && reference["name"] == service;
        match kind {
            Kind::Validating | Kind::Mutating => {
                for webhook in object["webhooks"].as_array().into_iter().flatten() {
                    let (name, client) = (text(&webhook["name"]), &webhook["clientConfig"]);
                    if is_ours(&client["service"]) {
                        target.entries.push(Entry::read(Some(name), client, &client["service"]));
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
                    return Err(format!(
                        "{target} skips verification (insecureSkipTLSVerify): a bundle is refused until that is gone"
                    ));
                }
            }
        }
        Ok(target)
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

    /// The object as it has to be applied so that each bundle has these certificates, and with `keep` also what it has
    /// that has not expired by then. Applies only to the very object that was read, and creates none.
    pub(super) fn patch(&self, certificates: &[Certificate], keep: Option<Timestamp>) -> Value {
        let bundle = |entry: &Entry| {
            let mut all = keep.map(|now| alive(&entry.bundle, now)).unwrap_or_default();
            for certificate in certificates {
                if !all.contains(certificate) {
                    all.push(certificate.clone());
                }
            }
            json!(STANDARD.encode(write_all(&all)))
        };
        let (group, version, kind, _) = self.kind.names();
        let mut patch = json!({
            "apiVersion": format!("{group}/{version}"),
            "kind": kind,
            "metadata": {"name": self.name, "uid": self.uid, "resourceVersion": self.version},
        });
        match self.kind {
            Kind::Validating | Kind::Mutating => {
                let webhook = |entry: &Entry| json!({"name": entry.name, "clientConfig": {"caBundle": bundle(entry)}});
                patch["webhooks"] = self.entries.iter().map(webhook).collect();
            }
            Kind::Definition => {
                for entry in &self.entries {
                    patch["spec"] = json!({"conversion": {"webhook": {"clientConfig": {"caBundle": bundle(entry)}}}});
                }
            }
            Kind::ApiService => {
                for entry in &self.entries {
                    patch["spec"] = json!({"caBundle": bundle(entry)});
                }
            }
        }
        patch
    }

    /// Who else applies the bundles of this target again and again, with something in them: nobody can fill them but
    /// them. Whoever has only written them once may be written over.
    pub(super) fn claimed_by(&self) -> Option<String> {
        if self.entries.iter().all(|entry| entry.is_empty) {
            return None;
        }
        let applies = self.managers.iter().filter(|entry| entry["operation"] == "Apply");
        let others = applies.filter(|entry| entry["manager"] != FIELD_MANAGER);
        let claims = |fields: &Value| self.entries.iter().any(|entry| owns(self.kind, entry, fields));
        others.filter(|entry| claims(&entry["fieldsV1"])).map(|entry| text(&entry["manager"])).next()
    }
}

impl Entry {
    fn read(name: Option<String>, holder: &Value, service: &Value) -> Self {
        let encoded = holder["caBundle"].as_str().unwrap_or_default();
        let decoded = STANDARD.decode(encoded);
        let (bundle, is_whole) = decoded.as_deref().map_or_else(|_| (Vec::new(), false), read_all);
        let port = service["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(443);
        Self { name, is_empty: encoded.is_empty(), bundle, is_whole, port }
    }
}

/// When we have last applied something that changed the object.
fn applied_at(managers: &[Value]) -> Option<Timestamp> {
    let ours = managers.iter().find(|entry| entry["manager"] == FIELD_MANAGER && entry["operation"] == "Apply");
    ours.and_then(|entry| entry["time"].as_str()?.parse().ok())
}

/// Whether a set of fields has the bundle of an entry in it.
fn owns(kind: Kind, entry: &Entry, fields: &Value) -> bool {
    let client = match kind {
        Kind::Validating | Kind::Mutating => {
            let key = format!("k:{}", json!({"name": entry.name}));
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
