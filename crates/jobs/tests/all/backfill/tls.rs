//! TLS to a sink: whom it trusts, and who it is.

use super::http_sink::{quick, run, to};
use super::server::{Server, good};
use super::stage::Stage;
use jobwright_jobs::backfill::{Backfill, Ending, Patience, Place, Task, TlsPlaces};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// An authority, and files of it.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: tempfile::TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap();
        let authority = Self { issuer, directory: tempfile::tempdir().unwrap() };
        std::fs::write(authority.path("ca.crt"), authority.issuer.pem()).unwrap();
        authority
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A certificate for a name, in files `NAME.crt` and `NAME.key`.
    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.path(&format!("{name}.crt")), certificate.pem()).unwrap();
        std::fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
        (certificate, key)
    }

    /// A server that takes only clients of this authority.
    fn server(&self) -> rustls::ServerConfig {
        let (certificate, key) = self.issue("localhost");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().unwrap();
        let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let builder = builder.unwrap().with_client_cert_verifier(clients);
        builder.with_single_cert(vec![certificate.der().clone()], key).unwrap()
    }

    fn file(&self, name: &str) -> Place {
        Place::File(self.path(name))
    }
}

#[tokio::test]
async fn a_sink_is_trusted_by_its_authority_and_sees_who_we_are() {
    let stage = Stage::new(12).await;
    let (ours, others) = (Authority::new(), Authority::new());
    let server = Server::start_with(Some(ours.server()), |_, _| good()).await;
    ours.issue("client");
    others.issue("client");
    let address = format!("https://localhost:{}/", server.port);
    let identity = |authority: &Authority| Some((authority.file("client.crt"), authority.file("client.key")));
    let task = |tls: TlsPlaces| Task { tls, ..to(&address) };

    let good = TlsPlaces { authority: Some(ours.file("ca.crt")), identity: identity(&ours) };
    let summary = run(&stage, &task(good)).await.unwrap();
    assert!(summary.complete && server.received().len() == 5, "{summary:?}");

    let impatient = Patience { total: Duration::from_millis(10), ..quick().patience };
    for (authority, identity, told) in
        [(&others, identity(&ours), "certificate"), (&ours, identity(&others), "ecrypt"), (&ours, None, "ertificate")]
    {
        let tls = TlsPlaces { authority: Some(authority.file("ca.crt")), identity };
        let backfill = Backfill { patience: impatient, ..quick() };
        let summary = run(&stage, &Task { backfill, ..task(tls) }).await.unwrap();
        assert_eq!(summary.ending(), Ending::Failed);
        assert!(summary.stopped.as_ref().unwrap().contains(told), "{told}: {summary:?}");
    }
    assert_eq!(server.received().len(), 5, "nothing else arrived");
}

#[tokio::test]
async fn certificates_that_are_replaced_while_it_runs_are_used() {
    let stage = Stage::new(40).await;
    let (first, second) = (Authority::new(), Authority::new());
    first.issue("client");
    second.issue("client");
    // A directory whose files are replaced, as those of a mounted Secret are.
    let place = tempfile::tempdir().unwrap();
    let copy = |authority: &Authority| {
        for name in ["ca.crt", "client.crt", "client.key"] {
            std::fs::copy(authority.path(name), place.path().join(name)).unwrap();
        }
    };
    copy(&first);
    let file = |name: &str| Place::File(place.path().join(name));
    let tls = TlsPlaces { authority: Some(file("ca.crt")), identity: Some((file("client.crt"), file("client.key"))) };
    let old = Server::start_with(Some(first.server()), |_, _| good()).await;
    let task = Task { tls, ..to(&format!("https://localhost:{}/", old.port)) };
    assert!(run(&stage, &task).await.unwrap().complete);
    let new = Server::start_with(Some(second.server()), |_, _| good()).await;
    copy(&second);
    let task = Task { sink: format!("https://localhost:{}/", new.port).parse().unwrap(), ..task };
    assert!(run(&stage, &task).await.unwrap().complete);
}
