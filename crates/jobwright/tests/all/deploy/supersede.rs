//! A forced deploy while the last run still runs: nothing has to be deleted by hand.

use crate::deploy::stage::{Stage, job};

const OLD: &str = "echo backfill; sleep 90";

/// Deploys a job that takes long, is asked to force it meanwhile, and gives what that said.
fn force_meanwhile(policy: &str) -> (Stage, crate::deploy::stage::Said) {
    let more = format!("phase: post, run: OnChange, onSupersede: {policy}, onCancel: Leave");
    let stage = Stage::new(&format!("jobs:\n{}", job("backfill", OLD, &more)));
    let first = stage.start("deploy");
    stage.wait_for_starts(OLD, 1);
    first.signal(rustix::process::Signal::INT);
    first.wait().expect(130);
    let said = stage.jobwright("deploy --force -o json");
    (stage, said)
}

#[test]
fn with_wait_the_last_run_ends_and_the_next_follows() {
    let (stage, said) = force_meanwhile("Wait");
    assert_eq!(said.expect(0).json()["jobs"][0]["outcome"], "succeeded");
    assert_eq!(stage.starts(OLD), 2);
    let history = stage.jobwright("history -o json").expect(0).json();
    let outcomes: Vec<&str> =
        history["runs"].as_array().unwrap().iter().map(|run| run["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["Succeeded", "Succeeded"]);
}

#[test]
fn with_replace_the_last_run_is_stopped() {
    let (stage, said) = force_meanwhile("Replace");
    assert_eq!(said.expect(0).json()["jobs"][0]["outcome"], "succeeded");
    assert_eq!(stage.starts(OLD), 2);
    let history = stage.jobwright("history -o json").expect(0).json();
    assert_eq!(history["runs"][1]["outcome"], "Superseded", "{history}");
}

#[test]
fn with_fail_the_next_is_refused_with_the_remedy_and_the_last_run_goes_on() {
    let (stage, said) = force_meanwhile("Fail");
    let report = said.expect(1).json();
    let reason = report["jobs"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("onSupersede") && reason.contains("run 1"), "{reason}");
    assert_eq!(stage.starts(OLD), 1);
}
