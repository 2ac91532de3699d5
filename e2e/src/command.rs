//! Processes with a clean environment that always end.

use crate::clock;
use crate::error::Error;
use crate::outcome::{Exit, Signal};
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

const POLL: Duration = Duration::from_millis(10);

/// A command that is going to be run.
#[derive(Debug)]
pub(crate) struct Command {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
    stdin: Option<String>,
    deadline: Duration,
    signal: Option<(Signal, Duration)>,
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    command: String,
    pub(crate) exit: Exit,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Command {
    pub(crate) fn new(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
            arguments: Vec::new(),
            environment: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
            directory: None,
            stdin: None,
            deadline: Duration::from_mins(1),
            signal: None,
        }
    }

    /// A program of the system, which may be one for administrators.
    pub(crate) fn system(name: &str) -> Self {
        let mut command = Self::new(Path::new(name));
        command.environment =
            vec![("PATH".into(), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into())];
        command
    }

    pub(crate) fn arguments(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    pub(crate) fn environment(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Runs it in a directory.
    pub(crate) fn directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    pub(crate) fn stdin(mut self, text: Option<String>) -> Self {
        self.stdin = text;
        self
    }

    pub(crate) fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sends a signal after some time, if the command still runs.
    pub(crate) fn signal(mut self, signal: Option<(Signal, Duration)>) -> Self {
        self.signal = signal;
        self
    }

    fn line(&self) -> String {
        let name = self.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let words = self.arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
        std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ")
    }

    /// Starts it; the caller reads its standard output and ends it.
    pub(crate) fn start(&self) -> Result<Child, Error> {
        self.spawn(self.prepare().stderr(Stdio::null()))
    }

    fn prepare(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        if self.signal.is_some() {
            // Whoever started this in the background may have had it ignore signals, and children inherit that.
            command = std::process::Command::new("/usr/bin/env");
            command.arg("--default-signal=INT,TERM").arg(&self.program);
        }
        command
            .args(&self.arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }

    fn spawn(&self, command: &mut std::process::Command) -> Result<Child, Error> {
        command.spawn().map_err(Error::io(format!("start `{}`", self.line())))
    }

    /// Runs it to its end, or kills it at the deadline.
    pub(crate) fn run(self) -> Result<Ended, Error> {
        let command = self.line();
        // A group of its own, so that it can be killed with whatever it starts.
        let mut child = self.spawn(self.prepare().process_group(0))?;
        let stdout = read(child.stdout.take());
        let stderr = read(child.stderr.take());
        if let (Some(text), Some(mut pipe)) = (self.stdin.as_ref(), child.stdin.take()) {
            // A command that does not read all of it says why itself.
            let _ = pipe.write_all(text.as_bytes());
        }
        let exit = self.end(&mut child).map_err(Error::io(format!("wait for `{command}`")))?;
        Ok(Ended { command, exit, stdout: collect(stdout), stderr: collect(stderr) })
    }

    fn end(&self, child: &mut Child) -> std::io::Result<Exit> {
        let start = clock::now();
        let mut signal = self.signal;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(exit(status));
            }
            if let Some((number, _)) = signal.take_if(|(_, delay)| start.elapsed() >= *delay) {
                send(child, number)?;
            }
            if start.elapsed() >= self.deadline {
                kill_group(child);
                child.wait()?;
                return Ok(Exit::Hung);
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Ended {
    /// What it printed, if it ended well.
    pub(crate) fn successful(self) -> Result<String, Error> {
        if self.exit == Exit::Code(0) {
            Ok(self.stdout)
        } else {
            let reason = format!("exit {}, {}", self.exit, self.stderr.trim());
            Err(Error::Command { command: self.command, reason })
        }
    }
}

/// Sends a signal to a child that has not been waited for.
pub(crate) fn send(child: &Child, signal: Signal) -> std::io::Result<()> {
    rustix::process::kill_process(id(child)?, signal.unix()).map_err(std::io::Error::from)
}

/// Kills a child and whatever it started: that holds on to its output, which is read to the end.
fn kill_group(child: &mut Child) {
    let killed = id(child).map(|id| rustix::process::kill_process_group(id, Signal::Kill.unix()));
    if !matches!(killed, Ok(Ok(()))) {
        // Without its group, then; it may have ended by itself.
        let _ = child.kill();
    }
}

fn id(child: &Child) -> std::io::Result<rustix::process::Pid> {
    let id = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    id.ok_or_else(|| std::io::Error::other("the process has no usable id"))
}

fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(number)) => Signal::from_number(number).map_or(Exit::Code(-number), Exit::Signal),
        (None, None) => Exit::Hung,
    }
}

fn read(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is still worth reporting.
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

fn collect(reader: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        Command::new(Path::new("/bin/sh")).arguments(["-c", script])
    }

    #[test]
    fn output_and_exit_are_kept_apart() {
        let ended = shell("echo out; echo err >&2; exit 3").run().unwrap();
        assert_eq!((ended.exit, ended.stdout.as_str(), ended.stderr.as_str()), (Exit::Code(3), "out\n", "err\n"));
        assert!(ended.successful().unwrap_err().to_string().contains("exit 3, err"));
    }

    #[test]
    fn only_what_is_given_is_in_the_environment() {
        let ended = shell("echo \"$HOME|$ONE\"").environment("ONE", "1").run().unwrap();
        assert_eq!(ended.stdout, "|1\n");
    }

    #[test]
    fn a_signal_comes_after_its_time() {
        let ended = shell("exec sleep 60").signal(Some((Signal::Terminate, Duration::from_millis(50)))).run().unwrap();
        assert_eq!(ended.exit, Exit::Signal(Signal::Terminate));
    }

    #[test]
    fn what_hangs_is_killed() {
        let ended = shell("sleep 60; true").deadline(Duration::from_millis(50)).run().unwrap();
        assert_eq!(ended.exit, Exit::Hung);
    }

    #[test]
    fn input_reaches_the_command() {
        assert_eq!(shell("cat").stdin(Some("hello".to_owned())).run().unwrap().stdout, "hello");
    }
}
