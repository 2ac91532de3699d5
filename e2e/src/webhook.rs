//! A small webhook that refuses what is labelled, and runs in a pod: what the tests of admission call.

use crate::error::Error;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;

/// Who has this label is refused, with its value for a reason.
pub const REFUSED: &str = "jobwright.local/refused";

/// Serves reviews of admission until it is killed; `tls.crt` and `tls.key` are in the directory, as in a Secret.
pub fn serve(address: &str, directory: &Path) -> Result<(), Error> {
    let listener = TcpListener::bind(address).map_err(Error::io(format!("listen on {address}")))?;
    let doing = || format!("read the certificate in `{}`", directory.display());
    let configuration = configuration(directory).map_err(|error| Error::io(doing())(std::io::Error::other(error)))?;
    let configuration = Arc::new(configuration);
    loop {
        let (stream, _) = listener.accept().map_err(Error::io(format!("accept on {address}")))?;
        let configuration = Arc::clone(&configuration);
        std::thread::spawn(move || {
            // A probe only connects.
            let _ = converse(stream, configuration);
        });
    }
}

fn configuration(directory: &Path) -> Result<rustls::ServerConfig, Box<dyn std::error::Error + Send + Sync>> {
    let chain = CertificateDer::pem_file_iter(directory.join("tls.crt"))?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(directory.join("tls.key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_no_client_auth().with_single_cert(chain, key)?)
}

fn converse(stream: TcpStream, configuration: Arc<rustls::ServerConfig>) -> std::io::Result<()> {
    let connection = rustls::ServerConnection::new(configuration).map_err(std::io::Error::other)?;
    let mut reader = BufReader::new(rustls::StreamOwned::new(connection, stream));
    // The API server keeps its connections and asks again.
    loop {
        let mut length = 0;
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        while line.trim_end() != "" {
            let (name, value) = line.split_once(':').unwrap_or_default();
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().map_err(std::io::Error::other)?;
            }
            line.clear();
            reader.read_line(&mut line)?;
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let answer = serde_json::from_slice(&body).map(|review| answer(&review)).unwrap_or_default().to_string();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
        write!(reader.get_mut(), "{head}Content-Length: {}\r\n\r\n{answer}", answer.len())?;
        reader.get_mut().flush()?;
    }
}

fn answer(review: &Value) -> Value {
    let reason = review["request"]["object"]["metadata"]["labels"][REFUSED].as_str();
    let mut response = json!({"uid": review["request"]["uid"], "allowed": reason.is_none()});
    if let Some(reason) = reason {
        response["status"] = json!({"code": 403, "message": reason});
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_labelled_is_refused() {
        let plain = answer(&json!({"request": {"uid": "1", "object": {"metadata": {"name": "a"}}}}));
        assert_eq!(plain["response"], json!({"uid": "1", "allowed": true}));
        let labelled = answer(&json!({"request": {"uid": "2", "object": {"metadata": {"labels": {REFUSED: "no"}}}}}));
        assert_eq!(labelled["response"]["status"]["message"], "no");
        assert_eq!(labelled["response"]["allowed"], false);
    }
}
