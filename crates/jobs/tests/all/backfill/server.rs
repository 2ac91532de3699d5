//! An HTTP server that misbehaves on purpose.

use super::stage::PLANTED;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

/// What it answers.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A status, headers and a body.
    Answer(u16, &'static str, String),
    /// The connection breaks before an answer.
    Reset,
    /// The answer breaks off in the middle of its head.
    Half,
    /// There is no answer for this time, and then a good one.
    Slow(Duration),
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
    /// Whether it was answered with success.
    pub(crate) accepted: bool,
}

pub(crate) struct Server {
    pub(crate) port: u16,
    received: Arc<Mutex<Vec<Request>>>,
    _serving: AbortOnDropHandle<()>,
}

/// What to answer the n-th request, counted from 1.
type Script = Arc<dyn Fn(usize, &Request) -> Reply + Send + Sync>;

pub(crate) fn good() -> Reply {
    Reply::Answer(200, "", String::new())
}

impl Server {
    pub(crate) async fn start(script: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_with(None, script).await
    }

    pub(crate) async fn start_with(
        tls: Option<rustls::ServerConfig>,
        script: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let received: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (kept, script): (_, Script) = (Arc::clone(&received), Arc::new(script));
        let acceptor = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
        let serving = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (kept, script, acceptor) = (Arc::clone(&kept), Arc::clone(&script), acceptor.clone());
                tokio::spawn(async move {
                    match acceptor {
                        None => serve(stream, &kept, &script).await,
                        Some(acceptor) => match acceptor.accept(stream).await {
                            Ok(stream) => serve(stream, &kept, &script).await,
                            Err(_) => None,
                        },
                    }
                });
            }
        });
        Self { port, received, _serving: AbortOnDropHandle::new(serving) }
    }

    /// What came, whatever was answered. Nothing in it is secret but what it is allowed by.
    pub(crate) fn received(&self) -> Vec<Request> {
        let received = self.received.lock().unwrap().clone();
        for request in &received {
            assert!(!String::from_utf8_lossy(&request.body).contains(PLANTED), "a secret has left");
            let headers = request.headers.iter().filter(|(name, _)| *name != "authorization" && *name != "x-api-key");
            for (name, value) in headers {
                assert!(!value.contains(PLANTED), "{name} has a secret");
            }
        }
        received
    }

    /// The bodies that were accepted, by the key that tells whether one was sent twice.
    pub(crate) fn accepted(&self) -> BTreeMap<String, Vec<u8>> {
        let accepted = self.received().into_iter().filter(|request| request.accepted);
        accepted.map(|request| (request.headers["idempotency-key"].clone(), request.body)).collect()
    }
}

/// Serves a connection to its end.
async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    received: &Mutex<Vec<Request>>,
    script: &Script,
) -> Option<()> {
    loop {
        let mut request = read(&mut stream).await?;
        let reply = {
            let mut received = received.lock().unwrap();
            let reply = script(received.len() + 1, &request);
            request.accepted = matches!(reply, Reply::Answer(200..300, ..) | Reply::Slow(_));
            received.push(request);
            reply
        };
        let (status, headers, body) = match reply {
            Reply::Reset => return None,
            Reply::Half => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le").await.ok()?;
                return None;
            }
            Reply::Slow(pause) => {
                tokio::time::sleep(pause).await;
                (200, "", String::new())
            }
            Reply::Answer(status, headers, body) => (status, headers, body),
        };
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len());
        stream.write_all(head.as_bytes()).await.ok()?;
    }
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Request> {
    let mut text = Vec::new();
    let end = loop {
        if let Some(end) = text.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut text).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(text[..end].to_vec()).unwrap();
    let pairs = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    let headers: BTreeMap<String, String> =
        pairs.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
    let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = text[end + 4..].to_vec();
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Request { headers, body, accepted: false })
}
