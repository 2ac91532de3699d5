//! Certificates as they stand in Secrets and bundles: PEM, of which nothing can be expected.

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use sha2::{Digest as _, Sha256};
use std::time::Duration;
use x509_parser::certificate::X509Certificate;
use x509_parser::der_parser::oid;
use x509_parser::extensions::GeneralName;
use x509_parser::oid_registry as registry;
use x509_parser::oid_registry::Oid;
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey;

/// No certificate of a webhook has more.
const MOST_NAMES: usize = 100;

/// A certificate.
pub(super) type Certificate = CertificateDer<'static>;

/// What a certificate says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) begins: Timestamp,
    pub(super) ends: Timestamp,
    pub(super) is_authority: bool,
    pub(super) is_self_signed: bool,
    /// Whether a server may use it.
    pub(super) is_for_servers: bool,
    /// The DNS names that it is for.
    pub(super) names: Vec<String>,
    /// Why nobody should trust it any more.
    pub(super) weakness: Option<String>,
}

/// The certificates of a text, and whether everything in it could be read.
pub(super) fn read_all(text: &[u8]) -> (Vec<Certificate>, bool) {
    let mut certificates = Vec::new();
    let mut is_whole = true;
    for section in CertificateDer::pem_slice_iter(text) {
        match section {
            Ok(certificate) => certificates.push(certificate),
            Err(_) => is_whole = false,
        }
    }
    (certificates, is_whole)
}

/// Certificates as a text.
pub(super) fn write_all<'a>(certificates: impl IntoIterator<Item = &'a Certificate>) -> String {
    let line_ends = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    let encode =
        |certificate: &Certificate| pem::encode_config(&pem::Pem::new("CERTIFICATE", certificate.as_ref()), line_ends);
    certificates.into_iter().map(encode).collect()
}

/// What a certificate is recognised by: the SHA-256 of it, as `openssl x509 -fingerprint -sha256` shows it.
pub(super) fn fingerprint(certificate: &Certificate) -> String {
    hex(&Sha256::digest(certificate))
}

/// Bytes as two digits each.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

/// What a certificate says of itself; none if it cannot be understood.
pub(super) fn facts(certificate: &Certificate) -> Option<Facts> {
    let (rest, parsed) = X509Certificate::from_der(certificate).ok()?;
    if !rest.is_empty() {
        return None;
    }
    let usage = parsed.extended_key_usage().ok()?;
    Some(Facts {
        begins: Timestamp::from_second(parsed.validity().not_before.timestamp()).ok()?,
        ends: Timestamp::from_second(parsed.validity().not_after.timestamp()).ok()?,
        is_authority: parsed.is_ca(),
        is_self_signed: parsed.subject() == parsed.issuer(),
        names: dns_names(&parsed),
        is_for_servers: usage.is_none_or(|usage| usage.value.any || usage.value.server_auth),
        weakness: weakness(&parsed),
    })
}

fn dns_names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else { return Vec::new() };
    let names = extension.value.general_names.iter().filter_map(|name| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        _ => None,
    });
    names.take(MOST_NAMES).collect()
}

/// Those of some certificates that have not expired. What cannot be understood verifies nothing.
pub(super) fn alive(certificates: &[Certificate], now: Timestamp) -> Vec<Certificate> {
    let lives = |certificate: &&Certificate| facts(certificate).is_some_and(|facts| !facts.has_ended(now));
    certificates.iter().filter(lives).cloned().collect()
}

impl Facts {
    /// How long it is valid, from its first moment to its last.
    pub(super) fn life(&self) -> Duration {
        self.ends.duration_since(self.begins).try_into().unwrap_or_default()
    }

    pub(super) fn has_ended(&self, now: Timestamp) -> bool {
        self.ends <= now
    }
}

const ECDSA_WITH_SHA1: Oid<'static> = oid!(1.2.840.10045.4.1);

/// Why nobody should trust a certificate any more. What a CA signed itself with says nothing.
fn weakness(certificate: &X509Certificate<'_>) -> Option<String> {
    let signature = &certificate.signature_algorithm.algorithm;
    let is_self_signed = certificate.subject() == certificate.issuer();
    let broken = [
        (registry::OID_PKCS1_MD2WITHRSAENC, "MD2"),
        (registry::OID_PKCS1_MD4WITHRSAENC, "MD4"),
        (registry::OID_PKCS1_MD5WITHRSAENC, "MD5"),
        (registry::OID_PKCS1_SHA1WITHRSA, "SHA-1"),
        (registry::OID_SHA1_WITH_RSA, "SHA-1"),
        (registry::OID_SIG_DSA_WITH_SHA1, "SHA-1"),
        (ECDSA_WITH_SHA1, "SHA-1"),
    ];
    if let Some((_, name)) = broken.iter().find(|(oid, _)| oid == signature && !is_self_signed) {
        return Some(format!("signed with {name}"));
    }
    let key = certificate.public_key();
    match key.parsed().ok() {
        Some(PublicKey::RSA(rsa)) if rsa.key_size() < 2048 => {
            Some(format!("an RSA key of {} bits is too weak", rsa.key_size()))
        }
        Some(PublicKey::RSA(_)) => None,
        Some(PublicKey::EC(_)) => {
            let curve = key.algorithm.parameters.as_ref().and_then(|parameters| parameters.as_oid().ok());
            let strong = [registry::OID_EC_P256, registry::OID_NIST_EC_P384, registry::OID_NIST_EC_P521];
            let is_strong = curve.is_some_and(|curve| strong.contains(&curve));
            (!is_strong).then(|| "a key on this curve is too weak".to_owned())
        }
        _ if key.algorithm.algorithm == registry::OID_SIG_ED25519 => None,
        _ => Some("a key of a kind that nobody trusts".to_owned()),
    }
}
