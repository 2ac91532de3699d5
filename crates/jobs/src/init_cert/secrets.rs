//! The two Secrets: the pair, which the server mounts, and the CA, which nobody does.

use super::certificate::{Certificate, fingerprint, read_all, write_all};
use super::inspect::PairData;
use super::issue::{MadeAuthority, MadePair};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use std::collections::BTreeMap;

/// Who writes, as servers call it.
pub(super) const FIELD_MANAGER: &str = "jobwright-init-cert";
/// On a pair whose servers may still show the one before: the fingerprint of its certificate.
pub(super) const UNFINISHED: &str = "jobwright.io/unfinished";
/// On a pair: the text with which it was last asked for to be made anew.
const AGAIN: &str = "jobwright.io/again";
/// On a pair: when the last forced deploy before it was noticed.
pub(super) const FORCED: &str = "jobwright.io/forced";
/// On what belongs to us.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "jobwright");
const TLS: &str = "kubernetes.io/tls";
/// In the Secret of a CA: those before it that servers may still be vouched for by.
const PREVIOUS: &str = "previous.crt";
/// In a Secret that cert-manager fills: its Certificate.
const CERT_MANAGER: &str = "cert-manager.io/certificate-name";

/// What a Secret holds of a pair.
pub(super) fn pair_data(secret: &Secret) -> PairData {
    PairData {
        certificate: field(secret, "tls.crt"),
        key: field(secret, "tls.key"),
        authority: field(secret, "ca.crt"),
    }
}

/// The CA of a Secret: its certificate and its key, as they stand there.
pub(super) fn authority_data(secret: &Secret) -> (Vec<u8>, Vec<u8>) {
    (field(secret, "tls.crt"), field(secret, "tls.key"))
}

/// The CAs before this one.
pub(super) fn previous(secret: &Secret) -> Vec<Certificate> {
    read_all(&field(secret, PREVIOUS)).0
}

fn field(secret: &Secret, key: &str) -> Vec<u8> {
    let value = secret.data.as_ref().and_then(|data| data.get(key));
    value.map(|value| value.0.clone()).unwrap_or_default()
}

/// Whether servers may still show the pair before this one.
pub(super) fn is_unfinished(secret: &Secret) -> bool {
    secret.annotations().contains_key(UNFINISHED)
}

/// With which text a new pair was last asked for.
pub(super) fn again(secret: &Secret) -> Option<&String> {
    secret.annotations().get(AGAIN)
}

/// When the last forced deploy before a pair was noticed.
pub(super) fn forced(secret: &Secret) -> Option<Timestamp> {
    secret.annotations().get(FORCED)?.parse().ok()
}

/// When we have last written a Secret, by the clock of the server.
pub(super) fn written_at(secret: &Secret) -> Option<Timestamp> {
    let entries = secret.metadata.managed_fields.as_deref().unwrap_or_default();
    let ours = entries.iter().filter(|entry| entry.manager.as_deref() == Some(FIELD_MANAGER));
    ours.filter_map(|entry| entry.time.as_ref().map(|time| time.0)).max()
}

/// When a Secret was made, by the clock of the server, if nobody has written it since.
pub(super) fn made_at(secret: &Secret) -> Option<Timestamp> {
    let made = secret.creation_timestamp()?.0;
    let entries = secret.metadata.managed_fields.as_deref().unwrap_or_default();
    let last = entries.iter().filter_map(|entry| entry.time.as_ref().map(|time| time.0)).max()?;
    (last <= made).then_some(made)
}

/// Why a Secret is not ours to change.
pub(super) fn refusal(secret: &Secret) -> Option<String> {
    let name = secret.name_any();
    if let Some(certificate) = secret.annotations().get(CERT_MANAGER) {
        return Some(format!(
            "Secret `{name}` is filled by cert-manager (Certificate `{certificate}`): let that renew it, or delete the \
             Certificate and the annotation {CERT_MANAGER} to take it over"
        ));
    }
    if secret.immutable == Some(true) {
        return Some(format!("Secret `{name}` is immutable: delete it, or name another"));
    }
    match secret.type_.as_deref() {
        None | Some("" | "Opaque" | TLS) => None,
        Some(other) => Some(format!("Secret `{name}` has type {other}: name another, or delete it")),
    }
}

/// The Secret with a new pair; a new one, if there is none.
pub(super) fn with_pair(
    found: Option<&Secret>,
    (namespace, name): (&str, &str),
    pair: &MadePair,
    authority: &Certificate,
    (again, forced): (Option<&str>, Option<Timestamp>),
) -> Secret {
    let mut secret = found.cloned().unwrap_or_else(|| new(namespace, name));
    put(&mut secret, "tls.crt", pair.text());
    put(&mut secret, "tls.key", pair.key.clone());
    put(&mut secret, "ca.crt", write_all([authority]));
    secret.annotations_mut().insert(UNFINISHED.to_owned(), fingerprint(&pair.certificate));
    let asked = [(AGAIN, again.map(str::to_owned)), (FORCED, forced.map(|time| time.to_string()))];
    for (key, text) in asked.into_iter().filter_map(|(key, text)| Some((key, text?))) {
        secret.annotations_mut().insert(key.to_owned(), text);
    }
    secret
}

/// The Secret without the mark that something is unfinished.
pub(super) fn finished(secret: &Secret) -> Secret {
    let mut secret = secret.clone();
    secret.annotations_mut().remove(UNFINISHED);
    secret
}

/// The Secret of a CA with these before it, and with a new CA if there is one.
pub(super) fn with_authority(
    found: Option<&Secret>,
    (namespace, name): (&str, &str),
    made: Option<&MadeAuthority>,
    previous: &[Certificate],
) -> Secret {
    let mut secret = found.cloned().unwrap_or_else(|| new(namespace, name));
    if let Some(made) = made {
        put(&mut secret, "tls.crt", write_all([&made.certificate]));
        put(&mut secret, "tls.key", made.key.clone());
    }
    if previous.is_empty() {
        secret.data.get_or_insert_default().remove(PREVIOUS);
    } else {
        put(&mut secret, PREVIOUS, write_all(previous));
    }
    secret
}

fn new(namespace: &str, name: &str) -> Secret {
    let (key, value) = MANAGED_BY;
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: Some(BTreeMap::from([(key.to_owned(), value.to_owned())])),
            ..ObjectMeta::default()
        },
        type_: Some(TLS.to_owned()),
        ..Secret::default()
    }
}

fn put(secret: &mut Secret, key: &str, text: String) {
    // What is there as text would win over it.
    if let Some(texts) = &mut secret.string_data {
        texts.remove(key);
    }
    secret.data.get_or_insert_default().insert(key.to_owned(), ByteString(text.into_bytes()));
}
