//! A drydock with objects in it, a backfill of it, and servers that end with the test.

use anyhow::{Context as _, Result, bail, ensure};
use jobwright_e2e::target;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Part of everything that must never leave.
pub(crate) const PLANTED: &str = "pl4nted";

/// How many ConfigMaps there are.
pub(crate) const MAPS: usize = 30;

/// How often, and in what pauses, is looked whether a server answers.
const LOOKS: usize = 1500;
const PAUSE: Duration = Duration::from_millis(20);

/// A server that ends with the test.
pub(crate) struct Server(Child);

impl Server {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Ok(Self(started.with_context(|| format!("cannot start {}", command.get_program().display()))?))
    }

    /// Looks until something is there.
    pub(crate) fn until<T>(&mut self, mut look: impl FnMut() -> Option<T>) -> Result<T> {
        for _ in 0..LOOKS {
            if let Some(found) = look() {
                return Ok(found);
            }
            if let Some(status) = self.0.try_wait()? {
                bail!("the server has ended: {status}");
            }
            std::thread::sleep(PAUSE);
        }
        bail!("the server does not answer")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already; then there is nothing to end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A drydock with objects in it.
pub(crate) struct Stage {
    pub(crate) directory: tempfile::TempDir,
    binary: PathBuf,
    _drydock: Server,
}

impl Stage {
    pub(crate) fn new() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let binary = target::jobwright()?;
        let kubeconfig = directory.path().join("kubeconfig");
        let mut command = Command::new(&binary);
        command.args(["drydock", "--plain", "--kubeconfig"]).arg(&kubeconfig);
        let mut drydock = Server::start(&mut command)?;
        let address = drydock.until(|| read_address(&kubeconfig))?;
        for index in 0..MAPS {
            let name = format!("map-{index:03}");
            let labels = json!({"app.kubernetes.io/name": "shop", "number": format!("n{index}")});
            let map = json!({
                "metadata": {"name": name, "labels": labels, "annotations": {"team/owner": "q\"u\\o\nte"}},
                "data": {"DB_PASSWORD": format!("{PLANTED}-{index}"), "text": name},
            });
            ask(&address, "POST", "/api/v1/namespaces/default/configmaps", &map.to_string())?;
        }
        let secret = json!({"metadata": {"name": "secret"}, "stringData": {"password": PLANTED}});
        ask(&address, "POST", "/api/v1/namespaces/default/secrets", &secret.to_string())?;
        Ok(Self { directory, binary, _drydock: drydock })
    }

    /// Runs a backfill of ConfigMaps and Secrets in small batches, and expects it to be complete.
    pub(crate) fn backfill(&self, words: &[&str], environment: &[(&str, &str)]) -> Result<Value> {
        let mut command = Command::new(&self.binary);
        command.args(["backfill", "-o", "json", "--kinds", "cm,secrets", "--batch-records", "7", "--retry-for", "20s"]);
        command.args(words).arg("--kubeconfig").arg(self.directory.path().join("kubeconfig"));
        let output = command.envs(environment.iter().copied()).output()?;
        let (out, error) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
        ensure!(!out.contains(PLANTED) && !error.contains(PLANTED), "a secret was told: {out}\n{error}");
        for (name, value) in environment {
            let is_told = name.contains("SECRET") && (out.contains(value) || error.contains(value));
            ensure!(!is_told, "{name} was told: {out}\n{error}");
        }
        ensure!(output.status.success(), "{}: {out}\n{error}", output.status);
        let summary: Value = serde_json::from_str(&out)?;
        ensure!(summary["complete"] == true && summary["batches"]["failed"] == 0, "{summary}");
        Ok(summary)
    }
}

/// An address of this machine that nobody listens on.
pub(crate) fn free_address() -> Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

/// Asks a server on this machine, and gives the body of a success.
pub(crate) fn ask(address: &str, method: &str, path: &str, body: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    let length = body.len();
    let kind = "Content-Type: application/json";
    write!(stream, "{method} {path} HTTP/1.0\r\nHost: {address}\r\n{kind}\r\nContent-Length: {length}\r\n\r\n{body}")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").context("half an answer")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    ensure!(status.starts_with('2'), "{method} {path}: {status}: {body}");
    Ok(body.to_owned())
}

/// Where a drydock answers, once it does.
fn read_address(kubeconfig: &Path) -> Option<String> {
    let text = std::fs::read_to_string(kubeconfig).ok()?;
    let address = text.split("http://").nth(1)?;
    Some(address.split(|one: char| !(one.is_ascii_alphanumeric() || one == '.' || one == ':')).next()?.to_owned())
}
