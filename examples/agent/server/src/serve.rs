//! Serves reviews over TLS and probes in plain HTTP, until it is told to stop; then drains.

use crate::certificate::Pair;
use crate::{admission, health};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Version, header};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use serde_json::Value;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// A review holds an object twice, and an object has three megabytes at most.
const LARGEST: usize = 8 << 20;
/// How long a client may take for its part of a handshake, and for what it began when we end.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a connection may be idle: an API server ends it after 90 seconds itself, and if we were first, a review that
/// comes just then would fail.
const IDLE: Duration = Duration::from_mins(2);
/// How often the directory of the pair is looked at.
const GLANCE: Duration = Duration::from_secs(1);

/// What to serve, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where reviews are answered, over TLS.
    pub listen: SocketAddr,
    /// Where probes are answered, in plain HTTP.
    pub health: SocketAddr,
    /// The directory with `tls.crt` and `tls.key`.
    pub certificate: PathBuf,
    /// How long reviews are still answered after the end was asked for: until then others may send some here.
    pub drain: Duration,
    /// Whether it is ready before there is a certificate.
    pub ready_without_certificate: bool,
}

/// What connections share.
pub(crate) struct State {
    pub(crate) pair: Arc<Pair>,
    pub(crate) allowed: AtomicU64,
    pub(crate) refused: AtomicU64,
    draining: AtomicBool,
    ready_without_certificate: bool,
    record: Box<dyn Fn(&str) + Send + Sync>,
}

impl State {
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Relaxed)
    }

    pub(crate) fn may_serve(&self) -> bool {
        self.ready_without_certificate || self.pair.loads() > 0
    }
}

/// A server that listens.
pub struct Serving {
    reviews: TcpListener,
    probes: TcpListener,
    state: Arc<State>,
    drain: Duration,
}

impl Serving {
    /// Listens. What happens is told line by line.
    pub async fn listen(options: &Options, record: impl Fn(&str) + Send + Sync + 'static) -> std::io::Result<Self> {
        let state = State {
            pair: Arc::new(Pair::new(&options.certificate)),
            allowed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            draining: AtomicBool::new(false),
            ready_without_certificate: options.ready_without_certificate,
            record: Box::new(record),
        };
        Ok(Self {
            reviews: TcpListener::bind(options.listen).await?,
            probes: TcpListener::bind(options.health).await?,
            state: Arc::new(state),
            drain: options.drain,
        })
    }

    /// Where reviews are answered.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.reviews.local_addr()
    }

    /// Where probes are answered.
    pub fn health(&self) -> std::io::Result<SocketAddr> {
        self.probes.local_addr()
    }

    /// Serves until told to stop, and ends when the last review that was begun has its answer.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), rustls::Error> {
        let Self { reviews, probes, state, drain } = self;
        let tls = acceptor(Arc::clone(&state.pair))?;
        let (close, closed) = watch::channel(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(watch_pair(Arc::clone(&state)));
        tasks.spawn(accept(probes, None, Arc::clone(&state), closed.clone()));
        let answering = tokio::spawn(accept(reviews, Some(tls), Arc::clone(&state), closed));
        stop.await;
        state.draining.store(true, Relaxed);
        (state.record)("draining");
        tokio::time::sleep(drain).await;
        close.send_replace(true);
        // Who is still talking then has had its time.
        let _ = tokio::time::timeout(PATIENCE, answering).await;
        Ok(())
    }
}

fn acceptor(pair: Arc<Pair>) -> Result<TlsAcceptor, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut configuration = versions.with_no_client_auth().with_cert_resolver(pair);
    configuration.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(configuration)))
}

/// Takes up every new pair, and says so; says once why there is none.
async fn watch_pair(state: Arc<State>) {
    let mut last = String::new();
    loop {
        let pair = Arc::clone(&state.pair);
        let said = match tokio::task::spawn_blocking(move || pair.load()).await {
            Ok(Ok(true)) => "serving a new certificate".to_owned(),
            Ok(Ok(false)) => String::new(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => return,
        };
        if !said.is_empty() && said != last {
            (state.record)(&said);
        }
        last = said;
        tokio::time::sleep(GLANCE).await;
    }
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, state: Arc<State>, mut close: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    let closed = close.clone();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => { connections.spawn(converse(stream, tls.clone(), Arc::clone(&state), closed.clone())); }
                // Out of file descriptors, most likely: those that are open will be closed again.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
            _ = close.changed() => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn converse(stream: TcpStream, tls: Option<TlsAcceptor>, state: Arc<State>, close: watch::Receiver<bool>) {
    // Small answers should not wait for more.
    let _ = stream.set_nodelay(true);
    match tls {
        None => hold(stream, state, close, false).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, tls.accept(stream)).await {
                hold(stream, state, close, true).await;
            }
        }
    }
}

/// Answers on one connection until the client leaves, or until the end, which is announced to it.
async fn hold<S>(stream: S, state: Arc<State>, mut close: watch::Receiver<bool>, reviews: bool)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let state = Arc::clone(&state);
        async move {
            let version = request.version();
            let mut response =
                if reviews { review(request, &state).await } else { health::answer(request.uri().path(), &state) };
            // A connection that ends between two reviews fails the next one, so each ends with an answer.
            if state.is_draining() && version == Version::HTTP_11 {
                response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response.map(|text| Full::new(Bytes::from(text))))
        }
    });
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(IDLE);
    server.http2().timer(TokioTimer::new()).keep_alive_interval(PATIENCE);
    let mut connection = std::pin::pin!(server.serve_connection(TokioIo::new(stream), service));
    // A client that goes away in the middle is its own business.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = close.wait_for(|closed| *closed) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

async fn review(request: Request<Incoming>, state: &State) -> Response<String> {
    let refuse = |status: StatusCode, text: &str| {
        let mut response = Response::new(text.to_owned());
        *response.status_mut() = status;
        response
    };
    if request.method() != Method::POST {
        return refuse(StatusCode::METHOD_NOT_ALLOWED, "an AdmissionReview is posted\n");
    }
    let Ok(body) = Limited::new(request.into_body(), LARGEST).collect().await else {
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, "this is not a whole AdmissionReview\n");
    };
    let review = serde_json::from_slice::<Value>(&body.to_bytes());
    let Some(verdict) = review.ok().and_then(|review| admission::answer(&review)) else {
        return refuse(StatusCode::BAD_REQUEST, "this is not an AdmissionReview\n");
    };
    (if verdict.allowed { &state.allowed } else { &state.refused }).fetch_add(1, Relaxed);
    (state.record)(&verdict.record.to_string());
    let mut response = Response::new(verdict.answer.to_string());
    response.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static("application/json"));
    response
}
