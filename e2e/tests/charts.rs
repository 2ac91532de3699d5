//! What every Helm makes of the charts of this repository, without a cluster. A Helm that is not installed is skipped.

#![expect(clippy::print_stdout, reason = "what is skipped is said")]

#[path = "charts/agent.rs"]
mod agent;
#[path = "charts/cascade.rs"]
mod cascade;
#[path = "charts/embedded.rs"]
mod embedded;
#[path = "charts/library.rs"]
mod library;
#[path = "charts/lock.rs"]
mod lock;
#[path = "charts/names.rs"]
mod names;
#[path = "charts/umbrella.rs"]
mod umbrella;
#[path = "charts/values.rs"]
mod values;

use anyhow::Result;
use jobwright_e2e::render::Renderer;
use jobwright_e2e::version::HelmVersion;
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// A test, by its name.
type Test = (&'static str, fn(&Renderer) -> Result<()>);

const SUITES: &[&[Test]] = &[
    library::TESTS,
    values::TESTS,
    lock::TESTS,
    names::TESTS,
    umbrella::TESTS,
    agent::TESTS,
    cascade::TESTS,
    embedded::TESTS,
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for version in HelmVersion::ALL {
        let tests = SUITES.iter().flat_map(|suite| suite.iter());
        let helm = Renderer::find(version).map(Arc::new);
        if let Err(error) = &helm
            && !arguments.list
        {
            println!("skipped: charts with Helm {version}: {error}");
        }
        for (name, play) in tests {
            let name = format!("{name} ({version})");
            trials.push(match &helm {
                Ok(helm) => {
                    let helm = Arc::clone(helm);
                    Trial::test(name, move || play(&helm).map_err(|error| Failed::from(format!("{error:#}"))))
                }
                Err(_) => Trial::test(name, || Ok(())).with_ignored_flag(true),
            });
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A directory of the repository.
fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
