//! What the commands do: one file a command.

mod attention;
mod backfill;
mod cascade;
mod demo;
mod deploy;
mod drydock;
mod init_cert;
mod ledgers;
mod lock;
mod logs;
mod plan;
mod render;
mod run;
mod session;
mod signals;
mod task;
mod watchdog;

pub(crate) use watchdog::{WATCH_GROUP, run as watch_group};

use crate::arguments::{self, Arguments, Command};
use crate::failure::{ErrorExt as _, Failure, Kind};
use std::io::Write as _;

/// Runs a command.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::Deploy(arguments) => deploy::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Status(arguments) => ledgers::status(&arguments),
        Command::History(arguments) => ledgers::history(&arguments),
        Command::Logs(arguments) => logs::run(&arguments),
        Command::Lock(arguments) => lock::run(&arguments),
        Command::Backfill(arguments) => backfill::run(&arguments),
        Command::InitCert(arguments) => init_cert::run(&arguments),
        Command::Cascade(arguments) => cascade::run(&arguments),
        Command::Render(arguments) => render::run(&arguments),
        Command::Demo(demo) => demo::run(&demo),
        Command::Drydock(drydock) => drydock::run(drydock),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut arguments::command(), "jobwright", &mut script);
            std::io::stdout().write_all(&script).or_fail(Kind::Internal)
        }
        Command::Man => {
            clap_mangen::Man::new(arguments::command()).render(&mut std::io::stdout()).or_fail(Kind::Internal)
        }
    }
}
