//! Where batches go, as people write it: `stdout`, `file:PATH`, `https://…`, `remote-write:URL`, `s3://BUCKET/PREFIX`.

use http::Uri;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where batches go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// To whoever reads what the command prints.
    Stdout,
    /// Into a file.
    File(PathBuf),
    /// To an HTTP server, as lines.
    Http(Uri),
    /// To an HTTP server that speaks Prometheus' remote write.
    RemoteWrite(Uri),
    /// Into object storage.
    Objects {
        /// `s3`, `gs`, `az`.
        scheme: &'static str,
        /// The bucket, or what it is called there.
        bucket: String,
        /// What names of objects begin with.
        prefix: String,
    },
}

/// A text that names no place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct NoAddress {
    problem: String,
}

/// Schemes of object storage that this build knows.
const OBJECTS: &[&str] = &[
    "s3",
    #[cfg(feature = "gcs")]
    "gs",
    #[cfg(feature = "azure")]
    "az",
];

impl FromStr for Address {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let refuse = |problem: &str| NoAddress { problem: problem.to_owned() };
        if matches!(text, "stdout" | "-") {
            return Ok(Self::Stdout);
        }
        if let Some(path) = text.strip_prefix("file:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() {
                Err(refuse("a file has to be named: file:PATH"))
            } else {
                Ok(Self::File(path.into()))
            };
        }
        if let Some(address) = text.strip_prefix("remote-write:") {
            return read_uri(address).map(Self::RemoteWrite);
        }
        if let Some((scheme, rest)) = text.split_once("://")
            && let Some(scheme) = OBJECTS.iter().find(|known| **known == scheme)
        {
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            if bucket.is_empty() || bucket.contains(['@', '?', '#', ':']) {
                return Err(refuse(&format!("a bucket has to be named, and nothing else: {scheme}://BUCKET/PREFIX")));
            }
            let prefix = prefix.trim_matches('/').to_owned();
            return Ok(Self::Objects { scheme, bucket: bucket.to_owned(), prefix });
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            return read_uri(text).map(Self::Http);
        }
        // What was typed may hold a password, so it is not said again.
        let known = format!("stdout, file:PATH, http(s)://…, remote-write:URL and {}://… are", OBJECTS.join("://…, "));
        Err(refuse(&format!("that is no place to send to: {known}")))
    }
}

/// An address of an HTTP server. Passwords do not belong there: arguments are seen by everybody on the machine.
fn read_uri(text: &str) -> Result<Uri, NoAddress> {
    let refuse = |problem: String| NoAddress { problem };
    let uri: Uri = text.parse().map_err(|error| refuse(format!("that is no address: {error}")))?;
    let (Some("http" | "https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(refuse("an address begins with http:// or https://".to_owned()));
    };
    if authority.as_str().contains('@') {
        let problem = "an address must not have a user or a password: give a file or a Secret that has them";
        return Err(refuse(problem.to_owned()));
    }
    // Whoever parses addresses leaves it to us what a port is.
    if authority.host().len() < authority.as_str().len() && authority.port_u16().is_none() {
        return Err(refuse("that is no address: a port is a number up to 65535".to_owned()));
    }
    Ok(uri)
}

impl fmt::Display for Address {
    /// Without the query, which may well be secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => formatter.write_str("stdout"),
            Self::File(path) => write!(formatter, "file:{}", path.display()),
            Self::Http(uri) => formatter.write_str(&show(uri)),
            Self::RemoteWrite(uri) => write!(formatter, "remote-write:{}", show(uri)),
            Self::Objects { scheme, bucket, prefix } if prefix.is_empty() => write!(formatter, "{scheme}://{bucket}"),
            Self::Objects { scheme, bucket, prefix } => write!(formatter, "{scheme}://{bucket}/{prefix}"),
        }
    }
}

/// An address without its query.
pub(crate) fn show(uri: &Uri) -> String {
    let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
    format!("{}://{authority}{}", uri.scheme_str().unwrap_or_default(), uri.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_and_shown_without_secrets() {
        for (text, shown) in [
            ("stdout", "stdout"),
            ("-", "stdout"),
            ("file:/tmp/a.ndjson", "file:/tmp/a.ndjson"),
            ("file:///tmp/a", "file:/tmp/a"),
            ("file:a b", "file:a b"),
            ("https://c.example/in?token=s3cret", "https://c.example/in"),
            ("http://[::1]:80", "http://[::1]:80/"),
            ("remote-write:https://c.example:9090/api/v1/write", "remote-write:https://c.example:9090/api/v1/write"),
            ("s3://bucket", "s3://bucket"),
            ("s3://bucket/a/b/", "s3://bucket/a/b"),
        ] {
            assert_eq!(text.parse::<Address>().map(|address| address.to_string()).as_deref(), Ok(shown), "{text}");
        }
    }

    #[test]
    fn what_is_no_place_is_refused_and_passwords_are_not_repeated() {
        for text in [
            "",
            "file:",
            "ftp://host",
            "remote-write:",
            "remote-write:host",
            "s3://",
            "s3:///a",
            "s3://key:p4ss@bucket/a",
            "https://user:p4ss@host/",
            "http://",
            "https://host:port/",
            "postgres://u:p4ss@host",
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(!error.contains("p4ss"), "{error}");
        }
    }
}
