//! The layer that makes calls go wrong.

use super::{Call, Fault, Faults, Pause, Verdict, When};
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
            let mut manner = Manner::Whole;
            let after = match verdict {
                Verdict::Pass => None,
                Verdict::Hold => {
                    faults.until_woken().await;
                    None
                }
                Verdict::Stop(When::Before) => return faults.stop().await,
                Verdict::Fail(Fault::Hang(When::Before)) => return std::future::pending().await,
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
                Verdict::Fail(Fault::Late(When::Before, duration)) => {
                    // A task of its own, because the server does not hear of a caller that has given up.
                    let late = tokio::spawn(async move {
                        tokio::time::sleep(duration).await;
                        service.call(request).await.map_err(Into::into)
                    });
                    let response = late.await.map_err(BoxError::from)??;
                    return Ok(response.map(|body| FaultyBody::of(body, Manner::Whole, &faults)));
                }
                Verdict::Fail(Fault::DropWatch) => {
                    manner = Manner::Cut { told: false };
                    None
                }
                Verdict::Fail(Fault::Silence) => {
                    manner = Manner::Silent;
                    None
                }
                after => Some(after),
            };
            let response = service.call(request).await.map_err(Into::into)?;
            match after {
                Some(Verdict::Stop(_)) => return faults.stop().await,
                Some(Verdict::Fail(Fault::Hang(_))) => return std::future::pending().await,
                Some(Verdict::Fail(Fault::Disconnect(_))) => return Err(Disconnected.into()),
                Some(Verdict::Fail(Fault::Late(_, duration))) => tokio::time::sleep(duration).await,
                Some(Verdict::Fail(_)) => return Ok(answer(&timed_out())),
                _ => {}
            }
            Ok(response.map(|body| FaultyBody::of(body, manner, &faults)))
        })
    }
}

impl Faults {
    /// The caller is dead: it never gets an answer.
    async fn stop<T>(&self) -> T {
        self.stopped.send_replace(true);
        std::future::pending().await
    }

    /// The caller is paused: it goes on when it is woken.
    async fn until_woken(&self) {
        // The sender lives as long as `self`.
        let _ = self.pause.subscribe().wait_for(|pause| *pause != Pause::Paused).await;
    }

    fn is_paused(&self) -> bool {
        *self.pause.borrow() == Pause::Paused
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
    let mut response = Response::new(FaultyBody(Inner::Status(Some(bytes.into()))));
    *response.status_mut() = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    if let Some(seconds) = status.retry_after_seconds() {
        headers.insert(header::RETRY_AFTER, header::HeaderValue::from(seconds));
    }
    response
}

/// How the body of an answer arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Whole,
    /// It breaks off after its first frame.
    Cut {
        told: bool,
    },
    /// Nothing arrives.
    Silent,
}

/// A body that may break off, stay silent or be held back.
pub struct FaultyBody<R>(Inner<R>);

enum Inner<R> {
    Status(Option<Bytes>),
    Body { body: Pin<Box<R>>, manner: Manner, faults: Faults, pause: Option<Wait> },
}

/// Waits for the end of a pause.
type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<R> FaultyBody<R> {
    fn of(body: R, manner: Manner, faults: &Faults) -> Self {
        Self(Inner::Body { body: Box::pin(body), manner, faults: faults.clone(), pause: None })
    }
}

impl<R> std::fmt::Debug for FaultyBody<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("FaultyBody").finish_non_exhaustive()
    }
}

impl<R> http_body::Body for FaultyBody<R>
where
    R: http_body::Body<Data = Bytes>,
    R::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let (body, manner, faults, pause) = match &mut self.0 {
            Inner::Status(bytes) => return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Inner::Body { body, manner, faults, pause } => (body, manner, faults, pause),
        };
        match manner {
            Manner::Silent => return Poll::Pending,
            Manner::Cut { told: true } => return Poll::Ready(Some(Err(Disconnected.into()))),
            Manner::Whole | Manner::Cut { .. } => {}
        }
        if pause.is_none() && faults.is_paused() {
            let faults = faults.clone();
            *pause = Some(Box::pin(async move { faults.until_woken().await }));
        }
        if let Some(paused) = pause {
            ready!(paused.as_mut().poll(context));
            *pause = None;
        }
        let frame = ready!(body.as_mut().poll_frame(context));
        if let Manner::Cut { told } = manner {
            *told = true;
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }
}
