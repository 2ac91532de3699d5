//! The layer that makes calls go wrong.

use super::{Call, Fault, Faults, Verdict, When};
use crate::status::Status;
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body::Frame;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A service whose calls go wrong as its [`Faults`] say.
#[derive(Clone, Debug)]
pub struct Faulty<S> {
    faults: Faults,
    service: S,
}

/// The connection broke.
#[derive(Debug, thiserror::Error)]
#[error("connection reset by a fault on demand")]
struct Disconnected;

impl<S> Faulty<S> {
    pub(super) fn new(faults: Faults, service: S) -> Self {
        Self { faults, service }
    }
}

impl<S, B, R> tower::Service<Request<B>> for Faulty<S>
where
    S: tower::Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Send + 'static,
    R: Send + 'static,
{
    type Response = Response<FaultyBody<R>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.service.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let verdict = self.faults.judge(Call::of(&request));
        let faults = self.faults.clone();
        // The service that was ready is the one to call; its clone is made ready next time.
        let clone = self.service.clone();
        let mut service = std::mem::replace(&mut self.service, clone);
        Box::pin(async move {
            let mut drop_watch = false;
            let after = match verdict {
                Verdict::Pass => None,
                Verdict::Stop(When::Before) => return faults.stop().await,
                Verdict::Fail(Fault::Disconnect(When::Before)) => return Err(Disconnected.into()),
                Verdict::Fail(Fault::TimeOut(When::Before)) => return Ok(answer(&timed_out())),
                Verdict::Fail(Fault::Conflict) => return Ok(answer(&conflict())),
                Verdict::Fail(Fault::Internal) => return Ok(answer(&Status::internal("a fault on demand"))),
                Verdict::Fail(Fault::TooManyRequests { retry_after }) => {
                    let why = "The apiserver is overloaded, please try again later";
                    return Ok(answer(&Status::too_many_requests(why, retry_after)));
                }
                Verdict::Fail(Fault::Unavailable) => {
                    return Ok(answer(&Status::unavailable("the server is currently unable to handle the request")));
                }
                Verdict::Fail(Fault::Slow(duration)) => {
                    tokio::time::sleep(duration).await;
                    None
                }
                Verdict::Fail(Fault::DropWatch) => {
                    drop_watch = true;
                    None
                }
                after => Some(after),
            };
            let response = service.call(request).await.map_err(Into::into)?;
            match after {
                Some(Verdict::Stop(_)) => faults.stop().await,
                Some(Verdict::Fail(Fault::Disconnect(_))) => Err(Disconnected.into()),
                Some(Verdict::Fail(_)) => Ok(answer(&timed_out())),
                _ => Ok(response.map(|body| FaultyBody::Inner { body: Box::pin(body), drop_watch, told: false })),
            }
        })
    }
}

impl Faults {
    /// The caller is dead: it never gets an answer.
    async fn stop<T>(&self) -> T {
        self.stopped.send_replace(true);
        std::future::pending().await
    }
}

fn timed_out() -> Status {
    Status::timeout("request did not complete within the allotted timeout")
}

fn conflict() -> Status {
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    Status::new(409, "Conflict", format!("Operation cannot be fulfilled: {why}"))
}

fn answer<R>(status: &Status) -> Response<FaultyBody<R>> {
    let bytes = serde_json::to_vec(&status).unwrap_or_default();
    let mut response = Response::new(FaultyBody::Status(Some(bytes.into())));
    *response.status_mut() = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    if let Some(seconds) = status.retry_after_seconds() {
        headers.insert(header::RETRY_AFTER, header::HeaderValue::from(seconds));
    }
    response
}

/// A body that may break off.
#[derive(Debug)]
pub enum FaultyBody<R> {
    #[doc(hidden)]
    Status(Option<Bytes>),
    #[doc(hidden)]
    Inner { body: Pin<Box<R>>, drop_watch: bool, told: bool },
}

impl<R> http_body::Body for FaultyBody<R>
where
    R: http_body::Body<Data = Bytes>,
    R::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut *self {
            Self::Status(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Inner { drop_watch: true, told: true, .. } => Poll::Ready(Some(Err(Disconnected.into()))),
            Self::Inner { body, told, .. } => {
                let frame = ready!(body.as_mut().poll_frame(context));
                *told = true;
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
        }
    }
}
