//! The command line: arguments in, words and exit codes out. Everything else is in the libraries.

mod arguments;
mod cluster;
mod commands;
mod failure;
mod output;

pub use arguments::command;

use arguments::{Arguments, Channel};
use clap::FromArgMatches as _;
use failure::{Failure, Kind};
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command line and gives its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let typed: Vec<OsString> = arguments.into_iter().collect();
    if typed.get(1).is_some_and(|word| word == commands::WATCH_GROUP) {
        return commands::watch_group();
    }
    let parsed = command().try_get_matches_from(&typed).and_then(|matches| Arguments::from_arg_matches(&matches));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no errors. If the terminal is gone, nothing can be printed.
            let _ = error.print();
            if !error.use_stderr() {
                return ExitCode::SUCCESS;
            }
            if arguments::ask_for_json(&typed) {
                output::line(&Failure::new(Kind::Usage, summary(&error)).to_json().to_string());
            }
            return ExitCode::from(Kind::Usage.exit_code());
        }
    };
    let document = arguments.command.document();
    let done = commands::run(arguments);
    match done.and_then(|()| output::lost().map_or(Ok(()), |lost| Err(lost.documented()))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let is_missing = !failure.is_documented && !failure.message().is_empty();
            match document.filter(|_| is_missing) {
                Some(Channel::Output) => output::line(&failure.to_json().to_string()),
                Some(Channel::Errors) => output::note(&failure.to_json().to_string()),
                None => {}
            }
            output::failure(&failure);
            ExitCode::from(failure.kind.exit_code())
        }
    }
}

/// The first line of an error in the arguments, without what clap adds for people.
fn summary(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}
