//! The command line: arguments in, words and exit codes out. Everything else is in the libraries.

mod arguments;
mod cluster;
mod commands;
mod failure;
mod output;

pub use arguments::command;

use arguments::Arguments;
use clap::FromArgMatches as _;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command line and says how it ended.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let parsed = command().try_get_matches_from(arguments).and_then(|matches| Arguments::from_arg_matches(&matches));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no errors; where the terminal is gone there is nobody to tell.
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(failure::Kind::Usage.exit_code())
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match commands::run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::failure(&failure);
            ExitCode::from(failure.kind.exit_code())
        }
    }
}
