//! What has to be there before a backfill begins: something that listens, answers, proves who it is, or is ready.

mod probe;

use super::discover::KindName;
use super::note::{Listener, Note};
use super::transport::TlsSources;
use http::Uri;
use kube::Client;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Something that has to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Somebody listens: `tcp:HOST:PORT`.
    Tcp(Endpoint),
    /// Somebody answers with success: `https://…`.
    Http(Uri),
    /// Somebody listens and proves who it is: `tls:HOST:PORT`, or with `,ca=FILE`.
    Tls(Endpoint, Option<PathBuf>),
    /// A condition of an object is true: `deployment/api=Available`.
    Condition {
        /// The kind, as people call it.
        kind: KindName,
        /// The name of the object.
        name: String,
        /// The condition.
        condition: String,
    },
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
}

/// A text that says nothing to wait for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is nothing to wait for: tcp:HOST:PORT, http(s)://…, tls:HOST:PORT[,ca=FILE] and KIND/NAME=CONDITION are"
)]
pub struct NoWait(String);

/// Why something was not waited for any longer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// There was no more time.
    #[error("{what} is not there after {} s: {why}", .limit.as_secs())]
    TimedOut {
        /// What.
        what: String,
        /// What was last seen of it.
        why: String,
        /// How long was waited.
        limit: Duration,
    },
    /// It was cancelled.
    #[error("cancelled while it waited for {0}")]
    Cancelled(String),
}

/// How long one look may take, and the pause between two.
const LOOK: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_secs(1);
/// How often it is said that something is still waited for.
const SAY: Duration = Duration::from_secs(10);

/// Waits for things.
#[derive(Clone)]
pub(crate) struct Waiter<'a> {
    pub(crate) client: &'a Client,
    pub(crate) namespace: &'a str,
    pub(crate) tls: &'a TlsSources,
    pub(crate) listener: &'a Listener,
}

impl Waiter<'_> {
    /// Waits until all of it is there, for as long as the limit says.
    pub(crate) async fn wait(
        &self,
        waits: &[Wait],
        limit: Duration,
        cancellation: &CancellationToken,
    ) -> Result<(), WaitError> {
        let began = Instant::now();
        for wait in waits {
            self.wait_for(wait, began, limit, cancellation).await?;
        }
        Ok(())
    }

    async fn wait_for(
        &self,
        wait: &Wait,
        began: Instant,
        limit: Duration,
        cancellation: &CancellationToken,
    ) -> Result<(), WaitError> {
        let mut said: Option<Instant> = None;
        loop {
            let left = limit.saturating_sub(began.elapsed());
            let look = tokio::time::timeout(LOOK.min(left).max(PAUSE), self.look(wait));
            let why = tokio::select! {
                looked = look => match looked {
                    Ok(Ok(())) => return Ok(()),
                    Ok(Err(why)) => why,
                    Err(_) => "no answer".to_owned(),
                },
                () = cancellation.cancelled() => return Err(WaitError::Cancelled(wait.to_string())),
            };
            let left = limit.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(WaitError::TimedOut { what: wait.to_string(), why, limit });
            }
            if said.is_none_or(|said| said.elapsed() >= SAY) {
                self.listener.tell(Note::Waiting { what: wait.to_string(), why, left });
                said = Some(Instant::now());
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE.min(left)) => {}
                () = cancellation.cancelled() => return Err(WaitError::Cancelled(wait.to_string())),
            }
        }
    }
}

impl FromStr for Endpoint {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (host, port) = text.rsplit_once(':').ok_or(())?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() || host.contains(['/', '@', ' ']) {
            return Err(());
        }
        Ok(Self { host: host.to_owned(), port: port.parse().map_err(drop)? })
    }
}

impl FromStr for Wait {
    type Err = NoWait;

    fn from_str(text: &str) -> Result<Self, NoWait> {
        // An address may hold a password, so it is not said again.
        let refuse = || NoWait(if text.contains('@') { "that".to_owned() } else { text.to_owned() });
        if let Some(endpoint) = text.strip_prefix("tcp:") {
            return endpoint.parse().map(Self::Tcp).map_err(|()| refuse());
        }
        if let Some(rest) = text.strip_prefix("tls:") {
            let (endpoint, authority) = match rest.split_once(',') {
                Some((endpoint, option)) => (endpoint, Some(option.strip_prefix("ca=").ok_or_else(refuse)?.into())),
                None => (rest, None),
            };
            return endpoint.parse().map(|endpoint| Self::Tls(endpoint, authority)).map_err(|()| refuse());
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            let uri: Uri = text.parse().map_err(|_| refuse())?;
            let is_plain = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
            return if is_plain { Ok(Self::Http(uri)) } else { Err(refuse()) };
        }
        let parts = text.split_once('/').and_then(|(kind, rest)| Some((kind, rest.split_once('=')?)));
        match parts {
            Some((kind, (name, condition))) if ![kind, name, condition].contains(&"") && !name.contains('/') => {
                Ok(Self::Condition { kind: kind.into(), name: name.to_owned(), condition: condition.to_owned() })
            }
            _ => Err(refuse()),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(formatter, "[{host}]:{port}") } else { write!(formatter, "{host}:{port}") }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(endpoint) => write!(formatter, "tcp:{endpoint}"),
            Self::Tls(endpoint, _) => write!(formatter, "tls:{endpoint}"),
            Self::Http(uri) => formatter.write_str(&super::sinks::show(uri)),
            Self::Condition { kind, name, condition } => write!(formatter, "{kind}/{name}={condition}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_read_and_shown() {
        for (text, shown) in [
            ("tcp:db:5432", "tcp:db:5432"),
            ("tcp:[::1]:80", "tcp:[::1]:80"),
            ("tls:hook.shop.svc:443", "tls:hook.shop.svc:443"),
            ("tls:hook:443,ca=/etc/ca.crt", "tls:hook:443"),
            ("https://c.example/ready?token=s3cret", "https://c.example/ready"),
            ("deployment/api=Available", "deployment/api=Available"),
            ("deployments.apps/api=Available", "deployments.apps/api=Available"),
        ] {
            assert_eq!(text.parse::<Wait>().map(|wait| wait.to_string()).as_deref(), Ok(shown), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_and_passwords_are_not_repeated() {
        for text in [
            "",
            "tcp:",
            "tcp:host",
            "tcp::80",
            "tcp:host:port",
            "tcp:host:99999",
            "tls:host:1,x=y",
            "pod/x",
            "pod/=Ready",
            "pod/a/b=Ready",
            "/a=b",
            "https://u:p4ss@host/",
            "ftp://x",
        ] {
            let error = text.parse::<Wait>().unwrap_err().to_string();
            assert!(error.contains("is nothing to wait for") && !error.contains("p4ss"), "{error}");
        }
    }
}
