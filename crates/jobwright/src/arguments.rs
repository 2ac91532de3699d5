//! The arguments of the command line.

mod backfill;
mod cascade;
mod cluster;
mod deploy;
mod init_cert;
mod ledger;
mod lock;
mod render;

pub(crate) use backfill::{Backfill, Compress, Delivery, Names, SecretValues, Start, Typed, Way};
pub(crate) use cascade::{Cascade, Step};
pub(crate) use cluster::{Cluster, Pace};
pub(crate) use deploy::{Deploy, Guards, Output, Plan, Run, Selection};
pub(crate) use init_cert::{InitCert, Stage};
pub(crate) use ledger::{History, Ledgers, Logs, Whose};
pub(crate) use lock::{Break, Install, Lock, LockedProgram};
pub(crate) use render::Render;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;
use jobwright_jobs::backfill::Address;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Run release jobs on Kubernetes once, with proof
#[derive(Debug, Parser)]
#[command(name = "jobwright", version, about, long_about = None, help_template = TEMPLATE, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}{after-help}\n\nOptions:\n{options}";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Deploy a release: its components, with the jobs before and after them
    Deploy(Box<Deploy>),
    /// Show what a deploy would do, and why
    Plan(Box<Plan>),
    /// Run one job of a release
    Run(Box<Run>),
    /// Show the state of each job of a release
    Status(Box<Ledgers>),
    /// List the runs of jobs, newest first
    History(Box<History>),
    /// Print the log of a run, or its end if the run is over
    Logs(Box<Logs>),
    /// Show or break the lock of a release, or run a program under a lock
    #[command(subcommand)]
    Lock(Lock),
    /// See to the certificate by which the Kubernetes API reaches a webhook
    InitCert(Box<InitCert>),
    /// Capture the state of a cluster and upload it, all of it or say so
    Backfill(Box<Backfill>),
    /// Give a chart a new version, and every chart that depends on it
    Cascade(Cascade),
    /// Render a chart's templates as Helm does, without Helm
    Render(Box<Render>),
    /// Show a release with a job, in a cluster that lives in memory
    Demo(Demo),
    /// Serve a Kubernetes API that lives in memory
    Drydock(Drydock),
    /// Print a script that completes commands in a shell
    Completions {
        /// The shell to complete for
        shell: Shell,
    },
    /// Print the manual page
    Man,
}

/// Where the document of `-o json` is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// To stdout.
    Output,
    /// To stderr: stdout is for data.
    Errors,
}

impl Command {
    /// Where the one JSON document is printed, if one is asked for.
    pub(crate) fn document(&self) -> Option<Channel> {
        let mut channel = Channel::Output;
        let format = match self {
            Self::Deploy(arguments) => arguments.output.output,
            Self::Plan(arguments) => arguments.output.output,
            Self::Run(arguments) => arguments.output.output,
            Self::Status(ledgers) => ledgers.output.output,
            Self::History(arguments) => arguments.ledgers.output.output,
            Self::Logs(arguments) => arguments.ledgers.output.output,
            Self::Lock(Lock::Show(show) | Lock::Break(Break { show, .. })) => show.output,
            Self::InitCert(arguments) => arguments.output.output,
            Self::Backfill(arguments) => {
                if arguments.sink.read().is_ok_and(|sink| sink == Address::Stdout) {
                    channel = Channel::Errors;
                }
                arguments.output.output
            }
            Self::Cascade(arguments) => arguments.output,
            Self::Demo(arguments) => arguments.output,
            Self::Lock(Lock::Run(_) | Lock::Install(_)) => Format::Text,
            Self::Render(_) | Self::Drydock(_) | Self::Completions { .. } | Self::Man => Format::Text,
        };
        (format == Format::Json).then_some(channel)
    }
}

/// Whether arguments that cannot be parsed as a whole ask for a JSON document, wherever they do.
pub(crate) fn ask_for_json(typed: &[OsString]) -> bool {
    let words: Vec<&str> = typed.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--").collect();
    let joined = ["-ojson", "-o=json", "--output=json", "--format=json"];
    let apart = |pair: &[&str]| matches!(pair[0], "-o" | "--output" | "--format") && pair[1] == "json";
    words.iter().any(|word| joined.contains(word)) || words.windows(2).any(apart)
}

/// Commands by what they are for, in the order of the help. Every command is in one of them.
const GROUPS: &[(&str, &[&str])] = &[
    ("Deploy a release with its jobs", &["deploy", "plan", "run"]),
    ("Inspect a release", &["status", "history", "logs", "lock"]),
    ("Run a job by itself", &["init-cert", "backfill"]),
    ("Ship charts", &["render", "cascade"]),
    ("Try it, without a cluster", &["demo", "drydock"]),
    ("Shell and manual", &["completions", "man"]),
];

#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Print one JSON document instead of a story
    #[arg(short, long, value_enum, default_value_t = Format::Text, alias = "format")]
    pub(crate) output: Format,
}

/// How output is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Human-readable text
    Text,
    /// One JSON document
    Json,
}

#[derive(Args, Debug)]
pub(crate) struct Drydock {
    /// Write the kubeconfig here once the API answers
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: PathBuf,
    /// Listen here; loopback and a free port unless told otherwise
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// What containers do, as YAML; without a word on it, a container does what its command says
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Let time pass this many times as fast
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) speed: u32,
    /// Refuse what no role allows
    #[arg(long)]
    pub(crate) rbac: bool,
    /// Serve plain HTTP instead of TLS, to anybody on this machine
    #[arg(long)]
    pub(crate) plain: bool,
}

/// The whole command line, for completions, manual pages and references.
pub fn command() -> clap::Command {
    let command = Arguments::command();
    let width = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max().unwrap_or_default();
    let mut help = String::new();
    for (title, names) in GROUPS {
        help.push_str(&format!("{title}:\n"));
        for name in *names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            help.push_str(&format!("  {name:width$}  {}\n", about.map(ToString::to_string).unwrap_or_default()));
        }
        help.push('\n');
    }
    command.after_help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let command = Arguments::command();
        let mut known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        grouped.sort_unstable();
        known.sort_unstable();
        assert_eq!(grouped, known);
    }

    #[test]
    fn the_arguments_are_consistent() {
        command().debug_assert();
    }
}
