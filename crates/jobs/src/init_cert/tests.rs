//! What is decided about Secrets and bundles, without a cluster: every reason, and whatever a Secret may hold.

mod decide;
mod fuzz;
mod inspect;

use super::certificate::{Certificate, write_all};
use super::inspect::PairData;
use super::issue::{later, make_authority, make_pair};
use super::key::Key;
use super::options::Options;
use jiff::Timestamp;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SignatureAlgorithm};
use std::time::Duration;
use time::OffsetDateTime;

const DAY: Duration = Duration::from_hours(24);

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn options() -> Options {
    Options::new("shop", "hook", "hook-tls")
}

/// A CA with its key.
struct Ca {
    certificate: Certificate,
    key: String,
}

impl Ca {
    fn new(validity: Duration, at: Timestamp) -> Self {
        let made = make_authority("hook", validity, at).unwrap();
        Self { certificate: made.certificate, key: made.key }
    }

    fn usual() -> Self {
        Self::new(Options::AUTHORITY_VALIDITY, now())
    }

    fn text(&self) -> Vec<u8> {
        write_all([&self.certificate]).into_bytes()
    }

    /// A pair as init-cert makes it.
    fn pair(&self, validity: Duration, at: Timestamp) -> PairData {
        let key = Key::read(self.key.as_bytes()).unwrap();
        let pair = make_pair(&options().names(), validity, (&self.certificate, &key), at).unwrap();
        PairData { certificate: pair.text().into_bytes(), key: pair.key.into_bytes(), authority: self.text() }
    }

    fn usual_pair(&self) -> PairData {
        self.pair(Options::VALIDITY, now())
    }

    /// A pair as somebody else makes it.
    fn other_pair(
        &self,
        algorithm: &'static SignatureAlgorithm,
        change: impl FnOnce(&mut CertificateParams),
    ) -> PairData {
        let mut parameters = CertificateParams::new(options().names()).unwrap();
        set_life(&mut parameters, now(), DAY * 300);
        change(&mut parameters);
        let key = KeyPair::generate_for(algorithm).unwrap();
        let signer = KeyPair::from_pem(&self.key).unwrap();
        let issuer = Issuer::from_ca_cert_der(&self.certificate, signer).unwrap();
        let certificate = parameters.signed_by(&key, &issuer).unwrap();
        PairData {
            certificate: certificate.pem().into_bytes(),
            key: key.serialize_pem().into_bytes(),
            authority: self.text(),
        }
    }
}

fn set_life(parameters: &mut CertificateParams, begins: Timestamp, validity: Duration) {
    let calendar = |time: Timestamp| OffsetDateTime::from_unix_timestamp(time.as_second()).unwrap();
    parameters.not_before = calendar(begins);
    parameters.not_after = calendar(later(begins, validity));
}

/// A pair that vouches for itself, as `openssl req -x509` makes it.
fn self_signed() -> PairData {
    let mut parameters = CertificateParams::new(options().names()).unwrap();
    set_life(&mut parameters, now(), DAY * 300);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = parameters.self_signed(&key).unwrap().pem().into_bytes();
    PairData { authority: certificate.clone(), certificate, key: key.serialize_pem().into_bytes() }
}
