//! TLS as it is configured: whom to trust, and who we are.

use super::Source;
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls_platform_verifier::BuilderVerifierExt as _;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// Where certificates are.
#[derive(Clone, Debug, Default)]
pub struct TlsSources {
    /// Whom to trust, instead of those that the system trusts.
    pub authority: Option<Source>,
    /// Who we are: a certificate with its chain, and its key.
    pub identity: Option<(Source, Source)>,
}

/// Certificates as they were read. They are the same if nothing was replaced.
pub(crate) struct Tls {
    authority: Option<Vec<u8>>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
    digest: [u8; 32],
}

impl PartialEq for Tls {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl TlsSources {
    pub(crate) async fn read(&self) -> Result<Tls, String> {
        let authority = match &self.authority {
            Some(source) => Some(source.read().await?),
            None => None,
        };
        let identity = match &self.identity {
            Some((certificate, key)) => Some((certificate.read().await?, key.read().await?)),
            None => None,
        };
        let mut digest = Sha256::new();
        let parts = authority.iter().chain(identity.iter().flat_map(|(certificate, key)| [certificate, key]));
        for part in parts {
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
        Ok(Tls { authority, identity, digest: digest.finalize().into() })
    }
}

impl Tls {
    pub(crate) fn config(&self) -> Result<ClientConfig, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| format!("cannot use TLS: {error}"))?;
        let builder = match &self.authority {
            None => builder
                .with_platform_verifier()
                .map_err(|error| format!("cannot use the certificates that the system trusts: {error}"))?,
            Some(pem) => {
                let mut roots = rustls::RootCertStore::empty();
                for certificate in certificates(pem)? {
                    roots.add(certificate).map_err(|error| format!("cannot trust a certificate: {error}"))?;
                }
                builder.with_root_certificates(roots)
            }
        };
        let Some((certificate, key)) = &self.identity else { return Ok(builder.with_no_client_auth()) };
        let key =
            PrivateKeyDer::from_pem_slice(key).map_err(|_| "the key of the client is no key in PEM".to_owned())?;
        let built = builder.with_client_auth_cert(certificates(certificate)?, key);
        built.map_err(|error| format!("cannot use the certificate of the client: {error}"))
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let certificates = read.map_err(|error| format!("a certificate cannot be read: {error}"))?;
    if certificates.is_empty() {
        return Err("there is no certificate in PEM where one should be".to_owned());
    }
    Ok(certificates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn certificates_that_are_none_are_refused_without_being_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "s3cret").unwrap();
        let source = Source::File(file.path().to_owned());
        let sources = TlsSources { authority: Some(source.clone()), identity: None };
        let error = sources.read().await.unwrap().config().unwrap_err();
        assert_eq!(error, "there is no certificate in PEM where one should be");
        let sources = TlsSources { authority: None, identity: Some((source.clone(), source)) };
        let error = sources.read().await.unwrap().config().unwrap_err();
        assert_eq!(error, "the key of the client is no key in PEM");
        let missing = Source::File("/nowhere/ca".into());
        let sources = TlsSources { authority: Some(missing), identity: None };
        assert!(sources.read().await.err().unwrap().starts_with("cannot read `/nowhere/ca`: "));
    }

    #[tokio::test]
    async fn a_certificate_that_is_replaced_is_noticed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let sources = TlsSources { authority: Some(Source::File(file.path().to_owned())), identity: None };
        let mut seen = Vec::new();
        for name in ["one", "one", "two"] {
            let mut parameters = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
            parameters.serial_number = Some(7.into());
            if seen.len() != 1 {
                let key = rcgen::KeyPair::generate().unwrap();
                std::fs::write(file.path(), parameters.self_signed(&key).unwrap().pem()).unwrap();
            }
            let tls = sources.read().await.unwrap();
            assert!(tls.config().is_ok());
            seen.push(tls);
        }
        assert!(seen[0] == seen[1] && seen[1] != seen[2]);
    }
}
