//! Random deploys of one release, judged by a model of what must have run and what must exist.
//!
//! A case is a plan and some steps: edits of the plan, versions up and down, options, jobs and components that fail, kills at
//! any API call, and another client that deletes, changes and takes objects and Jobs. After each deploy the cluster, the
//! witness of its containers and the report have to be what the model says.
//!
//! `cargo test` plays 300 cases, always the same. `PROPTEST_CASES=10000` plays others, new ones each time (`.ci/nightly`);
//! `PROPTEST_RNG_SEED` plays those of a number again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot continue has failed")]

mod case;
mod coverage;
mod generate;
mod judge;
mod oracle;
mod plan;
mod state;
#[path = "../support/mod.rs"]
mod support;
mod world;

use crate::case::Case;
use crate::judge::{Marks, Wrong, play};
use crate::support::cluster::block_on;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed, TestCaseError, TestError, TestRng, TestRunner};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// What is played is divided into as many parts, each with a seed of its own, whatever the number of processors.
const PARTS: u32 = 8;
const CASES: u32 = 300;
const SEED: u64 = 1;

/// How many cases are played, and from which seed on.
#[expect(clippy::disallowed_methods, reason = "switches for `.ci/nightly`")]
fn wanted() -> (u32, u64) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    let cases = number("PROPTEST_CASES").map(|cases| u32::try_from(cases).expect("PROPTEST_CASES"));
    let new = || if cases.is_some() { rand_seed() } else { SEED };
    (cases.unwrap_or(CASES), number("PROPTEST_RNG_SEED").unwrap_or_else(new))
}

fn rand_seed() -> u64 {
    use proptest::prelude::Rng as _;
    TestRunner::default().rng().next_u64()
}

#[test]
fn deploys_do_what_the_model_says() {
    let (cases, seed) = wanted();
    let (threads, next) = (std::thread::available_parallelism().map_or(1, usize::from), AtomicU32::new(0));
    let marks: Mutex<Marks> = Mutex::default();
    let failures: Mutex<Vec<String>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let part = next.fetch_add(1, Ordering::Relaxed);
                    if part >= PARTS {
                        return;
                    }
                    let cases = cases / PARTS + u32::from(part < cases % PARTS);
                    failures.lock().unwrap().extend(explore(cases, seed.wrapping_add(part.into()), &marks).err());
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "seed {seed}:\n{}", failures.join("\n"));
    coverage::check(&marks.into_inner().unwrap(), cases);
}

/// Plays cases until one goes wrong, and gives the smallest that does.
fn explore(cases: u32, seed: u64, marks: &Mutex<Marks>) -> Result<(), String> {
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 2_000,
        max_shrink_time: 60_000,
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(config, rng(seed));
    let explored = runner.run(&generate::case(), |case| match block_on(play(&case)) {
        Ok(seen) => {
            let mut marks = marks.lock().unwrap();
            for (what, count) in seen {
                *marks.entry(what).or_default() += count;
            }
            Ok(())
        }
        Err(wrong) => Err(TestCaseError::fail(wrong.problems.join("\n"))),
    });
    match explored {
        Ok(()) => Ok(()),
        Err(TestError::Fail(_, case)) => Err(tell(&case)),
        Err(TestError::Abort(why)) => Err(why.to_string()),
    }
}

/// The first deploys of a case, up to the one that went wrong, and what was wrong with it.
fn tell(case: &Case) -> String {
    match block_on(play(case)) {
        Ok(_) => format!("it went wrong only once: {case:#?}"),
        Err(Wrong { story, problems }) => format!("{}=> {}\n", story.join("\n"), problems.join("\n=> ")),
    }
}

fn rng(seed: u64) -> TestRng {
    let bytes: Vec<u8> = seed.to_le_bytes().into_iter().cycle().take(32).collect();
    TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)
}
