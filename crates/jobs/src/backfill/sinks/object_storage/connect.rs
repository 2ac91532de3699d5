//! How object storage is reached: by our own connections, with our own certificates, and with credentials from outside.

use crate::backfill::cut::sensitive::is_secret_variable;
use crate::backfill::patience::read_retry_after;
use crate::backfill::sinks::open::{Objects, OpenError};
use crate::backfill::transport::Transport;
use http_body_util::{BodyExt as _, Full};
use jiff::Timestamp;
use jobwright_engine::async_trait;
use object_store::aws::AmazonS3Builder;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{ClientOptions, ObjectStore, RetryConfig};
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// What a server last answered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answer {
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<Duration>,
}

tokio::task_local! {
    static ANSWER: Cell<Answer>;
}

/// Lets something be done, and says what was last answered meanwhile.
pub(super) async fn listen<T>(work: impl Future<Output = T>) -> (T, Answer) {
    let listened = async {
        let done = work.await;
        (done, ANSWER.with(Cell::get))
    };
    ANSWER.scope(Cell::default(), listened).await
}

/// Our own connections.
#[derive(Clone, Debug)]
struct Connector(Transport);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_mins(1);

#[async_trait]
impl HttpService for Connector {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let failed = |kind, message: String| HttpError::new(kind, std::io::Error::other(message));
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let sent = self.0.send(http::Request::from_parts(parts, Full::new(body)));
        let response = match tokio::time::timeout(ATTEMPT, sent).await {
            Ok(sent) => sent.map_err(|message| failed(HttpErrorKind::Connect, message))?,
            Err(_) => return Err(failed(HttpErrorKind::Timeout, "no answer".to_owned())),
        };
        // A date is read as if no time had passed: servers of object storage ask in seconds.
        let answer = Answer {
            status: Some(response.status().as_u16()),
            retry_after: read_retry_after(response.headers(), Timestamp::UNIX_EPOCH),
        };
        // Nobody listens where credentials are fetched in the background.
        let _ = ANSWER.try_with(|cell| cell.set(answer));
        let broken = |error: hyper::Error| HttpError::new(HttpErrorKind::Interrupted, error);
        Ok(response.map(|body| HttpResponseBody::new(body.map_err(broken))))
    }
}

impl Objects {
    /// Opens a bucket.
    pub(crate) async fn open(
        &self,
        scheme: &str,
        bucket: &str,
        transport: Transport,
    ) -> Result<Arc<dyn ObjectStore>, OpenError> {
        let settings = self.settings().await?;
        let failed = |error: object_store::Error| OpenError(format!("cannot use {scheme}://{bucket}: {error}"));
        // Whoever delivers tries again, and counts it.
        let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let options = ClientOptions::new().with_allow_http(true);
        match scheme {
            #[cfg(feature = "gcs")]
            "gs" => {
                let mut builder = object_store::gcp::GoogleCloudStorageBuilder::new();
                for (key, value) in settings {
                    if let Ok(key) = key.parse() {
                        builder = builder.with_config(key, value);
                    }
                }
                let builder = builder.with_bucket_name(bucket).with_client_options(options).with_retry(retry);
                Ok(Arc::new(builder.with_http_connector(Connector(transport)).build().map_err(failed)?))
            }
            #[cfg(feature = "azure")]
            "az" => {
                let mut builder = object_store::azure::MicrosoftAzureBuilder::new();
                for (key, value) in settings {
                    if let Ok(key) = key.parse() {
                        builder = builder.with_config(key, value);
                    }
                }
                if let Some(endpoint) = &self.endpoint {
                    builder = builder.with_endpoint(endpoint.clone());
                }
                let builder = builder.with_container_name(bucket).with_client_options(options).with_retry(retry);
                Ok(Arc::new(builder.with_http_connector(Connector(transport)).build().map_err(failed)?))
            }
            _ => {
                let mut builder = AmazonS3Builder::new();
                for (key, value) in settings {
                    if let Ok(key) = key.parse() {
                        builder = builder.with_config(key, value);
                    }
                }
                if let Some(endpoint) = &self.endpoint {
                    builder = builder.with_endpoint(endpoint.clone());
                }
                if let Some(region) = &self.region {
                    builder = builder.with_region(region.clone());
                }
                let builder = builder.with_virtual_hosted_style_request(!self.path_style && self.endpoint.is_none());
                let builder = builder.with_bucket_name(bucket).with_client_options(options).with_retry(retry);
                Ok(Arc::new(builder.with_http_connector(Connector(transport)).build().map_err(failed)?))
            }
        }
    }

    /// Where a bucket is: what is asked for, and what the environment and the file of credentials say of it.
    pub(crate) async fn server(&self) -> Result<Value, OpenError> {
        let mut settings = self.settings().await?;
        settings.retain(|key, _| {
            ["account_name", "domain", "emulator", "endpoint", "region"].iter().any(|part| key.contains(part))
        });
        Ok(json!([self.endpoint, self.region, self.path_style, settings]))
    }

    /// What the environment and the file of credentials say in confidence.
    pub(crate) async fn secrets(&self) -> Result<Vec<String>, OpenError> {
        let is_secret = |key: &str, value: &str| !key.ends_with("key_id") && is_secret_variable(key, value);
        let settings = self.settings().await?.into_iter();
        Ok(settings.filter(|(key, value)| is_secret(key, value)).map(|(_, value)| value).collect())
    }

    /// What the environment and the file of credentials say; the file counts.
    async fn settings(&self) -> Result<BTreeMap<String, String>, OpenError> {
        let known = ["aws_", "google_", "azure_"];
        let lower = self.environment.iter().map(|(key, value)| (key.to_ascii_lowercase(), value.clone()));
        let mut settings: BTreeMap<String, String> =
            lower.filter(|(key, _)| known.iter().any(|known| key.starts_with(known))).collect();
        if let Some(source) = &self.credentials {
            let text = source.read().await.map_err(OpenError)?;
            settings.extend(read_settings(&String::from_utf8_lossy(&text)));
        }
        Ok(settings)
    }
}

/// Lines of `NAME=VALUE`, with the headings, exports and blanks that the tools of providers write.
fn read_settings(text: &str) -> BTreeMap<String, String> {
    let mut is_default = true;
    let mut settings = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        if let Some(heading) = line.strip_prefix('[') {
            is_default = heading.trim_end_matches(']').trim() == "default";
        }
        if let Some((key, value)) = line.split_once('=')
            && is_default
            && !line.starts_with(['#', ';', '['])
        {
            let key = key.trim().trim_start_matches("export ").trim().to_ascii_lowercase();
            settings.insert(key, value.trim().trim_matches(['"', '\'']).to_owned());
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_as_tools_write_them() {
        let expected = BTreeMap::from([
            ("aws_access_key_id".to_owned(), "AKIA".to_owned()),
            ("aws_secret_access_key".to_owned(), "a=b/c".to_owned()),
        ]);
        for text in [
            "AWS_ACCESS_KEY_ID=AKIA\nexport AWS_SECRET_ACCESS_KEY='a=b/c'\n",
            "# mine\n[default]\naws_access_key_id = AKIA\naws_secret_access_key = a=b/c\n[other]\naws_access_key_id = no\n",
        ] {
            assert_eq!(read_settings(text), expected, "{text}");
        }
        assert!(read_settings("").is_empty() && read_settings("nonsense\n\n=\n").len() <= 1);
    }
}
