//! How servers are reached, to see what they show: directly inside of a cluster, through the API server from outside.

use jobwright_engine::async_trait;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Bytes to a server and back.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Who is to be reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// The Service itself: any of its servers answers.
    Service(SocketAddr),
    /// One server.
    Server {
        /// Its pod, if it is one.
        pod: Option<String>,
        /// Where it listens.
        address: SocketAddr,
    },
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(address) => write!(formatter, "the Service at {address}"),
            Self::Server { pod: Some(pod), .. } => write!(formatter, "pod `{pod}`"),
            Self::Server { pod: None, address } => write!(formatter, "the server at {address}"),
        }
    }
}

/// Reaches servers.
#[async_trait]
pub trait Dialler: Send + Sync {
    /// Opens a connection.
    async fn dial(&self, peer: &Peer) -> io::Result<Box<dyn Stream>>;

    /// Whether it reaches the Service itself, too.
    fn reaches_services(&self) -> bool;

    /// Whether it needs the right to forward the ports of pods.
    fn forwards_ports(&self) -> bool {
        false
    }
}

/// Whether servers can be asked what they show.
#[derive(Clone)]
pub enum Dialling {
    /// They can.
    With(Arc<dyn Dialler>),
    /// They cannot, and why.
    Not(String),
}

impl fmt::Debug for Dialling {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::With(_) => formatter.write_str("With(_)"),
            Self::Not(reason) => formatter.debug_tuple("Not").field(reason).finish(),
        }
    }
}

/// Reaches servers as a pod does.
#[derive(Clone, Copy, Debug)]
pub struct Direct;

#[async_trait]
impl Dialler for Direct {
    async fn dial(&self, peer: &Peer) -> io::Result<Box<dyn Stream>> {
        let (Peer::Service(address) | Peer::Server { address, .. }) = peer;
        Ok(Box::new(TcpStream::connect(address).await?))
    }

    fn reaches_services(&self) -> bool {
        true
    }
}

/// Reaches pods through the API server, as `kubectl port-forward` does.
#[derive(Clone)]
pub struct PortForward {
    /// The cluster.
    pub client: Client,
    /// The namespace of the pods.
    pub namespace: String,
}

#[async_trait]
impl Dialler for PortForward {
    async fn dial(&self, peer: &Peer) -> io::Result<Box<dyn Stream>> {
        let Peer::Server { pod: Some(pod), address } = peer else {
            return Err(io::Error::other("only pods can be reached from outside"));
        };
        let pods = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        let mut forwarder = pods.portforward(pod, &[address.port()]).await.map_err(io::Error::other)?;
        let stream = forwarder.take_stream(address.port());
        Ok(Box::new(stream.ok_or_else(|| io::Error::other("the port is not forwarded"))?))
    }

    fn reaches_services(&self) -> bool {
        false
    }

    fn forwards_ports(&self) -> bool {
        true
    }
}
