//! The `jobwright` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    jobwright::run(std::env::args_os())
}
