//! Batches of lines by POST to an HTTP server.

use super::address::show;
use super::pack::Compression;
use super::{Form, Sink, SinkError};
use crate::backfill::batch::Batch;
use crate::backfill::patience::read_retry_after;
use crate::backfill::summary::Problem;
use crate::backfill::transport::{Credentials, Transport, drain, read_line};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use jobwright_engine::{Clock, async_trait};
use serde_json::{Value, json};
use std::time::Duration;

/// Sends lines to an HTTP server.
pub struct HttpSink {
    uri: Uri,
    compression: Compression,
    post: Post,
}

/// Sends bodies to one address.
pub(crate) struct Post {
    pub(crate) transport: Transport,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) clock: Clock,
    /// How long one attempt may take.
    pub(crate) limit: Duration,
}

/// How long one attempt may take, unless told otherwise.
pub(crate) const ATTEMPT: Duration = Duration::from_mins(1);

const BATCH: HeaderName = HeaderName::from_static("x-jobwright-batch");
const RECORDS: HeaderName = HeaderName::from_static("x-jobwright-records");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

impl HttpSink {
    /// Sends lines to this address.
    pub fn new(
        uri: Uri,
        compression: Compression,
        transport: Transport,
        credentials: Option<Credentials>,
        clock: Clock,
    ) -> Self {
        Self { uri, compression, post: Post { transport, credentials, clock, limit: ATTEMPT } }
    }

    /// Gives up an attempt after this time.
    #[must_use]
    pub fn attempt_limit(mut self, limit: Duration) -> Self {
        self.post.limit = limit;
        self
    }
}

#[async_trait]
impl Sink for HttpSink {
    fn describe(&self) -> String {
        show(&self.uri)
    }

    fn identity(&self) -> Value {
        json!([self.post.identity(&self.uri), self.form()])
    }

    fn form(&self) -> Form {
        Form::Lines(self.compression)
    }

    async fn send(&self, batch: &Batch) -> Result<(), SinkError> {
        let mut headers = vec![(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"))];
        if let Some(encoding) = self.compression.encoding() {
            headers.push((header::CONTENT_ENCODING, HeaderValue::from_static(encoding)));
        }
        self.post.send(&self.uri, batch, headers).await
    }
}

impl Post {
    /// What decides who gets the batches: the whole address, and whose credentials go with it.
    pub(crate) fn identity(&self, uri: &Uri) -> Value {
        let credentials = self.credentials.as_ref();
        let credentials =
            credentials.map(|known| (known.header.as_str(), known.prefix.as_str(), known.secret.to_string()));
        json!([uri.to_string(), credentials])
    }

    /// Makes one attempt to deliver a batch.
    pub(crate) async fn send(
        &self,
        uri: &Uri,
        batch: &Batch,
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<(), SinkError> {
        let attempt = tokio::time::timeout(self.limit, self.attempt(uri, batch, headers)).await;
        attempt.unwrap_or_else(|_| {
            let problem = Problem::of(format!("no answer within {} s", self.limit.as_secs_f64()));
            Err(SinkError::passing(problem, None))
        })
    }

    async fn attempt(
        &self,
        uri: &Uri,
        batch: &Batch,
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<(), SinkError> {
        let passing = |message: String| SinkError::passing(Problem::of(message), None);
        let mut request = Request::new(Full::new(batch.body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri.clone();
        let mut secrets = parameters(uri);
        let told = secrets.len();
        let sent = request.headers_mut();
        sent.extend(headers);
        sent.insert(header::USER_AGENT, HeaderValue::from_static(concat!("jobwright/", env!("CARGO_PKG_VERSION"))));
        for (header, value) in [(IDEMPOTENCY_KEY, &batch.key), (BATCH, &batch.id.to_string())] {
            if let Ok(value) = HeaderValue::from_str(value) {
                sent.insert(header, value);
            }
        }
        sent.insert(RECORDS, HeaderValue::from(batch.records));
        if let Some(credentials) = &self.credentials {
            // A file that is being replaced is there again in a moment.
            let value = credentials.read().await.map_err(passing)?;
            secrets.push(value.clone());
            sent.insert(credentials.header.clone(), value);
        }
        let response = self.transport.send(request).await.map_err(passing)?;
        let (parts, body) = response.into_parts();
        if parts.status.is_success() {
            drain(body).await;
            return Ok(());
        }
        let asked = read_retry_after(&parts.headers, self.clock.now());
        let line = read_line(body, &secrets).await;
        let error = judge(parts.status, &line, asked);
        // A secret that was replaced meanwhile may do better.
        if parts.status == StatusCode::UNAUTHORIZED
            && let (Some(credentials), Some(used)) = (&self.credentials, secrets.get(told))
            && credentials.read_anew().await.is_ok_and(|value| value != *used)
        {
            return Err(SinkError::passing(error.problem, None));
        }
        Err(error)
    }
}

/// The values of an address' parameters, which may be secret.
fn parameters(uri: &Uri) -> Vec<HeaderValue> {
    let pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let plain = |value: &str| percent_encoding::percent_decode_str(value).decode_utf8_lossy().into_owned();
    let values = pairs.flat_map(|(_, value)| [value.to_owned(), plain(value)]);
    values.filter_map(|value| HeaderValue::from_str(&value).ok()).collect()
}

/// What an answer means that is no success.
fn judge(status: StatusCode, line: &str, asked: Option<Duration>) -> SinkError {
    let message = match line {
        "" => format!("the sink answered {status}"),
        line => format!("the sink answered {status}: {line}"),
    };
    let problem = Problem { status: Some(status.as_u16()), message };
    match status.as_u16() {
        408 | 425 | 429 | 500..=599 => SinkError::passing(problem, asked),
        _ => SinkError::refused(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backfill::sinks::Remedy;

    #[test]
    fn answers_are_told_apart() {
        let asked = Some(Duration::from_secs(7));
        for (status, remedy) in [
            (408, Remedy::Again(asked)),
            (429, Remedy::Again(asked)),
            (500, Remedy::Again(asked)),
            (503, Remedy::Again(asked)),
            (400, Remedy::None),
            (401, Remedy::None),
            (404, Remedy::None),
            (413, Remedy::None),
            (302, Remedy::None),
        ] {
            let error = judge(StatusCode::from_u16(status).unwrap(), "", asked);
            assert_eq!((error.remedy, error.problem.status), (remedy, Some(status)), "{status}");
        }
        let error = judge(StatusCode::BAD_REQUEST, "no tenant", None);
        assert_eq!(error.to_string(), "400: the sink answered 400 Bad Request: no tenant");
    }
}
