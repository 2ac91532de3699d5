//! TLS handshakes as the API server makes them: in memory before a pair is written, and with servers that should have it.

use super::certificate::{Certificate, facts, read_all};
use super::chain::{is_for, unix};
use super::issue::MadePair;
use super::key::Key;
use jiff::Timestamp;
use jobwright_engine::Clock;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::SingleCertAndKey;
use rustls::time_provider::TimeProvider;
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, ServerConfig, ServerConnection,
    SignatureScheme,
};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

/// What a server has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// This very certificate, and the CA vouches for it.
    Right,
    /// Something else.
    Wrong(String),
    /// Nothing: it could not be asked.
    Nothing(String),
}

/// Makes a handshake with a server that is called `name`, trusting one CA alone.
pub(super) async fn shake_hands(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    name: &str,
    expected: &Certificate,
    authority: &Certificate,
    clock: &Clock,
) -> Served {
    let notes = Arc::new(Mutex::new(Notes::default()));
    let config = match client(authority, Arc::new(Ticking(clock.clone())), Some(Arc::clone(&notes))) {
        Ok(config) => config,
        Err(reason) => return Served::Nothing(reason),
    };
    let Ok(name) = ServerName::try_from(name.to_owned()) else {
        return Served::Nothing(format!("nobody can be called `{name}`"));
    };
    let shaken = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let notes = std::mem::take(&mut *notes.lock().unwrap_or_else(PoisonError::into_inner));
    match (notes.shown, shaken) {
        // A server may end the talk because it wants to see a certificate of ours; it has proven what it has.
        (Some(shown), shaken) if notes.is_vouched_for && (notes.is_signed || shaken.is_ok()) => {
            if shown == *expected {
                Served::Right
            } else {
                Served::Wrong(describe(&shown, "another certificate"))
            }
        }
        (Some(shown), _) => {
            let what = if shown == *expected { "it, but nobody vouches for it" } else { "a certificate of another CA" };
            Served::Wrong(describe(&shown, what))
        }
        (None, Err(error)) => Served::Nothing(format!("no handshake: {error}")),
        (None, Ok(_)) => Served::Nothing("it shows no certificate".to_owned()),
    }
}

fn describe(shown: &Certificate, what: &str) -> String {
    match facts(shown) {
        Some(facts) => format!("it serves {what} (valid until {})", facts.ends),
        None => format!("it serves {what}"),
    }
}

/// Tries a new pair in memory, once for each name.
pub(super) fn rehearse(
    pair: &MadePair,
    authority: &Certificate,
    names: &[String],
    now: Timestamp,
) -> Result<(), String> {
    let (chain, is_whole) = read_all(pair.text().as_bytes());
    let key = Key::read(pair.key.as_bytes()).filter(|_| is_whole).ok_or("it cannot be read back")?;
    let time = Arc::new(Standing(now));
    let client = Arc::new(client(authority, time.clone(), None)?);
    let builder = ServerConfig::builder_with_details(provider(), time).with_safe_default_protocol_versions();
    let shown = SingleCertAndKey::from(key.certify(chain));
    let server = builder.map_err(tell)?.with_no_client_auth().with_cert_resolver(Arc::new(shown));
    let server = Arc::new(server);
    for name in names {
        let called = ServerName::try_from(name.clone()).map_err(tell)?;
        let mut one = ClientConnection::new(Arc::clone(&client), called).map_err(tell)?;
        let mut other = ServerConnection::new(Arc::clone(&server)).map_err(tell)?;
        converse(&mut one, &mut other).map_err(|error| format!("a handshake with it as `{name}` fails: {error}"))?;
    }
    Ok(())
}

/// Carries what each says to the other until both are content.
fn converse(client: &mut ClientConnection, server: &mut ServerConnection) -> Result<(), String> {
    // A handshake takes a few turns; one that does not end has failed.
    for _ in 0..20 {
        let mut letter = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut letter).map_err(tell)?;
        }
        server.read_tls(&mut letter.as_slice()).map_err(tell)?;
        server.process_new_packets().map_err(tell)?;
        letter.clear();
        while server.wants_write() {
            server.write_tls(&mut letter).map_err(tell)?;
        }
        client.read_tls(&mut letter.as_slice()).map_err(tell)?;
        client.process_new_packets().map_err(tell)?;
        if !client.is_handshaking() && !server.is_handshaking() {
            return Ok(());
        }
    }
    Err("it does not end".to_owned())
}

fn client(
    authority: &Certificate,
    time: Arc<dyn TimeProvider>,
    notes: Option<Arc<Mutex<Notes>>>,
) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone()).map_err(tell)?;
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build().map_err(tell)?;
    let builder = ClientConfig::builder_with_details(provider(), time).with_safe_default_protocol_versions();
    let builder = builder.map_err(tell)?.dangerous();
    let verifier: Arc<dyn ServerCertVerifier> = match notes {
        Some(notes) => Arc::new(NoteTaker { verifier, authority: authority.clone(), notes }),
        None => verifier,
    };
    Ok(builder.with_custom_certificate_verifier(verifier).with_no_client_auth())
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn tell(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// What was seen of a server, whatever became of the talk.
#[derive(Debug, Default)]
struct Notes {
    shown: Option<Certificate>,
    is_vouched_for: bool,
    is_signed: bool,
}

/// Verifies as usual, and remembers what it was shown.
#[derive(Debug)]
struct NoteTaker {
    verifier: Arc<WebPkiServerVerifier>,
    authority: Certificate,
    notes: Arc<Mutex<Notes>>,
}

impl NoteTaker {
    fn note(&self, change: impl FnOnce(&mut Notes)) {
        change(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl ServerCertVerifier for NoteTaker {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        rest: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let shown = shown.clone().into_owned();
        // One that is trusted itself needs nobody to vouch for it: see `chain`.
        let result = if shown == self.authority && is_for(&shown, &name.to_str()) {
            Ok(ServerCertVerified::assertion())
        } else {
            self.verifier.verify_server_cert(&shown, rest, name, response, now)
        };
        self.note(|notes| {
            notes.is_vouched_for = result.is_ok();
            notes.shown = Some(shown);
        });
        result
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let result = self.verifier.verify_tls12_signature(message, certificate, signature);
        self.note(|notes| notes.is_signed = result.is_ok());
        result
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let result = self.verifier.verify_tls13_signature(message, certificate, signature);
        self.note(|notes| notes.is_signed = result.is_ok());
        result
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// The time of a clock.
#[derive(Debug)]
struct Ticking(Clock);

impl TimeProvider for Ticking {
    fn current_time(&self) -> Option<UnixTime> {
        Some(unix(self.0.now()))
    }
}

/// A time that stands still.
#[derive(Debug)]
struct Standing(Timestamp);

impl TimeProvider for Standing {
    fn current_time(&self) -> Option<UnixTime> {
        Some(unix(self.0))
    }
}
