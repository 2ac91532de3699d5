//! A cluster while it is being started: where it is, what it is made of, and how long each part took.

use super::place::Place;
use super::process;
use crate::clock;
use crate::error::Error;
use crate::install::{Tell, Tool};
use crate::kubectl::Kubectl;
use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often is looked whether something is ready.
const POLL: Duration = Duration::from_millis(50);

/// How much of the log of a process is worth repeating.
const LAST_LINES: usize = 8;

/// A cluster while it is being started.
pub(super) struct Site<'a> {
    pub(super) place: &'a Place,
    pub(super) kubernetes: Tool,
    pub(super) tools: &'a Path,
    tell: Tell<'a>,
    start: Instant,
    parts: RefCell<Vec<(String, Duration)>>,
}

impl<'a> Site<'a> {
    pub(super) fn new(place: &'a Place, kubernetes: Tool, tools: &'a Path, tell: Tell<'a>) -> Self {
        Self { place, kubernetes, tools, tell, start: clock::now(), parts: RefCell::default() }
    }

    /// A program of a tool.
    pub(super) fn program(&self, tool: &Tool, name: &str) -> PathBuf {
        tool.place(self.tools).join(name)
    }

    /// A program of Kubernetes.
    pub(super) fn kube(&self, name: &str) -> PathBuf {
        self.program(&self.kubernetes, name)
    }

    /// kubectl inside the namespace, as the administrator.
    pub(super) fn kubectl(&self, namespace: &str) -> Kubectl {
        Kubectl::new(&self.kube("kubectl"), &self.place.kubeconfig_of("admin"), self.place.directory(), namespace)
    }

    /// Writes a file of configuration and says where it is.
    pub(super) fn configure(&self, file: &str, text: impl AsRef<[u8]>) -> Result<PathBuf, Error> {
        let path = self.place.configuration(file);
        if std::fs::read(&path).is_ok_and(|there| there == text.as_ref()) {
            // kube-proxy ends when its file is written, even with the same text.
            return Ok(path);
        }
        std::fs::write(&path, text).map_err(Error::io(format!("write `{}`", path.display())))?;
        Ok(path)
    }

    /// Makes a directory below that of the cluster.
    pub(super) fn directory(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.place.directory().join(name);
        std::fs::create_dir_all(&path).map_err(Error::io(format!("create `{}`", path.display())))?;
        Ok(path)
    }

    /// Notes that a part has come up.
    pub(super) fn done(&self, what: &str) {
        let elapsed = self.start.elapsed();
        (self.tell)(&format!("{:>7.1} s  {what}", elapsed.as_secs_f64()));
        self.parts.borrow_mut().push((what.to_owned(), elapsed));
    }

    pub(super) fn parts(&self) -> Vec<(String, Duration)> {
        self.parts.borrow().clone()
    }

    /// Waits until a process is ready, and says why if it never is.
    pub(super) fn until(
        &self,
        process: &str,
        what: &str,
        limit: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> Result<(), Error> {
        let start = clock::now();
        while !ready() {
            if process::running(self.place, process).is_none() {
                return Err(self.failed(process, "has ended"));
            }
            if start.elapsed() > limit {
                return Err(self.failed(process, &format!("is not ready after {limit:?} ({what})")));
            }
            std::thread::sleep(POLL);
        }
        self.done(what);
        Ok(())
    }

    /// Makes sure that all that was started still runs.
    pub(super) fn check(&self) -> Result<(), Error> {
        let started = process::started(self.place);
        let ended = started.iter().find(|name| process::running(self.place, name).is_none());
        ended.map_or(Ok(()), |name| Err(self.failed(name, "has ended")))
    }

    fn failed(&self, process: &str, how: &str) -> Error {
        let log = self.place.log(process);
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let last = lines.get(lines.len().saturating_sub(LAST_LINES)..).unwrap_or_default().join("\n");
        let problem = format!("{process} {how}; the end of `{}`:\n{last}", log.display());
        Error::Cluster { name: self.place.name().to_string(), problem }
    }
}

/// Whether a server answers a plain HTTP request with 200.
pub(super) fn answers(address: &str, path: &str) -> bool {
    let asked = || -> std::io::Result<String> {
        let address: SocketAddr = address.parse().map_err(std::io::Error::other)?;
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    asked().is_ok_and(|answer| answer.split(' ').nth(1) == Some("200"))
}
