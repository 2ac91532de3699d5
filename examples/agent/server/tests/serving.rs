//! The server over real sockets: reviews, probes, a new certificate, and its end.

#![expect(clippy::unwrap_used, reason = "this is a test")]

use jobwright_agent::{Options, Serving};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

type Stream = tokio_rustls::client::TlsStream<TcpStream>;

/// Writes a new pair, and returns the authority that vouches for it.
fn issue(directory: &Path) -> CertificateDer<'static> {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(["agent".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    fs::write(directory.join("tls.key"), key.serialize_pem()).unwrap();
    fs::write(directory.join("tls.crt"), leaf.pem()).unwrap();
    authority.der().clone()
}

struct Agent {
    reviews: SocketAddr,
    probes: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
    said: Arc<Mutex<Vec<String>>>,
}

impl Agent {
    async fn start(directory: &Path) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let options = Options {
            listen: any,
            health: any,
            certificate: directory.to_owned(),
            drain: Duration::from_millis(300),
            ready_without_certificate: false,
        };
        let said = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&said);
        let serving = Serving::listen(&options, move |line| lines.lock().unwrap().push(line.to_owned())).await.unwrap();
        let (reviews, probes) = (serving.address().unwrap(), serving.health().unwrap());
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(async move {
            serving.run(async { drop(stopped.await) }).await.unwrap();
        });
        Self { reviews, probes, stop: Some(stop), running, said }
    }

    /// Connects, and trusts this authority only.
    async fn connect(&self, authority: &CertificateDer<'static>) -> std::io::Result<Stream> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(authority.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client =
            rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let client = client.with_root_certificates(roots).with_no_client_auth();
        let stream = TcpStream::connect(self.reviews).await?;
        TlsConnector::from(Arc::new(client)).connect(ServerName::try_from("agent").unwrap(), stream).await
    }

    /// What is answered to a probe.
    async fn probe(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.probes).await.unwrap();
        stream
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// Connects once this authority vouches for what is served.
    async fn until_trusted(&self, authority: &CertificateDer<'static>) -> Stream {
        loop {
            if let Ok(stream) = self.connect(authority).await {
                return stream;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn post(stream: &mut Stream, body: &str) -> (String, Value) {
    let head = format!("POST /validate HTTP/1.1\r\nHost: agent\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all((head + body).as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&answer).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            if body.len() >= length.parse().unwrap() {
                return (head.lines().next().unwrap().to_owned(), serde_json::from_str(body).unwrap_or_default());
            }
        }
        assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0, "the connection ended in `{text}`");
    }
}

#[tokio::test]
async fn reviews_are_answered_and_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let authority = issue(directory.path());
    let agent = Agent::start(directory.path()).await;
    let mut stream = agent.until_trusted(&authority).await;
    let review = json!({"request": {"uid": "7", "kind": {"kind": "ConfigMap"}, "name": "a", "object": {}}});
    let (status, answer) = post(&mut stream, &review.to_string()).await;
    assert_eq!((status.as_str(), &answer["response"]), ("HTTP/1.1 200 OK", &json!({"uid": "7", "allowed": true})));
    for rubbish in ["", "{", "[[[[", "{\"request\":{}}"] {
        let (status, _) = post(&mut stream, rubbish).await;
        assert_eq!(status, "HTTP/1.1 400 Bad Request", "{rubbish}");
    }
    assert!(agent.said.lock().unwrap().iter().any(|line| line.contains("\"uid\":\"7\"")));
    let metrics = agent.probe("/metrics").await;
    assert!(metrics.contains("agent_admissions_total{allowed=\"true\"} 1\n"), "{metrics}");
    assert!(metrics.contains("agent_certificate_not_after_seconds "), "{metrics}");
    assert!(agent.probe("/else").await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn it_is_ready_when_it_has_a_certificate_and_takes_up_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let agent = Agent::start(directory.path()).await;
    assert!(agent.probe("/readyz").await.starts_with("HTTP/1.1 503"));
    assert!(agent.probe("/healthz").await.starts_with("HTTP/1.1 200"));
    let first = issue(directory.path());
    agent.until_trusted(&first).await;
    assert!(agent.probe("/readyz").await.starts_with("HTTP/1.1 200"));
    let second = issue(directory.path());
    agent.until_trusted(&second).await;
    assert!(agent.connect(&first).await.is_err(), "the first is still served");
}

#[tokio::test]
async fn what_comes_while_it_drains_is_answered() {
    let directory = tempfile::tempdir().unwrap();
    let authority = issue(directory.path());
    let mut agent = Agent::start(directory.path()).await;
    let mut old = agent.until_trusted(&authority).await;
    agent.stop.take().unwrap().send(()).unwrap();
    while !agent.probe("/readyz").await.contains("draining") {}
    let review = json!({"request": {"uid": "1"}}).to_string();
    let mut new = agent.connect(&authority).await.unwrap();
    assert_eq!(post(&mut old, &review).await.0, "HTTP/1.1 200 OK");
    assert_eq!(post(&mut new, &review).await.0, "HTTP/1.1 200 OK");
    agent.running.await.unwrap();
    assert!(TcpStream::connect(agent.reviews).await.is_err(), "it still listens");
}
