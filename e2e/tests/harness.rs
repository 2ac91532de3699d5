//! The cluster command itself: two at once, twice in a row, killed half way, and nothing left behind.
//!
//! Behind a switch of its own, `JOBWRIGHT_HARNESS=1`, because it starts and ends clusters (called `harness1` and
//! `harness2`); the tools have to be there (`cluster tools --tier full`, `cluster tools --tier light`).

#![expect(clippy::disallowed_methods, reason = "the environment has the switch, and moments are real ones")]
#![expect(clippy::print_stdout, reason = "what is skipped is said")]

#[path = "harness/cluster.rs"]
mod cluster;
#[path = "harness/survey.rs"]
mod survey;

use anyhow::{Result, ensure};
use cluster::{FULL, LIGHT};
use jobwright_e2e::results;
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use survey::Survey;

const SWITCH: &str = "JOBWRIGHT_HARNESS";

type Test = (&'static str, fn() -> Result<()>);

const TESTS: &[Test] = &[
    ("two_clusters_run_at_once_and_one_does_not_end_the_other", two_at_once),
    ("a_cluster_starts_twice_in_a_row", twice_in_a_row),
    ("up_on_a_cluster_that_runs_starts_what_has_ended", what_has_ended),
    ("two_starts_of_one_name_wait_for_each_other", same_name),
    ("down_copes_with_a_start_that_was_killed_at_any_moment", down_after_kill),
    ("up_copes_with_a_start_that_was_killed_at_any_moment", up_after_kill),
];

/// When a start is killed. A whole one takes about five seconds.
const MOMENTS: [u64; 12] = [0, 20, 60, 120, 250, 500, 900, 1400, 2000, 2700, 3500, 4500];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // They use the same names, and look whether anything of them is left.
    arguments.test_threads = Some(1);
    let on = std::env::var_os(SWITCH).is_some_and(|switch| !switch.is_empty());
    if !on && !arguments.list {
        println!(
            "skipped: {} tests of the cluster command, because {SWITCH} is not set (it starts clusters)",
            TESTS.len()
        );
    }
    let trial = |(name, play): &Test| {
        let (name, play) = (*name, *play);
        let test = move || {
            let start = Instant::now();
            let played = play();
            record(name, played.is_ok(), start.elapsed()).map_err(failed)?;
            played.map_err(failed)
        };
        Trial::test(name, test).with_ignored_flag(!on)
    };
    libtest_mimic::run(&arguments, TESTS.iter().map(trial).collect()).exit_code()
}

fn failed(error: anyhow::Error) -> Failed {
    Failed::from(format!("{error:#}"))
}

/// Writes down how a test ended, if anybody wants to know.
fn record(name: &str, passed: bool, time: Duration) -> Result<()> {
    let Some(file) = std::env::var_os(results::FILE) else { return Ok(()) };
    let result = if passed { "passed" } else { "failed" };
    let line = json!({"case": name, "on": "the cluster command", "result": result, "seconds": time.as_secs()});
    Ok(results::add(Path::new(&file), &line)?)
}

/// Plays between two looks at the machine, and wants them to be the same.
fn leaving_nothing(play: impl FnOnce() -> Result<()>) -> Result<()> {
    for cluster in [FULL, LIGHT] {
        cluster.down()?;
    }
    let before = Survey::take()?;
    let played = play();
    // What fails is not to stand in the way of the next.
    for cluster in [FULL, LIGHT] {
        cluster.down()?;
    }
    played?;
    let left = Survey::take()?.since(&before);
    ensure!(left.is_empty(), "left behind:\n{}", left.join("\n"));
    Ok(())
}

fn two_at_once() -> Result<()> {
    leaving_nothing(|| {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| LIGHT.up());
            FULL.up()?;
            other.join().map_err(|_| anyhow::anyhow!("the start of the second panicked"))?
        })?;
        FULL.run_pod()?;
        for (cluster, name) in [(FULL, "one"), (LIGHT, "other")] {
            cluster.kubectl(&["create", "configmap", name])?;
        }
        let listed = LIGHT.kubectl(&["get", "configmaps", "--output=name"])?;
        ensure!(listed.contains("configmap/other") && !listed.contains("configmap/one"), "{listed}");
        FULL.down()?;
        LIGHT.kubectl(&["get", "configmap", "other"])?;
        Ok(())
    })
}

fn twice_in_a_row() -> Result<()> {
    for _ in 0..2 {
        leaving_nothing(|| {
            FULL.up()?;
            FULL.run_pod()?;
            FULL.down()
        })?;
    }
    Ok(())
}

fn what_has_ended() -> Result<()> {
    leaving_nothing(|| {
        FULL.up()?;
        FULL.run_pod()?;
        let uid = FULL.kubectl(&["get", "pod", "p", "--output=jsonpath={.metadata.uid}"])?;
        FULL.kill("kube-scheduler")?;
        let status = FULL.status()?;
        ensure!(status.contains("ENDED: kube-scheduler"), "{status}");
        FULL.up()?;
        let status = FULL.status()?;
        ensure!(!status.contains("ENDED"), "{status}");
        // What ran went on.
        ensure!(FULL.kubectl(&["get", "pod", "p", "--output=jsonpath={.metadata.uid}"])? == uid, "the pod is another");
        Ok(())
    })
}

fn same_name() -> Result<()> {
    leaving_nothing(|| {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| LIGHT.up());
            LIGHT.up()?;
            other.join().map_err(|_| anyhow::anyhow!("the second start panicked"))?
        })?;
        LIGHT.kubectl(&["get", "nodes"])?;
        Ok(())
    })
}

fn down_after_kill() -> Result<()> {
    for moment in MOMENTS {
        leaving_nothing(|| {
            kill_start(moment)?;
            FULL.down()
        })
        .map_err(|error| error.context(format!("killed after {moment} ms")))?;
    }
    Ok(())
}

fn up_after_kill() -> Result<()> {
    for moment in MOMENTS {
        leaving_nothing(|| {
            kill_start(moment)?;
            FULL.up()?;
            FULL.run_pod()
        })
        .map_err(|error| error.context(format!("killed after {moment} ms")))?;
    }
    Ok(())
}

/// Starts the cluster and kills the command, and nothing but the command.
fn kill_start(moment: u64) -> Result<()> {
    let start = Instant::now();
    let mut child = FULL.start_up()?;
    std::thread::sleep(Duration::from_millis(moment).saturating_sub(start.elapsed()));
    child.kill()?;
    child.wait()?;
    Ok(())
}
