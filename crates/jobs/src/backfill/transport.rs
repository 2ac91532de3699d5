//! HTTP to the places that batches go to: TLS with files that may be replaced while it runs, and credentials.

pub(crate) mod confidence;
mod source;
mod tls;

pub use source::Source;
pub(crate) use tls::Tls;
pub use tls::TlsSources;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);
/// How much of an answer is read for its first line.
const READ: usize = 4 * 1024;
/// How long a line of somebody else's may be.
const LINE: usize = 200;

type Http = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Sends requests. Clones share their connections.
#[derive(Clone)]
pub struct Transport {
    tls: Arc<TlsSources>,
    /// What requests are sent by, and the certificates it was made with.
    made: Arc<Mutex<Option<(Tls, Http)>>>,
}

/// What a request is allowed by: a header with something secret.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The header.
    pub header: HeaderName,
    /// What stands in front of the secret: `Bearer `.
    pub prefix: String,
    /// Where the secret is.
    pub secret: Source,
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Transport").field("tls", &self.tls).finish_non_exhaustive()
    }
}

impl Transport {
    /// Sends requests with these certificates.
    pub fn new(tls: TlsSources) -> Self {
        Self { tls: Arc::new(tls), made: Arc::default() }
    }

    /// Sends a request.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, String> {
        let http = self.http().await?;
        http.request(request).await.map_err(|error| chain(&error))
    }

    /// What requests are sent by. Certificates that were replaced are used from now on.
    async fn http(&self) -> Result<Http, String> {
        let tls = self.tls.read().await?;
        let mut made = self.made.lock().await;
        if let Some((known, http)) = &*made
            && *known == tls
        {
            return Ok(http.clone());
        }
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(CONNECT));
        connector.set_nodelay(true);
        let https = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls.config()?);
        let https = https.https_or_http().enable_http1().wrap_connector(connector);
        let http = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(https);
        *made = Some((tls, http.clone()));
        Ok(http)
    }
}

impl Credentials {
    /// A bearer token.
    pub fn bearer(secret: Source) -> Self {
        Self { header: http::header::AUTHORIZATION, prefix: "Bearer ".to_owned(), secret }
    }

    /// The header as it is now, whatever was seen a moment ago.
    pub(crate) async fn read_anew(&self) -> Result<HeaderValue, String> {
        self.secret.forget().await;
        self.read().await
    }

    /// The header as it is now.
    pub(crate) async fn read(&self) -> Result<HeaderValue, String> {
        let secret = self.secret.read().await?;
        let secret = String::from_utf8(secret).map_err(|_| format!("{} is no text", self.secret))?;
        let value = format!("{}{}", self.prefix, secret.trim());
        let mut value = HeaderValue::from_str(&value).map_err(|_| format!("{} cannot be a header", self.secret))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// The first line of what a server said, fit to be shown: short, printable, and without what it was told in confidence.
pub(crate) async fn read_line(body: Incoming, secrets: &[HeaderValue]) -> String {
    let read = Limited::new(body, READ).collect();
    let text = match tokio::time::timeout(CONNECT, read).await {
        Ok(Ok(read)) => String::from_utf8_lossy(&read.to_bytes()).into_owned(),
        _ => String::new(),
    };
    show_line(&text, secrets)
}

fn show_line(text: &str, secrets: &[HeaderValue]) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    // Hidden before it is cut: half a secret would not be found.
    confidence::hide(line, secrets).chars().filter(|character| !character.is_control()).take(LINE).collect()
}

/// Reads an answer to its end, so that its connection can be used again.
pub(crate) async fn drain(body: Incoming) {
    // An answer that is too long, or does not end, only costs its connection.
    let _ = tokio::time::timeout(CONNECT, Limited::new(body, 64 * 1024).collect()).await;
}

/// An error with everything behind it.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let part = error.to_string();
        if !text.ends_with(&part) {
            text = format!("{text}: {part}");
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_shown_short_and_without_secrets() {
        let secrets = [HeaderValue::from_static("Bearer s3cret-token")];
        let shown = |text: &str| show_line(text, &secrets);
        assert_eq!(shown("\n\n  no such \u{1b}[31mtenant\nmore"), "no such [31mtenant");
        assert_eq!(shown("the token s3cret-token is wrong"), "the token (removed) is wrong");
        assert_eq!(shown(&"x".repeat(1000)).len(), LINE);
        assert_eq!(shown(""), "");
        let long = format!("{}s3cret-token", "x".repeat(LINE - 6));
        assert!(!shown(&long).contains("s3cre"), "it was cut before it was hidden");
    }

    #[tokio::test]
    async fn a_secret_is_read_again_each_time() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let credentials = Credentials::bearer(Source::File(file.path().to_owned()));
        for token in ["one", "two"] {
            std::fs::write(file.path(), format!("{token}\n")).unwrap();
            let value = credentials.read().await.unwrap();
            assert_eq!(value.to_str().unwrap(), format!("Bearer {token}"));
            assert!(value.is_sensitive());
            assert!(!format!("{credentials:?}").contains(token));
        }
        std::fs::write(file.path(), "a\nb").unwrap();
        let error = credentials.read().await.unwrap_err();
        assert!(error.ends_with("cannot be a header") && !error.contains("a\nb"), "{error}");
    }
}
