//! Private keys: read in every form in which they are written, and able to sign.

use super::certificate::Certificate;
use rcgen::{PublicKeyData, SigningKey, SubjectPublicKeyInfo};
use rustls::SignatureScheme;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::sign::CertifiedKey;
use std::fmt;
use std::sync::Arc;

/// A private key. It never shows itself.
#[derive(Clone)]
pub(super) struct Key {
    inside: Arc<dyn rustls::sign::SigningKey>,
    public: SubjectPublicKeyInfo,
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key")
    }
}

impl Key {
    /// Reads a key: RSA, ECDSA or Ed25519, as PKCS#8, PKCS#1 or SEC1.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let key = PrivateKeyDer::from_pem_slice(text).ok()?;
        let inside = rustls::crypto::ring::sign::any_supported_type(&key).ok()?;
        let public = SubjectPublicKeyInfo::from_der(&inside.public_key()?).ok()?;
        Some(Self { inside, public })
    }

    /// Whether it is the key of a certificate.
    pub(super) fn fits(&self, certificate: &Certificate) -> bool {
        CertifiedKey::new(vec![certificate.clone()], Arc::clone(&self.inside)).keys_match().is_ok()
    }

    /// What a server needs to show a certificate.
    pub(super) fn certify(&self, chain: Vec<Certificate>) -> CertifiedKey {
        CertifiedKey::new(chain, Arc::clone(&self.inside))
    }

    /// How it signs certificates.
    fn scheme(&self) -> Option<SignatureScheme> {
        let schemes = [
            (&rcgen::PKCS_ECDSA_P256_SHA256, SignatureScheme::ECDSA_NISTP256_SHA256),
            (&rcgen::PKCS_ECDSA_P384_SHA384, SignatureScheme::ECDSA_NISTP384_SHA384),
            (&rcgen::PKCS_ED25519, SignatureScheme::ED25519),
            (&rcgen::PKCS_RSA_SHA256, SignatureScheme::RSA_PKCS1_SHA256),
        ];
        schemes.into_iter().find(|(algorithm, _)| *algorithm == self.public.algorithm()).map(|(_, scheme)| scheme)
    }
}

impl PublicKeyData for Key {
    fn der_bytes(&self) -> &[u8] {
        self.public.der_bytes()
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        self.public.algorithm()
    }
}

impl SigningKey for Key {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        let signer = self.scheme().and_then(|scheme| self.inside.choose_scheme(&[scheme]));
        let signer = signer.ok_or(rcgen::Error::UnsupportedSignatureAlgorithm)?;
        signer.sign(message).map_err(|_| rcgen::Error::RemoteKeyError)
    }
}
