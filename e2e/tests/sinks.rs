//! Backfills of a drydock into real sinks: Debian's Prometheus and an S3 server. A sink that is not installed is skipped.

#![expect(clippy::print_stdout, reason = "what is skipped is said")]

#[path = "sinks/prometheus.rs"]
mod prometheus;
#[path = "sinks/s3.rs"]
mod s3;
#[path = "sinks/stage.rs"]
mod stage;

use anyhow::Result;
use jobwright_e2e::install::catalogue::VERSITYGW;
use jobwright_e2e::install::debian;
use jobwright_e2e::tools::Tools;
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A test, by its name: it is given the program of its sink.
type Test = (&'static str, fn(&Path) -> Result<()>);

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let server = Tools::directory(None).map(|tools| VERSITYGW.place(&tools).join("versitygw"));
    let mut trials = Vec::new();
    for (tests, program, how) in [
        (prometheus::TESTS, debian::find("prometheus"), "apt-get install prometheus"),
        (s3::TESTS, server.ok().filter(|path| path.is_file()), "cargo xtask tools versitygw-1.8.0"),
    ] {
        for (name, play) in tests {
            if program.is_none() && !arguments.list {
                println!("skipped: {name}: its sink is not installed (`{how}`)");
            }
            trials.push(trial(name, program.clone(), *play));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(name: &str, program: Option<PathBuf>, play: fn(&Path) -> Result<()>) -> Trial {
    match program {
        Some(program) => Trial::test(name, move || play(&program).map_err(|error| Failed::from(format!("{error:#}")))),
        None => Trial::test(name, || Ok(())).with_ignored_flag(true),
    }
}
