//! Ctrl-C: once to end cleanly, twice to leave at once.

use crate::deploy::stage::{Stage, job};
use rustix::process::Signal;

const LONG: &str = "echo long; sleep 100";

#[test]
fn once_it_stops_what_runs_and_the_ledger_says_so() {
    let stage = Stage::new(&format!("jobs:\n{}", job("migrate", LONG, "phase: pre, onCancel: Stop")));
    let deploy = stage.start("deploy -o json");
    stage.wait_for_starts(LONG, 1);
    deploy.signal(Signal::INT);
    let report = deploy.wait().expect(130).json();
    assert_eq!(report["outcome"], "cancelled");
    let history = stage.jobwright("history -o json").expect(0).json();
    assert_eq!(history["runs"][0]["outcome"], "Cancelled", "{history}");
}

#[test]
fn once_it_leaves_what_may_go_on_and_the_next_deploy_takes_it_up() {
    let stage = Stage::new(&format!("jobs:\n{}", job("migrate", LONG, "phase: pre, onCancel: Leave, run: OnChange")));
    let deploy = stage.start("deploy");
    stage.wait_for_starts(LONG, 1);
    deploy.signal(Signal::TERM);
    deploy.wait().expect(130);
    let status = stage.jobwright("status").expect(0);
    assert!(status.out.contains("left running"), "{}", status.out);
    let report = stage.jobwright("deploy -o json").expect(0).json();
    assert_eq!(report["jobs"][0]["outcome"], "succeeded", "{report}");
    assert_eq!(stage.starts(LONG), 1);
}

#[test]
fn twice_it_leaves_now_and_the_next_deploy_takes_it_up() {
    let stage = Stage::new(&format!(
        "jobs:\n{}",
        job("migrate", "trap \"\" TERM; echo deaf; sleep 60", "phase: pre, onCancel: Stop, run: OnChange")
    ));
    let deploy = stage.start("deploy");
    stage.wait_for_starts("trap \"\" TERM; echo deaf; sleep 60", 1);
    deploy.signal(Signal::INT);
    std::thread::sleep(std::time::Duration::from_millis(300));
    deploy.signal(Signal::INT);
    let said = deploy.wait().expect(130);
    assert!(said.error.contains("left at once"), "{}", said.error);
    let ledger = stage.jobwright("status -o json").expect(0).json();
    assert_eq!(ledger["jobs"][0]["job"], "migrate", "the ledger can be read: {ledger}");
}

#[test]
fn a_deploy_that_takes_too_long_is_cancelled() {
    let stage = Stage::new(&format!("jobs:\n{}", job("migrate", LONG, "phase: pre, onCancel: Stop")));
    let said = stage.jobwright("deploy --timeout 2s").expect(1);
    assert!(said.error.contains("took longer than 2.0s"), "{}", said.error);
}
