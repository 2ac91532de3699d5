//! An HTTP server in front of a cluster: it passes requests on, answers some with an error, and leaves some unanswered.

use crate::deploy::stage::Stage;
use http::{Request, Response};
use kube::client::Body;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Pass,
    /// An error with this status.
    Refuse(u16),
    /// Nothing, ever.
    Ignore,
    /// It is passed on, and not answered.
    Swallow,
}

/// Decides about a request by its method and path.
type Rule = Arc<dyn Fn(&str, &str) -> Deed + Send + Sync>;

/// The server, until the stage ends. It passes on no watches.
pub(crate) struct Front {
    /// Requests that were not passed on and answered.
    disturbed: Arc<Mutex<Vec<String>>>,
}

impl Front {
    /// Puts a server in front of the cluster of a stage, and points its kubeconfig there.
    pub(crate) fn start(stage: &Stage, rule: impl Fn(&str, &str) -> Deed + Send + Sync + 'static) -> Self {
        let (client, rule): (kube::Client, Rule) = (stage.client(), Arc::new(rule));
        let listener = stage.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let text = std::fs::read_to_string(stage.path("kubeconfig")).unwrap();
        let mut kubeconfig: serde_json::Value = serde_json::from_str(&text).unwrap();
        kubeconfig["clusters"][0]["cluster"] = serde_json::json!({"server": server});
        stage.file("kubeconfig", &kubeconfig.to_string());
        let disturbed = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&disturbed);
        stage.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (client, rule, noted) = (client.clone(), Arc::clone(&rule), Arc::clone(&noted));
                // A connection that breaks is the client's business.
                tokio::spawn(async move { serve(stream, client, rule, noted).await });
            }
        });
        Self { disturbed }
    }

    /// Waits until a request was disturbed.
    pub(crate) fn wait_for_disturbance(&self) {
        let has_come = (0..3000).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            !self.disturbed.lock().unwrap().is_empty()
        });
        assert!(has_come, "nothing was disturbed");
    }
}

/// Serves the requests of a connection, one after the other.
async fn serve(
    stream: TcpStream,
    client: kube::Client,
    rule: Rule,
    disturbed: Arc<Mutex<Vec<String>>>,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await? {
        let (method, path) = (request.method().as_str().to_owned(), request.uri().path().to_owned());
        let deed = rule(&method, &path);
        if deed != Deed::Pass {
            disturbed.lock().unwrap().push(format!("{method} {path}"));
        }
        let answer = match deed {
            Deed::Ignore => return std::future::pending().await,
            Deed::Refuse(status) => Response::builder().status(status).body(Body::empty()).unwrap(),
            Deed::Pass | Deed::Swallow => client.send(request).await.unwrap(),
        };
        let status = answer.status().as_u16();
        let body = answer.into_body().collect_bytes().await.unwrap();
        if deed == Deed::Swallow {
            return std::future::pending().await;
        }
        let length = body.len();
        let head = format!("HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&body).await?;
    }
    Ok(())
}

/// Reads a request; none at the end of the connection.
async fn read(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request<Body>>> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let mut words = line.split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
    let mut request = Request::builder().method(method).uri(path);
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "content-type" | "accept" => request = request.header(name, value),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some(request.body(Body::from(body)).unwrap()))
}
