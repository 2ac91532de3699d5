//! An in-memory cluster inside this process, and helm's way to it.

use super::{Clients, Connection, Reach, read_script};
use crate::arguments;
use crate::failure::{ErrorExt as _, Failure, Kind};
use anyhow::Context as _;
use http::{HeaderValue, Request, header};
use jobwright_drydock::{Drydock, Http, Script, Serving};
use jobwright_engine::Clock;
use kube::Client;
use kube::client::Body;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::task::{Context, Poll};

/// How fast time passes while helm deploys: helm measures its waits by the wall clock, and Jobwright those of helm by the
/// cluster's.
const SPEED_WITH_HELM: u32 = 10;

/// The API on loopback, and the kubeconfig that leads to it. Both end with this.
pub(crate) struct Served {
    _serving: Serving,
    kubeconfig: tempfile::NamedTempFile,
}

/// Starts a cluster. `beside` is where a script for it may be.
pub(super) async fn start(
    arguments: &arguments::Cluster,
    beside: Option<&Path>,
    clients: Clients,
) -> Result<Connection, Failure> {
    let found = beside.map(|directory| directory.join("drydock.yaml")).filter(|file| file.is_file());
    let script = match arguments.script.clone().or(found) {
        Some(file) => read_script(&file).or_fail(Kind::Usage)?,
        None => Script::default(),
    };
    let builder = Drydock::builder().script(script);
    let (drydock, client, served) = match clients {
        Clients::Own => {
            let drydock = builder.build();
            (drydock.clone(), Client::new(drydock, "default"), None)
        }
        Clients::OwnAndHelm => {
            if arguments.speed.is_none() {
                arguments.pace.set(SPEED_WITH_HELM);
            }
            let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let serving = builder.serve(Http { listen, tls: true }).await.or_fail(Kind::Internal)?;
            let drydock = serving.drydock().clone();
            let authorization =
                HeaderValue::from_str(&format!("Bearer {}", serving.token())).or_fail(Kind::Internal)?;
            let client = Client::new(Authorized { drydock: drydock.clone(), authorization }, "default");
            let kubeconfig = write_kubeconfig(serving.kubeconfig()).or_fail(Kind::Internal)?;
            (drydock, client, Some(Served { _serving: serving, kubeconfig }))
        }
    };
    let helm_arguments =
        served.iter().flat_map(|served| ["--kubeconfig".to_owned(), served.kubeconfig.path().display().to_string()]);
    Ok(Connection {
        client,
        clock: Clock::new(move || drydock.now()),
        namespace: "default".to_owned(),
        is_drydock: true,
        reach: Reach::Memory,
        helm_arguments: helm_arguments.collect(),
        _served: served,
    })
}

/// Writes a kubeconfig into a file that only this user can read.
fn write_kubeconfig(text: &str) -> anyhow::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::new().context("cannot create a kubeconfig for helm")?;
    file.write_all(text.as_bytes()).context("cannot write the kubeconfig for helm")?;
    Ok(file)
}

/// A served cluster, reached without a connection: whoever calls it still needs the token.
#[derive(Clone)]
struct Authorized {
    drydock: Drydock,
    authorization: HeaderValue,
}

impl tower::Service<Request<Body>> for Authorized {
    type Response = <Drydock as tower::Service<Request<Body>>>::Response;
    type Error = <Drydock as tower::Service<Request<Body>>>::Error;
    type Future = <Drydock as tower::Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        tower::Service::<Request<Body>>::poll_ready(&mut self.drydock, context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        request.headers_mut().insert(header::AUTHORIZATION, self.authorization.clone());
        self.drydock.call(request)
    }
}
