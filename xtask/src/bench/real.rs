//! Servers that are measured from outside: `jobwright drydock`, and a real kube-apiserver with its etcd.

use anyhow::{Context as _, Result, bail};
use jobwright_e2e::tools::Tools as Directory;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const KUBERNETES: &str = "1.34.10";
const ETCD: &str = "3.6.16";
const TOKEN: &str = "bench";

/// A server that runs until it is dropped.
pub(super) struct Server {
    processes: Vec<Child>,
    directory: tempfile::TempDir,
    started: Instant,
}

/// The real server's programs.
pub(super) struct Tools {
    pub(super) kubernetes: &'static str,
    pub(super) etcd: &'static str,
    apiserver_program: PathBuf,
    etcd_program: PathBuf,
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "this is where times are taken")]
    fn new() -> Result<Self> {
        let directory = tempfile::tempdir().context("cannot make a directory")?;
        Ok(Self { processes: Vec::new(), directory, started: Instant::now() })
    }

    /// drydock, served.
    pub(super) fn drydock(root: &Path) -> Result<Self> {
        let mut server = Self::new()?;
        let mut command = Command::new(root.join("target/release/jobwright"));
        command.arg("drydock").arg("--kubeconfig").arg(server.kubeconfig());
        server.start(command)?;
        Ok(server)
    }

    fn start(&mut self, mut command: Command) -> Result<()> {
        let name = command.get_program().to_owned();
        let log = std::fs::File::create(self.log(self.processes.len())).context("cannot make a log")?;
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        self.processes.push(process.with_context(|| format!("cannot start {}", name.display()))?);
        Ok(())
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    /// Where it answers, as its kubeconfig says.
    pub(super) fn address(&self) -> String {
        let text = std::fs::read_to_string(self.kubeconfig()).unwrap_or_default();
        text.split("server: '").nth(1).and_then(|rest| rest.split('\'').next()).unwrap_or_default().to_owned()
    }

    /// What it lets its administrator in by.
    pub(super) const fn token() -> &'static str {
        TOKEN
    }

    /// How long it has been running.
    pub(super) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Where one of its processes tells what it does.
    fn log(&self, process: usize) -> PathBuf {
        self.directory.path().join(format!("{process}.log"))
    }

    /// Whether it still runs.
    pub(super) fn check(&mut self) -> Result<()> {
        for index in 0..self.processes.len() {
            if let Some(status) = self.processes[index].try_wait()? {
                let said = std::fs::read_to_string(self.log(index)).unwrap_or_default();
                bail!("the server ended with {status}, and said:\n{}", said.lines().last().unwrap_or_default());
            }
        }
        Ok(())
    }

    /// What it has worked so far, in seconds on processors.
    pub(super) fn work(&self) -> f64 {
        // The kernel counts in hundredths; user and system time are the 14th and 15th fields, the name may hold blanks.
        let ticks = |process: &Child| {
            let text = std::fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap_or_default();
            let fields = text.rsplit(')').next().unwrap_or_default();
            fields.split_whitespace().skip(11).take(2).filter_map(|number| number.parse::<f64>().ok()).sum::<f64>()
        };
        self.processes.iter().map(ticks).sum::<f64>() / 100.0
    }

    /// The memory it has now, in bytes.
    pub(super) fn memory(&self) -> f64 {
        self.bytes("VmRSS:")
    }

    /// The most memory it has had, in bytes.
    pub(super) fn peak(&self) -> f64 {
        self.bytes("VmHWM:")
    }

    fn bytes(&self, field: &str) -> f64 {
        let bytes = |process: &Child| {
            let text = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
            line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or_default() * 1024.0
        };
        self.processes.iter().map(bytes).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // It may have ended by itself; there is nobody left to tell.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Tools {
    /// The programs, if they have been built.
    pub(super) fn find() -> Result<Option<Self>> {
        let directory = Directory::directory(None)?;
        let apiserver_program = directory.join(format!("kubernetes-{KUBERNETES}/kube-apiserver"));
        let etcd_program = directory.join(format!("etcd-{ETCD}/etcd"));
        let is_there = apiserver_program.is_file() && etcd_program.is_file();
        Ok(is_there.then_some(Self { kubernetes: KUBERNETES, etcd: ETCD, apiserver_program, etcd_program }))
    }

    /// A real API server, alone with its etcd.
    pub(super) fn start(&self) -> Result<Server> {
        let mut server = Server::new()?;
        let file = |name: &str| server.directory.path().join(name);
        let [client, peer, secure] = [free_port()?, free_port()?, free_port()?];
        let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        std::fs::write(file("tokens"), format!("{TOKEN},admin,admin,system:masters\n"))?;
        let key = rcgen::KeyPair::generate()?;
        std::fs::write(file("key"), key.serialize_pem())?;
        std::fs::write(file("public-key"), key.public_key_pem())?;
        let text = kubeconfig(secure);

        let mut etcd = Command::new(&self.etcd_program);
        etcd.arg("--data-dir").arg(file("etcd"));
        etcd.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        etcd.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        etcd.args(["--initial-cluster", &format!("default={peer}"), "--unsafe-no-fsync"]);

        let mut apiserver = Command::new(&self.apiserver_program);
        apiserver.args(["--etcd-servers", &client, "--bind-address", "127.0.0.1"]);
        apiserver.args(["--secure-port", &secure.to_string(), "--service-cluster-ip-range", "10.0.0.0/24"]);
        apiserver.args([
            "--service-account-issuer",
            "https://localhost",
            "--disable-admission-plugins",
            "ServiceAccount",
        ]);
        apiserver.arg("--service-account-key-file").arg(file("public-key"));
        apiserver.arg("--service-account-signing-key-file").arg(file("key"));
        apiserver.arg("--token-auth-file").arg(file("tokens")).arg("--cert-dir").arg(file("certificates"));

        std::fs::write(server.kubeconfig(), text)?;
        server.start(etcd)?;
        server.start(apiserver)?;
        Ok(server)
    }
}

fn kubeconfig(port: u16) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: bench\n\
         clusters: [{{name: bench, cluster: {{server: 'https://127.0.0.1:{port}', insecure-skip-tls-verify: true}}}}]\n\
         users: [{{name: bench, user: {{token: {TOKEN}}}}}]\n\
         contexts: [{{name: bench, context: {{cluster: bench, user: bench}}}}]\n"
    )
}

/// A port that nobody listens on just now.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
