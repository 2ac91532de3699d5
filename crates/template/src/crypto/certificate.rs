//! Certificates as Sprig issues them through `crypto/x509`.

use super::der::{
    BIT_STRING, INTEGER, OBJECT, OCTET_STRING, SET, bits, from_pem, integer, read, read_all, sequence, to_pem, value,
};
use super::key::{Key, identifier};
use crate::environment::Random;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use num_bigint::BigUint;
use std::net::IpAddr;

const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const SUBJECT_KEY: &[u8] = &[0x55, 0x1d, 14];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 17];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 35];
const EXTENDED_USAGE: &[u8] = &[0x55, 0x1d, 37];
const SERVER: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
const CLIENT: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];
const TRUE: &[u8] = &[1, 1, 0xff];

/// What a certificate is to say.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) common_name: String,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) names: Vec<String>,
    pub(crate) not_before: Timestamp,
    pub(crate) days: i64,
    pub(crate) is_authority: bool,
}

/// What is read of a certificate that signs others.
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    subject: Vec<u8>,
    key_identifier: Option<Vec<u8>>,
}

impl Certificate {
    /// Reads a certificate; `Err(None)` if there is none.
    pub(crate) fn from_pem(text: &str) -> Result<Self, Option<String>> {
        let (_, der) = from_pem(text).ok_or(None)?;
        Self::from_der(&der).ok_or_else(|| Some("x509: malformed certificate".to_owned()))
    }

    fn from_der(der: &[u8]) -> Option<Self> {
        let (whole, _) = read(der)?;
        let (body, _) = read(whole.content)?;
        let parts = read_all(body.content)?;
        // The version is optional and comes first.
        let parts = if parts.first()?.tag == 0xa0 { &parts[1..] } else { &parts[..] };
        let subject = parts.get(4)?.whole.to_vec();
        let extensions = parts.iter().find(|part| part.tag == 0xa3).and_then(|part| read(part.content));
        let mut key_identifier = None;
        for extension in extensions.and_then(|(list, _)| read_all(list.content)).unwrap_or_default() {
            let fields = read_all(extension.content)?;
            if fields.first()?.content == SUBJECT_KEY {
                key_identifier =
                    fields.last().and_then(|last| read(last.content)).map(|(inner, _)| inner.content.to_vec());
            }
        }
        Some(Self { subject, key_identifier })
    }
}

impl Request {
    /// Issues the certificate of a key, signed by an authority or by itself.
    pub(crate) fn issue(
        &self,
        key: &Key,
        authority: Option<(&Certificate, &Key)>,
        random: &mut Random,
    ) -> Result<String, String> {
        let serial = BigUint::from_bytes_be(&random.bytes(16));
        let subject = self.subject();
        let (issuer, signer) = match authority {
            Some((certificate, signer)) => (certificate.subject.clone(), signer),
            None => (subject.clone(), key),
        };
        let seconds = self.days.checked_mul(86_400).ok_or("x509: the validity is too long")?;
        let not_after = self.not_before.checked_add(jiff::SignedDuration::from_secs(seconds));
        let not_after = not_after.map_err(|_| "x509: cannot represent time as GeneralizedTime")?;
        let algorithm = signer.signature_algorithm();
        let body = sequence(&[
            value(0xa0, &value(INTEGER, &[2])),
            integer(&serial),
            algorithm.clone(),
            issuer,
            sequence(&[moment(self.not_before), moment(not_after)]),
            subject,
            key.public_info()?,
            value(0xa3, &sequence(&self.extensions(key, authority.map(|(certificate, _)| certificate)))),
        ]);
        let signature = signer.sign(&body, random)?;
        Ok(to_pem("CERTIFICATE", &sequence(&[body, algorithm, bits(&signature)])))
    }

    fn subject(&self) -> Vec<u8> {
        if self.common_name.is_empty() {
            return sequence(&[]);
        }
        let is_printable = |byte: u8| byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&byte);
        // UTF-8, unless the plainer kind will do.
        let tag = if self.common_name.bytes().all(is_printable) { 0x13 } else { 0x0c };
        let name = sequence(&[value(OBJECT, COMMON_NAME), value(tag, self.common_name.as_bytes())]);
        sequence(&[value(SET, &name)])
    }

    fn extensions(&self, key: &Key, authority: Option<&Certificate>) -> Vec<Vec<u8>> {
        let extension = |object: &[u8], is_critical: bool, content: &[u8]| {
            let critical = if is_critical { TRUE.to_vec() } else { Vec::new() };
            sequence(&[value(OBJECT, object), critical, value(OCTET_STRING, content)])
        };
        // Signatures and key encipherment, and for authorities certificates.
        let usage: &[u8] = if self.is_authority { &[2, 0xa4] } else { &[5, 0xa0] };
        let mut found = vec![
            extension(KEY_USAGE, true, &value(BIT_STRING, usage)),
            extension(EXTENDED_USAGE, false, &sequence(&[value(OBJECT, SERVER), value(OBJECT, CLIENT)])),
            extension(
                BASIC_CONSTRAINTS,
                true,
                &sequence(&[if self.is_authority { TRUE.to_vec() } else { Vec::new() }]),
            ),
        ];
        if self.is_authority {
            found.push(extension(SUBJECT_KEY, false, &value(OCTET_STRING, &identifier(key))));
        }
        if let Some(identifier) = authority.and_then(|authority| authority.key_identifier.as_deref()) {
            found.push(extension(AUTHORITY_KEY, false, &sequence(&[value(0x80, identifier)])));
        }
        if !self.names.is_empty() || !self.addresses.is_empty() {
            let mut names: Vec<Vec<u8>> = self.names.iter().map(|name| value(0x82, name.as_bytes())).collect();
            names.extend(self.addresses.iter().map(|address| match address {
                IpAddr::V4(address) => value(0x87, &address.octets()),
                IpAddr::V6(address) => match address.to_ipv4_mapped() {
                    Some(address) => value(0x87, &address.octets()),
                    None => value(0x87, &address.octets()),
                },
            }));
            let is_critical = self.common_name.is_empty();
            found.push(extension(ALTERNATIVE_NAMES, is_critical, &sequence(&names)));
        }
        found
    }
}

/// A moment, with two digits of the year while those do.
fn moment(timestamp: Timestamp) -> Vec<u8> {
    let zoned = timestamp.to_zoned(TimeZone::UTC);
    let rest =
        format!("{:02}{:02}{:02}{:02}{:02}Z", zoned.month(), zoned.day(), zoned.hour(), zoned.minute(), zoned.second());
    if (1950..2050).contains(&zoned.year()) {
        value(0x17, format!("{:02}{rest}", zoned.year() % 100).as_bytes())
    } else {
        value(0x18, format!("{:04}{rest}", zoned.year()).as_bytes())
    }
}
