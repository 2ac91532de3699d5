//! The API over HTTP: a listener, TLS, a token, and the kubeconfig that says all three.

mod certificate;

use crate::access::User;
use crate::server::{Builder, Drydock};
use certificate::Certificate;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// How long a client may take to send the head of a request, or to shake hands.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many requests may be under way on a connection: as many as the real server takes.
const STREAMS: u32 = 250;

/// How the API is served.
#[derive(Clone, Debug)]
pub struct Http {
    /// Where to listen. Loopback and a free port unless told otherwise.
    pub listen: SocketAddr,
    /// Encrypt, with a certificate made for the occasion that the kubeconfig vouches for. Without, clients send no token,
    /// so that whoever reaches the address is an administrator: it has to be on loopback.
    pub tls: bool,
}

impl Default for Http {
    fn default() -> Self {
        Self { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), tls: true }
    }
}

/// The API could not be served.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is taken, or not ours.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Anybody could come in.
    #[error("plain HTTP on {address} would let anybody in")]
    Open {
        /// The address.
        address: SocketAddr,
    },
    /// No certificate could be made.
    #[error("cannot make a certificate")]
    Certificate(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A served API. It ends when this is dropped.
#[derive(Debug)]
pub struct Serving {
    drydock: Drydock,
    address: SocketAddr,
    kubeconfig: String,
    token: String,
    stop: watch::Sender<bool>,
    accepting: Option<tokio::task::JoinHandle<()>>,
}

impl Serving {
    /// The cluster behind it.
    pub fn drydock(&self) -> &Drydock {
        &self.drydock
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What clients need to know, as a kubeconfig.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// The bearer token that clients need, unless it is served without TLS.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Ends it, and every connection.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        if let Some(accepting) = self.accepting.take() {
            // The task ends by itself and never panics; there is nothing to hear from it.
            let _ = accepting.await;
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

impl Builder {
    /// Serves the cluster over HTTP to whoever has the token in the kubeconfig.
    pub async fn serve(self, http: Http) -> Result<Serving, ServeError> {
        let token = certificate::random_token().map_err(|error| ServeError::Certificate(error.into()))?;
        if !http.tls && !http.listen.ip().is_loopback() {
            return Err(ServeError::Open { address: http.listen });
        }
        let certificate = if http.tls { Some(Certificate::make(http.listen.ip())?) } else { None };
        let drydock = if http.tls { self.token(&token, User::admin()).build() } else { self.build() };
        let listen_error = |source| ServeError::Listen { address: http.listen, source };
        let listener = TcpListener::bind(http.listen).await.map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        drydock.set_address(&address.to_string());
        drydock.start_driver();
        let kubeconfig = kubeconfig(address, &token, certificate.as_ref());
        let (stop, stopped) = watch::channel(false);
        let acceptor = certificate.map(|certificate| TlsAcceptor::from(Arc::new(certificate.server)));
        let accepting = tokio::spawn(accept(listener, acceptor, drydock.clone(), stopped));
        Ok(Serving { drydock, address, kubeconfig, token, stop, accepting: Some(accepting) })
    }
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, drydock: Drydock, mut stopped: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let (tls, drydock) = (tls.clone(), drydock.clone());
                    connections.spawn(async move {
                        // Small answers should not wait for more.
                        let _ = stream.set_nodelay(true);
                        match tls {
                            None => serve_connection(stream, drydock).await,
                            Some(tls) => {
                                if let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, tls.accept(stream)).await {
                                    serve_connection(stream, drydock).await;
                                }
                            }
                        }
                    });
                }
                // Out of file descriptors, most likely: those that are open will be closed again.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
            _ = stopped.changed() => return,
        }
    }
}

async fn serve_connection<S>(stream: S, drydock: Drydock)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(drydock);
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    server.http2().timer(TokioTimer::new()).keep_alive_interval(PATIENCE).max_concurrent_streams(STREAMS);
    // A client that goes away in the middle is its own business.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

fn kubeconfig(address: SocketAddr, token: &str, certificate: Option<&Certificate>) -> String {
    let reached =
        if address.ip().is_unspecified() { SocketAddr::from((Ipv4Addr::LOCALHOST, address.port())) } else { address };
    let (cluster, user) = match certificate {
        Some(certificate) => (
            json!({"server": format!("https://{reached}"), "certificate-authority-data": certificate.authority_base64()}),
            json!({"token": token}),
        ),
        None => (json!({"server": format!("http://{reached}")}), json!({})),
    };
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "drydock",
        "clusters": [{"name": "drydock", "cluster": cluster}],
        "users": [{"name": "drydock", "user": user}],
        "contexts": [{"name": "drydock", "context": {"cluster": "drydock", "user": "drydock", "namespace": "default"}}],
    });
    // JSON is YAML, and every client reads it.
    format!("{kubeconfig:#}\n")
}
