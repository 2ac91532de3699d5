//! What people see: errors with hints, tables, progress, and colours where there is a terminal.

pub(crate) mod backfill;
pub(crate) mod findings;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod table;

use crate::failure::{Failure, Kind};
use anstyle::{AnsiColor, Style};
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::OnceLock;
use std::time::Duration;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const DOUBTFUL: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const STRONG: Style = Style::new().bold();

/// Prints why a command failed, and hints.
pub(crate) fn failure(failure: &Failure) {
    let text = failure.message();
    if !text.is_empty() {
        note(&format!("{ERROR}error{ERROR:#}: {text}"));
    }
    for hint in &failure.hints {
        note(&format!("{HINT}hint{HINT:#}: {hint}"));
    }
}

/// A line for people, beside whatever the command prints.
pub(crate) fn note(line: &str) {
    // If it cannot be written, there is nowhere to report that.
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// A line of the command's output.
pub(crate) fn line(line: &str) {
    if let Err(error) = writeln!(anstream::stdout(), "{line}") {
        // A reader that has read enough is no failure.
        if error.kind() != io::ErrorKind::BrokenPipe {
            LOST.get_or_init(|| error.to_string());
        }
    }
}

/// Why a line of the command's output could not be written.
static LOST: OnceLock<String> = OnceLock::new();

/// The failure of a command whose output could not be written completely.
pub(crate) fn lost() -> Option<Failure> {
    let cause = LOST.get()?;
    Some(Failure::new(Kind::Internal, format!("cannot write to standard output: {cause}")))
}

/// Whether somebody watches on a terminal that can do more than write lines.
pub(crate) fn is_watched() -> bool {
    #[expect(clippy::disallowed_methods, reason = "the environment comes in here")]
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    std::io::stderr().is_terminal() && !is_dumb
}

/// How wide the terminal is; the usual width where there is none.
pub(crate) fn width() -> usize {
    let size =
        rustix::termios::tcgetwinsize(std::io::stderr()).or_else(|_| rustix::termios::tcgetwinsize(std::io::stdout()));
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(100)
}

/// How high the terminal is.
pub(crate) fn height() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.ok().map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0).unwrap_or(24)
}

/// A duration as people say it: `0.4s`, `12s`, `3m05s`, `1h20m`.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.1}s", duration.as_secs_f64()),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// A number with commas: `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things: `1 batch`, `1,200 batches`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_told_as_people_say_them() {
        for (milliseconds, told) in [
            (420, "0.4s"),
            (9_940, "9.9s"),
            (12_700, "12s"),
            (185_000, "3m05s"),
            (4_800_000, "1h20m"),
            (90_000_000, "1d01h"),
        ] {
            assert_eq!(duration(Duration::from_millis(milliseconds)), told);
        }
    }

    #[test]
    fn numbers_are_told_with_commas() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([counted(1, "batch", "batches"), counted(0, "batch", "batches")], ["1 batch", "0 batches"]);
    }
}
