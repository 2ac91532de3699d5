//! Ctrl-C and `--timeout`: once to end cleanly, twice to stop without waiting.

use crate::deploy::stage::{Stage, job};
use rustix::process::Signal;
use serde_json::json;

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
fn second_signal_stops_without_waiting_and_releases_the_lock() {
    let stage = Stage::new(&format!(
        "jobs:\n{}",
        job("migrate", "trap \"\" TERM; echo deaf; sleep 600", "phase: pre, onCancel: Stop, run: OnChange")
    ));
    let deploy = stage.start("deploy");
    stage.wait_for_starts("trap \"\" TERM; echo deaf; sleep 600", 1);
    deploy.signal(Signal::INT);
    deploy.wait_for_error("cancelling");
    deploy.signal(Signal::INT);
    let said = deploy.wait().expect(130);
    assert!(said.error.contains("stopped without waiting"), "{}", said.error);
    let lock = stage.jobwright("lock show -o json").expect(0).json();
    assert!(lock["holder"].is_null(), "the next deploy need not wait: {lock}");
    let ledger = stage.jobwright("status -o json").expect(0).json();
    assert_eq!(ledger["jobs"][0]["job"], "migrate", "the ledger can be read: {ledger}");
}

#[test]
fn a_deploy_that_takes_too_long_is_cancelled() {
    let stage = Stage::new(&format!("jobs:\n{}", job("migrate", LONG, "phase: pre, onCancel: Stop")));
    let said = stage.jobwright("deploy --timeout 2s").expect(1);
    assert!(said.error.contains("error: timed out after 2s"), "{}", said.error);
    let said = stage.jobwright("deploy --timeout 2s -o json").expect(1);
    let report = said.json();
    assert_eq!((&report["outcome"], &report["error"]), (&json!("cancelled"), &json!("timed out after 2s")));
}

#[test]
fn timeout_while_waiting_for_the_lock_names_its_holder() {
    let line = "echo longer; sleep 3000";
    let stage = Stage::new(&format!("jobs:\n{}", job("migrate", line, "phase: pre, onCancel: Leave")));
    let first = stage.start("deploy");
    stage.wait_for_starts(line, 1);
    let said = stage.jobwright("deploy --timeout 4s -o json").expect(1);
    let document = said.json();
    let error = document["error"].as_str().unwrap();
    let (start, end) =
        ("timed out after 4s while waiting for `", "`, which is deploying this release; nothing was changed");
    assert!(error.starts_with(start) && error.ends_with(end), "{error}");
    assert!(error.contains(&format!("(process {}, ", first.pid().as_raw_nonzero())), "{error}");
    assert!(said.error.contains(&format!("error: {error}")), "{}", said.error);
    assert!(document["hints"][0].as_str().unwrap().contains("jobwright lock show"), "{document}");
    let second = stage.start("deploy -o json");
    second.wait_for_error("which is deploying this release");
    second.signal(Signal::INT);
    let document = second.wait().expect(130).json();
    assert_eq!(document["outcome"], "cancelled", "{document}");
    assert!(document["error"].as_str().unwrap().starts_with("cancelled while waiting for `"), "{document}");
    first.signal(Signal::TERM);
    first.wait().expect(130);
}
