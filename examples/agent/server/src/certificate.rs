//! The pair that is served: read from the directory of a mounted Secret, and again when that changes.

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// Why a pair cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    /// It is not there, or cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: rustls::pki_types::pem::Error,
    },
    /// The certificate and the key do not belong together, or are of a kind that nobody knows.
    #[error("the pair in `{}` cannot be served: {source}", directory.display())]
    Pair {
        /// Where it is.
        directory: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

/// Where a pair is, and the last one that could be used.
#[derive(Debug)]
pub struct Pair {
    directory: PathBuf,
    served: RwLock<Served>,
}

#[derive(Debug, Default)]
struct Served {
    key: Option<Arc<CertifiedKey>>,
    loads: u64,
}

impl Pair {
    /// The pair `tls.crt` and `tls.key` of a directory, which is not read yet.
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), served: RwLock::default() }
    }

    /// Reads the directory, and says whether another pair is served from now on. The last one stays while what is there
    /// cannot be used: a Secret that is just being written is read again soon.
    pub fn load(&self) -> Result<bool, Unusable> {
        let key = Arc::new(read(&self.directory)?);
        let mut served = self.served.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        if served.key.as_ref().is_some_and(|old| old.cert == key.cert) {
            return Ok(false);
        }
        *served = Served { key: Some(key), loads: served.loads + 1 };
        Ok(true)
    }

    /// How many pairs were taken up.
    pub fn loads(&self) -> u64 {
        self.served.read().unwrap_or_else(std::sync::PoisonError::into_inner).loads
    }

    /// When the certificate that is served ends, in seconds since 1970.
    pub fn not_after(&self) -> Option<i64> {
        let key = self.current()?;
        let (_, certificate) = X509Certificate::from_der(key.end_entity_cert().ok()?).ok()?;
        Some(certificate.validity().not_after.timestamp())
    }

    fn current(&self) -> Option<Arc<CertifiedKey>> {
        self.served.read().unwrap_or_else(std::sync::PoisonError::into_inner).key.clone()
    }
}

impl ResolvesServerCert for Pair {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current()
    }
}

fn read(directory: &Path) -> Result<CertifiedKey, Unusable> {
    let path = directory.join("tls.crt");
    let chain = CertificateDer::pem_file_iter(&path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|source| Unusable::Read { path, source })?;
    let path = directory.join("tls.key");
    let key = PrivateKeyDer::from_pem_file(&path).map_err(|source| Unusable::Read { path, source })?;
    CertifiedKey::from_der(chain, key, &rustls::crypto::ring::default_provider())
        .map_err(|source| Unusable::Pair { directory: directory.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair};
    use std::fs;

    fn write(directory: &Path) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(["agent".to_owned()]).unwrap().self_signed(&key).unwrap();
        let (certificate, key) = (certificate.pem(), key.serialize_pem());
        fs::write(directory.join("tls.crt"), &certificate).unwrap();
        fs::write(directory.join("tls.key"), &key).unwrap();
        (certificate, key)
    }

    #[test]
    fn a_new_pair_is_taken_up_and_the_last_good_one_stays() {
        let directory = tempfile::tempdir().unwrap();
        let pair = Pair::new(directory.path());
        assert!(pair.load().unwrap_err().to_string().contains("tls.crt"));
        assert_eq!((pair.loads(), pair.not_after()), (0, None));
        let (certificate, _) = write(directory.path());
        assert!(pair.load().unwrap());
        assert!(!pair.load().unwrap(), "it is the same");
        write(directory.path());
        // Half of a change: the old certificate with the new key.
        fs::write(directory.path().join("tls.crt"), certificate).unwrap();
        assert!(pair.load().is_err());
        assert_eq!(pair.loads(), 1);
        assert!(pair.not_after().is_some());
        write(directory.path());
        assert!(pair.load().unwrap());
        assert_eq!(pair.loads(), 2);
    }
}
