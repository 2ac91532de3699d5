//! Commands that take minutes: they write into a file, and somebody hears that they are still at it.

use super::Effort;
use crate::clock;
use crate::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How often a command that still runs is told of.
const PROGRESS: Duration = Duration::from_secs(15);

/// How much of what a failed command wrote is worth repeating.
const LAST_LINES: usize = 12;

/// Runs commands one after another, all of them in one span of time, and keeps what they write in one file.
pub(super) struct Log<'a> {
    path: PathBuf,
    effort: Effort<'a>,
    start: Instant,
}

impl<'a> Log<'a> {
    pub(super) fn new(work: &Path, effort: Effort<'a>) -> Self {
        Self { path: work.join("log"), effort, start: clock::now() }
    }

    /// Runs a command to its end.
    pub(super) fn call(&self, what: &str, command: &mut Command) -> Result<(), Error> {
        let output = File::create(&self.path).map_err(Error::io(format!("write `{}`", self.path.display())))?;
        command.stdout(output);
        self.run(what, command)
    }

    /// Runs a command to its end and returns what it printed.
    pub(super) fn output(&self, what: &str, command: &mut Command) -> Result<String, Error> {
        let printed = self.path.with_extension("printed");
        let file = File::create(&printed).map_err(Error::io(format!("write `{}`", printed.display())))?;
        File::create(&self.path).map_err(Error::io(format!("write `{}`", self.path.display())))?;
        command.stdout(file);
        let ended = self.run(what, command);
        let said = std::fs::read_to_string(&printed).map_err(Error::io(format!("read `{}`", printed.display())))?;
        match ended {
            Ok(()) => Ok(said),
            // Some programs tell of errors where they print.
            Err(Error::Command { command, reason }) => {
                Err(Error::Command { command, reason: format!("{reason}\n{}", last_lines(&said)) })
            }
            Err(other) => Err(other),
        }
    }

    fn run(&self, what: &str, command: &mut Command) -> Result<(), Error> {
        (self.effort.tell)(what);
        let append = File::options().append(true).open(&self.path);
        let log = append.map_err(Error::io(format!("write `{}`", self.path.display())))?;
        command.stdin(Stdio::null()).stderr(log);
        let start = clock::now();
        let mut told = start;
        let mut child = command.spawn().map_err(Error::io(format!("start {} for {what}", line(command))))?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(Error::io(format!("wait for {what}")))? {
                break status;
            }
            if self.start.elapsed() >= self.effort.patience {
                // What it started ends by itself soon, for want of anybody to report to.
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::Late { what: what.to_owned(), limit: self.effort.patience });
            }
            if told.elapsed() >= PROGRESS {
                told = clock::now();
                (self.effort.tell)(&format!("{what}, {} s so far", start.elapsed().as_secs()));
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        if status.success() {
            return Ok(());
        }
        let said = std::fs::read_to_string(&self.path).unwrap_or_default();
        Err(Error::Command { command: line(command), reason: format!("{status}\n{}", last_lines(&said)) })
    }
}

/// Runs a command that is quick and returns what it printed.
pub(super) fn output(command: &mut Command) -> Result<String, Error> {
    let line = line(command);
    let output = command.stdin(Stdio::null()).output().map_err(Error::io(format!("start `{line}`")))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let reason = format!("{}\n{}", output.status, last_lines(&String::from_utf8_lossy(&output.stderr)));
        Err(Error::Command { command: line, reason })
    }
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(LAST_LINES)..).unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effort(patience: Duration) -> Effort<'static> {
        Effort { tell: &|_| {}, patience }
    }

    #[test]
    fn all_commands_together_end_in_time() {
        let directory = tempfile::tempdir().unwrap();
        let log = Log::new(directory.path(), effort(Duration::from_millis(300)));
        log.call("first", Command::new("sleep").arg("0.2")).unwrap();
        let error = log.call("downloading it", Command::new("sleep").arg("60")).unwrap_err();
        assert!(matches!(&error, Error::Late { what, .. } if what == "downloading it"), "{error}");
    }

    #[test]
    fn a_failure_repeats_the_end_of_what_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let log = Log::new(directory.path(), effort(Duration::from_mins(1)));
        let script = "for i in $(seq 30); do echo line $i; done; echo why >&2; exit 2";
        let error = log.call("x", Command::new("sh").args(["-c", script])).unwrap_err().to_string();
        assert!(error.contains("line 30\nwhy") && !error.contains("line 10\n"), "{error}");
    }

    #[test]
    fn what_is_printed_is_kept_apart_from_what_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2"]);
        assert_eq!(
            Log::new(directory.path(), effort(Duration::from_mins(1))).output("x", &mut command).unwrap(),
            "out\n"
        );
    }
}
