//! Tests on a real cluster, behind one switch: `JOBWRIGHT_E2E`, the name of a cluster of `cluster up` or the path of a
//! kubeconfig. Without it they are skipped, and a line says how many.

#![expect(clippy::disallowed_methods, reason = "the environment says where to play, and how long it takes is told")]
#![expect(clippy::print_stdout, reason = "what is skipped is said")]

#[path = "live/agent.rs"]
mod agent;
#[path = "live/argocd.rs"]
mod argocd;
#[path = "live/backfill.rs"]
mod backfill;
#[path = "live/deploy.rs"]
mod deploy;
#[path = "live/engine.rs"]
mod engine;
#[path = "live/flux.rs"]
mod flux;
#[path = "live/helm.rs"]
mod helm;
#[path = "live/init_cert.rs"]
mod init_cert;
#[path = "live/jobs.rs"]
mod jobs;
#[path = "live/overlap.rs"]
mod overlap;
#[path = "live/release_hooks.rs"]
mod release_hooks;
#[path = "live/webhook.rs"]
mod webhook;

use anyhow::Result;
use jobwright_e2e::live::{Live, Need, SWITCH, Stage};
use jobwright_e2e::results;
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many are played at a time, unless said otherwise.
const AT_A_TIME: usize = 8;

/// A test, and what it cannot do without.
struct Test {
    name: &'static str,
    needs: &'static [Need],
    play: fn(&Stage<'_>) -> Result<()>,
}

const SUITES: &[&[Test]] = &[
    jobs::TESTS,
    webhook::TESTS,
    init_cert::TESTS,
    init_cert::deployers::TESTS,
    helm::TESTS,
    engine::TESTS,
    deploy::TESTS,
    backfill::TESTS,
    release_hooks::TESTS,
    overlap::TESTS,
    agent::TESTS,
    agent::table::TESTS,
    flux::problem::TESTS,
    flux::remedies::TESTS,
    flux::attempts::TESTS,
    flux::solution::TESTS,
    flux::drift::TESTS,
    flux::release_hooks::TESTS,
    flux::agent::TESTS,
    argocd::old::TESTS,
    argocd::fixed::TESTS,
    argocd::failing::TESTS,
    argocd::database::TESTS,
    argocd::release_hooks::TESTS,
    argocd::agent::TESTS,
];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // They wait for others most of the time.
    arguments.test_threads = arguments.test_threads.or(Some(AT_A_TIME));
    let tests: Vec<&Test> = SUITES.iter().flat_map(|suite| suite.iter()).collect();
    let live = match std::env::var(SWITCH).ok().filter(|switch| !switch.is_empty()) {
        None => None,
        Some(switch) => {
            let image = std::env::var("JOBWRIGHT_IMAGE").unwrap_or_else(|_| "busybox:1".to_owned());
            match Live::find(&switch, &image) {
                Ok(live) => Some(Arc::new(live)),
                Err(error) => {
                    println!("no cluster to test on: {error}");
                    return ExitCode::FAILURE;
                }
            }
        }
    };
    if live.is_none() && !arguments.list {
        let how = "set it to the name of a cluster of `cargo run -p jobwright-e2e --bin cluster -- up`";
        println!("skipped: {} tests on a real cluster, because {SWITCH} is not set ({how})", tests.len());
    }
    let trials = tests.into_iter().map(|test| trial(test, live.clone(), arguments.list)).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(test: &'static Test, live: Option<Arc<Live>>, quiet: bool) -> Trial {
    let Some(live) = live else { return Trial::test(test.name, || Ok(())).with_ignored_flag(true) };
    if let Some(lack) = live.lacks(test.needs) {
        if !quiet {
            println!("skipped: {}: {lack}", test.name);
            if let Err(error) = record(test.name, &live, "skipped", Duration::ZERO) {
                println!("{}", error.explain());
            }
        }
        return Trial::test(test.name, || Ok(())).with_ignored_flag(true);
    }
    Trial::test(test.name, move || {
        let start = Instant::now();
        let stage = Stage::new(&live, test.name).map_err(failed)?;
        let played = (test.play)(&stage);
        let result = if played.is_ok() { "passed" } else { "failed" };
        record(test.name, &live, result, start.elapsed()).map_err(failed)?;
        played.map_err(|error| Failed::from(format!("{error:#}\n{}", stage.view())))
    })
}

/// Writes down how a test ended, if anybody wants to know.
fn record(name: &str, live: &Live, result: &str, time: Duration) -> Result<(), jobwright_e2e::error::Error> {
    let Some(file) = std::env::var_os(results::FILE) else { return Ok(()) };
    let line = json!({"case": name, "on": live.about(), "result": result, "seconds": time.as_secs()});
    results::add(Path::new(&file), &line)
}

fn failed(error: jobwright_e2e::error::Error) -> Failed {
    Failed::from(format!("{:#}", anyhow::Error::from(error)))
}
