//! Serves what is counted, over HTTP, while it is counted.

use super::Meter;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// How many may ask at once, and how long they may take to do so.
const AT_ONCE: usize = 16;
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers `/metrics` for as long as it is polled.
pub async fn serve(listener: TcpListener, meter: Meter) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let meter = meter.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let response = answer(&request, &meter);
                async move { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(PATIENCE)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), answer);
            // Whoever went away before the answer does not want it.
            let _ = tokio::time::timeout(PATIENCE, connection).await;
            drop(place);
        });
    }
}

fn answer(request: &Request<Incoming>, meter: &Meter) -> Response<Full<Bytes>> {
    let mut response = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => Response::new(Full::from(meter.encode())),
        (_, "/metrics") => refuse(StatusCode::METHOD_NOT_ALLOWED),
        _ => refuse(StatusCode::NOT_FOUND),
    };
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(MEDIA_TYPE));
    response
}

fn refuse(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from("ask for /metrics\n"));
    *response.status_mut() = status;
    response
}
