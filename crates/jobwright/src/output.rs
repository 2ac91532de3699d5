//! What people see: errors with hints, and colours where there is a terminal.

use crate::failure::Failure;
use anstream::{eprintln, println};
use anstyle::{AnsiColor, Style};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const STRONG: Style = Style::new().bold();

/// Says why a command failed and what to do about it.
pub(crate) fn failure(failure: &Failure) {
    eprintln!("{ERROR}error{ERROR:#}: {:#}", failure.source);
    for hint in &failure.hints {
        eprintln!("{HINT}hint{HINT:#}: {hint}");
    }
}

/// A line for people, beside whatever the command prints.
pub(crate) fn note(line: &str) {
    eprintln!("{line}");
}

/// A line of the command's output.
pub(crate) fn line(line: &str) {
    println!("{line}");
}
