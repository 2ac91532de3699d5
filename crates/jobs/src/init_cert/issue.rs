//! Makes CAs and certificates, and tries them before anybody else does.

use super::certificate::{Certificate, facts, hex, write_all};
use super::error::Error;
use super::handshake;
use super::key::Key;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SerialNumber,
};
use std::time::Duration;
use time::OffsetDateTime;

/// Clocks differ: a certificate is valid from a little before it was made.
const BACK_DATED: Duration = Duration::from_hours(1);

/// A CA that was made: nobody else has its key.
pub(super) struct MadeAuthority {
    pub(super) certificate: Certificate,
    /// PKCS#8.
    pub(super) key: String,
}

/// A pair that was made and tried.
pub(super) struct MadePair {
    pub(super) certificate: Certificate,
    /// PKCS#8.
    pub(super) key: String,
    pub(super) names: Vec<String>,
}

impl MadePair {
    /// The certificate as a server reads it.
    pub(super) fn text(&self) -> String {
        write_all([&self.certificate])
    }
}

/// Makes a CA that can vouch for certificates, and for no further CA.
pub(super) fn make_authority(service: &str, validity: Duration, now: Timestamp) -> Result<MadeAuthority, Error> {
    let serial = serial()?;
    let mut parameters = CertificateParams::default();
    // Two CAs of one Service are told apart by people, too.
    let number = hex(&serial.to_bytes());
    parameters.distinguished_name = name(&format!("{service} CA {}", number.get(..8).unwrap_or(&number)));
    parameters.serial_number = Some(serial);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    parameters.use_authority_key_identifier_extension = true;
    set_life(&mut parameters, now, later(now, validity), validity)?;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(make)?;
    let certificate = parameters.self_signed(&key).map_err(make)?;
    Ok(MadeAuthority { certificate: certificate.der().clone(), key: key.serialize_pem() })
}

/// Makes a certificate for a server, and tries it by a handshake for each of its names.
pub(super) fn make_pair(
    names: &[String],
    validity: Duration,
    authority: (&Certificate, &Key),
    now: Timestamp,
) -> Result<MadePair, Error> {
    let (authority, authority_key) = authority;
    let mut parameters = CertificateParams::new(names).map_err(make)?;
    parameters.distinguished_name = name(names.first().map(String::as_str).unwrap_or_default());
    parameters.serial_number = Some(serial()?);
    parameters.is_ca = IsCa::ExplicitNoCa;
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    parameters.use_authority_key_identifier_extension = true;
    // Nobody is vouched for by a CA that has ended.
    let ends = facts(authority).map_or(now, |facts| facts.ends).min(later(now, validity));
    set_life(&mut parameters, now, ends, validity)?;
    let issuer = Issuer::from_ca_cert_der(authority, authority_key).map_err(make)?;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(make)?;
    let certificate = parameters.signed_by(&key, &issuer).map_err(make)?;
    let pair = MadePair { certificate: certificate.der().clone(), key: key.serialize_pem(), names: names.to_vec() };
    handshake::rehearse(&pair, authority, names, now).map_err(Error::Make)?;
    Ok(pair)
}

fn make(error: rcgen::Error) -> Error {
    Error::Make(error.to_string())
}

fn name(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, "jobwright");
    name.push(DnType::CommonName, common);
    name
}

/// A number that no other certificate has.
fn serial() -> Result<SerialNumber, Error> {
    let mut bytes = [0; 16];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| Error::Make("this machine has no random numbers".to_owned()))?;
    // It is positive, and its length is always the same.
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

fn set_life(
    parameters: &mut CertificateParams,
    now: Timestamp,
    ends: Timestamp,
    validity: Duration,
) -> Result<(), Error> {
    // A short life is not made much longer.
    let back = SignedDuration::try_from(BACK_DATED.min(validity / 10)).unwrap_or_default();
    parameters.not_before = calendar(now.checked_sub(back).unwrap_or(now))?;
    parameters.not_after = calendar(ends)?;
    Ok(())
}

fn calendar(time: Timestamp) -> Result<OffsetDateTime, Error> {
    OffsetDateTime::from_unix_timestamp(time.as_second())
        .map_err(|error| Error::Make(format!("{time} is in no calendar: {error}")))
}

/// A time later on; the last that there is, if that would be later still.
pub(super) fn later(time: Timestamp, duration: Duration) -> Timestamp {
    let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}
