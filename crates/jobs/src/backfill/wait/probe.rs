//! Looks whether something is there.

use super::{Endpoint, Wait, Waiter};
use crate::backfill::discover::{Catalogue, KindName};
use crate::backfill::transport::{Source, TlsSources, Transport, drain};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use jobwright_engine::Refusal;
use rustls::pki_types::ServerName;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

impl Waiter<'_> {
    /// Whether it is there now, and if not, why.
    pub(super) async fn look(&self, wait: &Wait) -> Result<(), String> {
        match wait {
            Wait::Tcp(endpoint) => connect(endpoint).await.map(drop),
            Wait::Tls(endpoint, authority) => self.shake_hands(endpoint, authority.clone()).await,
            Wait::Http(uri) => {
                let mut request = Request::new(Full::<Bytes>::default());
                *request.uri_mut() = uri.clone();
                let response = Transport::new(self.tls.clone()).send(request).await?;
                let status = response.status();
                drain(response.into_body()).await;
                if status.is_success() { Ok(()) } else { Err(format!("it answers {status}")) }
            }
            Wait::Condition { kind, name, condition } => self.look_at(kind, name, condition).await,
        }
    }

    async fn shake_hands(&self, endpoint: &Endpoint, authority: Option<PathBuf>) -> Result<(), String> {
        let sources = match authority {
            Some(file) => TlsSources { authority: Some(Source::File(file)), identity: self.tls.identity.clone() },
            None => self.tls.clone(),
        };
        let config = sources.read().await?.config()?;
        let name = ServerName::try_from(endpoint.host.clone()).map_err(|error| error.to_string())?;
        let stream = connect(endpoint).await?;
        let shaken = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        shaken.map(drop).map_err(|error| error.to_string())
    }

    async fn look_at(&self, kind: &KindName, name: &str, condition: &str) -> Result<(), String> {
        let refused = |error: kube::Error| Refusal::from(error).to_string();
        let catalogue = Catalogue::read(self.client).await.map_err(refused)?;
        let kinds = catalogue.choose(std::slice::from_ref(kind), &[]).map_err(|error| error.to_string())?;
        let Some(found) = kinds.first() else { return Err(format!("there is no kind `{kind}`")) };
        let path = found.path(found.namespaced.then_some(self.namespace));
        let request = Request::get(format!("{path}/{}", crate::backfill::kind::encode(name))).body(Vec::new());
        let request = request.map_err(|error| error.to_string())?;
        let object: Value = self.client.request(request).await.map_err(refused)?;
        judge(&object, condition)
    }
}

async fn connect(endpoint: &Endpoint) -> Result<TcpStream, String> {
    TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await.map_err(|error| error.to_string())
}

/// Whether a condition of an object is true.
fn judge(object: &Value, condition: &str) -> Result<(), String> {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let Some(found) = conditions.find(|found| found["type"] == condition) else {
        return Err("it does not have the condition yet".to_owned());
    };
    if found["status"] == "True" {
        return Ok(());
    }
    let part = |key: &str| found[key].as_str().unwrap_or_default();
    Err(format!("it is {}: {} {}", part("status"), part("reason"), part("message")).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_condition_has_to_be_there_and_true() {
        let object = json!({"status": {"conditions": [
            {"type": "Available", "status": "True"},
            {"type": "Progressing", "status": "False", "reason": "Stuck", "message": "no image"},
        ]}});
        assert_eq!(judge(&object, "Available"), Ok(()));
        assert_eq!(judge(&object, "Progressing"), Err("it is False: Stuck no image".to_owned()));
        assert!(judge(&object, "Ready").is_err() && judge(&json!({}), "Ready").is_err());
    }
}
