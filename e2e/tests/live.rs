//! Tests on a real cluster, behind one switch: `JOBWRIGHT_E2E`, the name of a cluster of `cluster up` or the path of a
//! kubeconfig. Without it they are skipped, and a line says how many.

#![expect(clippy::disallowed_methods, reason = "the environment says where to play")]
#![expect(clippy::print_stdout, reason = "what is skipped is said")]

#[path = "live/argocd.rs"]
mod argocd;
#[path = "live/flux.rs"]
mod flux;
#[path = "live/helm.rs"]
mod helm;
#[path = "live/jobs.rs"]
mod jobs;
#[path = "live/webhook.rs"]
mod webhook;

use anyhow::Result;
use jobwright_e2e::live::{Live, Need, SWITCH, Stage};
use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;
use std::sync::Arc;

/// A test, and what it cannot do without.
struct Test {
    name: &'static str,
    needs: &'static [Need],
    play: fn(&Stage<'_>) -> Result<()>,
}

const SUITES: &[&[Test]] = &[jobs::TESTS, webhook::TESTS, helm::TESTS, flux::TESTS, argocd::TESTS];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
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
        }
        return Trial::test(test.name, || Ok(())).with_ignored_flag(true);
    }
    Trial::test(test.name, move || {
        let stage = Stage::new(&live, test.name).map_err(failed)?;
        (test.play)(&stage).map_err(|error| Failed::from(format!("{error:#}\n{}", stage.view())))
    })
}

fn failed(error: jobwright_e2e::error::Error) -> Failed {
    Failed::from(format!("{:#}", anyhow::Error::from(error)))
}
