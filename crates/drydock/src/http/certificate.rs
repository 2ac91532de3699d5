//! The certificate of a server that lives for an afternoon, and the authority that vouches for it.

use super::ServeError;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// What a TLS server needs, and what its clients need.
pub(super) struct Certificate {
    pub(super) server: rustls::ServerConfig,
    authority: String,
}

impl Certificate {
    /// Makes a certificate for an address, for loopback and for the names of an API server.
    pub(super) fn make(address: IpAddr) -> Result<Self, ServeError> {
        Self::try_make(address).map_err(ServeError::Certificate)
    }

    fn try_make(address: IpAddr) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let mut authority = CertificateParams::default();
        authority.distinguished_name.push(DnType::CommonName, "drydock-ca");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut leaf = CertificateParams::new(names.map(str::to_owned))?;
        leaf.distinguished_name.push(DnType::CommonName, "drydock");
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        for ip in [address, Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
            leaf.subject_alt_names.push(SanType::IpAddress(ip));
        }
        let key = KeyPair::generate()?;
        let leaf = leaf.signed_by(&key, &authority)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut server = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key)?;
        server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { server, authority: authority.pem() })
    }

    pub(super) fn authority_base64(&self) -> String {
        STANDARD.encode(&self.authority)
    }
}

/// A token that nobody guesses.
pub(super) fn random_token() -> Result<String, GetRandomFailed> {
    let mut bytes = [0; 24];
    rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes).map_err(|_| GetRandomFailed)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// The operating system gave no random numbers.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gave no random numbers")]
pub(super) struct GetRandomFailed;
