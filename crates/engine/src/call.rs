//! API calls that always end: each has a deadline, and none is sent once the lease is lost.

use crate::lease::Tenure;
use futures::{StreamExt as _, TryStreamExt as _};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// How long an API call may take. A watch or a followed log has to begin within it.
pub const CALL_LIMIT: Duration = Duration::from_secs(30);

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Answer = http_body_util::combinators::UnsyncBoxBody<bytes::Bytes, BoxError>;

/// The API server did not answer in time; the call may have taken effect.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {}s", .0.as_secs())]
pub(crate) struct Overdue(Duration);

/// The error of a call that was given up after this time.
pub(crate) fn overdue(after: Duration) -> kube::Error {
    kube::Error::Service(Box::new(Overdue(after)))
}

/// The lease was lost, so nothing may be changed any more.
#[derive(Debug, thiserror::Error)]
#[error("the lease `{name}` was lost")]
pub(crate) struct Lost {
    pub(crate) name: String,
}

/// The same client, with a deadline for each call.
pub fn bounded(client: &Client) -> Client {
    wrap(client, None)
}

/// The same client, with a deadline for each call, refusing all calls once the lease is lost.
pub(crate) fn guarded(client: &Client, tenure: &Tenure) -> Client {
    wrap(client, Some(tenure.clone()))
}

fn wrap(client: &Client, tenure: Option<Tenure>) -> Client {
    let namespace = client.default_namespace().to_owned();
    Client::new(Guard { client: client.clone(), tenure }, namespace)
}

struct Guard {
    client: Client,
    tenure: Option<Tenure>,
}

impl tower::Service<Request<Body>> for Guard {
    type Response = Response<Answer>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Answer>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (client, tenure) = (self.client.clone(), self.tenure.clone());
        Box::pin(async move {
            let Some(tenure) = tenure else { return send(client, request).await };
            if !tenure.is_valid() {
                return Err(tenure.lost_error().into());
            }
            tokio::select! {
                // A process that was frozen sends nothing when it wakes up.
                biased;
                () = tenure.lost() => Err(tenure.lost_error().into()),
                answered = send(client, request) => answered,
            }
        })
    }
}

async fn send(client: Client, request: Request<Body>) -> Result<Response<Answer>, BoxError> {
    let stream = Stream::of(&request);
    let answered = async {
        let response = client.send(request).await?;
        match stream {
            Stream::Watch(limit) => return Ok(response.map(|body| end_after(body, limit))),
            Stream::Other => return Ok(response.map(|body| body.map_err(BoxError::from).boxed_unsync())),
            Stream::No => {}
        }
        // An answer that stops half-way is no answer.
        let (parts, body) = response.into_parts();
        let whole = Body::from(body.collect().await?.to_bytes());
        Ok(Response::from_parts(parts, whole.map_err(BoxError::from).boxed_unsync()))
    };
    tokio::time::timeout(CALL_LIMIT, answered).await.unwrap_or_else(|_| Err(Overdue(CALL_LIMIT).into()))
}

/// Whether an answer is read while it is still being written.
enum Stream {
    No,
    /// A watch, which the server ends after this time.
    Watch(Duration),
    /// A log, or an upgrade to another protocol.
    Other,
}

impl Stream {
    fn of(request: &Request<Body>) -> Self {
        let parameter = |name: &str| {
            let mut pairs =
                request.uri().query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        if matches!(parameter("watch"), Some("true" | "1")) {
            let seconds = parameter("timeoutSeconds").and_then(|seconds| seconds.parse().ok());
            return Self::Watch(seconds.map_or(LONGEST_WATCH, Duration::from_secs));
        }
        let is_log = request.uri().path().ends_with("/log");
        if is_log || request.headers().contains_key(http::header::UPGRADE) { Self::Other } else { Self::No }
    }
}

/// How long a watch lasts whose server was not asked to end it.
const LONGEST_WATCH: Duration = Duration::from_mins(5);

/// Ends a watch whose server does not, so that it is opened again: a connection that is silently dead looks quiet.
fn end_after(body: Body, limit: Duration) -> Answer {
    let ended = tokio::time::sleep(limit + CALL_LIMIT);
    let frames = body.map_err(BoxError::from).into_data_stream().take_until(ended).map_ok(http_body::Frame::data);
    http_body_util::StreamBody::new(frames).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Answer, classify};
    use jobwright_drydock::{Drydock, Fault, Faults};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Api;

    #[tokio::test(start_paused = true)]
    async fn a_call_without_an_answer_fails_at_its_deadline_and_may_be_retried() {
        let faults = Faults::new(0);
        let client = bounded(&Client::new(faults.around(Drydock::new()), "default"));
        faults.on(|_| true).times(1).fail(Fault::Slow(Duration::from_hours(1)));
        let begun = tokio::time::Instant::now();
        let error = Api::<ConfigMap>::default_namespaced(client).get("x").await.unwrap_err();
        assert_eq!(begun.elapsed().as_secs(), CALL_LIMIT.as_secs());
        assert_eq!(classify(&error), Answer::TryAgain(None), "{error}");
        assert!(error.to_string().ends_with("no answer within 30s"), "{error}");
    }
}
