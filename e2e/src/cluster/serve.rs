//! A small server of git repositories (`/git/NAME.git`, smart HTTP) and of files (`/files/…`: charts and their index).

mod request;

use crate::error::Error;
use request::Request;
use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// What is served.
#[derive(Debug)]
struct Roots {
    git: PathBuf,
    files: PathBuf,
}

/// An answer.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: String,
    headers: Vec<String>,
    body: Vec<u8>,
}

/// Serves until it is killed.
pub fn serve(address: &str, git: &Path, files: &Path) -> Result<(), Error> {
    let listener = TcpListener::bind(address).map_err(Error::io(format!("listen on {address}")))?;
    let roots = Arc::new(Roots { git: git.to_owned(), files: files.to_owned() });
    loop {
        let Ok((stream, _)) = listener.accept() else {
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        let roots = Arc::clone(&roots);
        std::thread::spawn(move || {
            // A peer that goes away is its own affair.
            let _ = converse(&stream, &roots);
        });
    }
}

fn converse(stream: &TcpStream, roots: &Roots) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let Some(request) = Request::read(&mut reader, &mut &*stream)? else { return Ok(()) };
    let answer = roots.answer(&request);
    let mut writer = stream;
    let mut head =
        format!("HTTP/1.1 {}\r\nContent-Length: {}\r\nConnection: close\r\n", answer.status, answer.body.len());
    for header in answer.headers {
        head.push_str(&header);
        head.push_str("\r\n");
    }
    writer.write_all(format!("{head}\r\n").as_bytes())?;
    if request.method != "HEAD" {
        writer.write_all(&answer.body)?;
    }
    writer.flush()
}

impl Roots {
    fn answer(&self, request: &Request) -> Answer {
        if let Some(path) = request.path.strip_prefix("/files/") {
            self.file(path)
        } else if let Some(path) = request.path.strip_prefix("/git") {
            self.git(path, request)
                .unwrap_or_else(|error| Answer::plain("500 Internal Server Error", &error.to_string()))
        } else {
            Answer::plain("404 Not Found", "only /git/ and /files/ are served")
        }
    }

    fn file(&self, path: &str) -> Answer {
        let path = Path::new(path);
        let inside = path.components().all(|component| matches!(component, Component::Normal(_)));
        match std::fs::read(self.files.join(path)) {
            Ok(body) if inside => Answer { status: "200 OK".to_owned(), headers: Vec::new(), body },
            _ => Answer::plain("404 Not Found", "no such file"),
        }
    }

    /// Asks git's own program, which speaks CGI.
    fn git(&self, path: &str, request: &Request) -> std::io::Result<Answer> {
        let mut command = Command::new("git");
        command
            .args(["-c", "safe.directory=*", "http-backend"])
            .env("GIT_PROJECT_ROOT", &self.git)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("PATH_INFO", path)
            .env("QUERY_STRING", &request.query)
            .env("REQUEST_METHOD", &request.method)
            .env("CONTENT_LENGTH", request.body.len().to_string())
            .env("REMOTE_ADDR", "127.0.0.1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let handed_on = [
            ("CONTENT_TYPE", "content-type"),
            ("GIT_PROTOCOL", "git-protocol"),
            ("HTTP_CONTENT_ENCODING", "content-encoding"),
        ];
        for (variable, header) in handed_on {
            command.env(variable, request.header(header));
        }
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            let body = request.body.clone();
            // Beside reading the answer: either may be longer than a pipe holds.
            std::thread::spawn(move || {
                let _ = stdin.write_all(&body);
            });
        }
        Ok(Answer::from_cgi(&child.wait_with_output()?.stdout))
    }
}

impl Answer {
    fn plain(status: &str, text: &str) -> Self {
        Self { status: status.to_owned(), headers: Vec::new(), body: format!("{text}\n").into_bytes() }
    }

    /// Takes apart what a CGI program printed.
    fn from_cgi(printed: &[u8]) -> Self {
        let split = printed.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(printed.len());
        let (head, body) = printed.split_at(split);
        let body = body.get(4..).unwrap_or_default().to_vec();
        let head = String::from_utf8_lossy(head).into_owned();
        let (status, headers): (Vec<&str>, Vec<&str>) = head.lines().partition(|line| line.starts_with("Status: "));
        let status = status.first().and_then(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
        Self { status: status.to_owned(), headers: headers.into_iter().map(str::to_owned).collect(), body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &str) -> Request {
        let text = format!("GET {path} HTTP/1.1\r\n\r\n");
        Request::read(&mut text.as_bytes(), &mut std::io::sink()).unwrap().unwrap()
    }

    #[test]
    fn files_are_served_from_below_their_directory_only() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("files")).unwrap();
        std::fs::write(directory.path().join("files/index.yaml"), "x").unwrap();
        std::fs::write(directory.path().join("secret"), "x").unwrap();
        let roots = Roots { git: directory.path().join("git"), files: directory.path().join("files") };
        let status = |path| roots.answer(&request(path)).status;
        assert_eq!(status("/files/index.yaml"), "200 OK");
        assert_eq!(status("/files/../secret"), "404 Not Found");
        assert_eq!(status("/files//etc/passwd"), "404 Not Found");
        assert_eq!(status("/elsewhere"), "404 Not Found");
    }

    #[test]
    fn the_status_of_a_cgi_program_is_that_of_the_answer() {
        let answer = Answer::from_cgi(b"Status: 404 Not Found\r\nContent-Type: text/plain\r\n\r\nno\r\n\r\n");
        assert_eq!(answer.status, "404 Not Found");
        assert_eq!(answer.headers, ["Content-Type: text/plain"]);
        assert_eq!(answer.body, b"no\r\n\r\n");
    }
}
